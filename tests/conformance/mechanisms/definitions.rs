//! Role definitions of Claude Code, Copilot and Codex, read as they are: what they say is on the command line of whoever
//! plays the role, in that agent's own words, and what cannot be told is said.

use crate::support::Scratch;

/// Plays three houses: notes its arguments and says in the house's own stream that it is done.
const HOUSES: &str = r#"
house=$1; shift
printf '%s\n' "$@" > "$HOME/args.$GATEWRIGHT_STEP"
done='STATUS: DONE\nFILE: none\nSUMMARY: fine\nNEXT_INPUT: none'
case $house in
claude) printf '{"type":"system","subtype":"init","session_id":"s"}\n{"type":"result","is_error":false,"session_id":"s","result":"%s"}\n' "$done";;
codex) printf '{"type":"thread.started","thread_id":"t"}\n{"type":"item.completed","item":{"type":"agent_message","text":"%s"}}\n{"type":"turn.completed"}\n' "$done";;
gemini) printf '{"type":"init","session_id":"g"}\n{"type":"message","role":"assistant","content":"%s"}\n{"type":"result","status":"success"}\n' "$done";;
esac
"#;

const STEPS: &str = r"
roles:
  looker: { from: .claude/agents/looker.md }
  helper: { from: .github/agents/helper.agent.md }
  worker: { from: .codex/agents/worker.toml }
steps:
  - { id: looker-claude, role: looker, agent: claude }
  - { id: looker-codex, role: looker, agent: codex }
  - { id: helper-claude, role: helper, agent: claude }
  - { id: helper-gemini, role: helper, agent: gemini }
  - { id: worker-codex, role: worker, agent: codex }
  - { id: worker-claude, role: worker, agent: claude }
";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.workflow("w", STEPS);
    scratch.write(
        ".claude/agents/looker.md",
        "---\nname: looker\ndescription: Looks.\ntools: Read, Grep, Bash(git diff *)\nmodel: opus\neffort: max\nmaxTurns: 7\npermissionMode: plan\nskills: [tidy]\n---\nYou are the {{ looker }}.\n",
    );
    scratch.write(
        ".github/agents/helper.agent.md",
        "---\ndescription: Helps.\ntools: [read, search, unheard-of]\nmodel: [gpt-5, gpt-4]\n---\nYou are the helper.\n",
    );
    scratch.write(
        ".codex/agents/worker.toml",
        "name = \"worker\"\ndescription = \"Works.\"\nmodel = \"gpt-x\"\nmodel_reasoning_effort = \"low\"\nsandbox_mode = \"read-only\"\ndeveloper_instructions = \"You are the worker.\"\n",
    );
    scratch.script(HOUSES);
    let script = scratch.home().parent().unwrap().join("agent.sh");
    let houses = ["claude", "codex", "gemini"].map(|house| {
        format!("  {house}: {{ adapter: {house}, command: [sh, \"{}\", {house}] }}\n", script.display())
    });
    scratch.write(".gatewright/config.yaml", &format!("agent: claude\nagents:\n{}", houses.concat()));
    scratch
}

