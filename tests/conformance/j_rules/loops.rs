//! Loops, retries, restarts: they end, and count right.

use crate::support::{Scratch, wait_for};

const PANEL: &str = "
steps:
  - { id: other, role: coder }
  - { id: code, role: coder }
  - { id: review, review: code, by: [ { role: reviewer, id: speed }, { role: reviewer, id: safety } ], REREVIEW }
";
const SAFETY_OBJECTS_ONCE: &str = "
review/safety) if [ $GATEWRIGHT_ROUND = 1 ]; then demand high 'leaks a key'; else approve; fi;;
review/speed) approve;;
";

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort();
    list
}

#[test]
fn j_10_one_of_a_pair_fails_the_fix_runs_and_both_look_again() {
    let scratch = Scratch::with(&PANEL.replace(", REREVIEW", ""), SAFETY_OBJECTS_ONCE);
    let run = scratch.run(0);
    let called = scratch.called();
    assert_eq!(called[..2], ["other", "code"]);
    assert_eq!(sorted(called[2..4].to_vec()), ["review/safety", "review/speed"]);
    assert_eq!(called[4], "code", "exactly the fix step ran again: {called:?}");
    assert_eq!(sorted(called[5..].to_vec()), ["review/safety", "review/speed"]);
    assert_eq!(scratch.step(&run, "other")["attempts"], 1);
    assert!(scratch.prompt("code", 2).contains("leaks a key"));
}

#[test]
fn j_10_or_only_the_one_that_failed_looks_again() {
    let scratch = Scratch::with(&PANEL.replace("REREVIEW", "rereview: failed"), SAFETY_OBJECTS_ONCE);
    scratch.run(0);
    assert_eq!(scratch.called()[4..], ["code", "review/safety"]);
    assert_eq!(scratch.count("review/speed"), 1);
}

#[test]
fn j_11_an_endless_loop_stops_at_its_limit_also_across_a_crash() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, rounds_max: 3 }
",
        "review) if [ $GATEWRIGHT_ROUND = 2 ]; then mark round-2; await go; fi; demand;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    scratch.marked("round-2");
    engine.kill();
    scratch.mark("go");
    scratch.gatewright(&["resume", &run]).exits(11);
    assert_eq!(scratch.called(), ["code", "review", "code", "review", "code", "review"]);
    assert_eq!(scratch.step(&run, "review")["rounds"], 3);
    assert_eq!(scratch.blocked_by(&run).0, "rounds_exhausted");
}

#[test]
fn j_21_the_next_reviewer_knows_what_the_one_before_left_open() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: first, review: code, by: reviewer, rounds_max: 1, on_exhausted: [complete_with_notes] }
  - { id: second, review: code, by: reviewer }
",
        "first) demand high 'no test for empty names';; second) approve;;",
    );
    let run = scratch.run(0);
    let prompt = scratch.prompt("second", 1);
    assert!(prompt.contains("no test for empty names"), "as context: {prompt}");
    assert!(prompt.contains("first"), "and by whom: {prompt}");
    let first = scratch.step(&run, "first");
    assert_eq!(first["state"], "passed_with_notes");
    assert!(first["notes"].to_string().contains("1 blocking finding"), "in the summary: {first}");
}

#[test]
fn j_23_the_same_referral_again_without_improvement_asks() {
    let scratch = Scratch::with(
        "
steps:
  - { id: code, role: coder }
  - { id: test, role: coder, back: [code], back_max: 5, reply: universal }
",
        r#"test) echo '{"status": "OK", "summary": "code is wrong", "artifacts": {}, "gates": {}, "next": {}, "back_to": "code"}';;"#,
    );
    let run = scratch.run(10);
    assert_eq!(
        scratch.called(),
        ["code", "test", "code", "test"],
        "once back, and no more since nothing changed"
    );
    let status = scratch.status(&run);
    let asked = &status["decisions"][0];
    assert_eq!((&asked["about"], &asked["status"]), (&"ping_pong".into(), &"pending".into()));
    assert!(scratch.prompt("code", 2).contains("code is wrong"));
}

