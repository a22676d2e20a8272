//! Markdown artifacts against their rules; works on the tree of `report`, never on raw text.

use std::collections::BTreeMap;

use super::{HeaderRule, Level, MarkdownRules, SectionRule, Violation};
use crate::{
    reply::{object::clipped, scan::plain},
    report::{Body, Field, Item, Report, Section, Table, findings::is_none, same_name},
};

fn header_only_violation() -> Violation {
    let expected = "content under the headings".to_owned();
    let found = "only headings and header fields".to_owned();
    Violation { level: Level::HeaderOnly, place: String::new(), expected, found }
}

pub(super) fn check(rules: &MarkdownRules, file: &str, bytes: &[u8]) -> Vec<Violation> {
    let report = Report::parse(bytes);
    let mut check = Check { violations: Vec::new(), ids: BTreeMap::new(), ids_unique: rules.ids_unique };
    let all_may_be_empty = rules.sections.values().all(|rule| rule.optional || rule.may_be_empty);
    if !report.has_content() && (rules.sections.is_empty() || !all_may_be_empty) {
        check.violations.push(header_only_violation());
    }
    check.title(rules, &report);
    for (name, rule) in &rules.header {
        check.header(name, &rule.of_file(file), &report);
    }
    check.sections(&rules.sections, &report.sections, "");
    check.order(&rules.order, &report.sections);
    for rule in rules.when.iter().filter(|rule| says_all(&rule.header, &report)) {
        check.further(&rule.sections, &report.sections);
    }
    check.violations
}

struct Check {
    violations: Vec<Violation>,
    /// Where each id was first given to an item.
    ids: BTreeMap<String, usize>,
    ids_unique: bool,
}

impl Check {
    fn violation(
        &mut self,
        level: Level,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        let (place, expected, found) = (place.into(), expected.into(), found.into());
        self.violations.push(Violation { level, place, expected, found });
    }

    fn title(&mut self, rules: &MarkdownRules, report: &Report) {
        let Some(wanted) = &rules.title else { return };
        match &report.title {
            None => self.violation(Level::Missing, "line 1", format!("the title `# {wanted}`"), "no title"),
            Some(title) if !title_fits(wanted, title) => {
                self.violation(
                    Level::Content,
                    "title",
                    format!("`# {wanted}`"),
                    format!("`# {}`", clipped(title)),
                );
            }
            Some(_) => {}
        }
    }

    fn header(&mut self, name: &str, rule: &HeaderRule, report: &Report) {
        let form = format!("a header line `**{name}:** {}`", rule_words(rule));
        let Some(Field { value, line, .. }) = report.header.iter().find(|field| same_name(&field.name, name))
        else {
            self.violation(Level::Missing, "header", form, "no such line before the first section");
            return;
        };
        let place = format!("line {line}");
        let value = plain(value);
        if value.is_empty() {
            self.violation(Level::Empty, place, form, "no value");
            return;
        }
        let fits = match rule {
            HeaderRule::Any => !(value.starts_with('{') && value.ends_with('}')),
            HeaderRule::Iso8601 => is_iso8601(value),
            HeaderRule::OneOf(allowed) => allowed.iter().any(|word| word.eq_ignore_ascii_case(value)),
            HeaderRule::Form(form) => {
                IdPattern::parse(form).and_then(|form| form.at_start(value)).is_some_and(|id| id == value)
            }
        };
        if !fits {
            self.violation(Level::Content, place, form, format!("`{}`", clipped(value)));
        }
    }

    fn sections(&mut self, rules: &BTreeMap<String, SectionRule>, sections: &[Section], under: &str) {
        for (name, rule) in rules {
            match find(sections, name) {
                Some(section) => self.section(rule, section),
                None if rule.optional => {}
                None => {
                    let place = if under.is_empty() { "headings".to_owned() } else { under.to_owned() };
                    let marks = if under.is_empty() { "##" } else { "###" };
                    let found = match sections {
                        [] => "no headings".to_owned(),
                        found => {
                            let names =
                                found.iter().map(|section| format!("`{}`", clipped(&section.heading)));
                            format!("only {}", names.take(12).collect::<Vec<_>>().join(", "))
                        }
                    };
                    self.violation(Level::Missing, place, format!("a section `{marks} {name}`"), found);
                }
            }
        }
    }

