//! Content that satisfies a contract: what a rehearsed agent writes into its declared outputs.
//! Deterministic, so that two rehearsals of one scenario publish the same bytes.

use std::{collections::BTreeMap, fmt::Write as _};

use gatewright_core::{outcome::Outcome, verdict::Severity};
use gatewright_workflow::{
    contract::{Contract, HeaderRule, MarkdownRules, SectionRule, Shape, TextRules},
    frozen::ListText,
    reply::WordMap,
};
use serde_json::{Map, Value, json};

use super::schema_value::value_for;

/// The time in every rehearsed report.
const STAMP: &str = "2026-01-02T03:04:05Z";

/// What the file is for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub name: &'a str,
    pub role: &'a str,
    pub request: &'a str,
    pub reviewer: bool,
    /// What a reviewer found, as objects of the review JSON.
    pub findings: &'a [Value],
    /// From here on a finding blocks.
    pub block_at: Severity,
    /// A fan-out runs over this file.
    pub list: Option<&'a ListText>,
}

/// The bytes of one output.
pub fn content(contract: &Contract, subject: &Subject<'_>) -> String {
    match &contract.shape {
        Shape::Any(_) => match subject.list {
            Some(list) => pretty(&items(list)),
            None => plain(subject),
        },
        Shape::Text(rules) => text(rules, subject),
        Shape::Markdown(rules) => Markdown::new(subject).write(rules),
        Shape::Json(schema) if subject.reviewer => pretty(&judged(value_for(schema), schema, subject)),
        Shape::Json(schema) => pretty(&value_for(schema)),
        // JSON is YAML, and the one writer of it is enough.
        Shape::Yaml(schema) => pretty(&value_for(schema)),
    }
}

fn pretty(value: &Value) -> String {
    // A value of ours always has a text.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// A judgement as JSON says what the reviewer's reply says: the stricter of the two would hold.
fn judged(mut value: Value, schema: &Value, subject: &Subject<'_>) -> Value {
    let Some(example) = value.pointer("/issues/0").cloned() else { return value };
    let severities = schema.pointer("/properties/issues/items/properties/severity/enum");
    let issue = |finding: &Value| {
        let mut issue = example.clone();
        for (key, text) in finding.as_object().into_iter().flatten() {
            if let Some(place) = issue.get_mut(key) {
                place.clone_from(text);
            }
        }
        if let (Some(place), Some(problem)) = (issue.get_mut("issue"), finding.get("problem")) {
            place.clone_from(problem);
        }
        let word = field(finding, "severity");
        let known = severities.and_then(Value::as_array).into_iter().flatten();
        let mut same =
            known.filter(|known| known.as_str().is_some_and(|known| known.eq_ignore_ascii_case(word)));
        if let (Some(place), Some(known)) = (issue.get_mut("severity"), same.next_back()) {
            place.clone_from(known);
        }
        issue
    };
    value["issues"] = subject.findings.iter().map(issue).collect();
    if subject.findings.iter().any(|finding| subject.is_blocking(finding)) {
        for (key, objection) in [
            ("status", json!("needs_revision")),
            ("approved", json!(false)),
            ("readyForCommit", json!(false)),
        ] {
            let words = schema.pointer(&format!("/properties/{key}/enum")).and_then(Value::as_array);
            let may_say = words.is_none_or(|words| words.contains(&objection));
            if let Some(place) = value.get_mut(key).filter(|_| may_say) {
                *place = objection;
            }
        }
    }
    value
}

/// Two items, the second after the first, where the fan-out looks for them.
fn items(list: &ListText) -> Value {
    let item = |number: u32| {
        let mut item = Map::new();
        item.insert(list.key.clone(), json!(format!("item-{number}")));
        item.insert("title".to_owned(), json!(format!("Rehearsed item {number}")));
        Value::Object(item)
    };
    let elements = json!([item(1), item(2)]);
    let pointer = if list.pointer == "?" { "/tasks" } else { list.pointer.as_str() };
    pointer
        .split('/')
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .fold(elements, |inner, key| json!({key: inner}))
}

fn plain(subject: &Subject<'_>) -> String {
    let name = subject.name;
    if name.rsplit('.').next().is_some_and(|end| ["json", "yaml", "yml"].contains(&end)) {
        return pretty(&json!({"rehearsed": true, "by": subject.role}));
    }
    format!("# {}\n\nRehearsed by {}: {}\n", title_of(name), subject.role, one_line(subject.request))
}

fn text(rules: &TextRules, subject: &Subject<'_>) -> String {
    let mut text = plain(subject);
    for wanted in &rules.contains {
        let _ = writeln!(text, "{wanted}");
    }
    while (text.len() as u64) < rules.min_bytes.min(1 << 20) {
        text.push_str("One more rehearsed line.\n");
    }
    text
}

fn title_of(name: &str) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.split('.').next().unwrap_or(file).replace(['-', '_'], " ")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect()
}

