//! Status and severity words of all dialects, as data that a method or a workflow file overrides.
//!
//! Knows words only; which format a word may appear in is the business of the format's own file.

use std::collections::BTreeMap;

use gatewright_core::{outcome::Outcome, verdict::Severity};
use serde::{Deserialize, Serialize};

use super::ReplyFormat;

/// What every status and severity word means. Keys are normalised (`NON-BLOCKING` = `non_blocking`);
/// `universal:fail` is the meaning of `fail` in one format only.
///
/// Deserialised, single words override the defaults: `{outcomes: {BLOCKED: failed}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WordOverrides")]
pub struct WordMap {
    pub outcomes: BTreeMap<String, Outcome>,
    pub severities: BTreeMap<String, Severity>,
    /// The dialect that agents are told to judge in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
}

/// Single words that a method or a workflow reads differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordOverrides {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<String, Outcome>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub severities: BTreeMap<String, Severity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
}

/// The severity words of one dialect, where they differ from the strictest reading of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ladder {
    /// BLOCKING, NON-BLOCKING.
    S0,
    /// blocker, major, minor, nit.
    S1,
    /// blocker, warning, note.
    S2,
    /// must, should, consider.
    S3,
    /// HIGH, MEDIUM, LOW.
    S4,
}

const OUTCOMES: &[(&str, Outcome)] = &[
    // Our own words, so that a rehearsal may speak plainly.
    ("done", Outcome::Done),
    ("passed", Outcome::Passed),
    ("failed", Outcome::Failed),
    ("blocked", Outcome::Blocked),
    ("needs_input", Outcome::NeedsInput),
    ("error", Outcome::Error),
    // S0
    ("pass", Outcome::Passed),
    ("partial", Outcome::Failed),
    ("fail", Outcome::Failed),
    // S1; its FAIL is a broken agent, not a demand for work (vocabulary in decisions.md).
    ("ok", Outcome::Done),
    ("needs_info", Outcome::NeedsInput),
    ("needs_decision", Outcome::NeedsInput),
    ("universal:fail", Outcome::Error),
    ("pass_with_notes", Outcome::Passed),
    ("needs_fixes", Outcome::Failed),
    // S2 and S4
    ("approved", Outcome::Passed),
    ("not_approved", Outcome::Failed),
    ("needs_revision", Outcome::Failed),
    ("completed", Outcome::Done),
    ("needs_context", Outcome::NeedsInput),
    // S3
    ("complete", Outcome::Done),
];

const SEVERITIES: &[(&str, Severity)] = &[
    ("critical", Severity::Critical),
    ("high", Severity::High),
    ("medium", Severity::Medium),
    ("low", Severity::Low),
    ("note", Severity::Note),
    ("blocking", Severity::High),
    ("non_blocking", Severity::Low),
    ("blocker", Severity::Critical),
    ("major", Severity::High),
    ("minor", Severity::Low),
    ("nit", Severity::Note),
    ("warning", Severity::Medium),
    ("must", Severity::High),
    ("should", Severity::Medium),
    ("consider", Severity::Low),
];

impl Default for WordMap {
    fn default() -> Self {
        WordMap { outcomes: owned(OUTCOMES), severities: owned(SEVERITIES), ladder: None }
    }
}

impl From<WordOverrides> for WordMap {
    fn from(overrides: WordOverrides) -> Self {
        WordMap::default().overridden(&overrides)
    }
}

impl WordMap {
    /// This map with single words replaced. A plain word also replaces what one format made of it.
    pub fn overridden(mut self, overrides: &WordOverrides) -> WordMap {
        for (word, outcome) in &overrides.outcomes {
            let word = normal(word);
            let suffix = format!(":{word}");
            self.outcomes.retain(|known, _| !known.ends_with(&suffix));
            self.outcomes.insert(word, *outcome);
        }
        for (word, severity) in &overrides.severities {
            self.severities.insert(normal(word), *severity);
        }
        self.ladder = overrides.ladder.or(self.ladder);
        self
    }

    /// This map with the severities of one dialect.
    pub fn with_ladder(self, ladder: Ladder) -> WordMap {
        let severities = owned(ladder.severities());
        self.overridden(&WordOverrides { outcomes: BTreeMap::new(), severities, ladder: Some(ladder) })
    }

    /// What a status word means, whatever format it stands in.
    pub fn outcome(&self, word: &str) -> Option<Outcome> {
        self.outcomes.get(&normal(word)).copied()
    }

    /// What a status word means in a reply of this format.
    pub fn outcome_in(&self, format: ReplyFormat, word: &str) -> Option<Outcome> {
        let word = normal(word);
        self.outcomes.get(&format!("{}:{word}", format.word())).or_else(|| self.outcomes.get(&word)).copied()
    }

    pub fn severity(&self, word: &str) -> Option<Severity> {
        self.severities.get(&normal(word)).copied()
    }

    /// An unknown severity is the highest (J-06).
    pub fn severity_or_highest(&self, word: &str) -> Severity {
        self.severity(word).unwrap_or(Severity::Critical)
    }

