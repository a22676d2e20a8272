//! What a person lets pass although it should not, and that it is never forgotten (decision 11).

use crate::support::Scratch;

const GATED: &str = "checks: { red: \"false\" }
steps:
  - { id: a, role: coder }
  - { id: b, role: coder, gates: [ { expr: \"steps.a.round > 1\" } ] }
  - { id: c, role: coder }";

#[test]
fn a_closed_hard_gate_is_waived_with_a_reason_and_the_step_runs() {
    let scratch = Scratch::with(GATED, "");
    let run = scratch.run(11);
    assert_eq!(scratch.blocked_by(&run).0, "gate");
    let told = scratch.gatewright(&["status", &run]).out;
    assert!(told.contains(&format!("gatewright skip {run} b --gate --reason")), "{told}");
    scratch.gatewright(&["skip", &run, "b", "--gate"]).exits(2);
    scratch.gatewright(&["skip", &run, "b", "--gate", "--reason", " "]).exits(4).says("a reason is needed");
    scratch.gatewright(&["skip", &run, "b", "--gate=other", "--reason", "r"]).exits(4).says("no closed gate");
    scratch
        .gatewright(&["skip", &run, "c", "--gate", "--reason", "r"])
        .exits(4)
        .says("no gate of `c` is closed");
    scratch.gatewright(&["skip", &run, "b", "--gate", "--reason", "good enough"]).exits(0);
    assert_eq!(scratch.called(), ["a", "b", "c"]);
    let waiver = scratch.events_of(&run, "gate.waived");
    assert_eq!(waiver[0]["reason"], "good enough");
    let status = scratch.status(&run);
    assert_eq!((&status["state"], &status["waivers"][0]["reason"]), (&"done".into(), &"good enough".into()));
    assert_eq!(status["waivers"][0]["gate"], waiver[0]["gate"]);
    for reader in [vec!["status", &run], vec!["show", &run]] {
        let text = scratch.gatewright(&reader).out;
        assert!(text.contains("good enough"), "{reader:?}:\n{text}");
    }
}

#[test]
fn j_39_an_obligation_that_nothing_meets_is_a_question() {
    let scratch = Scratch::with(
        "obligations: [ { name: seen, step: look } ]
steps:
  - { id: code, role: coder }
  - { id: look, role: reviewer, when: \"false\" }",
        "",
    );
    let run = scratch.run(10);
    let asked = scratch.decision(&run, "D-1");
    assert_eq!(asked["answers"], serde_json::json!(["run", "waive", "abort"]));
    scratch.gatewright(&["answer", &run, "D-1", "waive"]).exits(4).says("a reason is needed");
    scratch.gatewright(&["answer", &run, "D-1", "run"]).exits(0);
    assert_eq!(scratch.called(), ["code", "look"]);
    let run = scratch.run(10);
    scratch.gatewright(&["answer", &run, "D-1", "waive", "--comment", "seen by hand"]).exits(0);
    let status = scratch.status(&run);
    assert_eq!(status["waivers"][0]["obligation"], "seen");
    assert!(scratch.gatewright(&["status", &run]).out.contains("obligation seen: D-1: seen by hand"));
}

#[test]
fn j_43_a_limit_is_only_raised() {
    let scratch = Scratch::with(
        "budget: { launches: 1 }\nsteps: [ { id: a, role: coder }, { id: b, role: coder } ]",
        "",
    );
    let run = scratch.run(12);
    scratch.gatewright(&["resume", &run, "--raise", "launches=1"]).exits(4).says("limited to 1 already");
    scratch.gatewright(&["resume", &run, "--raise", "usd=5"]).exits(4).says("no limit on `usd`");
    let text = scratch.gatewright(&["status", &run]).out;
    assert!(text.contains("paused: the budget is used up: 1 of 1 launches"), "{text}");
    scratch.gatewright(&["resume", &run, "--raise", "launches=2"]).exits(0);
}

#[test]
fn s1_08_an_escalated_run_has_budget_and_settings_of_its_new_profile() {
    let scratch = Scratch::with(
        "settings: { word: lean }
budget: { launches: 1 }
checks: { told: \"printf %s $GATEWRIGHT_SET_WORD >> $HOME/word\" }
roles: { coder: { prompt: \"The word is {{ settings.word }}.\" } }
steps: [ { id: code, role: coder, checks: [told] } ]
profile: small
profiles:
  small: { escalate_to: full }
  full: { settings: { word: full }, budget: { launches: 2 } }",
        "code) [ $GATEWRIGHT_ATTEMPT = 1 ] && { echo '{\"status\": \"BLOCKED\", \"summary\": \"too big\", \"artifacts\": {}, \"gates\": {}, \"next\": {}, \"reason\": \"complexity\"}'; exit 0; }; ok;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.status(&run)["profile"], "full");
    assert_eq!(scratch.status(&run)["cost"]["limits"]["launches"], 2);
    assert!(scratch.prompt("code", 1).contains("The word is lean."));
    assert!(scratch.prompt("code", 2).contains("The word is full."));
    assert_eq!(std::fs::read_to_string(scratch.home().join("word")).unwrap(), "full");
}
