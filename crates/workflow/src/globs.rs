//! Globs of `may_write`, `protect`, `seed` and of templates: which paths of a repository they mean. Pure over text.
//!
//! Paths are relative to the repository, with `/`. `*` and `?` stay inside a folder, `**` does not, `[a-z]`
//! and `{a,b}` are alternatives. A name without wildcards means the file or everything below the folder;
//! a `/` at the end, everything below. A later `!glob` takes away what an earlier one gave.

/// More alternatives than this in one pattern are not expanded; the text is taken as it is.
const ALTERNATIVES_MAX: usize = 64;

/// An ordered list of globs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs {
    patterns: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    gives: bool,
    segments: Vec<String>,
    /// Its last segment has no wildcard: it means what is below it too.
    is_folder_too: bool,
}

/// What a pattern without any `/` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bare {
    /// The name in the root of the repository.
    InRoot,
    /// The name in every folder.
    Anywhere,
}

impl Globs {
    pub fn new(texts: &[impl AsRef<str>], bare: Bare) -> Globs {
        let patterns = texts.iter().flat_map(|text| {
            let text = text.as_ref().trim();
            let (gives, text) = match text.strip_prefix('!') {
                Some(rest) => (false, rest),
                None => (true, text),
            };
            alternatives(text).into_iter().map(move |text| Pattern::new(gives, &text, bare))
        });
        Globs { patterns: patterns.filter(|pattern| !pattern.segments.is_empty()).collect() }
    }

    /// Whether the list means this path; the last pattern that fits decides.
    pub fn contains(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let fits = self.patterns.iter().rev().find(|pattern| pattern.fits(&parts));
        fits.is_some_and(|pattern| pattern.gives)
    }

    /// Folders and files from which the patterns start: everything before their first wildcard. An empty
    /// text stands for the whole repository.
    pub fn roots(&self) -> Vec<String> {
        let mut roots: Vec<String> =
            self.patterns.iter().filter(|one| one.gives).map(|one| one.literal().join("/")).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    /// Whether surely no path is meant by both. What was taken away again is not looked at: at worst two
    /// that are disjoint are taken for overlapping.
    pub fn is_disjoint(&self, other: &Globs) -> bool {
        let given =
            |globs: &Globs| globs.patterns.iter().filter(|one| one.gives).cloned().collect::<Vec<_>>();
        let others = given(other);
        given(self).iter().all(|one| others.iter().all(|two| one.is_disjoint(two)))
    }
}

impl Pattern {
    fn new(gives: bool, text: &str, bare: Bare) -> Pattern {
        let below = text.ends_with('/');
        let anywhere = bare == Bare::Anywhere && !text.trim_end_matches('/').contains('/');
        let mut segments: Vec<String> =
            text.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
        let is_folder_too = segments.last().is_some_and(|last| !is_wild(last));
        if segments.is_empty() {
            return Pattern { gives, segments, is_folder_too };
        }
        if below {
            segments.push("**".to_owned());
        }
        if anywhere {
            segments.insert(0, "**".to_owned());
        }
        segments.dedup_by(|one, two| one == "**" && two == "**");
        Pattern { gives, segments, is_folder_too }
    }

    fn fits(&self, path: &[&str]) -> bool {
        let segments: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        fits(&segments, path)
            || (self.is_folder_too && (1..path.len()).any(|length| fits(&segments, &path[..length])))
    }

    fn literal(&self) -> Vec<&str> {
        self.segments.iter().map(String::as_str).take_while(|part| !is_wild(part)).collect()
    }

    fn is_literal(&self) -> bool {
        self.segments.iter().all(|part| !is_wild(part))
    }

    fn is_disjoint(&self, other: &Pattern) -> bool {
        let (one, two) = (self.literal(), other.literal());
        if one.iter().zip(&two).any(|(left, right)| left != right) {
            return true;
        }
        // A file beside a glob that does not mean it. As a folder it may hold what the glob means.
        let apart = |name: &Pattern, glob: &Pattern| {
            let path: Vec<&str> = name.segments.iter().map(String::as_str).collect();
            name.is_literal()
                && !glob.fits(&path)
                && !glob.literal().starts_with(&path)
                && !glob.segments.iter().any(|part| part == "**")
        };
        apart(self, other) || apart(other, self)
    }
}

fn is_wild(segment: &str) -> bool {
    segment.contains(['*', '?', '['])
}

fn fits(pattern: &[&str], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => path.is_empty(),
        // `a/**` means what is below `a`, not `a` itself.
        Some((&"**", [])) => !path.is_empty(),
        Some((&"**", rest)) => (0..=path.len()).any(|skip| fits(rest, &path[skip..])),
        Some((first, rest)) => {
            path.split_first().is_some_and(|(part, below)| segment_fits(first, part) && fits(rest, below))
        }
    }
}

