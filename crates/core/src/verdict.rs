//! What the engine concludes of a review: computed from findings and `block_at`.
//!
//! A reviewer's own word can only make the verdict stricter (decision 2).

use serde::{Deserialize, Serialize};

use crate::outcome::{Outcome, Reply};

/// Ladder of severities, lowest first so that `>=` reads as "at least".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Note,
    Low,
    Medium,
    High,
    Critical,
}

impl Severity {
    /// Our own words only; a method's ladder is mapped before. Unknown words are the caller's to
    /// treat as the highest (J-06).
    pub fn from_word(word: &str) -> Option<Severity> {
        match word {
            "note" => Some(Severity::Note),
            "low" => Some(Severity::Low),
            "medium" => Some(Severity::Medium),
            "high" => Some(Severity::High),
            "critical" => Some(Severity::Critical),
            _ => None,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// One thing a reviewer found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub severity: Severity,
    /// The severity as the reviewer wrote it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity_word: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub problem: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Names the route by which it goes to a fixer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// Asks for more than the task: recorded, never blocking (S2-18).
    #[serde(default, skip_serializing_if = "is_false")]
    pub out_of_scope: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Finding {
    pub fn new(severity: Severity, problem: impl Into<String>) -> Self {
        Finding {
            id: None,
            severity,
            severity_word: String::new(),
            location: None,
            category: None,
            problem: problem.into(),
            fix: None,
            route: None,
            out_of_scope: false,
        }
    }

    pub fn blocks(&self, block_at: Severity) -> bool {
        !self.out_of_scope && self.severity >= block_at
    }
}

/// What the engine concludes of a review, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    PassWithNotes,
    Revise,
    /// The reviewer forbids going on, whatever the severities (S4-20).
    HardStop,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::PassWithNotes => "pass_with_notes",
            Verdict::Revise => "revise",
            Verdict::HardStop => "hard_stop",
        }
    }
}

/// Computes the verdict of one reviewer's reply.
///
/// `hard_stop_on_blocked`: the method says that `blocked` from this reviewer stops the run.
pub fn verdict_of(reply: &Reply, block_at: Severity, hard_stop_on_blocked: bool) -> Verdict {
    let blocking = reply.findings.iter().any(|finding| finding.blocks(block_at));
    let from_findings = match (blocking, reply.findings.is_empty()) {
        (true, _) => Verdict::Revise,
        (false, false) => Verdict::PassWithNotes,
        (false, true) => Verdict::Pass,
    };
    let from_word = match reply.outcome {
        Outcome::Done | Outcome::Passed => Verdict::Pass,
        // A status that demands work but names none is still a demand; one whose findings are
        // all below the bar is content with notes (S0-40, S4-20).
        Outcome::Failed if reply.findings.is_empty() => Verdict::Revise,
        Outcome::Failed => Verdict::PassWithNotes,
        Outcome::Blocked if hard_stop_on_blocked => Verdict::HardStop,
        // Reached only where a person judges the notes: a doubt is one.
        Outcome::NeedsInput => Verdict::PassWithNotes,
        Outcome::Blocked | Outcome::Error => Verdict::Revise,
    };
    from_findings.max(from_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(outcome: Outcome, severities: &[Severity]) -> Reply {
        let mut reply = Reply::new(outcome);
        reply.findings = severities.iter().map(|s| Finding::new(*s, "x")).collect();
        reply
    }

    #[test]
    fn j_08_approved_with_a_blocking_finding_is_not_a_pass() {
        assert_eq!(
            verdict_of(&reply(Outcome::Passed, &[Severity::High]), Severity::Medium, false),
            Verdict::Revise
        );
        assert_eq!(
            verdict_of(&reply(Outcome::Passed, &[Severity::Low]), Severity::Medium, false),
            Verdict::PassWithNotes
        );
    }

    #[test]
    fn j_07_demand_without_findings_is_revise() {
        assert_eq!(verdict_of(&reply(Outcome::Failed, &[]), Severity::Low, false), Verdict::Revise);
        assert_eq!(verdict_of(&reply(Outcome::Blocked, &[]), Severity::Low, false), Verdict::Revise);
    }

    #[test]
    fn s4_20_blocked_final_review_is_a_hard_stop_whatever_the_severity() {
        assert_eq!(
            verdict_of(&reply(Outcome::Blocked, &[Severity::Note]), Severity::High, true),
            Verdict::HardStop
        );
        assert_eq!(
            verdict_of(&reply(Outcome::Failed, &[Severity::Low]), Severity::High, true),
            Verdict::PassWithNotes
        );
    }

    #[test]
    fn s0_40_partial_with_only_non_blocking_findings_passes_with_notes() {
        assert_eq!(
            verdict_of(&reply(Outcome::Failed, &[Severity::Low]), Severity::High, false),
            Verdict::PassWithNotes
        );
    }

    #[test]
    fn s2_18_out_of_scope_findings_do_not_block() {
        let mut reply = reply(Outcome::Passed, &[Severity::Critical]);
        reply.findings[0].out_of_scope = true;
        assert_eq!(verdict_of(&reply, Severity::Low, false), Verdict::PassWithNotes);
    }
}