    /// Rules that hold besides: that a section is missing or empty has been said.
    fn further(&mut self, rules: &BTreeMap<String, SectionRule>, sections: &[Section]) {
        for (name, rule) in rules {
            if let Some(section) = find(sections, name).filter(|section| section.has_content()) {
                self.section(rule, section);
            }
        }
    }

    fn section(&mut self, rule: &SectionRule, section: &Section) {
        let place = place_of(section);
        if !section.has_content() {
            if !rule.may_be_empty {
                self.violation(Level::Empty, &place, "content in this section", "nothing under its heading");
            }
            return;
        }
        self.counts(rule, section, &place);
        self.ids(rule, section, &place);
        self.table(rule, &section.body, &place);
        self.words(rule, section, &place);
        self.fields(rule, section);
        self.paths(rule, section);
        self.sections(&rule.sections, &section.children, &place);
    }

    fn counts(&mut self, rule: &SectionRule, section: &Section, place: &str) {
        let bullets = section.body.items.len();
        if let Some((min, max)) = rule.bullets
            && !(min..=max).contains(&bullets)
        {
            self.violation(Level::Content, place, format!("{min} to {max} bullets"), bullets.to_string());
        }
        if rule.code && !has_code(section) {
            self.violation(Level::Content, place, "a code block", "none");
        }
        let items = bullets + section.children.len();
        let plain_min = rule.min.filter(|_| rule.ids.is_none());
        if let Some(min) = rule.items_min.max(plain_min)
            && items < min
        {
            self.violation(Level::Content, place, format!("at least {min} list items"), items.to_string());
        }
        if let Some(max) = rule.items_max
            && items > max
        {
            self.violation(Level::Content, place, format!("at most {max} list items"), items.to_string());
        }
    }

    fn ids(&mut self, rule: &SectionRule, section: &Section, place: &str) {
        let Some(pattern) = rule.ids.as_deref() else { return };
        let Some(form) = IdPattern::parse(pattern) else { return };
        let mut ids: Vec<(String, usize)> = Vec::new();
        collect_ids(section, &form, &mut ids);
        let min = rule.min.unwrap_or(1);
        let mut distinct: Vec<&str> = ids.iter().map(|(id, _)| id.as_str()).collect();
        distinct.sort_unstable();
        distinct.dedup();
        let count = distinct.len();
        if count < min {
            let found = if count == 0 { "no item of that form".to_owned() } else { count.to_string() };
            let expected = format!("at least {min} items that begin with an id of the form {}", form.words());
            self.violation(Level::Content, place, expected, found);
        }
        if !self.ids_unique {
            return;
        }
        for (id, line) in ids {
            match self.ids.get(&id) {
                Some(first) if *first != line => {
                    let expected = format!("`{id}` for one item only");
                    let found = format!("it is already used in line {first}");
                    self.violation(Level::Content, format!("line {line}"), expected, found);
                }
                Some(_) => {}
                None => {
                    self.ids.insert(id, line);
                }
            }
        }
    }

    fn table(&mut self, rule: &SectionRule, body: &Body, place: &str) {
        if rule.columns.is_empty() && rule.rows_min.is_none() {
            return;
        }
        let has = |columns: &[String], name: &str| columns.iter().any(|column| same_name(column, name));
        let fitting =
            body.tables.iter().find(|table| rule.columns.iter().all(|name| has(&table.columns, name)));
        match fitting {
            None => {
                let found = match body.tables.first() {
                    Some(table) => format!("a table with {}", clipped(&table.columns.join(", "))),
                    None => "no table".to_owned(),
                };
                let expected = match rule.columns.join(", ") {
                    columns if columns.is_empty() => "a table".to_owned(),
                    columns => format!("a table with the columns {columns}"),
                };
                self.violation(Level::Content, place, expected, found);
            }
            Some(table) => {
                let min = rule.rows_min.unwrap_or(0);
                if table.rows.len() < min {
                    let found = table.rows.len().to_string();
                    let place = format!("line {}", table.line);
                    self.violation(Level::Content, place, format!("at least {min} table rows"), found);
                }
                self.cells(rule, table);
            }
        }
    }