#[test]
fn j_27_the_same_error_after_a_retry_blocks() {
    let scratch = Scratch::with(
        "
checks: { tests: { run: \"echo assertion failed in a; exit 1\" } }
steps: [ { id: code, role: coder, checks: [tests], retry: { attempts_max: 5 } } ]
",
        "",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.count("code"), 2, "no third try");
    assert_eq!(scratch.blocked_by(&run).0, "same_error");
    scratch.agent("code) echo $GATEWRIGHT_ATTEMPT > src/a.txt; ok;;");
    let run = scratch.run(11);
    assert_eq!(scratch.step(&run, "code")["attempts"], 5, "changed work gets all its tries");
}

#[test]
fn j_30_a_restarted_stage_counts_from_one_and_keeps_its_history() {
    let scratch = Scratch::with(
        "
stages:
  - id: design
    steps: [ { id: plan, role: planner, writes: { plan.md: any } } ]
  - id: build
    restarts_max: 1
    steps:
      - { id: code, role: coder, writes: { code.md: any } }
      - { id: review, review: code, by: reviewer, rounds_max: 2, on_exhausted: [restart_stage, block] }
",
        "plan) wrote plan.md;; code) wrote code.md $GATEWRIGHT_ATTEMPT;; review) demand;;",
    );
    let run = scratch.run(11);
    let rounds: Vec<String> =
        scratch.calls().iter().filter(|line| line.starts_with("review")).cloned().collect();
    assert_eq!(
        rounds,
        ["review 1 1", "review 2 2", "review 3 1", "review 4 2"],
        "rounds start over, attempts do not"
    );
    assert_eq!(scratch.count("code"), 4);
    assert_eq!(scratch.count("plan"), 1, "the stage before is left alone");
    assert_eq!(scratch.events_of(&run, "step.judged").len(), 4, "the journal keeps all of it");
    assert_eq!(scratch.events_of(&run, "stage.restarted").len(), 1, "restarts_max: 1 is one restart");
}

#[test]
fn j_46_attempts_max_is_exactly_so_many() {
    for limit in [1, 3] {
        let scratch = Scratch::with(
            &format!("steps: [ {{ id: code, role: coder, retry: {{ attempts_max: {limit} }} }} ]"),
            "code) exit 7;;",
        );
        let run = scratch.run(11);
        assert_eq!(scratch.count("code"), limit);
        assert_eq!(scratch.step(&run, "code")["attempts"], limit);
    }
}

#[test]
fn j_46_rounds_max_is_exactly_so_many_reviews() {
    for limit in [1, 4] {
        let scratch = Scratch::with(
            &format!(
                "steps: [ {{ id: code, role: coder }}, {{ id: review, review: code, by: reviewer, rounds_max: {limit} }} ]"
            ),
            "review) demand high \"fault $GATEWRIGHT_ROUND\";;",
        );
        let run = scratch.run(11);
        assert_eq!(scratch.count("review"), limit);
        assert_eq!(scratch.count("code"), limit, "as many fixes as reviews but one, and the first");
        assert_eq!(scratch.step(&run, "review")["rounds"], limit);
    }
}

#[test]
fn j_46_restarts_back_and_launches_are_exactly_so_many() {
    let scratch = Scratch::with(
        "
stages:
  - id: build
    restarts_max: 2
    steps: [ { id: code, role: coder, retry: { attempts_max: 1, on_exhausted: [restart_stage, block] } } ]
",
        "code) exit 7;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.count("code"), 3, "two restarts");
    assert_eq!(scratch.events_of(&run, "stage.restarted").len(), 2);
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder }, { id: test, role: coder, back: [code], back_max: 2, reply: universal } ]",
        r#"
code) echo $GATEWRIGHT_ATTEMPT > src/a.txt; ok;;
test) echo '{"status": "OK", "summary": "no", "artifacts": {}, "gates": {}, "next": {}, "back_to": "code"}';;"#,
    );
    scratch.run(10);
    assert_eq!((scratch.count("code"), scratch.count("test")), (3, 3), "twice back");
    let scratch = Scratch::with(
        "budget: { launches: 2 }\nsteps: [ { id: a, role: coder }, { id: b, role: coder }, { id: c, role: coder } ]",
        "",
    );
    scratch.run(12);
    assert_eq!(scratch.called(), ["a", "b"]);
}

#[test]
fn j_46_an_answer_that_is_none_is_asked_again_exactly_three_times() {
    let scratch = Scratch::with(
        "steps: [ { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } } ]",
        "",
    );
    let mut terminal = scratch.terminal(&["run", "w", "Add a greeting"]);
    for times in 1..=4 {
        terminal.shows("agree > ", times);
        terminal.types("hmm");
    }
    assert_eq!(terminal.exit_code(), 11, "S1-18: then it is blocked");
    let run = scratch.status("latest");
    assert_eq!(run["blocked_by"]["reason"], "mandatory_user_decision_missing");
}

#[test]
fn j_46_parallel_max_is_exactly_so_many_at_a_time() {
    let scratch = Scratch::with(
        "
parallel_max: 2
steps:
  - { id: a, role: reader }
  - { id: b, role: reader, needs: [] }
  - { id: c, role: reader, needs: [] }
",
        "*) mark at-$GATEWRIGHT_STEP; await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "Add a greeting"]);
    let run = engine.id();
    wait_for("two at work", || (scratch.called().len() == 2).then_some(()));
    scratch.mark("go");
    engine.ended().exits(0);
    assert_eq!(scratch.most_at_once(&run, |_| true), 2, "reached, and never more");
    assert_eq!(scratch.called().len(), 3);
}
