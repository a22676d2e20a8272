//! Words of people and of methods: synonyms, canonical answers, status words that mean something else.

use crate::support::Scratch;

const STRATEGY: &str = "
steps:
  - id: strategy
    decision: UD-REVIEW-STRATEGY
    decide: \"How is it reviewed?\"
    answers:
      per-batch: { does: pass, synonyms: [\"per batch\", batch] }
      single-final: { does: pass, synonyms: [final, \"at the end\"] }
  - { id: code, role: coder }
";

#[test]
fn s1_27_only_the_canonical_word_is_stored() {
    let scratch = Scratch::with(STRATEGY, "");
    let run = scratch.run(10);
    assert_eq!(
        scratch.decision(&run, "UD-REVIEW-STRATEGY")["status"],
        "pending",
        "on record before anybody is asked"
    );
    scratch.gatewright(&["answer", &run, "UD-REVIEW-STRATEGY", "At the end"]).exits(0);
    assert_eq!(scratch.decision(&run, "UD-REVIEW-STRATEGY")["answer"], "single-final");
    assert_eq!(scratch.events_of(&run, "decision.answered")[0]["answer"], "single-final");
}

#[test]
fn s1_28_anything_else_is_asked_again_and_putting_off_blocks() {
    let scratch = Scratch::with(STRATEGY, "");
    let run = scratch.run(10);
    for unclear in ["both", "", "per-batch or single-final", "later"] {
        scratch.gatewright(&["answer", &run, "UD-REVIEW-STRATEGY", unclear]).exits(4);
        assert_eq!(scratch.decision(&run, "UD-REVIEW-STRATEGY")["status"], "pending", "{unclear:?}");
    }
    scratch.gatewright(&["answer", &run, "UD-REVIEW-STRATEGY", "--cancel", "next week"]).exits(11);
    assert_eq!(scratch.blocked_by(&run).0, "mandatory_user_decision_missing");
    assert_eq!(scratch.count("code"), 0);
}

const APPROVAL: &str = "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"This way?\", show: [plan.md], answers: { approved: pass, changes-requested: { redo: plan } } }
  - { id: code, role: coder }
";

/// S3-21's list of phrases that approve and of those that do not.
#[test]
fn s3_21_acknowledgements_questions_and_silence_approve_nothing() {
    let scratch = Scratch::with(APPROVAL, "plan) wrote plan.md;;");
    let run = scratch.run(10);
    for none in [
        "okay",
        "interesting",
        "I see",
        "let me think about it",
        "what about tests?",
        "",
        "approved but shorter",
    ] {
        scratch.gatewright(&["answer", &run, "agree", none]).exits(4);
    }
    assert_eq!(scratch.count("code"), 0);
    for phrase in
        ["yes", "yep", "y", "go ahead", "proceed", "do it", "approved", "looks good", "implement it"]
    {
        let scratch = Scratch::with(APPROVAL, "plan) wrote plan.md;;");
        let run = scratch.run(10);
        scratch.gatewright(&["answer", &run, "agree", phrase]).exits(0);
        assert_eq!(scratch.decision(&run, "agree")["answer"], "approved", "{phrase}");
    }
}

#[test]
fn s1_72_a_change_request_keeps_its_summary() {
    let scratch = Scratch::with(APPROVAL, "plan) wrote plan.md \"plan $GATEWRIGHT_ATTEMPT\";;");
    let run = scratch.run(10);
    scratch
        .gatewright(&["answer", &run, "agree", "Looks good!", "--comment", "only if it is faster"])
        .exits(4);
    scratch.gatewright(&["answer", &run, "agree", "changes-requested: use \"one\" table"]).exits(10);
    let events = scratch.events_of(&run, "decision.answered");
    assert_eq!(
        (&events[0]["answer"], &events[0]["comment"]),
        (&"changes-requested".into(), &"use \"one\" table".into())
    );
    assert!(scratch.prompt("plan", 2).contains("use \"one\" table"));
}

/// A status word counts as the method says: `partial` hands on where the step's words say so, and
/// nowhere else.
#[test]
fn s3_17_partial_hands_on_only_where_the_step_says_so() {
    let completion = "echo more >> src/a.txt; printf '> Half of it.\\n>\\n> **Output**: `src/a.txt`\\n> **Status**: partial\\n> **Blocking issues**: none\\n'";
    let step = |words: &str| {
        format!(
            "steps:\n  - {{ id: one, role: coder, reply: completion, retry: {{ attempts_max: 1 }}{words} }}\n  - {{ id: two, role: coder }}\n"
        )
    };
    let scratch =
        Scratch::with(&step(", words: { outcomes: { partial: done } }"), &format!("one) {completion};;"));
    let run = scratch.run(0);
    assert_eq!(scratch.step_state(&run, "two"), "passed");
    let strict = Scratch::with(&step(""), &format!("one) {completion};;"));
    strict.run(11);
    assert_eq!(strict.count("two"), 0);
}

#[test]
fn what_the_engine_finds_counts_whatever_the_reviewer_says() {
    let workflow = "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, block_at: high, rounds_max: 4, finds: \"{% if round < 3 %}high: round {{ round }} is too early{% endif %}\\nlow: and a word\" }
";
    let scratch = Scratch::with(workflow, "review) approve;;");
    let run = scratch.run(0);
    assert_eq!((scratch.count("code"), scratch.count("review")), (3, 3));
    assert!(scratch.prompt("code", 2).contains("round 1 is too early"));
    assert_eq!(scratch.step(&run, "review")["findings"][0]["problem"], "and a word");
    // A name that no run knows is a mistake of the definition.
    scratch.workflow("w", &workflow.replace("round <", "rund <"));
    assert!(scratch.gatewright(&["lint", "--json"]).out.contains("GW114"));
}