    /// Cells of columns with closed values.
    fn cells(&mut self, rule: &SectionRule, table: &Table) {
        for (name, allowed) in &rule.values {
            let Some(at) = table.columns.iter().position(|column| same_name(column, name)) else { continue };
            for (row, cells) in table.rows.iter().enumerate() {
                let cell = cells.get(at).map_or("", String::as_str);
                if !allowed.iter().any(|value| begins_with_value(cell, value)) {
                    let place = format!("line {}", table.line + 2 + row);
                    let expected = format!("one of {} in the column {name}", allowed.join(", "));
                    self.violation(Level::Content, place, expected, format!("`{}`", clipped(cell)));
                }
            }
        }
    }

    fn words(&mut self, rule: &SectionRule, section: &Section, place: &str) {
        let text = section.full_text();
        let lower = text.to_lowercase();
        for wanted in rule.contains.iter().filter(|wanted| !lower.contains(&wanted.to_lowercase())) {
            self.violation(Level::Content, place, format!("the text `{wanted}`"), "no such text");
        }
        let has_one = rule.contains_any.iter().any(|wanted| lower.contains(&wanted.to_lowercase()));
        if !rule.contains_any.is_empty() && !has_one {
            let expected = format!("one of the texts `{}`", rule.contains_any.join("`, `"));
            self.violation(Level::Content, place, expected, "none of them");
        }
        for unwanted in rule.lacks.iter().filter(|unwanted| lower.contains(&unwanted.to_lowercase())) {
            self.violation(Level::Content, place, format!("no `{unwanted}`"), format!("`{unwanted}`"));
        }
        for (name, allowed) in &rule.says {
            for said in values_of(&text, name) {
                if !allowed.iter().any(|value| begins_with_number_or_value(said, value)) {
                    let expected = format!("one of {} after `{name}:`", allowed.join(", "));
                    self.violation(Level::Content, place, expected, format!("`{}`", clipped(said)));
                }
            }
        }
        if !rule.one_of.is_empty() {
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            if !rule.one_of.iter().any(|word| begins_with_word(first, word)) {
                let expected = format!("one of {} as its first word", rule.one_of.join(", "));
                self.violation(Level::Content, place, expected, format!("`{}`", clipped(first)));
            }
        }
    }

    /// Every item, or every sub-section where issues have headings of their own, has the fields.
    fn fields(&mut self, rule: &SectionRule, section: &Section) {
        if rule.fields.is_empty() {
            return;
        }
        let of_items =
            section.body.items.iter().filter(|item| !(item.children.is_empty() && is_none(&item.text)));
        let mut entries: Vec<(usize, String, Vec<Field>)> =
            of_items.map(|item| (item.line, clipped(item.title()), item.fields())).collect();
        if section.body.items.is_empty() {
            entries = section
                .children
                .iter()
                .map(|child| {
                    let fields = child.body.items.iter().filter_map(Item::as_field).collect();
                    (child.line, clipped(&child.heading), fields)
                })
                .collect();
        }
        for (line, title, fields) in entries {
            let has = |name: &str| {
                fields.iter().any(|field| same_name(&field.name, name) && !field.value.is_empty())
            };
            let missing: Vec<&str> =
                rule.fields.iter().map(String::as_str).filter(|name| !has(name)).collect();
            if !missing.is_empty() {
                let forms: Vec<String> = missing.iter().map(|name| format!("`- {name}: …`")).collect();
                let expected = format!("{} under the item `{title}`", forms.join(", "));
                self.violation(Level::Content, format!("line {line}"), expected, "no such sub-bullet");
            }
            for (name, allowed) in &rule.values {
                let said = fields.iter().find(|field| same_name(&field.name, name));
                let Some(said) = said.filter(|field| !field.value.is_empty()) else { continue };
                if !allowed.iter().any(|value| begins_with_value(&said.value, value)) {
                    let expected =
                        format!("one of {} after `{name}:` of the item `{title}`", allowed.join(", "));
                    let found = format!("`{}`", clipped(&said.value));
                    self.violation(Level::Content, format!("line {line}"), expected, found);
                }
            }
        }
    }

    /// Every item says where: in its own text or in what stands under it.
    fn paths(&mut self, rule: &SectionRule, section: &Section) {
        let items = section.body.items.iter().filter(|item| rule.paths && !is_none(&item.text));
        let silent: Vec<(usize, String)> =
            items.filter(|item| !names_a_file(item)).map(|item| (item.line, clipped(item.title()))).collect();
        for (line, title) in silent {
            let expected = "the file that it is about, such as `src/a.rs`";
            self.violation(Level::Content, format!("line {line}"), expected, format!("`{title}`"));
        }
    }