/// One folder or file name. Linear: of several stars only the last is tried again.
fn segment_fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while place < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at + 1, place));
            at += 1;
            continue;
        }
        match one_fits(&pattern, at, name[place]) {
            Some(next) => (at, place) = (next, place + 1),
            None => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (at, place) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

/// Where the pattern goes on if its next element means this character.
fn one_fits(pattern: &[char], at: usize, found: char) -> Option<usize> {
    match pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => {
            let end = at + 2 + pattern.get(at + 2..)?.iter().position(|c| *c == ']')?;
            let inside = &pattern[at + 1..end];
            let (negated, set) = match inside.split_first() {
                Some(('!' | '^', rest)) => (true, rest),
                _ => (false, inside),
            };
            let mut meant = false;
            let mut place = 0;
            while place < set.len() {
                if set.get(place + 1) == Some(&'-') && place + 2 < set.len() {
                    meant |= (set[place]..=set[place + 2]).contains(&found);
                    place += 3;
                } else {
                    meant |= set[place] == found;
                    place += 1;
                }
            }
            (meant != negated).then_some(end + 1)
        }
        other => (*other == found).then_some(at + 1),
    }
}

/// `a{b,c}d` → `abd`, `acd`.
fn alternatives(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(one) = open.pop() {
        let braces = one.find('{').and_then(|start| Some((start, start + one[start..].find('}')?)));
        match braces {
            Some((start, end)) if done.len() + open.len() < ALTERNATIVES_MAX => {
                let (head, tail) = (&one[..start], &one[end + 1..]);
                open.extend(
                    one[start + 1..end].split(',').rev().map(|choice| format!("{head}{choice}{tail}")),
                );
            }
            Some(_) | None => done.push(one),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(texts: &[&str]) -> Globs {
        Globs::new(texts, Bare::InRoot)
    }

    #[test]
    fn paths_are_meant_as_people_read_globs() {
        for (texts, yes, no) in [
            (&["src/**"][..], &["src/a", "src/b/c.rs"][..], &["src", "srcs/a", "a/src/b"][..]),
            (&["src/*.rs"], &["src/a.rs", "src/.rs"], &["src/b/a.rs", "src/a.rsx"]),
            (&["greet.sh"], &["greet.sh"], &["a/greet.sh", "greet.sh2"]),
            (&["docs"], &["docs", "docs/a/b"], &["doc", "docsx/a"]),
            (&["docs/"], &["docs/a", "docs/a/b"], &["docsx/a"]),
            (&["**/*.md"], &["a.md", "x/y/a.md"], &["a.mdx"]),
            (&["**"], &["a", "a/b", ".git/config"], &[]),
            (&["*"], &["a", ".env"], &["a/b"]),
            (&["src/**", "!src/gen/**"], &["src/a"], &["src/gen/a", "src/gen/b/c"]),
            (&["!src/gen/**", "src/**"], &["src/gen/a"], &[]),
            (&["!a"], &[], &["a", "b"]),
            (&[".git/{config,hooks,info}"], &[".git/config", ".git/hooks/x"], &[".git/HEAD", ".git"]),
            (&["a/**/z/*.t"], &["a/z/x.t", "a/b/c/z/x.t"], &["a/b/x.t", "a/z/b/x.t"]),
            (&["t[0-9].rs", "[!a]?"], &["t1.rs", "bb"], &["tx.rs", "ab"]),
            (&["./src/**"], &["src/a"], &[]),
            (&[], &[], &["a"]),
            (&["a*b*c"], &["abc", "axxbyyc", "abbbc"], &["ab", "acb"]),
        ] {
            let globs = globs(texts);
            for path in yes {
                assert!(globs.contains(path), "{texts:?} means {path}");
            }
            for path in no {
                assert!(!globs.contains(path), "{texts:?} does not mean {path}");
            }
        }
        let anywhere = Globs::new(&[".env*"], Bare::Anywhere);
        assert!(
            anywhere.contains(".env") && anywhere.contains("a/b/.env.local") && !anywhere.contains("env")
        );
    }

    #[test]
    fn scopes_are_disjoint_only_if_that_is_sure() {
        for (one, two, disjoint) in [
            (&["src/**"][..], &["docs/**"][..], true),
            (&["src/**"], &["src/a/**"], false),
            (&["src/**", "tests/**"], &["docs/**", "tests/x.rs"], false),
            (&["**/*.md"], &["src/**"], false),
            (&["greet.sh"], &["docs/**"], true),
            (&["greet.sh"], &["*.md"], true),
            (&["README.md"], &["*.md"], false),
            (&["src"], &["src/a.rs"], false),
            (&[], &["src/**"], true),
        ] {
            assert_eq!(globs(one).is_disjoint(&globs(two)), disjoint, "{one:?} {two:?}");
            assert_eq!(globs(two).is_disjoint(&globs(one)), disjoint, "{two:?} {one:?}");
        }
        assert_eq!(globs(&["src/**", ".git/config", "**/x"]).roots(), ["", ".git/config", "src"]);
    }
}
