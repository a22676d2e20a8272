//! What is wrong with a file that a person wrote: code, place, what was found, what to do.
//!
//! All findings of a load are reported at once, sorted by place. Rendering is plain text with the
//! source line and a caret; colours are the caller's.

use std::fmt::Write as _;

use crate::yaml::tree::{SourceId, Span};

/// A rule of the language or of lint. Its number never changes and is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl Code {
    /// What to do where nothing better is known than which rule it is.
    pub fn usual_remedy(self) -> &'static str {
        match self {
            codes::SYNTAX => "write it as YAML: one document, spaces for indentation, each key once",
            codes::WRONG_TYPE => "give it a value of that kind, or remove the key",
            codes::UNKNOWN_KEY => "remove it, or see the keys in docs/workflows.md",
            codes::MISSING_KEY => "add it",
            codes::BAD_VALUE => "give it another value",
            codes::TEMPLATE | codes::EXPRESSION => {
                "see `Templates` in docs/workflows.md; `{% raw %}` keeps braces"
            }
            codes::UNKNOWN_STEP => "name a step of this list, or add one",
            codes::UNKNOWN_ROLE => "add it under `roles`",
            codes::UNKNOWN_CHECK => "add it under `checks`",
            codes::UNKNOWN_STAGE => "name a stage of this workflow",
            codes::BAD_CONTRACT => "see `Contracts` in docs/workflows.md",
            codes::UNKNOWN_PROFILE => "add it under `profiles`",
            codes::UNKNOWN_AGENT => "add it to `agents` in .gatewright/config.yaml",
            codes::UNKNOWN_POOL => "add it under `pools`",
            codes::UNKNOWN_OBLIGATION => "add it under `obligations`",
            codes::BAD_ROLE_FILE => "paths are relative to the workflow file",
            codes::SUB_RUN_CYCLE => "run a workflow that does not lead back here",
            codes::UNKNOWN_NAME => {
                "see `The document` in docs/workflows.md; `x is defined` and `default` ask first"
            }
            codes::UNKNOWN_ANSWER => "name a step of that kind, or remove the gate",
            codes::TOO_MANY_STEPS => "split the workflow, or fan out over a list",
            codes::UNUSED_ROLE | codes::UNUSED_CHECK | codes::UNUSED_CONTRACT => "use it or remove it",
            codes::IGNORED => "remove it",
            _ => "",
        }
    }
}

/// Every code, in one place. `docs/lint.md` has a section with an example for each.
pub mod codes {
    use super::Code;

    // The text and its shape.
    pub const SYNTAX: Code = Code("GW001");
    pub const WRONG_TYPE: Code = Code("GW002");
    pub const UNKNOWN_KEY: Code = Code("GW003");
    pub const MISSING_KEY: Code = Code("GW004");
    pub const BAD_VALUE: Code = Code("GW005");
    pub const MISPLACED_KEY: Code = Code("GW006");
    pub const STEP_KIND: Code = Code("GW007");
    pub const BAD_NAME: Code = Code("GW008");
    pub const DUPLICATE_ID: Code = Code("GW009");
    pub const TEMPLATE: Code = Code("GW010");
    pub const EXPRESSION: Code = Code("GW011");
    pub const SETTING: Code = Code("GW012");

    // References.
    pub const UNKNOWN_STEP: Code = Code("GW101");
    pub const UNKNOWN_ROLE: Code = Code("GW102");
    pub const UNKNOWN_CHECK: Code = Code("GW103");
    pub const UNKNOWN_STAGE: Code = Code("GW104");
    pub const BAD_CONTRACT: Code = Code("GW105");
    pub const UNKNOWN_PROFILE: Code = Code("GW106");
    pub const UNKNOWN_AGENT: Code = Code("GW107");
    pub const UNKNOWN_POOL: Code = Code("GW108");
    pub const UNKNOWN_WORKFLOW: Code = Code("GW109");
    pub const UNKNOWN_OBLIGATION: Code = Code("GW110");
    pub const BAD_ROLE_FILE: Code = Code("GW111");
    pub const SUB_RUN_CYCLE: Code = Code("GW112");
    pub const UNKNOWN_ANSWER: Code = Code("GW113");
    pub const UNKNOWN_NAME: Code = Code("GW114");
    pub const LEAVES_FOLDER: Code = Code("GW115");
    pub const BAD_REGISTRY: Code = Code("GW116");
    pub const NOT_REGISTERED: Code = Code("GW117");

