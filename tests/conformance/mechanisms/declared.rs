//! Agents that print JSON, declared in the configuration: their last message, their conversations,
//! what they spend, and what they say went wrong. No agent of a real house is needed for it.

use crate::support::{Scratch, Terminal};

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
fn what_trying_again_cannot_mend_is_not_tried_again() {
    for (error, kind) in [
        ("prompt is too long: 250000 tokens > 200000 maximum", "context"),
        ("404 no such model", "bad_request"),
        ("400 bad request: unknown option", "bad_request"),
    ] {
        let scratch = scratch(
            "steps:\n  - { id: code, role: coder, retry: { attempts_max: 3 } }",
            &format!("code) echo '{{\"thread\": \"t\"}}'; echo '{{\"error\": \"{error}\"}}';;"),
        );
        let run = scratch.run(11);
        assert_eq!(arguments(&scratch), ["code"], "{error}");
        let (reason, message) = scratch.blocked_by(&run);
        assert_eq!(reason, "agent_error", "{error}");
        assert!(message.contains(error), "{message}");
        let report = &scratch.events_of(&run, "step.attempt.ended")[0]["report"];
        assert_eq!(report["trouble"]["kind"], kind, "{error}");
    }
}

#[test]
fn after_a_limit_the_conversation_goes_on_and_is_told_to_inspect_the_tree() {
    let scratch = scratch(
        "steps:\n  - { id: code, role: coder, retry: { attempts_max: 1 } }",
        r#"code) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo '{"thread": "t-code"}'; echo '{"error": "429 rate limit, retry after 1"}'; else says "$DONE"; fi;;"#,
    );
    scratch.run(0);
    assert_eq!(arguments(&scratch), ["code", "code --resume t-code"]);
    let prompt = scratch.prompt("code", 2);
    assert!(prompt.contains("ended by the provider's limit.\nInspect the working tree first"), "{prompt}");
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
        "budget: { tokens: 800 }\nsteps:\n  - { id: one, role: reader, needs: [] }\n  - { id: two, role: reader, needs: [] }",
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

/// The first turn and the one that mends it: the live tree says what the agent does now.
#[test]
fn what_an_agent_does_now_is_in_the_live_tree() {
    let scratch = scratch(
        "steps:\n  - { id: code, role: coder }",
        r#"code) if [ -z "$args" ]; then says 'I look around.'; await looked; else says 'I mend it.'; await mended; says "$DONE"; fi;;"#,
    );
    let mut command = scratch.command(&["run", "w", "go"]);
    let terminal = Terminal::start(command.env("TERM", "xterm"));
    terminal.shows("I look around. · 500 tokens", 1);
    scratch.mark("looked");
    terminal.shows("I mend it.", 1);
    scratch.mark("mended");
    assert_eq!(terminal.exit_code(), 0);
}

/// Asked for a model by its arguments, with others to fall back to.
fn with_models(steps: &str, agent: &str) -> Scratch {
    let scratch = scratch(steps, agent);
    let models = "    args: [--model, '{model}']\n    models: { default: big, fast: small }\n    fallback: [middle, fast]\n";
    scratch.config(&format!("{DECLARED}{models}"));
    scratch
}

#[test]
fn the_next_model_is_asked_when_there_is_no_place_for_the_first() {
    let scratch = with_models(
        "steps:\n  - { id: code, role: coder, retry: { attempts_max: 3 } }\n  - { id: more, role: coder }",
        r#"code) echo '{"thread": "t-code"}'; case "$args" in *big*) echo '{"error": "429 rate limit, retry after 3600"}';; *middle*) echo '{"error": "503 overloaded"}';; *) says "$DONE";; esac;;
more) says "$DONE";;"#,
    );
    let ran = scratch.gatewright(&["run", "w", "Add a greeting"]).exits(0);
    let run = ran.id();
    assert_eq!(
        arguments(&scratch),
        [
            "code --model big",
            "code --resume t-code --model middle",
            "code --resume t-code --model small",
            "more --model big"
        ]
    );
    let reports: Vec<_> =
        scratch.events_of(&run, "step.attempt.ended").iter().map(|event| event["report"].clone()).collect();
    assert_eq!((&reports[0]["next_model"], &reports[1]["next_model"]), (&"middle".into(), &"small".into()));
    assert_eq!((&reports[2]["model"], &reports[2]["instead_of"]), (&"small".into(), &"big".into()));
    assert!(scratch.events_of(&run, "quota.waiting").is_empty(), "another model need not wait");
    for words in ["the next attempt asks for middle", "worked with small instead of big"] {
        assert!(ran.err.contains(words), "not announced: {words}\n{}", ran.err);
    }
}