fn field<'v>(finding: &'v Value, key: &str) -> &'v str {
    finding.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl Subject<'_> {
    fn is_blocking(&self, finding: &Value) -> bool {
        WordMap::default().severity_or_highest(field(finding, "severity")) >= self.block_at
    }
}

/// Writes one report.
struct Markdown<'a> {
    subject: &'a Subject<'a>,
    out: String,
    /// The last number given out for each pattern of ids.
    ids: BTreeMap<String, usize>,
    /// What has to stand behind a `Name:`, if the report is to say that all is well.
    says: BTreeMap<String, String>,
}

impl<'a> Markdown<'a> {
    fn new(subject: &'a Subject<'a>) -> Markdown<'a> {
        Markdown { subject, out: String::new(), ids: BTreeMap::new(), says: BTreeMap::new() }
    }

    fn write(mut self, rules: &MarkdownRules) -> String {
        self.collect_says(&rules.sections);
        for rule in &rules.when {
            self.collect_says(&rule.sections);
        }
        let title = match &rules.title {
            Some(title) => title.replace("{}", &one_line(self.subject.request)),
            None => title_of(self.subject.name),
        };
        let _ = writeln!(self.out, "# {title}\n");
        for (name, rule) in &rules.header {
            let value = self.header_value(name, rule);
            let _ = writeln!(self.out, "**{name}:** {value}  ");
        }
        let listed = rules.order.iter().filter(|name| rules.sections.contains_key(*name));
        let rest = rules.sections.keys().filter(|name| !rules.order.contains(name));
        for name in listed.chain(rest) {
            if let Some(rule) = rules.sections.get(name) {
                self.section(name, rule, 2);
            }
        }
        if rules.sections.is_empty() {
            let _ = writeln!(
                self.out,
                "\nRehearsed by {}: {}",
                self.subject.role,
                one_line(self.subject.request)
            );
        }
        self.out
    }

    fn collect_says(&mut self, sections: &BTreeMap<String, SectionRule>) {
        for rule in sections.values() {
            let first = |(name, allowed): (&String, &Vec<String>)| {
                Some((format!("{name}:"), allowed.first()?.clone()))
            };
            self.says.extend(rule.says.iter().filter_map(first));
            self.collect_says(&rule.sections);
        }
    }

    /// The word for how the attempt ends, if it is one of these words; else the first.
    fn word<'w>(&self, allowed: &'w [String]) -> &'w str {
        let words = WordMap::default();
        let bad = self.subject.findings.iter().any(|finding| self.subject.is_blocking(finding));
        let rank = |word: &&String| match words.outcome(word) {
            // PARTIAL is for findings that do not block.
            Some(Outcome::Failed) if bad => u8::from(word.eq_ignore_ascii_case("partial")),
            Some(Outcome::Done | Outcome::Passed) if !bad => 0,
            Some(_) | None => 2,
        };
        allowed.iter().min_by_key(rank).map_or("", String::as_str)
    }

    fn header_value(&self, name: &str, rule: &HeaderRule) -> String {
        match &rule.of_file(self.subject.name) {
            HeaderRule::Iso8601 => STAMP.to_owned(),
            HeaderRule::OneOf(allowed) => self.word(allowed).to_owned(),
            HeaderRule::Form(form) => {
                let (start, rest) = form.split_once('{').unwrap_or((form, ""));
                let (digits, end) = rest.split_once('}').unwrap_or(("n", ""));
                format!("{start}{:0width$}{end}", 1, width = digits.len())
            }
            HeaderRule::Any if name.eq_ignore_ascii_case("status") => {
                let usual = if self.subject.reviewer { ["PASS", "FAIL"] } else { ["DONE", "FAIL"] };
                self.word(&usual.map(str::to_owned)).to_owned()
            }
            HeaderRule::Any if name.eq_ignore_ascii_case("agent") => self.subject.role.to_owned(),
            HeaderRule::Any => "rehearsed".to_owned(),
        }
    }

    fn section(&mut self, name: &str, rule: &SectionRule, level: usize) {
        let findings = self.findings_of(name);
        // Ids may be looked for by checks, so they are there although they may be missing.
        if rule.optional && rule.ids.is_none() && findings.as_ref().is_none_or(Vec::is_empty) {
            return;
        }
        let _ = writeln!(self.out, "\n{} {name}", "#".repeat(level));
        if !rule.one_of.is_empty() {
            let word = self.word(&rule.one_of).to_owned();
            let _ = writeln!(self.out, "{word} – rehearsed.\n");
        }
        for wanted in rule.contains.iter().chain(rule.contains_any.first()) {
            let value = self.says.get(wanted).map_or("", String::as_str);
            let _ = writeln!(self.out, "{wanted} {value}\n");
        }
        match findings {
            Some(findings) => self.findings(rule, &findings),
            None => self.items(rule),
        }
        if rule.code {
            let _ = writeln!(self.out, "\n```sh\ntrue\n```");
        }
        self.table(rule);
        for (child, rule) in &rule.sections {
            self.section(child, rule, level + 1);
        }
    }

    /// The findings that belong under a heading; `None` for a heading that is not about findings.
    fn findings_of(&self, heading: &str) -> Option<Vec<&'a Value>> {
        let heading = heading.to_lowercase();
        let all = self.subject.findings.iter();
        if !self.subject.reviewer || heading.contains("addressed") || heading.contains("resolved") {
            None
        } else if heading.contains("non-blocking") || heading.contains("non blocking") {
            Some(all.filter(|finding| !self.subject.is_blocking(finding)).collect())
        } else if heading.contains("blocking") || heading.contains("blocker") {
            Some(all.filter(|finding| self.subject.is_blocking(finding)).collect())
        } else if heading.contains("new issues") {
            Some(all.collect())
        } else {
            None
        }
    }

    fn findings(&mut self, rule: &SectionRule, findings: &[&Value]) {
        if findings.is_empty() {
            let _ = writeln!(self.out, "- None");
        }
        let asked = |name: &str| rule.fields.iter().any(|field| field.eq_ignore_ascii_case(name));
        for (place, finding) in findings.iter().enumerate() {
            let id = self.next_id(rule);
            let problem = one_line(field(finding, "problem"));
            // What stands under `Problem:` is not said twice.
            let title = if asked("Problem") { format!("Finding {}", place + 1) } else { problem.clone() };
            let _ = writeln!(self.out, "- {id}{title}");
            let known = ["Severity", "Location", "Category", "Problem", "Fix", "Route to"];
            let more = rule.fields.iter().map(String::as_str);
            let more = more.filter(|name| !known.iter().any(|known| known.eq_ignore_ascii_case(name)));
            for name in known.into_iter().chain(more) {
                let value = match name {
                    "Severity" => field(finding, "severity"),
                    "Location" => field(finding, "location"),
                    "Category" => field(finding, "category"),
                    "Problem" if asked(name) => &problem,
                    "Fix" => field(finding, "fix"),
                    "Route to" => field(finding, "route"),
                    _ => "",
                };
                // A route is never made up: it decides who works.
                let allowed = rule.values.get(name).filter(|_| asked(name));
                let fits = |value: &&String| value.eq_ignore_ascii_case(field(finding, &name.to_lowercase()));
                let closed = allowed.and_then(|allowed| allowed.iter().find(fits).or(allowed.first()));
                let value = closed.map_or(value, String::as_str);
                let value = match name {
                    "Route to" if value.is_empty() && asked(name) => "none",
                    _ if value.is_empty() && asked(name) => "rehearsed",
                    _ => value,
                };
                if !value.is_empty() {
                    let _ = writeln!(self.out, "  - {name}: {value}");
                }
            }
        }
    }

    fn items(&mut self, rule: &SectionRule) {
        let least =
            [rule.bullets.map_or(0, |(min, _)| min), rule.items_min.unwrap_or(0), rule.min.unwrap_or(0)];
        let count = least.into_iter().max().unwrap_or(0).max(1);
        if rule.bullets.is_some_and(|(_, most)| most == 0) {
            let _ = writeln!(self.out, "Rehearsed.");
            return;
        }
        for number in 1..=count.min(1000) {
            let id = self.next_id(rule);
            let place = if rule.paths { "`src/rehearsed.txt` - " } else { "" };
            let _ = writeln!(
                self.out,
                "- {id}{place}Rehearsed point {number}: {}",
                one_line(self.subject.request)
            );
            for name in &rule.fields {
                let value = rule.values.get(name).and_then(|allowed| allowed.first());
                let _ = writeln!(self.out, "  - {name}: {}", value.map_or("rehearsed", String::as_str));
            }
        }
    }

    /// `REQ-1: ` by the section's pattern, each number once in the whole report.
    fn next_id(&mut self, rule: &SectionRule) -> String {
        let Some(pattern) = &rule.ids else { return String::new() };
        let last = self.ids.entry(pattern.clone()).or_insert(0);
        *last += 1;
        let Some((prefix, (digits, suffix))) =
            pattern.split_once('{').and_then(|(prefix, rest)| Some((prefix, rest.split_once('}')?)))
        else {
            return String::new();
        };
        format!("{prefix}{:0width$}{suffix}: ", *last, width = digits.len())
    }

    fn table(&mut self, rule: &SectionRule) {
        if rule.columns.is_empty() && rule.rows_min.is_none() {
            return;
        }
        let usual = ["What".to_owned()];
        let columns = if rule.columns.is_empty() { usual.as_slice() } else { rule.columns.as_slice() };
        let _ = writeln!(self.out, "\n| {} |", columns.join(" | "));
        let _ = writeln!(self.out, "|{}", "---|".repeat(columns.len()));
        for row in 1..=rule.rows_min.unwrap_or(1).clamp(1, 1000) {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| rule.values.get(column).and_then(|allowed| allowed.first()).cloned())
                .map(|value| value.unwrap_or_else(|| format!("rehearsed {row}")))
                .collect();
            let _ = writeln!(self.out, "| {} |", cells.join(" | "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_workflow::{
        contract::check,
        report::{Report, findings::findings_of_report},
        yaml::parse_yaml_value,
    };

    fn subject<'a>(name: &'a str, reviewer: bool, findings: &'a [Value]) -> Subject<'a> {
        Subject {
            name,
            role: "planner",
            request: "Add a greeting",
            reviewer,
            findings,
            block_at: Severity::Medium,
            list: None,
        }
    }

    #[track_caller]
    fn holds(contract: &str, subject: &Subject<'_>) -> String {
        let contract = Contract::from_value(&parse_yaml_value(contract).unwrap()).unwrap();
        let text = content(&contract, subject);
        check(&contract, subject.name, text.as_bytes()).unwrap_or_else(|found| panic!("{found:?}\n{text}"));
        text
    }

    const PLAN: &str = r#"
markdown:
  title: "Plan: {}"
  header: { Status: [DONE], Agent: any, Timestamp: iso8601, "Input Files": any }
  order: true
  sections:
    Summary: { bullets: [2, 5] }
    Requirements: { ids: "REQ-{nnn}", min: 3 }
    Implementation Plan: { sections: { Test Steps: { items_min: 2 }, Implementation Steps: { items_min: 1 } } }
    Risk: { one_of: [Low, Medium], contains: [because] }
    Affected Files: { columns: [File, Why], rows_min: 2 }
    Tasks: { fields: [Owner, Effort], min: 2 }
    Handoff Notes: {}
    Extra: { optional: true }
"#;

    #[test]
    fn a_plan_holds_its_contract() {
        let text = holds(PLAN, &subject("plan.md", false, &[]));
        assert!(text.contains("REQ-003") && !text.contains("Extra"), "{text}");
        assert_eq!(text, holds(PLAN, &subject("plan.md", false, &[])), "the same bytes every time");
    }

    const REVIEW: &str = r#"
markdown:
  header: { Status: [PASS, PARTIAL, FAIL] }
  sections:
    Summary: {}
    Blocking Issues: { ids: "B-{n}", min: 0, fields: [Severity, Location, Problem, Fix] }
    Non-Blocking Issues: {}
"#;

    #[test]
    fn a_review_says_what_was_found_in_its_own_words() {
        let quiet = holds(REVIEW, &subject("review.md", true, &[]));
        assert!(quiet.contains("**Status:** PASS"), "{quiet}");
        assert!(findings_of_report(&Report::parse(quiet.as_bytes()), &WordMap::default()).is_empty());
        let found = [
            json!({"severity": "high", "problem": "no test", "location": "src/a.rs:4"}),
            json!({"severity": "low", "problem": "a name"}),
        ];
        let loud = holds(REVIEW, &subject("review.md", true, &found));
        assert!(loud.contains("**Status:** FAIL"), "{loud}");
        let read = findings_of_report(&Report::parse(loud.as_bytes()), &WordMap::default());
        let severities: Vec<Severity> = read.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::High, Severity::Low], "{loud}");
        let routed =
            [json!({"severity": "high", "problem": "the route knows the table", "route": "structural"})];
        let contract = "markdown: { sections: { Blocking Issues: { fields: [Category, Route To] } } }";
        let text = holds(contract, &subject("review.md", true, &routed));
        let read = findings_of_report(&Report::parse(text.as_bytes()), &WordMap::default());
        assert_eq!(read[0].route.as_deref(), Some("structural"), "{text}");
    }

    #[test]
    fn other_shapes_hold_too() {
        holds("any", &subject("a.md", false, &[]));
        holds("text: { min_bytes: 500, contains: [TODO] }", &subject("a.txt", false, &[]));
        holds(
            "yaml: { type: object, required: [tasks], properties: { tasks: { type: array, minItems: 1 } } }",
            &subject("tasks.yaml", false, &[]),
        );
    }

    #[test]
    fn a_list_is_where_its_fan_out_looks() {
        let list = ListText { pointer: "/plan/streams".to_owned(), key: "name".to_owned(), needs_of: None };
        let subject = Subject { list: Some(&list), ..subject("streams.yaml", false, &[]) };
        let value = parse_yaml_value(&content(&Contract::any(), &subject)).unwrap();
        assert_eq!(list.find(&value).map(Vec::len), Some(2));
        assert_eq!(value["plan"]["streams"][1]["name"], "item-2");
    }
}
