//! G1 to G4.

use super::cycle::Cycle;

#[test]
fn s3_23_a_full_cycle_stops_at_its_four_gates_and_nowhere_else() {
    let cycle = Cycle::starts("", &["--profile", "fullstack"], 10);
    let gates = |cycle: &Cycle| -> Vec<String> {
        let status = cycle.scratch.status(&cycle.run);
        let open = status["decisions"].as_array().unwrap().clone();
        open.iter()
            .filter(|one| one["status"] == "pending")
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(gates(&cycle), ["G1"]);
    assert_eq!(cycle.scratch.called(), ["tpm", "domain_expert", "domain_modeller"]);
    assert_eq!(cycle.json("pipeline_state.json")["current_gate"], "G1");
    cycle.answer("G1", "continue", 10);
    assert_eq!(gates(&cycle), ["G2"]);
    cycle.answer("G2", "option 2", 10);
    assert_eq!(gates(&cycle), ["G3"]);
    assert_eq!(cycle.scratch.count("streams/WS-1/backend"), 0, "nothing is implemented before G3");
    assert_eq!(cycle.json("pipeline_state.json")["stages"]["designer"]["selected_option"], "option-2");
    cycle.answer("G3", "go ahead", 10);
    assert_eq!(gates(&cycle), ["G4"]);
    cycle.answer("G4", "keep", 0);
    let backend = Cycle::starts("", &[], 10);
    backend.answer("G1", "yes", 10);
    assert_eq!(gates(&backend), ["G3"], "without a user interface there is no G2");
}

#[test]
fn s3_23_only_a_direction_that_was_offered_is_taken() {
    let cycle = Cycle::starts("", &["--profile", "fullstack"], 10);
    cycle.answer("G1", "continue", 10);
    cycle.answer("G2", "option 7", 10);
    let question = cycle.scratch.decision(&cycle.run, "D-1")["question"].as_str().unwrap().to_owned();
    assert!(question.contains("the design offers no option-7; it has 2 options"), "{question}");
    assert_eq!(cycle.scratch.count("api_designer"), 0);
    cycle.answer("D-1", "choose-again", 10);
    cycle.answer("G2", "option 2", 10);
    let state = cycle.json("pipeline_state.json");
    let decisions = state["decisions"].as_array().unwrap();
    let chosen = decisions.iter().find(|one| one["gate"] == "G2").unwrap();
    assert_eq!(chosen["chosen"], "option-2");
    let presented = chosen["options_presented"].to_string();
    assert!(presented.contains("option-2") && !presented.contains("option-3"), "{presented}");
}

#[test]
fn s3_23_the_build_pipeline_has_three_gates_of_its_own() {
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/build", &[], 10);
    assert_eq!(cycle.scratch.called(), ["builder"]);
    cycle.answer("G1", "approved", 10);
    assert_eq!(cycle.scratch.called(), ["builder", "meta_review"]);
    cycle.answer("G2", "approved", 10);
    assert_eq!(cycle.scratch.called(), ["builder", "meta_review", "content_review"]);
    cycle.answer("G3", "approved", 0);
}

#[test]
fn s3_25_single_commands_have_no_gates_and_ask_step_by_step() {
    let scratch = Cycle::project("");
    let cycle = Cycle::of(scratch, "stream-dag/quick-fix", &[], 0);
    assert!(cycle.scratch.status(&cycle.run)["decisions"].as_array().unwrap().is_empty());
    let cycle = Cycle::of(Cycle::project(""), "stream-dag/quick-fix", &["--profile", "interactive"], 10);
    for (decision, words, code) in [
        ("approval", "yes", 10),
        ("implemented", "continue", 10),
        ("tested", "continue", 10),
        ("decide-review", "commit", 0),
    ] {
        assert!(!cycle.scratch.decision(&cycle.run, decision)["question"].as_str().unwrap().is_empty());
        cycle.answer(decision, words, code);
    }
}

#[test]
fn j_19_an_acknowledgement_at_a_gate_is_no_approval() {
    let cycle = Cycle::starts("", &[], 10);
    for words in ["okay", "interesting", "I see", "approved but rename it"] {
        let said = cycle.scratch.gatewright(&["answer", &cycle.run, "G1", words]);
        assert_ne!(said.code, 0, "{words}: {}", said.out);
        assert_eq!(cycle.scratch.decision(&cycle.run, "G1")["status"], "pending", "{words}");
    }
    assert_eq!(cycle.scratch.count("impl_planner"), 0);
}

#[test]
fn s3_21_only_what_approves_is_an_approval() {
    let cycle = Cycle::starts("", &[], 10);
    for words in
        ["okay", "interesting", "I see", "let me think about it", "what about the cache?", "yes, but smaller"]
    {
        cycle.answer("G1", words, 4);
    }
    cycle.answer("G1", "Looks good!", 10);
    cycle.answer("G3", "ok", 4);
    cycle.answer("G3", "/implement", 10);
    for (gate, answer) in [("G1", "approved"), ("G3", "approved")] {
        assert_eq!(cycle.scratch.decision(&cycle.run, gate)["answer"], answer, "the canonical word is kept");
    }
}

#[test]
fn s3_24_between_two_gates_nobody_is_asked_and_every_file_is_held_against_its_schema() {
    let once = "domain_expert) expert; if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo '{}' | out domain_output.json; fi; fine;;";
    let cycle = Cycle::starts(once, &[], 10);
    assert_eq!(cycle.scratch.count("domain_expert"), 2, "the schema sent it back, not a person");
    assert!(cycle.scratch.prompt("domain_expert", 2).contains("domain_output.json"));
    let opened = cycle.scratch.events_of(&cycle.run, "decision.opened");
    let ids: Vec<&str> = opened.iter().map(|event| event["decision"]["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["G1"]);
}

#[test]
fn s3_21_s3_23_every_word_that_approves_opens_the_shipped_gates() {
    for words in ["yes", "yep", "y", "go ahead", "proceed", "do it", "approved", "looks good", "implement it"]
    {
        let cycle = Cycle::starts("", &[], 10);
        cycle.answer("G1", words, 10);
        assert_eq!(cycle.scratch.decision(&cycle.run, "G1")["answer"], "approved", "{words}");
        assert_eq!(cycle.scratch.step_state(&cycle.run, "g3"), "waiting", "{words}");
    }
}

#[test]
fn s3_23_a_specification_of_another_kind_is_said_at_the_first_gate() {
    let other = "tpm) spec; sed -i 's/\"feature_type\":\"backend\"/\"feature_type\":\"fullstack\"/' \"$GATEWRIGHT_OUT/spec_output.json\"; fine;;";
    let question = |cases: &str| {
        let cycle = Cycle::starts(cases, &[], 10);
        cycle.scratch.decision(&cycle.run, "G1")["question"].as_str().unwrap().to_owned()
    };
    let asked = question(other);
    assert!(asked.contains("calls this `fullstack`") && asked.contains("--profile fullstack"), "{asked}");
    assert!(!question("").contains("calls this"));
}
