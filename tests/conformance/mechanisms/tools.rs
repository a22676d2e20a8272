//! An agent that reports by the tools of `gatewright mcp`, with the real protocol.

use crate::support::Scratch;

const STEPS: &str = "
steps:
  - { id: plan, role: planner, writes: { plan.md: reports/plan } }
  - { id: code, role: coder, reads: [plan.md] }
";

/// Calls tools over stdin and stdout and keeps what the server said in `$HOME/said`.
const CALLS: &str = r#"
calls() {
  : > "$HOME/said"
  { printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    n=1; for call in "$@"; do n=$((n+1)); printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}\n' $n "$call"; done
    turns=0; until [ "$(wc -l < "$HOME/said")" -ge $n ]; do turns=$((turns+1)); [ $turns -lt 3000 ] || exit 99; sleep 0.02; done
  } | "$GW" mcp --out "$GATEWRIGHT_OUT" >> "$HOME/said"
}
"#;

fn scratch(plan: &str) -> Scratch {
    let scratch = Scratch::with(STEPS, "");
    scratch.write(
        ".gatewright/workflows/reports/plan.yaml",
        "markdown:\n  sections:\n    Summary: {}\n    Steps: { items_min: 2 }\n",
    );
    let program = env!("CARGO_BIN_EXE_gatewright");
    scratch
        .agent(&format!("setup) ;; esac\nGW={program}\n{CALLS}\ncase $GATEWRIGHT_STEP in\nplan) {plan};;\n"));
    scratch
}

fn said(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.home().join("said")).unwrap()
}

#[test]
fn a_report_is_rejected_with_its_violations_then_accepted_and_is_the_reply() {
    let scratch = scratch(
        r###"calls '{"name":"submit_report","arguments":{"status":"done","summary":"Planned.","content":"## Steps\n\n- one\n"}}' '{"name":"submit_report","arguments":{"status":"done","summary":"Planned.","content":"## Summary\n\nSmall.\n\n## Steps\n\n- one\n- two\n"}}'"###,
    );
    let run = scratch.run(0);
    let said = said(&scratch);
    assert!(said.contains("\"isError\":true") && said.contains("Summary"), "{said}");
    assert_eq!(scratch.count("plan"), 1, "nothing but the tool said how it ended");
    let ended = &scratch.events_of(&run, "step.attempt.ended")[0];
    assert_eq!(ended["report"]["reply"]["summary"], "Planned.", "{ended}");
}

#[test]
fn progress_by_tool_is_told_to_people_while_the_agent_works() {
    let scratch = scratch(
        r#"calls '{"name":"update_progress","arguments":{"message":"Half of it is read.","percent":50}}'; printf '## Summary\n\nx\n\n## Steps\n\n- a\n- b\n' > "$GATEWRIGHT_OUT/plan.md"; brief DONE plan.md"#,
    );
    let ran = scratch.gatewright(&["run", "w", "Go"]).exits(0);
    assert!(ran.err.contains("plan: 50 %: Half of it is read."), "{}", ran.err);
    let told = &scratch.events_of(ran.out.trim(), "step.progress.told")[0];
    assert_eq!(told["hints"][0]["summary"], "50 %: Half of it is read.", "{told}");
}

#[test]
fn a_question_by_tool_waits_for_a_person_and_the_answer_reaches_the_next_attempt() {
    let scratch = scratch(
        r#"if [ $GATEWRIGHT_ATTEMPT = 1 ]; then calls '{"name":"ask_human","arguments":{"question":"Which colour?","options":["red","blue"]}}'; else printf '## Summary\n\nx\n\n## Steps\n\n- a\n- b\n' > "$GATEWRIGHT_OUT/plan.md"; brief DONE plan.md; fi"#,
    );
    let run = scratch.run(10);
    let status = scratch.status(&run);
    let open = &status["decisions"][0];
    assert!(open["question"].as_str().unwrap().contains("Which colour?"), "{open}");
    scratch.gatewright(&["answer", &run, open["id"].as_str().unwrap(), "blue"]).exits(0);
    let prompt = scratch.prompt("plan", 2);
    assert!(prompt.contains("Which colour?") && prompt.contains("blue"), "{prompt}");
}

/// Nothing among them answers a decision, gives an order or moves a gate.
#[test]
fn the_tools_are_these_four_and_no_others() {
    let scratch = scratch(
        r#": > "$HOME/said"; {
  printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' '{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
  turns=0; until [ "$(wc -l < "$HOME/said")" -ge 2 ]; do turns=$((turns+1)); [ $turns -lt 3000 ] || exit 99; sleep 0.02; done
} | "$GW" mcp --out "$GATEWRIGHT_OUT" >> "$HOME/said"; brief ERROR"#,
    );
    scratch.run(11);
    let said = said(&scratch);
    let list: serde_json::Value = serde_json::from_str(said.lines().nth(1).unwrap()).unwrap();
    let tools = list.pointer("/result/tools").and_then(serde_json::Value::as_array).unwrap();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ask_human", "submit_report", "submit_review", "update_progress"]);
}

/// What the tool keeps is a claim like any other: it does not outvote the final message, and broken it
/// spoils the reply.
#[test]
fn j_52_a_tool_call_and_the_final_message_disagree_and_the_stricter_holds() {
    let scratch = scratch(
        r#"printf '## Summary\n\nx\n\n## Steps\n\n- a\n- b\n' > "$GATEWRIGHT_OUT/plan.md"; echo '{"version":1,"reply":{"outcome":"done"}}' > "$GATEWRIGHT_OUT/gatewright-reply.json"; brief ERROR none 'It cannot be read.'"#,
    );
    let run = scratch.run(11);
    assert_eq!(scratch.count("code"), 0);
    assert_eq!(scratch.events_of(&run, "step.attempt.ended")[0]["report"]["reply"]["outcome"], "error");
}

/// The server is started by the agent, so it is in the agent's sandbox: told to write elsewhere, it cannot.
#[test]
fn the_tools_write_nowhere_but_where_the_attempt_may() {
    for (more, accepted) in [("", false), (", \"~/outside\"", true)] {
        let scratch = scratch(
            r#"(GATEWRIGHT_OUT="$HOME/outside/out"; calls '{"name":"submit_report","arguments":{"status":"done","summary":"Planned."}}'); brief ERROR"#,
        );
        std::fs::write(
            scratch.home().join(".config/gatewright/config.yaml"),
            format!("sandbox: {{ write: [\"~/prompts\", \"~/calls\", \"~/said\"{more}] }}\n"),
        )
        .unwrap();
        for file in ["calls", "said"] {
            std::fs::write(scratch.home().join(file), "").unwrap();
        }
        let outside = scratch.home().join("outside/out");
        std::fs::create_dir_all(&outside).unwrap();
        // What the server needs to know of the step lies beside its folder.
        std::fs::write(scratch.home().join("outside/outputs.json"), "{\"version\": 1, \"outputs\": []}")
            .unwrap();
        scratch.run(11);
        let said = said(&scratch);
        let refused = said.contains("\"isError\":true") || said.contains("\"error\":");
        assert_eq!(refused, !accepted, "{said}");
        let left = std::fs::read_dir(&outside).unwrap().count();
        assert_eq!(left > 0, accepted, "{said}");
    }
}

#[test]
fn outside_an_attempt_the_tools_are_not_served() {
    let scratch = Scratch::new();
    scratch.gatewright(&["mcp"]).exits(2).says("no attempt to report for");
}
