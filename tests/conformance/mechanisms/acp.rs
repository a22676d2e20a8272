//! An agent that speaks the Agent Client Protocol, declared in the configuration: what it says that nobody knows is kept,
//! what it asks for is answered by its role, its conversation goes on.

use crate::support::Scratch;

/// Answers by the method of each request; `says TEXT` is a message of the turn.
const AGENT: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":%s}}\n' "$1"; }
  says() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
  case "$line" in
    *'"method":"initialize"'*) result '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}';;
    *'"method":"session/new"'*) echo new >> "$HOME/sessions"; result '{"sessionId":"s-1"}';;
    *'"method":"session/load"'*) echo load >> "$HOME/sessions"; says 'from before'; result '{}';;
    *'"method":"session/prompt"'*)
      prompt=$id
      update '{"sessionUpdate":"of_the_future","sparkles":[1,2]}'
      update '{"sessionUpdate":"plan","entries":[]}'
      printf '{"jsonrpc":"2.0","method":"future/thing","params":{"x":1}}\n'
      printf '{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"t1","title":"Write x.txt","kind":"edit"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}\n'
      IFS= read -r answer
      echo "$answer" >> "$HOME/answers"
      id=$prompt
      case "$line" in
        *'cannot be used yet'*) says '{\"approved\": true, \"issues\": [], \"summary\": \"Fine.\"}';;
        *) says 'It looks good to me.';;
      esac
      result '{"stopReason":"end_turn"}';;
  esac
done
"#;

#[test]
fn over_acp_unknown_events_are_kept_requests_are_answered_and_replies_are_mended() {
    let scratch = Scratch::with(
        "roles: { coder: { prompt: Build it. }, judge: { prompt: Judge it., agent: talker, may_write: [] } }\nsteps:\n  - { id: code, role: coder }\n  - { id: review, review: code, by: judge }",
        "",
    );
    scratch.write("acp.sh", AGENT);
    let path = scratch.root().join("acp.sh");
    scratch.config(&format!("  talker: {{ command: [sh, \"{}\"], protocol: acp }}\n", path.display()));
    let run = scratch.run(0);
    let ended = scratch.events_of(&run, "step.attempt.ended");
    let review = &ended.iter().find(|event| event["step"] == "review").unwrap()["report"];
    assert_eq!(review["repairs"], 1, "prose is no reply: {review:#}");
    assert_eq!(review["conversation"]["session"], "s-1");
    assert_eq!(review["denied"], serde_json::json!(["Write x.txt"]));
    let read = |name: &str| std::fs::read_to_string(scratch.home().join(name)).unwrap();
    assert_eq!(read("sessions"), "new\nload\n", "the same conversation");
    assert!(
        read("answers").lines().all(|answer| answer.contains("\"optionId\":\"n\"")),
        "{}",
        read("answers")
    );
    let raw = scratch.gatewright(&["logs", &run, "review", "--raw"]).exits(0).out;
    assert!(raw.contains("\"kind\":\"plan\""), "{raw}");
    assert!(raw.contains("of_the_future"), "what nobody knows is not kept: {raw}");
}

/// A project whose coder is this ACP agent.
fn talker(steps: &str, agent: &str, more: &str) -> Scratch {
    let scratch = Scratch::with(steps, "");
    scratch.write("acp.sh", agent);
    let path = scratch.root().join("acp.sh");
    let agents = format!(
        "agent: talker\nagents:\n  talker: {{ command: [sh, \"{}\"{more}], protocol: acp }}\n",
        path.display()
    );
    scratch.write(".gatewright/config.yaml", &agents);
    scratch
}

/// The words of the agents below. `LOAD` and `PROMPT` are what differs.
const WORDS: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  send() { printf '%s\n' "$1"; printf '%s\n' "$1" >> "$HOME/sent"; }
  result() { send '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
  error() { send '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":'"$1"',"message":"'"$2"'"}}'; }
  update() { send '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":'"$1"'}}'; }
  says() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
  leave() {
    prompt=$id
    send '{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":'"$1"',"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}'
    IFS= read -r answer; echo "$answer" >> "$HOME/answers"; id=$prompt
  }
  done_() { says 'STATUS: DONE\nFILE: none\nSUMMARY: fine\nNEXT_INPUT: none'; result '{"stopReason":"end_turn"}'; }
  printf '%s\n' "$line" >> "$HOME/heard"
  case "$line" in
    *'"method":"initialize"'*) result '{"protocolVersion":1,"agentCapabilities":{"loadSession":CAN_LOAD}}';;
    *'"method":"session/new"'*) echo new >> "$HOME/sessions"; result 'NEW';;
    *'"method":"session/load"'*) echo load >> "$HOME/sessions"; LOAD;;
    *'"method":"session/set_mode"'*) error -32602 'unknown mode';;
    *'"method":"session/set_config_option"'*) result '{"configOptions":[]}';;
    *'"method":"session/prompt"'*) PROMPT;;
  esac
done
"#;