    fn order(&mut self, order: &[String], sections: &[Section]) {
        let present: Vec<(&str, usize)> = order
            .iter()
            .filter_map(|name| find(sections, name).map(|section| (name.as_str(), section.line)))
            .collect();
        for pair in present.windows(2) {
            let ((before, before_line), (after, line)) = (pair[0], pair[1]);
            if before_line > line {
                let expected = format!("section `{after}` after section `{before}`");
                self.violation(Level::Content, format!("line {line}"), expected, "it stands before it");
            }
        }
    }
}

/// A word with a slash or an inner dot; a plain word such as `Makefile` is told only by a slash before it.
fn names_a_file(item: &Item) -> bool {
    let is_path = |word: &str| {
        let word = word.trim_matches(|c: char| !(c.is_alphanumeric() || "/._-".contains(c)));
        let word = word.trim_end_matches('.');
        let dotted = word.rsplit_once('.').is_some_and(|(before, end)| {
            end.chars().next().is_some_and(char::is_alphabetic)
                && (before.is_empty() || before.ends_with(char::is_alphanumeric))
        });
        word.len() > 1 && (word.contains('/') || dotted)
    };
    item.text.split_whitespace().any(is_path) || item.children.iter().any(names_a_file)
}

fn has_code(section: &Section) -> bool {
    section.body.code_blocks.iter().any(|code| !code.trim().is_empty())
        || section.children.iter().any(has_code)
}

fn place_of(section: &Section) -> String {
    format!("{} {}", "#".repeat(usize::from(section.level)), section.heading)
}

/// The section of this name, at this level first, then anywhere below.
fn find<'s>(sections: &'s [Section], name: &str) -> Option<&'s Section> {
    let here = sections.iter().find(|section| same_name(&section.heading, name));
    here.or_else(|| sections.iter().find_map(|section| find(&section.children, name)))
}

fn rule_words(rule: &HeaderRule) -> String {
    match rule {
        HeaderRule::Any => "…".to_owned(),
        HeaderRule::Iso8601 => "(an ISO 8601 time such as 2026-01-02T03:04:05Z)".to_owned(),
        HeaderRule::OneOf(allowed) => format!("(one of {})", allowed.join(", ")),
        HeaderRule::Form(form) => format!("(of the form `{}`)", form.replace(['{', '}'], "")),
    }
}

fn is_iso8601(value: &str) -> bool {
    value.parse::<jiff::Timestamp>().is_ok() || value.parse::<jiff::civil::DateTime>().is_ok()
}

/// `Low`, `**Low** – reason`, `Risk: Low`; not the template's `Low/Medium/High`.
fn begins_with_word(text: &str, word: &str) -> bool {
    let fits = |text: &str| {
        let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
        let Some(head) = text.get(..word.len()) else { return false };
        let next = text[word.len()..].chars().next();
        head.eq_ignore_ascii_case(word)
            && !next.is_some_and(|c| c.is_alphanumeric() || "/|_".contains(c))
            && !text[word.len()..].trim_start().starts_with('|')
    };
    fits(text) || text.split_once(':').is_some_and(|(_, value)| fits(value))
}

/// Whether each of these header fields says one of its values.
fn says_all(wanted: &BTreeMap<String, Vec<String>>, report: &Report) -> bool {
    wanted.iter().all(|(name, allowed)| {
        let field = report.header.iter().find(|field| same_name(&field.name, name));
        field.is_some_and(|field| allowed.iter().any(|word| word.eq_ignore_ascii_case(plain(&field.value))))
    })
}

/// What stands behind each `Name:` of a text, to the end of its line, markup aside.
fn values_of<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let mut values = Vec::new();
    for line in text.lines() {
        for (at, _) in line.match_indices(':') {
            let before = line[..at].trim_end_matches(['*', '_', '`', ' ']);
            let from = before.len().checked_sub(name.len());
            let is_name = from.is_some_and(|from| {
                before.get(from..).is_some_and(|end| end.eq_ignore_ascii_case(name))
                    && !before[..from].ends_with(char::is_alphanumeric)
            });
            if is_name {
                values.push(line[at + 1..].trim_start_matches(['*', '_', '`', ' ']));
            }
        }
    }
    values
}