    /// A word that only method data knows; every format accepts those.
    pub(crate) fn is_added(&self, word: &str) -> bool {
        let word = normal(word);
        self.outcomes.contains_key(&word) && !OUTCOMES.iter().any(|(known, _)| *known == word)
    }
}

impl Ladder {
    /// Its severities as its people write them, the worst first.
    pub fn written(self) -> &'static [&'static str] {
        match self {
            Ladder::S0 => &["BLOCKING", "NON-BLOCKING"],
            Ladder::S1 => &["blocker", "major", "minor", "nit"],
            Ladder::S2 => &["blocker", "warning", "note"],
            Ladder::S3 => &["must", "should", "consider"],
            Ladder::S4 => &["HIGH", "MEDIUM", "LOW"],
        }
    }

    /// Its reviews say `status`, and `issue` of each issue, instead of `approved` and `description`.
    pub fn says_status(self) -> bool {
        self == Ladder::S4
    }

    pub fn severities(self) -> &'static [(&'static str, Severity)] {
        match self {
            Ladder::S0 => &[("blocking", Severity::High), ("non_blocking", Severity::Low)],
            Ladder::S1 => &[
                ("blocker", Severity::Critical),
                ("major", Severity::High),
                ("minor", Severity::Low),
                ("nit", Severity::Note),
            ],
            Ladder::S2 => {
                &[("blocker", Severity::High), ("warning", Severity::Medium), ("note", Severity::Note)]
            }
            Ladder::S3 => {
                &[("must", Severity::High), ("should", Severity::Medium), ("consider", Severity::Low)]
            }
            Ladder::S4 => &[("high", Severity::High), ("medium", Severity::Medium), ("low", Severity::Low)],
        }
    }
}

/// `NON-BLOCKING`, `Non Blocking` and `non_blocking` are one word.
pub(crate) fn normal(word: &str) -> String {
    let word = word.trim().to_lowercase();
    word.chars().map(|c| if c == '-' || c.is_whitespace() { '_' } else { c }).collect()
}

fn owned<T: Copy>(table: &[(&str, T)]) -> BTreeMap<String, T> {
    table.iter().map(|(word, meaning)| ((*word).to_owned(), *meaning)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_is_known_in_any_case() {
        let words = WordMap::default();
        for (word, outcome) in [
            ("PASS", Outcome::Passed),
            ("Partial", Outcome::Failed),
            ("FAIL", Outcome::Failed),
            ("DONE", Outcome::Done),
            ("ERROR", Outcome::Error),
            ("OK", Outcome::Done),
            ("BLOCKED", Outcome::Blocked),
            ("NEEDS_INFO", Outcome::NeedsInput),
            ("NEEDS_DECISION", Outcome::NeedsInput),
            ("approved", Outcome::Passed),
            ("needs_revision", Outcome::Failed),
            ("complete", Outcome::Done),
            ("PASS WITH NOTES", Outcome::Passed),
        ] {
            assert_eq!(words.outcome(word), Some(outcome), "{word}");
        }
        assert_eq!(words.outcome("looks good"), None);
        assert_eq!(words.severity("NON-BLOCKING"), Some(Severity::Low));
        assert_eq!(words.severity("Non Blocking"), Some(Severity::Low));
    }

    #[test]
    fn j_06_unknown_severity_is_the_highest() {
        let words = WordMap::default();
        assert_eq!(words.severity_or_highest("CRITICAL"), Severity::Critical);
        assert_eq!(words.severity_or_highest("critical"), Severity::Critical);
        assert_eq!(words.severity_or_highest("catastrophic"), Severity::Critical);
        assert_eq!(words.severity_or_highest(""), Severity::Critical);
    }

    #[test]
    fn the_default_ladder_is_the_strictest_of_all() {
        let words = WordMap::default();
        for ladder in [Ladder::S0, Ladder::S1, Ladder::S2, Ladder::S3, Ladder::S4] {
            for (word, severity) in ladder.severities() {
                assert!(words.severity(word) >= Some(*severity), "{word} in {ladder:?}");
                assert_eq!(words.clone().with_ladder(ladder).severity(word), Some(*severity));
            }
        }
    }

    #[test]
    fn a_file_overrides_single_words() {
        let words: WordMap =
            serde_json::from_str(r#"{"outcomes": {"BLOCKED": "failed", "FAIL": "failed", "READY": "done"}}"#)
                .unwrap();
        assert_eq!(words.outcome("blocked"), Some(Outcome::Failed));
        assert_eq!(words.outcome("PASS"), Some(Outcome::Passed));
        assert_eq!(words.outcome_in(ReplyFormat::Universal, "FAIL"), Some(Outcome::Failed));
        assert!(words.is_added("ready") && !words.is_added("blocked"));
        assert!(serde_json::from_str::<WordMap>(r#"{"outcome": {}}"#).is_err());
        let default = WordMap::default();
        assert_eq!(default.outcome_in(ReplyFormat::Universal, "FAIL"), Some(Outcome::Error));
        let text = serde_json::to_string(&default).unwrap();
        assert_eq!(serde_json::from_str::<WordMap>(&text).unwrap(), default);
    }
}