fn words(can_load: bool, load: &str, prompt: &str) -> String {
    let new = "{\"sessionId\":\"s-'$(wc -l < \"$HOME/sessions\" | tr -d \" \")'\"}";
    let can_load = can_load.to_string();
    WORDS.replace("CAN_LOAD", &can_load).replace("NEW", new).replace("LOAD", load).replace("PROMPT", prompt)
}

/// Whoever cannot go on with a conversation, or has lost it, begins a fresh one within the same attempt, with all that a
/// fresh one is told; and that is said.
#[test]
fn over_acp_a_conversation_that_cannot_go_on_is_begun_anew_in_the_same_attempt() {
    for (can_load, load) in [(false, "error -32601 'Method not found'"), (true, "error -32603 'gone'")] {
        let prompt = "if [ ! -e \"$HOME/died\" ]; then : > \"$HOME/died\"; exit 1; else done_; fi";
        let scratch = talker(
            "steps:\n  - { id: code, role: coder, retry: { attempts_max: 2 } }",
            &words(can_load, load, prompt),
            "",
        );
        let ran = scratch.gatewright(&["run", "w", "Add a greeting"]).exits(0);
        let (run, told) = (ran.id(), ran.err.clone());
        let ended = scratch.events_of(&run, "step.attempt.ended");
        assert_eq!(ended.len(), 2, "{ended:#?}");
        let report = &ended[1]["report"];
        let fresh = if can_load { "s-3" } else { "s-2" };
        assert_eq!(report["conversation"]["session"], fresh, "{report:#}");
        assert_eq!(report["repairs"], serde_json::Value::Null, "nothing was mended: {report:#}");
        assert!(report["remarks"].to_string().contains("a fresh one was begun"), "{report:#}");
        assert!(told.contains("a fresh one was begun"), "{told}");
        let read = |name: &str| std::fs::read_to_string(scratch.home().join(name)).unwrap();
        assert_eq!(read("sessions"), if can_load { "new\nload\nnew\n" } else { "new\nnew\n" });
        let heard = read("heard");
        let last = heard.lines().rfind(|line| line.contains("session/prompt")).unwrap();
        assert!(last.contains("Inspect the working tree first") && last.contains("Add a greeting"), "{last}");
    }
}

