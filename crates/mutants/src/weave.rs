//! One text with all mutants in it, each behind its switch.
//!
//! At most one is switched on. So the text of a mutant holds no other mutant, and the woven text grows with the
//! number of mutants, not with its power.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    list::Mutant,
    sites::{Place, Site, Sites},
};

/// A file of the core with its mutants.
#[derive(Default)]
pub struct Woven {
    pub text: String,
    /// Which bytes of the text are the mutant's own.
    own: Vec<(Range<usize>, usize)>,
    /// Which bytes hold mutants together with what they stand for.
    around: Vec<(Range<usize>, Vec<usize>)>,
}

/// Whom an error of the compiler is about.
#[derive(Debug, PartialEq)]
pub enum Blame {
    /// The mutant itself is no valid code.
    Mutant(usize),
    /// The mutant, or that it is woven in.
    Weaving(Vec<usize>),
    Nobody,
}

impl Woven {
    pub fn blame(&self, error: &Range<usize>) -> Blame {
        let within = |range: &Range<usize>| range.start <= error.start && error.end <= range.end;
        if let Some((_, mutant)) = self.own.iter().find(|(range, _)| within(range)) {
            return Blame::Mutant(*mutant);
        }
        let innermost =
            self.around.iter().filter(|(range, _)| within(range)).min_by_key(|(range, _)| range.len());
        innermost.map_or(Blame::Nobody, |(_, mutants)| Blame::Weaving(mutants.clone()))
    }
}

/// What is put before and behind a place; nothing behind where the place is empty.
#[derive(Default)]
struct Edit {
    /// Text of the weaver and, with its number, of a mutant.
    before: Vec<(String, Option<usize>)>,
    behind: &'static str,
    mutants: Vec<usize>,
}

pub fn weave(text: &str, sites: &Sites, mutants: &[&Mutant]) -> Woven {
    let mut wraps: BTreeMap<(usize, std::cmp::Reverse<usize>, u8), Edit> = BTreeMap::new();
    for mutant in mutants {
        let Some(site) = site(sites, mutant) else { continue };
        let on = format!("crate::mutant_switch::on({})", mutant.number);
        let number = Some(mutant.number);
        // The same place can be a guard and an operator: they are put around each other.
        let layer = mutant.genre as u8;
        let mut wrap = |place: &Place, own: String| {
            let edit = wraps.entry((place.start, std::cmp::Reverse(place.end), layer)).or_default();
            if edit.mutants.is_empty() {
                edit.before.push(("(".to_owned(), None));
            }
            edit.before.push((format!("if {on} {{ "), None));
            edit.before.push((own, number));
            edit.before.push((" } else ".to_owned(), None));
            edit.behind = " })";
            edit.mutants.push(mutant.number);
        };
        let replaced = |inner: &Place, whole: &Place| {
            let (head, tail) = (&text[whole.start..inner.start], &text[inner.end..whole.end]);
            format!("{head}{}{tail}", mutant.replacement)
        };
        match site {
            Site::Operator { operator, chain } => wrap(chain, replaced(operator, chain)),
            Site::Prefix { operator, whole } => wrap(whole, replaced(operator, whole)),
            Site::Guard { guard } => wrap(guard, mutant.replacement.clone()),
            Site::Field { name, value, shorthand, base } => {
                wrap(value, format!("({}).{name}", &text[base.clone()]));
                if let (true, Some(edit)) =
                    (*shorthand, wraps.get_mut(&(value.start, std::cmp::Reverse(value.end), layer)))
                {
                    edit.before.insert(0, (format!("{name}: "), None));
                }
            }
            Site::Body { at } => {
                let edit = wraps.entry((*at, std::cmp::Reverse(usize::MAX), 0)).or_default();
                edit.before.push((format!(" if {on} {{ "), None));
                edit.before.push((format!("return {};", mutant.replacement), number));
                edit.before.push((" }".to_owned(), None));
            }
            Site::Pattern { end } => {
                let edit = wraps.entry((*end, std::cmp::Reverse(usize::MAX), 0)).or_default();
                edit.before.push((format!(" if !{on}"), number));
            }
            Site::Alone | Site::Impossible => {}
        }
    }
    render(text, wraps)
}

pub fn site<'s>(sites: &'s Sites, mutant: &Mutant) -> Option<&'s Site> {
    sites.get(&(mutant.genre, mutant.line, mutant.column))
}

fn render(text: &str, wraps: BTreeMap<(usize, std::cmp::Reverse<usize>, u8), Edit>) -> Woven {
    let mut woven = Woven::default();
    let mut open: Vec<(usize, usize, Edit)> = Vec::new();
    let mut done = 0;
    let close_until =
        |woven: &mut Woven, open: &mut Vec<(usize, usize, Edit)>, done: &mut usize, at: usize| {
            while let Some((end, start, edit)) = open.pop_if(|(end, ..)| *end <= at) {
                woven.text.push_str(&text[*done..end]);
                *done = end;
                woven.text.push_str(edit.behind);
                woven.around.push((start..woven.text.len(), edit.mutants));
            }
            woven.text.push_str(&text[*done..at]);
            *done = at;
        };
    for ((start, std::cmp::Reverse(end), _), edit) in wraps {
        close_until(&mut woven, &mut open, &mut done, start);
        let begun = woven.text.len();
        for (part, mutant) in &edit.before {
            let from = woven.text.len();
            woven.text.push_str(part);
            woven.own.extend(mutant.map(|mutant| (from..woven.text.len(), mutant)));
        }
        if edit.behind.is_empty() {
            continue;
        }
        woven.text.push_str("{ ");
        open.push((end, begun, edit));
    }
    close_until(&mut woven, &mut open, &mut done, text.len());
    woven
}