    // Proofs over the plan.
    pub const CYCLE: Code = Code("GW201");
    pub const NEVER_STARTS: Code = Code("GW202");
    pub const LIMIT: Code = Code("GW203");
    pub const PATH_AROUND_GATE: Code = Code("GW204");
    pub const READ_BEFORE_WRITE: Code = Code("GW205");
    pub const SHARED_WRITE: Code = Code("GW206");
    pub const NO_PASSING_ANSWER: Code = Code("GW207");
    pub const FREE_TEXT: Code = Code("GW208");
    pub const REVIEW_OF_LATER: Code = Code("GW209");
    pub const TOO_MANY_STEPS: Code = Code("GW210");
    pub const UNASKED_DISCARD: Code = Code("GW211");

    // Warnings.
    pub const UNUSED_ROLE: Code = Code("GW301");
    pub const UNUSED_CHECK: Code = Code("GW302");
    pub const UNUSED_CONTRACT: Code = Code("GW303");
    pub const IGNORED: Code = Code("GW304");
    pub const ONE_WRITER: Code = Code("GW305");

    /// All of them, in the order of their numbers.
    pub const ALL: &[Code] = &[
        SYNTAX,
        WRONG_TYPE,
        UNKNOWN_KEY,
        MISSING_KEY,
        BAD_VALUE,
        MISPLACED_KEY,
        STEP_KIND,
        BAD_NAME,
        DUPLICATE_ID,
        TEMPLATE,
        EXPRESSION,
        SETTING,
        UNKNOWN_STEP,
        UNKNOWN_ROLE,
        UNKNOWN_CHECK,
        UNKNOWN_STAGE,
        BAD_CONTRACT,
        UNKNOWN_PROFILE,
        UNKNOWN_AGENT,
        UNKNOWN_POOL,
        UNKNOWN_WORKFLOW,
        UNKNOWN_OBLIGATION,
        BAD_ROLE_FILE,
        SUB_RUN_CYCLE,
        UNKNOWN_ANSWER,
        UNKNOWN_NAME,
        LEAVES_FOLDER,
        BAD_REGISTRY,
        NOT_REGISTERED,
        CYCLE,
        NEVER_STARTS,
        LIMIT,
        PATH_AROUND_GATE,
        READ_BEFORE_WRITE,
        SHARED_WRITE,
        NO_PASSING_ANSWER,
        FREE_TEXT,
        REVIEW_OF_LATER,
        TOO_MANY_STEPS,
        UNASKED_DISCARD,
        UNUSED_ROLE,
        UNUSED_CHECK,
        UNUSED_CONTRACT,
        IGNORED,
        ONE_WRITER,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    pub file: String,
    /// From 1; 0 = the file as a whole.
    pub line: usize,
    pub column: usize,
    pub length: usize,
    pub severity: Severity,
    pub code: Code,
    pub message: String,
    /// What to type instead; empty when the message says it all.
    pub remedy: String,
    /// The line it is on, for rendering without the file at hand.
    pub source_line: String,
}

impl Diagnostic {
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `error[GW003]: …`, the place, the line with a caret, the remedy. Ends with a line break.
    pub fn render(&self) -> String {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut out = format!("{word}[{}]: {}\n", self.code, self.message);
        if self.line == 0 {
            let _ = writeln!(out, " --> {}", self.file);
        } else {
            let number = self.line.to_string();
            let pad = " ".repeat(number.len());
            let (shown, column) = clip(&self.source_line, self.column);
            let room = shown.chars().count().saturating_sub(column - 1).max(1);
            let carets = "^".repeat(self.length.clamp(1, room));
            let _ = writeln!(out, "{pad}--> {}:{}:{}", self.file, self.line, self.column);
            let _ = writeln!(out, "{pad} |");
            let _ = writeln!(out, "{number} | {shown}");
            let _ = writeln!(out, "{pad} | {}{carets}", " ".repeat(column - 1));
        }
        if !self.remedy.is_empty() {
            let _ = writeln!(out, "  = help: {}", self.remedy);
        }
        out
    }
}

/// Tabs are one column wide and a long line is cut around its place.
fn clip(line: &str, column: usize) -> (String, usize) {
    const WIDTH_MAX: usize = 160;
    let column = column.max(1);
    let chars: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    if chars.len() <= WIDTH_MAX {
        return (chars.into_iter().collect(), column);
    }
    let from = (column - 1).saturating_sub(WIDTH_MAX / 2).min(chars.len());
    let to = (from + WIDTH_MAX).min(chars.len());
    (chars[from..to].iter().collect(), column - from)
}

/// All of them, one blank line between two.
pub fn render_all(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(Diagnostic::render).collect::<Vec<_>>().join("\n")
}

/// The texts that places point into.
#[derive(Debug, Default)]
pub struct Texts {
    texts: Vec<(String, String)>,
}

impl Texts {
    pub fn add(&mut self, label: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.texts.push((label.into(), text.into()));
        SourceId(self.texts.len() as u32 - 1)
    }