/// The wire in both directions and what the agent says beside it are kept, for nobody else to read.
#[test]
fn over_acp_the_wire_and_stderr_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = talker(
        "steps:\n  - { id: code, role: coder }",
        &words(true, "result '{}'", "echo 'beside the wire' >&2; done_"),
        "",
    );
    let run = scratch.run(0);
    let folder = scratch.state_dir(&run).join("attempts/code/1");
    let kept = std::fs::read_to_string(folder.join("stdout")).unwrap();
    let lines = |to: &str| -> String {
        let of = kept.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let of = of.filter(|event| event["event"] == "wire" && event["to"] == to);
        of.map(|event| format!("{}\n", event["line"].as_str().unwrap())).collect()
    };
    let read = |name: &str| std::fs::read_to_string(scratch.home().join(name)).unwrap();
    assert_eq!(lines("client"), read("sent"), "what the agent sent");
    assert_eq!(lines("agent"), read("heard"), "what the agent was sent");
    assert!(std::fs::read_to_string(folder.join("stderr")).unwrap().contains("beside the wire"));
    for name in ["stdout", "stderr"] {
        let mode = std::fs::metadata(folder.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let raw = scratch.gatewright(&["logs", &run, "code", "--raw"]).exits(0).out;
    assert!(raw.contains("session/prompt") && raw.contains("beside the wire"), "{raw}");
    let plain = scratch.gatewright(&["logs", &run, "code"]).exits(0).out;
    assert!(plain.contains("STATUS: DONE") && !plain.contains("session/prompt"), "{plain}");
}

/// What a tool is, is not guessed from its title: who has limits is denied what cannot be told, and it is recorded.
#[test]
fn over_acp_a_tool_that_cannot_be_told_is_denied_and_shown() {
    let ours = r#"{"toolCallId":"t2","title":"Hand in","name":"mcp__gatewright__submit_report"}"#;
    let prompt = format!(
        "leave '{}'; leave '{}'; leave '{ours}'; done_",
        r#"{"toolCallId":"t1","title":"rm -rf / # submit_report"}"#,
        r#"{"toolCallId":"t3","title":"git status","kind":"execute"}"#,
    );
    let scratch = talker(
        "roles: { coder: { prompt: Build it., may_run: [\"git *\"] } }\nsteps:\n  - { id: code, role: coder }",
        &words(true, "result '{}'", &prompt),
        "",
    );
    let run = scratch.run(0);
    let answers = std::fs::read_to_string(scratch.home().join("answers")).unwrap();
    let given: Vec<bool> = answers.lines().map(|answer| answer.contains("\"optionId\":\"y\"")).collect();
    assert_eq!(given, [false, false, true], "{answers}");
    let report = &scratch.events_of(&run, "step.attempt.ended")[0]["report"];
    assert_eq!(report["denied"], serde_json::json!(["rm -rf / # submit_report", "git status"]), "{report:#}");
    let seen = scratch.gatewright(&["events", &run, "--agents"]).exits(0).out;
    assert!(seen.contains("\"type\":\"agent.denied\"") && seen.contains("rm -rf /"), "{seen}");
    assert!(seen.contains("\"type\":\"agent.finished\""), "{seen}");
    let shown = scratch.gatewright(&["logs", &run, "code"]).exits(0).out;
    assert!(shown.contains("rm -rf /"), "{shown}");
}

/// A graceful stop asks the agent to cancel its turn before anything is killed.
#[test]
fn over_acp_a_stopped_turn_is_cancelled() {
    let prompt = r#"prompt=$id; : > "$HOME/at-work"; IFS= read -r line; printf '%s\n' "$line" >> "$HOME/heard"; id=$prompt; result '{"stopReason":"cancelled"}'"#;
    let scratch = talker("steps:\n  - { id: code, role: coder }", &words(true, "result '{}'", prompt), "");
    let engine = scratch.start(&["run", "w", "x"]);
    scratch.marked("at-work");
    let run = engine.id();
    scratch.gatewright(&["abort", &run]).exits(0);
    engine.ended().exits(1);
    let heard = std::fs::read_to_string(scratch.home().join("heard")).unwrap();
    assert!(heard.lines().last().unwrap().contains("session/cancel"), "{heard}");
    let raw = scratch.gatewright(&["logs", &run, "code", "--raw"]).exits(0).out;
    assert!(raw.contains("session/cancel"), "{raw}");
    assert!(raw.contains("\"stop_reason\":\"cancelled\""), "it was killed instead: {raw}");
}

/// A mode of Claude's definitions is Claude's: nobody else is told it, lint says so, and one that is not taken ends nothing.
#[test]
fn over_acp_a_mode_that_the_agent_does_not_know_ends_nothing() {
    let steps = "roles: { coder: { from: .claude/agents/coder.md } }\nsteps:\n  - { id: code, role: coder, retry: { attempts_max: 1 } }";
    for (house, asked) in [("", false), (", adapter: claude", true)] {
        let scratch = talker(steps, &words(true, "result '{}'", "done_"), "");
        let agent =
            format!("agent: talker\nagents:\n  talker: {{ command: [sh, acp.sh], protocol: acp{house} }}\n");
        scratch.write(".gatewright/config.yaml", &agent);
        scratch.write(
            ".claude/agents/coder.md",
            "---\nname: coder\ndescription: Codes.\npermissionMode: acceptEdits\n---\nYou code.\n",
        );
        let run = scratch.run(0);
        let heard = std::fs::read_to_string(scratch.home().join("heard")).unwrap();
        assert_eq!(heard.contains("session/set_mode"), asked, "{heard}");
        let raw = scratch.gatewright(&["logs", &run, "code", "--raw"]).exits(0).out;
        assert_eq!(raw.contains("the agent does not take the mode `acceptEdits`"), asked, "{raw}");
        let lint = scratch.gatewright(&["lint", "--json"]).out;
        let said = "`permissionMode: acceptEdits` is Claude's; the role's own permissions are used";
        assert_eq!(lint.contains(said), !asked, "{lint}");
    }
}

/// The model of a step: by the session's option for it, or in its place in the command.
#[test]
fn over_acp_a_model_is_told_by_the_sessions_option_or_in_the_command() {
    let option = r#"{"sessionId":"s-1","configOptions":[{"id":"m","name":"Model","category":"model","type":"select","currentValue":"small","options":[{"value":"small","name":"S"},{"value":"big-1","name":"B"}]}]}"#;
    let agent = words(true, "result '{}'", "done_");
    let begun = agent.find("result '{\"sessionId\"").unwrap();
    let end = agent[begun..].find(";;").unwrap() + begun;
    let steps = "steps:\n  - { id: code, role: coder, model: big-1 }";
    let scratch = talker(steps, &format!("{}result '{option}'{}", &agent[..begun], &agent[end..]), "");
    scratch.run(0);
    let heard = std::fs::read_to_string(scratch.home().join("heard")).unwrap();
    let set = heard.lines().find(|line| line.contains("session/set_config_option")).unwrap_or_default();
    assert!(set.contains("\"configId\":\"m\"") && set.contains("\"big-1\""), "{heard}");
    let lint = scratch.gatewright(&["lint", "--json"]).out;
    assert!(
        lint.contains("`model: big-1` is told to it only if its session has an option for that"),
        "{lint}"
    );

    let by_place = talker(steps, &format!("echo \"$1\" > \"$HOME/model\"\n{agent}"), ", \"{model}\"");
    by_place.run(0);
    assert_eq!(std::fs::read_to_string(by_place.home().join("model")).unwrap(), "big-1\n");
    let heard = std::fs::read_to_string(by_place.home().join("heard")).unwrap();
    assert!(!heard.contains("set_config_option"), "{heard}");
    assert!(!by_place.gatewright(&["lint", "--json"]).out.contains("big-1"));
}