#[test]
fn when_no_model_has_a_place_the_quota_is_waited_for_and_the_first_is_asked_again() {
    let scratch = with_models(
        "budget: { quota_wait: 1s }\nsteps:\n  - { id: code, role: coder, retry: { attempts_max: 4 } }",
        r#"code) if [ -e "$HOME/again" ]; then says "$DONE"; else echo '{"error": "429 rate limit, retry after 3"}'; fi;;"#,
    );
    let run = scratch.run(12);
    std::fs::write(scratch.home().join("again"), "").unwrap();
    scratch.gatewright(&["resume", &run, "--raise", "quota_wait=1h"]).exits(0);
    let asked: Vec<String> = arguments(&scratch);
    assert_eq!(asked, ["code --model big", "code --model middle", "code --model small", "code --model big"]);
}

#[test]
fn j_44_a_limit_without_a_time_is_waited_for_and_costs_no_attempt() {
    let scratch = scratch(
        "budget: { quota_wait: 5s }\nsteps:\n  - { id: code, role: coder, retry: { attempts_max: 1 } }",
        r#"code) echo '{"thread": "t-code"}'; echo '{"error": "429 too many requests"}';;"#,
    );
    let run = scratch.run(12);
    let waiting = scratch.events_of(&run, "quota.waiting");
    assert_eq!(waiting.len(), 1, "{waiting:#?}");
    let why = &scratch.events_of(&run, "run.paused")[0]["why"];
    let waits = why["waited_ms"].as_u64().unwrap();
    assert!((10_000..60_000).contains(&waits), "{why}");
    let report = &scratch.events_of(&run, "step.attempt.ended")[0]["report"];
    assert_eq!(report["trouble"]["kind"], "rate");
}

#[test]
fn j_43_status_tells_what_each_step_and_role_has_cost() {
    let scratch = scratch(
        "steps:\n  - { id: silent, role: planner }\n  - { id: code, role: coder }\n  - { id: review, review: code, by: reviewer }",
        r#"code) says "$DONE";;
silent) printf '{"thread": "t"}\n{"type": "said", "item": {"text": "%s"}}\n' "$DONE";;
review) if [ $GATEWRIGHT_ROUND = 1 ]; then says '{\"approved\": false, \"issues\": [{\"severity\": \"high\", \"description\": \"no test\", \"location\": \"a:1\"}], \"summary\": \"no\"}'; else says '{\"approved\": true, \"issues\": [], \"summary\": \"yes\"}'; fi;;"#,
    );
    let run = scratch.run(0);
    let status = scratch.status(&run);
    let steps = status["steps"].as_array().unwrap();
    let cost = |id: &str| steps.iter().find(|step| step["id"] == id).unwrap()["cost"].clone();
    assert_eq!(cost("code")["tokens"], 1000, "its fix counts");
    assert_eq!((&cost("code")["usd"], &cost("code")["launches"]), (&0.5.into(), &2.into()));
    assert!(cost("silent")["tokens"].is_null() && cost("silent")["usd"].is_null(), "{}", cost("silent"));
    let roles = &status["cost"]["roles"];
    assert_eq!(
        (&roles["coder"]["tokens"], &roles["reviewer"]["usd"]),
        (&1000.into(), &0.5.into()),
        "{roles}"
    );
    assert_eq!((&roles["planner"]["usd"], &roles["planner"]["unpriced_attempts"]), (&().into(), &1.into()));
    let shown = |step: &str| scratch.gatewright(&["show", &run, step]).exits(0).out;
    assert!(shown("code").contains("cost $0.50, 1000 tokens, 2 agent launches"), "{}", shown("code"));
    assert!(shown("silent").contains("cost unknown, tokens unknown"), "{}", shown("silent"));
}

#[test]
fn turns_that_mend_spend_of_the_budget_and_are_stopped_by_it() {
    let scratch = scratch(
        "budget: { tokens: 800 }\nsteps:\n  - { id: code, role: coder }",
        r#"code) says 'I think I am done.'; if [ -n "$args" ]; then sleep 60; fi;;"#,
    );
    let run = scratch.run(12);
    assert_eq!(arguments(&scratch), ["code", "code --resume t-code"]);
    let report = &scratch.events_of(&run, "step.attempt.ended")[0]["report"];
    assert_eq!(report["usage"]["tokens"], 1000, "{report:#}");
    assert_eq!(scratch.events_of(&run, "run.paused")[0]["why"]["used"], 1000);
}

#[test]
fn nothing_is_mended_with_a_budget_that_is_spent() {
    let scratch = scratch(
        "budget: { tokens: 400 }\nsteps:\n  - { id: code, role: coder }",
        "code) says 'I think I am done.';;",
    );
    let run = scratch.run(12);
    assert_eq!(arguments(&scratch), ["code"]);
    assert_eq!(scratch.events_of(&run, "run.paused")[0]["why"]["kind"], "tokens");
}

