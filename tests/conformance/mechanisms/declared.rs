//! Agents that print JSON, declared in the configuration: their last message, their conversations,
//! what they spend, and what they say went wrong. No agent of a real house is needed for it.

use crate::support::Scratch;

const DECLARED: &str = r"
    reply: { format: jsonl, text: item.text, only: type=said, session: thread, tokens: usage.tokens, usd: usage.usd, error: error }
    session: { resume: [--resume, '{session}'] }
";

/// The agent is called with its flags as arguments; `says TEXT` is its last message.
const WORDS: &str = r#"
args="$*"
line() { printf '%s\n' "$1" | tr -d '\n' | sed 's/"/\\"/g'; }
says() { printf '{"thread": "t-%s", "x": 1}\n{"type": "thought", "item": {"text": "hm"}}\n' "$GATEWRIGHT_STEP"; printf '{"type": "said", "item": {"text": "%s"}}\n{"usage": {"tokens": 500, "usd": 0.25}}\n' "$1"; }
echo "$GATEWRIGHT_STEP $args" >> "$HOME/args"
DONE='STATUS: DONE\nFILE: none\nSUMMARY: fine\nNEXT_INPUT: none'
"#;

fn scratch(steps: &str, agent: &str) -> Scratch {
    let scratch = Scratch::with(steps, "");
    scratch.config(DECLARED);
    scratch.agent(&format!("setup) ;; esac\n{WORDS}\ncase $GATEWRIGHT_STEP in\n{agent}\n"));
    scratch
}

fn arguments(scratch: &Scratch) -> Vec<String> {
    let text = std::fs::read_to_string(scratch.home().join("args")).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_malformed_reply_is_mended_in_its_conversation_before_an_attempt_is_spent() {
    let scratch = scratch(
        "steps:\n  - { id: code, role: coder }",
        r#"code) if [ -z "$args" ]; then says 'I think I am done.'; else says "$DONE"; fi;;"#,
    );
    let run = scratch.run(0);
    assert_eq!(arguments(&scratch), ["code", "code --resume t-code"]);
    let ended = scratch.events_of(&run, "step.attempt.ended");
    assert_eq!(ended.len(), 1, "a new attempt was spent: {ended:#?}");
    let report = &ended[0]["report"];
    assert_eq!(
        (&report["repairs"], &report["conversation"]["session"]),
        (&1.into(), &"t-code".into()),
        "{report:#}"
    );
    assert_eq!(report["usage"]["tokens"], 1000, "both turns count");
    assert_eq!(scratch.status(&run)["cost"]["usd"], 0.5);
}

#[test]
fn a_broken_contract_is_mended_in_its_conversation() {
    let scratch = scratch(
        "contracts:\n  notes: { markdown: { title: Notes, sections: { Why: {} } } }\nsteps:\n  - { id: code, role: coder, writes: { notes.md: notes } }",
        r#"code) if [ -z "$args" ]; then echo '# Notes' > "$GATEWRIGHT_OUT/notes.md"; else printf '# Notes\n## Why\nso\n' > "$GATEWRIGHT_OUT/notes.md"; fi; says 'STATUS: DONE\nFILE: notes.md\nSUMMARY: fine\nNEXT_INPUT: notes.md';;"#,
    );
    let run = scratch.run(0);
    assert_eq!(scratch.events_of(&run, "step.attempt.started").len(), 1);
    assert_eq!(scratch.published(&run, "notes.md").unwrap(), "# Notes\n## Why\nso\n");
}

#[test]
fn without_a_way_to_resume_a_malformed_reply_costs_an_attempt() {
    let scratch = Scratch::with(
        "steps:\n  - { id: code, role: coder, retry: { attempts_max: 2 } }",
        "code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo nothing; else ok fine; fi;;",
    );
    let run = scratch.run(0);
    assert_eq!(scratch.events_of(&run, "step.attempt.started").len(), 2);
}

#[test]
fn what_the_agent_says_went_wrong_decides_whether_it_is_tried_again() {
    let scratch = scratch(
        "steps:\n  - { id: weather, role: coder, retry: { attempts_max: 2 } }\n  - { id: key, role: coder, retry: { attempts_max: 3 } }",
        r#"weather) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo '{"thread": "t-weather"}'; echo '{"error": "503 service unavailable"}'; else says "$DONE"; fi;;
key) echo '{"error": "401 unauthorized"}';;"#,
    );
    let run = scratch.run(11);
    assert_eq!(arguments(&scratch), ["weather", "weather --resume t-weather", "key"]);
    let (reason, message) = scratch.blocked_by(&run);
    assert_eq!(reason, "tool_unavailable");
    assert!(message.contains("401 unauthorized (auth)"), "{message}");
}