/// A number is compared whole: `0` is not the beginning of `03`, and it is that of `0/12`.
fn begins_with_number_or_value(text: &str, value: &str) -> bool {
    let number = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if !value.is_empty() && number(value) == value.len() {
        return &text[..number(text)] == value;
    }
    begins_with_value(text, value)
}

/// A value that may also be a sign (`✅`), with or without the selector that makes it colourful.
fn begins_with_value(text: &str, value: &str) -> bool {
    let bare = |text: &str| text.replace('\u{fe0f}', "");
    let (text, value) = (bare(text), bare(value));
    let trimmed = text.trim_start_matches([' ', '*', '_', '`']);
    let is_sign = value.chars().next().is_some_and(|first| !first.is_alphanumeric());
    if is_sign { trimmed.starts_with(&value) } else { begins_with_word(&text, &value) }
}

/// `{}` in the wanted title stands for any text.
fn title_fits(wanted: &str, title: &str) -> bool {
    let (wanted, title) = (wanted.to_lowercase(), title.trim().to_lowercase());
    match wanted.split_once("{}") {
        Some((start, end)) => {
            title.len() >= start.len() + end.len() && title.starts_with(start) && title.ends_with(end)
        }
        None => wanted.trim() == title,
    }
}

/// In a form: the number that the file's own name ends with.
pub(super) const FILE_NUMBER: &str = "{file_n}";

impl HeaderRule {
    /// The rule for a file of this name: `Fix {file_n}` of `plan-fix-2.md` is `Fix 2`, and of a name without a number
    /// any number.
    #[must_use]
    pub fn of_file(&self, file: &str) -> HeaderRule {
        match self {
            HeaderRule::Form(form) if form.contains(FILE_NUMBER) => match file_number(file) {
                Some(number) => HeaderRule::OneOf(vec![form.replace(FILE_NUMBER, number)]),
                None => HeaderRule::Form(form.replace(FILE_NUMBER, "{n}")),
            },
            HeaderRule::Any | HeaderRule::Iso8601 | HeaderRule::OneOf(_) | HeaderRule::Form(_) => {
                self.clone()
            }
        }
    }
}

/// `2` of `loop-iterations/plan-fix-2.md`.
fn file_number(file: &str) -> Option<&str> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let digits = stem.bytes().rev().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &stem[stem.len() - digits..])
}

/// `REQ-{n}`: a text, digits, a text.
pub(super) struct IdPattern<'p> {
    prefix: &'p str,
    digits_min: usize,
    suffix: &'p str,
}

impl<'p> IdPattern<'p> {
    pub fn parse(pattern: &'p str) -> Option<IdPattern<'p>> {
        let (prefix, rest) = pattern.split_once('{')?;
        let (digits, suffix) = rest.split_once('}')?;
        let valid = !digits.is_empty() && digits.chars().all(|c| c == 'n') && !prefix.is_empty();
        valid.then_some(IdPattern { prefix, digits_min: digits.len(), suffix })
    }

    fn words(&self) -> String {
        format!("`{}{}{}`", self.prefix, "n".repeat(self.digits_min), self.suffix)
    }

    /// The id at the beginning of a text, markup and numbering aside.
    fn at_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        let text = text.trim_start_matches(|c: char| !c.is_alphanumeric() && !self.prefix.starts_with(c));
        let after = text.strip_prefix(self.prefix)?;
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let rest = after[digits..].strip_prefix(self.suffix)?;
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric());
        let len = self.prefix.len() + digits + self.suffix.len();
        (digits >= self.digits_min && ends).then(|| &text[..len])
    }
}

/// Ids of list items, headings and first table cells, here and below.
fn collect_ids(section: &Section, form: &IdPattern<'_>, ids: &mut Vec<(String, usize)>) {
    let mut take = |text: &str, line: usize| {
        if let Some(id) = form.at_start(text) {
            ids.push((id.to_owned(), line));
        }
    };
    for item in &section.body.items {
        take(&item.text, item.line);
    }
    for paragraph in &section.body.paragraphs {
        for (offset, line) in paragraph.text.lines().enumerate() {
            take(line, paragraph.line + offset);
        }
    }
    for table in &section.body.tables {
        for (row, cells) in table.rows.iter().enumerate() {
            take(cells.first().map_or("", String::as_str), table.line + 2 + row);
        }
    }
    for child in &section.children {
        take(&child.heading, child.line);
    }
    for child in &section.children {
        collect_ids(child, form, ids);
    }
}