/// The file with one mutant in it and no switch.
pub fn plain(text: &str, mutant: &Mutant) -> String {
    let start = offset(text, mutant.line, mutant.column);
    let end = offset(text, mutant.end_line, mutant.end_column);
    format!("{}{}{}", &text[..start], mutant.replacement, &text[end..])
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let within = text[before..].char_indices().nth(column - 1).map_or(text.len() - before, |(at, _)| at);
    before + within
}

/// A module of the woven core that knows which of its mutants is on, and which were reached.
pub fn switch(mutants: usize) -> String {
    format!("{SWITCH}\nconst COUNT: usize = {mutants};\n")
}

const SWITCH: &str = r#"//! Which mutant is on.

use std::sync::{LazyLock, Mutex, atomic::{AtomicBool, Ordering}};
use std::io::Write;

static ON: LazyLock<usize> = LazyLock::new(|| {
    std::env::var("GATEWRIGHT_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(usize::MAX)
});
static REACHED_FILE: LazyLock<Option<Mutex<std::fs::File>>> = LazyLock::new(|| {
    let path = std::env::var_os("GATEWRIGHT_MUTANTS_REACHED")?;
    Some(Mutex::new(std::fs::File::create(path).expect("the list of reached mutants")))
});
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

pub fn on(number: usize) -> bool {
    if let Some(file) = &*REACHED_FILE && !REACHED[number].swap(true, Ordering::Relaxed) {
        let mut file = file.lock().expect("nobody panics here");
        file.write_all(format!("{number}\n").as_bytes()).expect("the list of reached mutants");
    }
    *ON == number
}
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{list::Genre, sites};

    fn mutant(number: usize, genre: Genre, at: (usize, usize), replacement: &str) -> Mutant {
        Mutant {
            number,
            file: String::new(),
            genre,
            line: 1,
            column: at.0 + 1,
            end_line: 1,
            end_column: at.1 + 1,
            replacement: replacement.to_owned(),
            name: String::new(),
            key: String::new(),
        }
    }

    fn woven(text: &str, mutants: &[Mutant]) -> Woven {
        let sites = sites::of(text).expect("it is Rust");
        for mutant in mutants {
            assert!(site(&sites, mutant).is_some(), "{} has a site", mutant.number);
        }
        weave(text, &sites, &mutants.iter().collect::<Vec<_>>())
    }

    fn at(text: &str, part: &str) -> (usize, usize) {
        let start = text.find(part).expect("it is there");
        (start, start + part.len())
    }

    fn plainly(woven: &Woven) -> String {
        woven.text.replace("crate::mutant_switch::", "")
    }

    #[test]
    fn mutants_of_one_place_stand_beside_each_other_and_within_each_other() {
        let text = "fn f() -> bool { !(a < b) && c }";
        let found = woven(
            text,
            &[
                mutant(0, Genre::FnValue, (17, 30), "true"),
                mutant(1, Genre::BinaryOperator, at(text, "&&"), "||"),
                mutant(2, Genre::UnaryOperator, at(text, "!"), ""),
                mutant(3, Genre::BinaryOperator, at(text, "<"), "=="),
                mutant(4, Genre::BinaryOperator, at(text, "<"), ">"),
            ],
        );
        assert_eq!(
            plainly(&found),
            "fn f() -> bool { if on(0) { return true; } (if on(1) { !(a < b) || c } else { \
             (if on(2) { (a < b) } else { !((if on(3) { a == b } else if on(4) { a > b } else { a < b })) }) \
             && c }) }"
        );
    }

    #[test]
    fn guards_arms_and_fields_have_switches() {
        let text = "fn f() -> S { match a { x if p == q => 1, Y => 2, _ => S { k: v, m, ..d } } }";
        let found = woven(
            text,
            &[
                mutant(0, Genre::MatchArmGuard, at(text, "p == q"), "true"),
                mutant(1, Genre::BinaryOperator, at(text, "=="), "!="),
                mutant(2, Genre::MatchArm, at(text, "Y => 2,"), ""),
                mutant(3, Genre::StructField, at(text, "k: v,"), ""),
                mutant(4, Genre::StructField, at(text, "m,"), ""),
            ],
        );
        let text = plainly(&found);
        assert!(text.contains("Y if !on(2) => 2"), "{text}");
        assert!(
            text.contains("{ k: (if on(3) { (d).k } else { v }), m: (if on(4) { (d).m } else { m }), ..d"),
            "{text}"
        );
        assert!(
            text.contains("x if (if on(1) { p != q } else { (if on(0) { true } else { p == q }) }) => 1"),
            "{text}"
        );
    }

    #[test]
    fn an_error_is_the_mutants_where_it_is_in_its_text() {
        let text = "fn f() { a + b }";
        let found = woven(text, &[mutant(7, Genre::BinaryOperator, at(text, "+"), "-")]);
        let own = found.text.find("a - b").expect("it is there");
        assert_eq!(found.blame(&(own..own + 5)), Blame::Mutant(7));
        let kept = found.text.find("a + b").expect("it is there");
        assert_eq!(found.blame(&(kept..kept + 5)), Blame::Weaving(vec![7]));
        assert_eq!(found.blame(&(0..2)), Blame::Nobody);
    }

    #[test]
    fn alone_it_is_replaced_in_the_text() {
        let text = "const Ä: u64 = 2 * 3;";
        let mut alone = mutant(0, Genre::BinaryOperator, (17, 18), "+");
        alone.line = 1;
        assert_eq!(plain(text, &alone), "const Ä: u64 = 2 + 3;");
    }
}
