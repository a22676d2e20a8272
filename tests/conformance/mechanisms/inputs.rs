//! Inputs that are missing or changed, and what agents report as an error.

use crate::support::Scratch;

const OPTIONAL: &str = "
steps:
  - { id: measure, role: coder, writes: { perf.md: any, performance.md: { optional: true } } }
  - { id: code, role: coder, reads: [performance.md] }
";

#[test]
fn s0_43_s0_47_a_missing_input_is_named_with_what_is_near_and_the_agent_never_starts() {
    let scratch = Scratch::with(OPTIONAL, "measure) wrote perf.md;;");
    let ran = scratch.gatewright(&["run", "w", "x"]).exits(11);
    let run = ran.id();
    assert_eq!(scratch.called(), ["measure"]);
    let (reason, message) = scratch.blocked_by(&run);
    assert_eq!(reason, "missing_input");
    assert!(message.starts_with("code:"), "which step: {message}");
    assert!(message.contains("`performance.md`") && message.contains("near matches: perf.md"), "{message}");
    assert!(ran.err.contains("performance.md"), "{}", ran.err);
    let why = scratch.gatewright(&["why", &run, "code"]).exits(0);
    assert!(why.out.contains("performance.md") && why.out.contains("perf.md"), "{}", why.out);
}

#[test]
fn resume_use_substitutes_a_missing_input_and_that_is_on_record() {
    let scratch = Scratch::with(OPTIONAL, "measure) wrote perf.md;;");
    let run = scratch.run(11);
    scratch.gatewright(&["resume", &run, "--use", "nonsense"]).exits(2);
    scratch.gatewright(&["resume", &run, "--use", "performance.md=perf.md"]).exits(0);
    let attempt: u32 = scratch.calls()[1].split(' ').nth(1).unwrap().parse().unwrap();
    let prompt = scratch.prompt("code", attempt);
    assert!(prompt.contains("/perf.md"), "told of the other one: {prompt}");
    assert_eq!(scratch.events_of(&run, "run.resumed")[0]["substitutes"]["performance.md"], "perf.md");
}

#[test]
fn an_optional_input_may_be_missing() {
    let scratch = Scratch::with(
        &OPTIONAL.replace("reads: [performance.md]", "reads: [\"performance.md?\", perf.md]"),
        "measure) wrote perf.md;;",
    );
    scratch.run(0);
    let prompt = scratch.prompt("code", 1);
    assert!(prompt.contains("/perf.md") && !prompt.contains("performance.md"), "{prompt}");
}

#[test]
fn s0_45_s0_46_an_error_halts_and_the_same_agent_is_not_tried_again() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder, retry: { attempts_max: 5 } }, { id: after, role: coder } ]",
        "code) printf 'STATUS: ERROR\\nFILE: none\\nSUMMARY: Required input missing.\\nNEXT_INPUT: none\\n---\\n- Expected: plan.md\\n- Actual: none\\n';;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.called(), ["code"]);
    let (reason, message) = scratch.blocked_by(&run);
    assert_eq!(reason, "agent_error");
    assert!(message.contains("Required input missing."), "{message}");
}

#[test]
fn s0_48_s0_50_a_file_that_is_named_must_exist_also_if_it_is_not_declared() {
    let scratch = Scratch::with(
        "steps: [ { id: code, role: coder }, { id: after, role: coder } ]",
        "code) brief DONE notes.md;;",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.count("after"), 0);
    let (_, message) = scratch.blocked_by(&run);
    assert!(message.contains("notes.md") && message.contains("not found"), "{message}");
}

#[test]
fn s0_52_each_status_has_its_consequence() {
    let workflow = "
words: { ladder: s0 }
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer, block_at: high, rounds_max: 2, reply: brief }
  - { id: after, role: coder }
";
    let loops = ["code", "review", "code", "review", "after"];
    for (first, calls, code) in [
        ("brief PASS", &["code", "review", "after"][..], 0),
        ("brief PARTIAL; printf -- '---\\n- NON-BLOCKING: typo\\n'", &["code", "review", "after"], 0),
        ("brief PARTIAL; printf -- '---\\n- BLOCKING: no test\\n'", &loops, 0),
        ("brief FAIL; printf -- '---\\n- BLOCKING: no test\\n'", &loops, 0),
        ("brief FAIL", &loops, 0),
        ("brief ERROR", &["code", "review"], 11),
    ] {
        let scratch = Scratch::with(
            workflow,
            &format!("review) if [ $GATEWRIGHT_ROUND = 1 ]; then {first}; else brief PASS; fi;;"),
        );
        scratch.run(code);
        assert_eq!(scratch.called(), calls, "{first}");
    }
}

#[test]
fn an_artifact_that_a_person_edited_is_adopted_or_restored_before_it_is_read() {
    let workflow = "
steps:
  - { id: plan, role: planner, writes: { plan.md: any } }
  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: coder, reads: [plan.md] }
";
    for (answer, content) in [("adopt", "by hand\n"), ("restore", "content of plan.md\n")] {
        let scratch = Scratch::with(
            workflow,
            "plan) wrote plan.md;; code) cat $GATEWRIGHT_RUN_DIR/plan.md > $HOME/read; ok;;",
        );
        let run = scratch.run(10);
        std::fs::write(scratch.run_dir(&run).join("plan.md"), "by hand\n").unwrap();
        scratch.gatewright(&["approve", &run]).exits(10);
        assert_eq!(scratch.count("code"), 0, "decision 26: first it is asked");
        assert_eq!(scratch.decision(&run, "D-1")["answers"], serde_json::json!(["adopt", "restore"]));
        scratch.gatewright(&["answer", &run, "D-1", answer]).exits(0);
        assert_eq!(std::fs::read_to_string(scratch.home().join("read")).unwrap(), content, "{answer}");
        assert_eq!(scratch.published(&run, "plan.md").as_deref(), Some(content));
    }
}

#[test]
fn s4_05_nothing_but_the_engine_moves_a_run_on() {
    let scratch = Scratch::with(
        "
projections: [ { file: state.json, json: { currentPhase: { $expr: \"step_list | selectattr('state', 'eq', 'waiting') | map(attribute='id') | first | default('none')\" } } } ]
steps:
  - { id: agree, decide: \"Go?\", answers: { approved: pass, no: block } }
  - { id: code, role: coder }
",
        "",
    );
    let run = scratch.run(10);
    let file = scratch.run_dir(&run).join("state.json");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(&file).unwrap()).unwrap()["currentPhase"],
        "agree"
    );
    std::fs::write(&file, "{\"currentPhase\": \"code\"}").unwrap();
    scratch.gatewright(&["resume", &run]).exits(10);
    assert_eq!(scratch.count("code"), 0);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(&file).unwrap()).unwrap()["currentPhase"],
        "agree"
    );
}
