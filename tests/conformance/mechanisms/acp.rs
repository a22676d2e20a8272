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