#[test]
fn definitions_of_other_programs_are_told_to_whoever_plays_the_role() {
    let scratch = scratch();
    let run = scratch.run(0);
    let arguments = |step: &str| -> Vec<String> {
        let text = std::fs::read_to_string(scratch.home().join(format!("args.{step}"))).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    let tells = |step: &str, flag: &str, value: &str| {
        let words = arguments(step);
        let told = words.windows(2).any(|two| two[0] == flag && two[1].contains(value));
        assert!(told, "{step}: {flag} {value}: {words:?}");
    };
    tells("looker-claude", "--tools", "Read,Grep,Bash");
    tells("looker-claude", "--model", "opus");
    tells("looker-claude", "--effort", "max");
    tells("looker-claude", "--max-turns", "7");
    tells("looker-claude", "--permission-mode", "plan");
    tells("looker-codex", "-c", "model_reasoning_effort=\"xhigh\"");
    tells("helper-claude", "--permission-mode", "dontAsk");
    tells("helper-claude", "--disallowedTools", "Bash");
    tells("helper-claude", "--model", "gpt-5");
    tells("helper-claude", "--fallback-model", "gpt-4");
    tells("helper-gemini", "--approval-mode", "default");
    tells("worker-codex", "-m", "gpt-x");
    tells("worker-codex", "-c", "model_reasoning_effort=\"low\"");
    tells("worker-claude", "--effort", "low");
    tells("worker-claude", "--permission-mode", "dontAsk");
    for (step, words) in [
        ("looker-claude", "You are the {{ looker }}."),
        ("helper-gemini", "You are the helper."),
        ("worker-codex", "You are the worker."),
    ] {
        assert!(scratch.prompt(step, 1).contains(words), "{step}");
    }
    assert_eq!(scratch.events_of(&run, "step.attempt.ended").len(), 6);
}

/// Whoever has no tool to write with, or only plans, is asked for its files in its last message, and they count.
#[test]
fn who_cannot_write_gives_its_files_in_its_last_message() {
    let scratch = scratch();
    scratch.workflow(
        "w",
        "roles: { looker: { from: .claude/agents/looker.md }, planner: { from: .claude/agents/planner.md }, writer: { from: .claude/agents/writer.md } }\nsteps:\n  - { id: looker, role: looker, agent: claude, writes: [looker.md] }\n  - { id: planner, role: planner, agent: claude, writes: [planner.md] }\n  - { id: writer, role: writer, agent: claude, writes: [writer.md] }\n",
    );
    let definition = |name: &str, more: &str| {
        let text = format!("---\nname: {name}\ndescription: It is one.\n{more}\n---\nYou are one.\n");
        scratch.write(&format!(".claude/agents/{name}.md"), &text);
    };
    definition("looker", "tools: Read, Grep, Glob");
    definition("planner", "permissionMode: plan");
    definition("writer", "tools: Read, Write");
    scratch.script(
        r#"name=$GATEWRIGHT_STEP.md
[ $name != writer.md ] || echo '# Written' > "$GATEWRIGHT_OUT/$name"
[ $name = writer.md ] || block='<<<FILE '$name'\n# Said\n>>>END\n'
printf '{"type":"system","subtype":"init","session_id":"s"}\n{"type":"result","is_error":false,"session_id":"s","result":"%s"}\n' "${block}STATUS: DONE\nFILE: $name\nSUMMARY: fine\nNEXT_INPUT: $name"
"#,
    );
    let run = scratch.run(0);
    for (step, by_message) in [("looker", true), ("planner", true), ("writer", false)] {
        let prompt = scratch.prompt(step, 1);
        assert_eq!(prompt.contains(&format!("<<<FILE {step}.md")), by_message, "{step}: {prompt}");
        assert_eq!(prompt.contains("in full to"), !by_message, "{step}: {prompt}");
        let text = scratch.published(&run, &format!("{step}.md")).unwrap();
        assert_eq!(text.trim(), if by_message { "# Said" } else { "# Written" });
    }
}

/// Commands in the brackets of a definition's tool are the ones that may be run, whoever plays the role.
#[test]
fn what_a_tool_of_a_definition_may_be_used_on_is_told_to_every_agent() {
    let scratch = scratch();
    scratch.workflow(
        "w",
        "roles: { looker: { from: .claude/agents/looker.md } }\nsteps:\n  - { id: claude, role: looker, agent: claude }\n  - { id: gemini, role: looker, agent: gemini }\n",
    );
    scratch.write(
        ".claude/agents/looker.md",
        "---\nname: looker\ndescription: Looks.\ntools: Read, Edit, Bash(git status)\n---\nYou look.\n",
    );
    scratch.run(0);
    let arguments =
        |step: &str| std::fs::read_to_string(scratch.home().join(format!("args.{step}"))).unwrap();
    let allowed = arguments("claude");
    let allowed = allowed.lines().skip_while(|word| *word != "--allowedTools").nth(1).unwrap().to_owned();
    assert!(allowed.split(',').any(|tool| tool == "Bash(git status)"), "{allowed}");
    assert!(!allowed.split(',').any(|tool| tool == "Bash"), "{allowed}");
    let gemini = arguments("gemini");
    assert!(gemini.contains("auto_edit") && gemini.contains("run_shell_command(git status)"), "{gemini}");
    let lint = scratch.gatewright(&["lint", "--json"]).out;
    assert!(
        lint.contains("role `looker` by `gemini`: `git status` of `may_run` is the beginning of a command"),
        "{lint}"
    );
}

/// A budget that cannot be kept while an agent works is said for that agent.
#[test]
fn a_budget_that_an_agent_cannot_be_ended_by_is_said() {
    let scratch = scratch();
    let late =
        "it tells what it spends when its turn is over: a budget ends no turn of it, only what would follow";
    let never = "it does not tell what it costs: `usd` of a budget does not count it";
    for (budget, codex) in [
        ("", vec![]),
        ("budget: { launches: 9 }\n", vec![]),
        ("budget: { tokens: 9000 }\n", vec![late]),
        ("budget: { usd: 1 }\n", vec![never]),
        ("budget: { tokens: 9000, usd: 1 }\n", vec![never, late]),
    ] {
        let steps =
            "steps:\n  - { id: a, role: coder, agent: claude }\n  - { id: b, role: coder, agent: codex }\n";
        scratch.workflow("w", &format!("{budget}roles: {{ coder: {{ prompt: p }} }}\n{steps}"));
        let lint: serde_json::Value =
            serde_json::from_str(&scratch.gatewright(&["lint", "--json"]).out).unwrap();
        let said: Vec<String> = codex.iter().map(|one| format!("role `coder` by `codex`: {one}")).collect();
        assert_eq!(lint["untold"], serde_json::json!(said), "{budget}");
        let doctor = scratch.gatewright(&["doctor"]).out;
        assert!(said.iter().all(|one| doctor.contains(one)), "{budget}: {doctor}");
    }
}

#[test]
fn what_of_a_definition_cannot_be_told_is_said_by_lint_and_doctor() {
    let scratch = scratch();
    let lint: serde_json::Value = serde_json::from_str(&scratch.gatewright(&["lint", "--json"]).out).unwrap();
    let doctor = scratch.gatewright(&["doctor"]).out;
    for sentence in [
        "role `looker`: `skills` of its definition is told to no agent",
        "role `looker` by `codex`: `max_turns` has no flag",
        "role `looker` by `codex`: `permissionMode: plan` is Claude's; the role's own permissions are used",
        "role `looker` by `codex`: `model: opus` is Claude's word for it; set `agents.codex.models.opus`",
        "role `worker` by `claude`: `sandbox_mode: read-only` is Codex's; it has none",
    ] {
        assert!(lint["untold"].as_array().unwrap().iter().any(|one| one == sentence), "{sentence}: {lint:#}");
        assert!(doctor.contains(sentence), "{sentence}: {doctor}");
    }
    let said = lint["untold"].to_string();
    assert!(!said.contains("by `claude`: `effort") && !said.contains("unheard-of"), "{said}");
}