    pub fn label(&self, source: SourceId) -> &str {
        self.texts.get(source.0 as usize).map_or("", |(label, _)| label)
    }

    pub fn text(&self, source: SourceId) -> &str {
        self.texts.get(source.0 as usize).map_or("", |(_, text)| text)
    }
}

/// Collects what is found; nothing is reported twice however often a node is visited.
#[derive(Debug, Default)]
pub struct Report {
    pub texts: Texts,
    found: std::collections::BTreeSet<Diagnostic>,
}

impl Report {
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Error, code, span, message.into(), remedy.into());
    }

    pub fn warning(&mut self, code: Code, span: Span, message: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Warning, code, span, message.into(), remedy.into());
    }

    fn add(&mut self, severity: Severity, code: Code, span: Span, message: String, remedy: String) {
        let remedy = if remedy.is_empty() { code.usual_remedy().to_owned() } else { remedy };
        let source_line =
            self.texts.text(span.source).lines().nth(span.line.saturating_sub(1)).unwrap_or("").to_owned();
        self.found.insert(Diagnostic {
            file: self.texts.label(span.source).to_owned(),
            line: span.line,
            column: span.column,
            length: span.length,
            severity,
            code,
            message,
            remedy,
            source_line,
        });
    }

    pub fn has_errors(&self) -> bool {
        self.found.iter().any(Diagnostic::is_error)
    }

    /// Sorted by file and place.
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        self.found.into_iter().collect()
    }
}

/// The candidate nearest to `word`, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let longest = word.chars().count();
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1.max(longest.max(candidate.chars().count()) / 3) && *distance < longest.max(1)
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// "did you mean `x`?" or the whole list when it is short.
pub fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = candidates.into_iter().collect();
    if let Some(near) = nearest(word, all.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    if all.is_empty() || all.len() > 12 {
        return String::new();
    }
    let list: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
    format!("known: {}", list.join(", "))
}

/// Edits (insert, delete, replace, swap of neighbours) between two words, case ignored.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut best = (last[j] + usize::from(l != r)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_line_with_a_caret() {
        let mut report = Report::default();
        let source = report.texts.add("ship.yaml", "a: 1\nrol: x\n");
        let span = Span { source, line: 2, column: 1, length: 3, start: 5, end: 8 };
        report.error(codes::UNKNOWN_KEY, span, "unknown key `rol`", "did you mean `role`?");
        let all = report.into_sorted();
        assert_eq!(
            all[0].render(),
            "error[GW003]: unknown key `rol`\n --> ship.yaml:2:1\n  |\n2 | rol: x\n  | ^^^\n  = help: did you mean `role`?\n"
        );
    }

    #[test]
    fn nearest_takes_typing_errors_only() {
        assert_eq!(nearest("rouns_max", ["rounds_max", "reads"]), Some("rounds_max"));
        assert_eq!(nearest("agnet", ["agent", "agents"]), Some("agent"));
        assert_eq!(nearest("xyz", ["role", "needs"]), None);
    }

    proptest::proptest! {
        #[test]
        fn rendering_never_panics(line in ".{0,300}", column in 0usize..400, length in 0usize..400) {
            let diagnostic = Diagnostic { file: "f".into(), line: 1, column, length,
                severity: Severity::Error, code: codes::SYNTAX, message: String::new(),
                remedy: String::new(), source_line: line };
            let _ = diagnostic.render();
        }
    }
}