#[test]
fn a_fix_round_goes_on_with_the_conversation_and_a_fresh_one_follows() {
    let scratch = scratch(
        "steps:\n  - { id: code, role: coder }\n  - { id: review, review: code, by: reviewer, rounds_max: 4 }",
        r#"code) says "$DONE";;
review) if [ $GATEWRIGHT_ROUND -lt 4 ]; then says '{\"approved\": false, \"issues\": [{\"severity\": \"high\", \"description\": \"no test '$GATEWRIGHT_ROUND'\", \"location\": \"a:1\"}], \"summary\": \"no\"}'; else says '{\"approved\": true, \"issues\": [], \"summary\": \"yes\"}'; fi;;"#,
    );
    scratch.run(0);
    let code: Vec<String> = arguments(&scratch).into_iter().filter(|line| line.starts_with("code")).collect();
    assert_eq!(
        code,
        ["code", "code --resume t-code", "code --resume t-code", "code"],
        "two rounds, then anew"
    );
    let reviews = arguments(&scratch).into_iter().filter(|line| line.starts_with("review --resume")).count();
    assert_eq!(reviews, 0, "a reviewer looks with fresh eyes");
}

#[test]
fn a_budget_is_watched_while_an_agent_works() {
    let scratch = scratch(
        "budget: { tokens: 400 }\nsteps:\n  - { id: code, role: coder }",
        r#"code) says 'working'; sleep 60; says "$DONE";;"#,
    );
    let run = scratch.run(12);
    let paused = scratch.events_of(&run, "run.paused");
    assert_eq!(paused[0]["why"]["kind"], "tokens", "{paused:#?}");
    let ended = &scratch.events_of(&run, "step.attempt.ended")[0]["report"];
    assert_eq!(ended["ended"]["how"], "stopped", "{ended:#}");
}

#[test]
fn a_claim_that_the_tree_contradicts_is_mended_in_its_conversation() {
    let scratch = scratch(
        "steps:\n  - { id: code, role: coder }",
        r#"code) if [ -n "$args" ]; then echo x > new.txt; fi; says 'STATUS: DONE\nFILE: new.txt\nSUMMARY: fine\nNEXT_INPUT: none';;"#,
    );
    let run = scratch.run(0);
    assert_eq!(arguments(&scratch), ["code", "code --resume t-code"]);
    let ended = scratch.events_of(&run, "step.attempt.ended");
    assert_eq!(ended.len(), 1, "a new attempt was spent: {ended:#?}");
    assert_eq!(ended[0]["report"]["repairs"], 1);
    let told = scratch.prompt("code", 1);
    assert!(told.contains("claimed to write `new.txt` but the file was not found"), "{told}");
}

#[test]
fn a_conversation_that_is_gone_is_begun_anew_within_the_attempt() {
    let scratch = scratch(
        "steps:\n  - { id: code, role: coder, retry: { attempts_max: 2 } }",
        r#"code) if [ -n "$args" ]; then echo 'No conversation found' >&2; echo '{"error": "cannot resume"}'; exit 1; fi
if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo '{"thread": "t-code"}'; echo '{"error": "503 service unavailable"}'; else says "$DONE"; fi;;"#,
    );
    let run = scratch.run(0);
    assert_eq!(arguments(&scratch), ["code", "code --resume t-code", "code"]);
    assert_eq!(scratch.events_of(&run, "step.attempt.started").len(), 2, "it cost no attempt of its own");
}

#[test]
fn attempts_beside_each_other_share_what_is_left() {
    // Neither of them spends more than there is; together they do.
    let scratch = scratch(
        "budget: { tokens: 800 }\nsteps:\n  - { id: one, role: coder, needs: [] }\n  - { id: two, role: coder, needs: [] }",
        r#"one|two) says 'working'; sleep 60; says "$DONE";;"#,
    );
    let run = scratch.run(12);
    let ended = scratch.events_of(&run, "step.attempt.ended");
    assert!(ended.iter().any(|event| event["report"]["ended"]["how"] == "stopped"), "{ended:#?}");
}

#[test]
fn what_agents_do_is_among_the_events_on_demand() {
    let scratch = scratch("steps:\n  - { id: code, role: coder }", r#"code) says "$DONE";;"#);
    let run = scratch.run(0);
    let types = |arguments: &[&str]| -> Vec<String> {
        let lines = scratch.gatewright(arguments).exits(0).out;
        let values = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        values.map(|value| value["type"].as_str().unwrap().to_owned()).collect()
    };
    assert!(types(&["events", &run]).iter().all(|kind| !kind.starts_with("agent.")));
    let all = types(&["events", &run, "--agents"]);
    let place =
        |kind: &str| all.iter().position(|one| one == kind).unwrap_or_else(|| panic!("{kind}: {all:?}"));
    let order = ["step.attempt.started", "agent.started", "agent.text", "agent.usage", "step.attempt.ended"];
    assert!(order.map(place).is_sorted(), "{all:?}");
}
