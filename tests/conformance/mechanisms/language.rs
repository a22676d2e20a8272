//! What a definition says is what happens: questions in words, checks with files and settings, contracts
//! of the first round, closed values, routes that are kept.

use crate::support::Scratch;

#[test]
fn a_question_is_put_into_words_and_stays_as_it_was_asked() {
    let scratch = Scratch::with(
        "
settings: { version: 3 }
steps:
  - { id: code, role: coder }
  - { id: ship, decide: \"Ship version {{ settings.version }} of {{ request | upper }}, {{ steps.code.state }}?\", answers: { yes: pass, no: block } }
",
        "",
    );
    let run = scratch.run(10);
    let asked = scratch.decision(&run, "ship");
    assert_eq!(asked["question"], "Ship version 3 of ADD A GREETING, passed?");
    assert_eq!(
        scratch.events_of(&run, "decision.bound")[0]["question"],
        "Ship version 3 of ADD A GREETING, passed?"
    );
    scratch.gatewright(&["decisions", &run]).exits(0).prints("Ship version 3 of ADD A GREETING, passed?");
    scratch.gatewright(&["answer", &run, "ship", "yes"]).exits(0);
    assert_eq!(scratch.state(&run), "done");
}

#[test]
fn a_question_that_meets_data_it_cannot_say_blocks_and_is_not_asked() {
    let scratch = Scratch::with(
        "
steps:
  - { id: ship, decide: \"Ship for {{ cause.reason }}?\", answers: { yes: pass } }
",
        "",
    );
    let run = scratch.run(11);
    assert_eq!(scratch.decision(&run, "ship")["status"], "cancelled");
    scratch.gatewright(&["why", &run, "ship"]).prints("cause.reason");
}

const MEASURED: &str = "
settings: { unit: lines, deep: false }
checks:
  count: { run: \"LINE\" }
  deep: { run: \"false\", when: settings.deep }
steps:
  - { id: measure, check: count, writes: { size.json: { json: { type: object, required: [lines] } } }, retry: { attempts_max: 1 } }
  - { id: look, check: deep, reads: [size.json] }
";

fn measured(line: &str) -> Scratch {
    Scratch::with(&MEASURED.replace("LINE", &line.replace('"', "\\\"")), "")
}

#[test]
fn a_check_step_delivers_what_it_writes() {
    for target in ["$GATEWRIGHT_OUT", "$GATEWRIGHT_RUN_DIR"] {
        let scratch = measured(&format!(
            "printf '{{\"%s\": 3}}' {{{{ settings.unit | quote }}}} > \"{target}/size.json\""
        ));
        let run = scratch.run(0);
        let status = scratch.status(&run);
        let dir = status["dir"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(format!("{dir}/size.json")).unwrap(), "{\"lines\": 3}");
        assert_eq!(scratch.step(&run, "look")["state"], "passed", "its check is left out");
    }
}

#[test]
fn a_check_step_that_does_not_write_what_it_must_has_failed() {
    for (line, why) in [
        ("true", "size.json"),
        (": > $GATEWRIGHT_OUT/size.json", "size.json"),
        ("echo '[]' > $GATEWRIGHT_OUT/size.json", "size.json"),
    ] {
        let scratch = measured(line);
        let run = scratch.run(11);
        assert_eq!(scratch.step(&run, "measure")["state"], "blocked", "{line}");
        scratch.gatewright(&["why", &run, "measure"]).prints(why);
        assert_eq!(scratch.step(&run, "look")["attempts"], 0);
    }
}

#[test]
fn a_check_step_waits_for_what_it_reads() {
    let scratch = Scratch::with(
        "
checks: { ok: \"true\" }
steps:
  - { id: look, check: ok, reads: [\"./there.txt\"] }
",
        "",
    );
    let run = scratch.run(11);
    scratch.gatewright(&["why", &run, "look"]).prints("./there.txt");
    scratch.write("there.txt", "x");
    scratch.gatewright(&["resume", &run]).exits(0);
}

#[test]
fn groups_have_no_files_of_their_own() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: coder, writes: [list.json] }
  - { id: each, for_each: list.json, reads: [list.json], writes: [all.md], steps: [ { id: one, role: coder } ] }
",
        "",
    );
    scratch.gatewright(&["run", "w", "x"]).exits(3).says("`reads` means nothing in a fan-out");
}

const TWO_ROUNDS: &str = "
steps:
  - { id: code, role: coder }
  - id: review
    review: code
    by: reviewer
    rounds_max: 2
    on_exhausted: [block]
    retry: { attempts_max: 1 }
    writes:
      \"review-{{ round }}.md\":
        first: review.md
        first_contract: { text: { contains: [\"first look\"] } }
        contract: { text: { contains: [\"second look\"] } }
";

#[test]
fn the_first_round_has_its_own_contract() {
    let judge = |first: &str, second: &str| {
        format!(
            "review) if [ \"$GATEWRIGHT_ROUND\" = 1 ]; then echo '{first}' > \"$GATEWRIGHT_OUT/review.md\"; \
             echo '{{\"approved\": false, \"issues\": [{{\"severity\": \"blocker\", \"description\": \"x\"}}], \"summary\": \"No.\"}}'; \
             else echo '{second}' > \"$GATEWRIGHT_OUT/review-2.md\"; \
             echo '{{\"approved\": true, \"issues\": [], \"summary\": \"Yes.\"}}'; fi;;"
        )
    };
    Scratch::with(TWO_ROUNDS, &judge("first look", "second look")).run(0);
    let wrong = Scratch::with(TWO_ROUNDS, &judge("second look", "second look"));
    let run = wrong.run(11);
    wrong.gatewright(&["why", &run, "review"]).prints("first look");
    let wrong = Scratch::with(TWO_ROUNDS, &judge("first look", "first look"));
    let run = wrong.run(11);
    wrong.gatewright(&["why", &run, "review"]).prints("second look");
}

const ROUTED: &str = "
steps:
  - { id: code, role: coder }
  - id: review
    review: code
    by: reviewer
    rounds_max: 3
    rerun: listed
    writes: { \"review-{{ round }}.md\": any }
    fix: { structure: [tidy], default: [mend] }
  - { id: tidy, role: coder, dormant: true }
  - { id: mend, role: coder, dormant: true }
";

const REVIEWS: &str = r#"
review) case $GATEWRIGHT_ROUND in
1) printf '# Review\n\n**Status:** FAIL\n\n## Blocking Issues\n- Two jobs in one\n  - Route to: structure\n' > "$GATEWRIGHT_OUT/review-1.md"; brief FAIL review-1.md;;
2) printf '# Re-Review\n\n**Status:** FAIL\n\n## Previous Issues Status\n| Issue | Original Status | Current Status | Notes |\n|---|---|---|---|\n| Two jobs in one | BLOCKING | PARTIAL | half |\n' > "$GATEWRIGHT_OUT/review-2.md"; brief FAIL review-2.md;;
*) put review-3.md; brief PASS review-3.md;;
esac;;
"#;

#[test]
fn s0_39_what_is_not_resolved_keeps_its_route() {
    let scratch = Scratch::with(ROUTED, REVIEWS);
    scratch.run(0);
    assert_eq!(scratch.called(), ["code", "review", "tidy", "review", "tidy", "review"]);
}

#[test]
fn s0_31_next_input_is_held_against_what_the_next_step_reads() {
    let scratch = Scratch::with(
        "
steps:
  - { id: plan, role: planner, writes: [plan.md] }
  - { id: code, role: coder, reads: [plan.md], writes: [notes.md] }
  - { id: last, role: coder, reads: [notes.md] }
",
        "
plan) put plan.md; printf 'STATUS: DONE\\nFILE: plan.md\\nSUMMARY: It is done.\\nNEXT_INPUT: plan.md, elsewhere.md\\n';;
code) put notes.md; printf 'STATUS: DONE\\nFILE: notes.md\\nSUMMARY: It is done.\\nNEXT_INPUT: notes.md\\n';;
",
    );
    let run = scratch.run(0);
    let remarks: Vec<serde_json::Value> = scratch
        .events_of(&run, "step.attempt.ended")
        .into_iter()
        .map(|event| event["report"]["remarks"].clone())
        .collect();
    let vain = serde_json::json!(["NEXT_INPUT names `elsewhere.md`, which no step after this one reads"]);
    assert_eq!(remarks, [vain, serde_json::Value::Null, serde_json::Value::Null]);
}