#[test]
fn a_fix_round_that_begins_afresh_asks_for_a_stronger_model() {
    let scratch = scratch(
        "steps:\n  - { id: code, role: coder }\n  - { id: review, review: code, by: reviewer, rounds_max: 3 }",
        r#"code) says "$DONE";;
review) if [ $GATEWRIGHT_ROUND -lt 3 ]; then says '{\"approved\": false, \"issues\": [{\"severity\": \"high\", \"description\": \"no test '$GATEWRIGHT_ROUND'\", \"location\": \"a:1\"}], \"summary\": \"no\"}'; else says '{\"approved\": true, \"issues\": [], \"summary\": \"yes\"}'; fi;;"#,
    );
    let models = "    args: [--model, '{model}']\n    models: { default: small, strong: big, fresh: strong }\n    resume_rounds: 1\n";
    scratch.config(&format!("{DECLARED}{models}"));
    scratch.run(0);
    let asked = arguments(&scratch);
    let code: Vec<&str> = asked.iter().map(String::as_str).filter(|line| line.starts_with("code")).collect();
    assert_eq!(code, ["code --model small", "code --resume t-code --model small", "code --model big"]);
    assert!(
        asked.iter().filter(|line| line.starts_with("review")).all(|line| line.ends_with("small")),
        "{asked:?}"
    );
}

/// The id of a conversation is in the journal as soon as it is known: at the launch where it is chosen for the agent, else
/// when the agent has told it, while it still works.
#[test]
fn the_conversation_is_in_the_journal_while_the_agent_works() {
    let told = scratch(
        "steps:\n  - { id: code, role: coder }",
        r#"code) echo '{"thread": "t-code"}'; mark told; await go; says "$DONE";;"#,
    );
    let chosen = Scratch::with("steps:\n  - { id: code, role: coder }", "code) mark told; await go; ok;;");
    chosen.config("    session: { start: [--session-id, '{session}'], resume: [--resume, '{session}'] }\n");
    for (scratch, kind, place) in [
        (&told, "step.conversation.began", "/conversation"),
        (&chosen, "step.attempt.launched", "/fact/conversation"),
    ] {
        let engine = scratch.start(&["run", "w", "x"]);
        scratch.marked("told");
        let run = engine.id();
        let known = crate::support::wait_for("the conversation in the journal", || {
            let events = scratch.events_of(&run, kind);
            events.first().and_then(|event| event.pointer(place)).cloned()
        });
        assert!(scratch.events_of(&run, "step.attempt.ended").is_empty());
        assert_eq!(known["agent"], "mine", "{known}");
        scratch.mark("go");
        engine.ended().exits(0);
        let ended = &scratch.events_of(&run, "step.attempt.ended")[0]["report"]["conversation"];
        assert_eq!(*ended, known);
    }
}

/// Everything is killed before the agent said a word: the next attempt goes on with the conversation all the same, and is
/// told to look first.
#[test]
fn a_conversation_survives_the_end_of_everything() {
    let scratch = Scratch::with(
        "steps:\n  - { id: code, role: coder }",
        r#"code) echo "$*" >> "$HOME/args"; if [ ! -e "$HOME/again" ]; then mark at-work; await never; fi; ok;;"#,
    );
    scratch.config("    session: { start: [--session-id, '{session}'], resume: [--resume, '{session}'] }\n");
    let engine = scratch.start(&["run", "w", "x"]);
    scratch.marked("at-work");
    let run = engine.id();
    crate::support::wait_for("the launch in the journal", || {
        (!scratch.events_of(&run, "step.attempt.launched").is_empty()).then_some(())
    });
    engine.kill();
    for (process, _) in scratch.processes() {
        if let Some(process) = rustix::process::Pid::from_raw(process.cast_signed()) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
    }
    scratch.mark("again");
    scratch.gatewright(&["resume", &run]).exits(0);
    let args = arguments(&scratch);
    let (begun, resumed) = (args[0].split_once(' ').unwrap(), args[1].split_once(' ').unwrap());
    assert_eq!((begun.0, resumed.0, begun.1), ("--session-id", "--resume", resumed.1), "{args:?}");
    let prompt = scratch.prompt("code", 2);
    assert!(prompt.contains("Inspect the working tree first"), "{prompt}");
}

/// One that says nothing and ends badly when it should go on does not know its conversation.
#[test]
fn a_conversation_that_a_declared_agent_has_lost_is_begun_anew_in_the_same_attempt() {
    let scratch = Scratch::with(
        "steps:\n  - { id: code, role: coder, retry: { attempts_max: 2 } }",
        r#"code) echo "$1" >> "$HOME/args"; case "$1" in --resume) exit 3;; esac; if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo broken; exit 1; fi; ok;;"#,
    );
    scratch.config("    session: { start: [--session-id, '{session}'], resume: [--resume, '{session}'] }\n");
    let run = scratch.run(0);
    assert_eq!(arguments(&scratch), ["--session-id", "--resume", "--session-id"]);
    let ended = scratch.events_of(&run, "step.attempt.ended");
    assert_eq!(ended.len(), 2, "{ended:#?}");
    assert!(ended[1]["report"]["remarks"].to_string().contains("a fresh one was begun"), "{ended:#?}");
}
