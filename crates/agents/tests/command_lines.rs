//! What each adapter tells its program: flags that a role, a reply or an agent's limits become.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use gatewright_agents::{
    ADAPTERS, Adapter, Conversation, Launch, Means, Order, Policy, ReplySchema, Stop, acp_named,
    adapter_named, policy_of,
};
use serde_json::{Value, json};

static NEW: Conversation = Conversation::New { session: String::new() };
static ANY: LazyLock<Policy> = LazyLock::new(Policy::default);

fn launch<'a>(adapter: &dyn Adapter, edit: impl FnOnce(&mut Order<'a>)) -> Launch {
    let mut order = Order {
        role: "coder",
        step: "code",
        command: &[],
        args: &[],
        prompt: "Do it.",
        prompt_file: "/a/prompt.md",
        workdir: "/w",
        out: "/a/out",
        run_dir: "/w/run",
        home: "/h",
        user_home: "/home/u",
        model: None,
        fallbacks: &[],
        conversation: &NEW,
        policy: &ANY,
        micro_usd_max: None,
        reply_schema: None,
        extras: true,
        desk: None,
    };
    edit(&mut order);
    adapter.launch(&order)
}

/// The word after a flag.
fn after<'l>(launch: &'l Launch, flag: &str) -> Option<&'l str> {
    let place = launch.argv.iter().position(|word| word == flag)?;
    launch.argv.get(place + 1).map(String::as_str)
}

fn schema(closed: bool) -> ReplySchema {
    ReplySchema { open: json!({"title": "open"}), closed: closed.then(|| json!({"title": "closed"})) }
}

#[test]
fn the_form_of_a_reply_is_told_by_the_option_that_the_agent_has() {
    let schema = schema(true);
    for adapter in ADAPTERS {
        let told = launch(adapter, |order| order.reply_schema = Some(&schema));
        let plain = launch(adapter, |_| {});
        let has = matches!(adapter.capabilities().structured_reply, Means::Yes(_));
        assert_eq!(told != plain, has, "{}: {:?}", adapter.name(), told.argv);
        let text = match adapter.name() {
            "claude" | "qwen" => after(&told, "--json-schema").map(str::to_owned),
            "codex" => {
                let path = after(&told, "--output-schema").unwrap();
                told.files.iter().find(|file| file.path == path).map(|file| file.text.clone())
            }
            _ => continue,
        };
        let given: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let expected = if adapter.name() == "codex" { "closed" } else { "open" };
        assert_eq!(given["title"], expected, "{}", adapter.name());
        // A turn that goes on with a conversation is told it as well.
        let resumed = Conversation::Resumed { session: "s1".to_owned() };
        let again =
            launch(adapter, |order| (order.reply_schema, order.conversation) = (Some(&schema), &resumed));
        assert!(
            after(&again, "--json-schema").or(after(&again, "--output-schema")).is_some(),
            "{:?}",
            again.argv
        );
    }
}

/// Its provider refuses a schema that is not closed: better none.
#[test]
fn codex_is_not_told_a_form_that_cannot_be_closed() {
    let schema = schema(false);
    let codex = adapter_named("codex").unwrap();
    let told = launch(codex, |order| order.reply_schema = Some(&schema));
    assert_eq!(told, launch(codex, |_| {}));
}

#[test]
fn the_model_and_those_to_fall_back_to_are_told() {
    let others = ["middle".to_owned(), "small".to_owned()];
    for adapter in ADAPTERS {
        let told = launch(adapter, |order| (order.model, order.fallbacks) = (Some("big"), &others));
        let model = after(&told, "--model").or_else(|| after(&told, "-m"));
        assert_eq!(model, Some("big"), "{}", adapter.name());
        let own = matches!(adapter.capabilities().fallback_models, Means::Yes(_));
        assert_eq!(after(&told, "--fallback-model"), own.then_some("middle,small"), "{}", adapter.name());
    }
}

#[test]
fn a_conversation_that_goes_on_is_named() {
    let resumed = Conversation::Resumed { session: "s-17".to_owned() };
    for adapter in ADAPTERS {
        let told = launch(adapter, |order| order.conversation = &resumed);
        assert!(told.argv.iter().any(|word| word == "s-17"), "{}: {:?}", adapter.name(), told.argv);
    }
    let acp = launch(acp_named("claude"), |order| order.conversation = &resumed);
    assert_eq!(after(&acp, "--resume"), Some("s-17"));
}

/// What the doctor looks for in the page of help is what is used, and the other way round.
#[test]
fn the_flags_of_the_doctor_are_those_of_the_command_line() {
    // Hidden from its page of help, and taken.
    const HIDDEN: [&str; 1] = ["--max-turns"];
    let schema = schema(true);
    let others = ["small".to_owned()];
    let policies = [
        Policy { read_only: true, ..Policy::default() },
        Policy {
            may_run: Some(vec!["git *".to_owned()]),
            network: Some(false),
            disallowed_tools: vec!["x".to_owned()],
            effort: Some("high".to_owned()),
            max_turns: Some(3),
            ..Policy::default()
        },
    ];
    let conversations = [NEW.clone(), Conversation::Resumed { session: "s".to_owned() }];
    let desk = gatewright_agents::Desk { program: "gatewright".to_owned(), args: vec!["mcp".to_owned()] };
    for adapter in ADAPTERS {
        let mut used: Vec<String> = Vec::new();
        for (policy, conversation) in policies.iter().zip(&conversations) {
            let told = launch(adapter, |order| {
                (order.policy, order.conversation, order.model) = (policy, conversation, Some("m"));
                (order.fallbacks, order.reply_schema) = (&others, Some(&schema));
                (order.desk, order.micro_usd_max) = (Some(&desk), Some(1));
            });
            used.extend(told.argv.into_iter().filter(|word| word.starts_with("--")));
        }
        let known = adapter.help().flags;
        for flag in &used {
            let listed = known.contains(&flag.as_str()) || HIDDEN.contains(&flag.as_str());
            assert!(listed, "{}: the doctor does not look for {flag}", adapter.name());
        }
        // Some are used by their short names.
        let short = ["--output-format", "--model", "--cd", "--sandbox", "--config", "--print"];
        for flag in known.iter().filter(|flag| !short.contains(flag)) {
            assert!(used.iter().any(|one| one == flag), "{}: {flag} is not used", adapter.name());
        }
    }
}

/// What a role may do becomes something on the command line, in the environment or in a file, or is said to be impossible.
#[test]
fn a_policy_is_told_to_the_agent_or_said_not_to_be() {
    let plain = Policy::default();
    let commands = Policy { may_run: Some(vec!["git *".to_owned()]), ..plain.clone() };
    let offline = Policy { network: Some(false), ..plain.clone() };
    let effort = Policy { effort: Some("high".to_owned()), ..plain.clone() };
    let turns = Policy { max_turns: Some(3), ..plain };
    for adapter in ADAPTERS.into_iter().chain(houses()) {
        let can = adapter.capabilities();
        let aspects = [
            ("may_run", &commands, can.listed_commands),
            ("network", &offline, can.network),
            ("effort", &effort, can.effort),
            ("max_turns", &turns, can.max_turns),
        ];
        for (name, policy, means) in aspects {
            let told = launch(adapter, |order| order.policy = policy) != launch(adapter, |_| {});
            let said = !adapter.cannot(policy).is_empty();
            match means {
                Means::Yes(_) => assert!(told, "{}: {name} is not told", adapter.name()),
                Means::No(_) => assert!(said, "{}: {name} is neither told nor said", adapter.name()),
            }
        }
    }
}

#[test]
fn a_read_only_role_is_read_only_by_the_agents_own_means() {
    let reader = Policy { read_only: true, ..Policy::default() };
    for adapter in ADAPTERS {
        let told = launch(adapter, |order| order.policy = &reader);
        let own = match adapter.name() {
            "claude" => after(&told, "--permission-mode") == Some("dontAsk"),
            "codex" => after(&told, "-s") == Some("read-only"),
            "gemini" | "qwen" => after(&told, "--approval-mode") == Some("default"),
            "opencode" => told.env["OPENCODE_CONFIG_CONTENT"].contains("\"edit\":{\"*\":\"deny\""),
            "pi" => after(&told, "--tools") == Some("read,grep,find,ls"),
            other => panic!("{other}: by what means?"),
        };
        assert!(own, "{}: {told:?}", adapter.name());
    }
}

/// The agents whose way to speak ACP is known.
fn houses() -> [&'static dyn Adapter; 5] {
    ["claude", "codex", "gemini", "opencode", "qwen"].map(acp_named)
}

#[test]
fn updates_and_telemetry_are_off_in_what_is_started() {
    const CODEXS: [&str; 5] = [
        "analytics.enabled=false",
        "feedback.enabled=false",
        "check_for_update_on_startup=false",
        "features.apps=false",
        "features.plugins=false",
    ];
    for adapter in ADAPTERS.into_iter().chain(houses()) {
        let told = launch(adapter, |_| {});
        let set = |name: &str| told.env.get(name).map_or("", String::as_str);
        let file = |words: &str| told.files.iter().any(|file| file.text.contains(words));
        let configured = |words: &str| told.argv.iter().any(|word| word == words);
        let quiet = match adapter.name() {
            "claude" => {
                set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC") == "1" && set("DISABLE_AUTOUPDATER") == "1"
            }
            // Over ACP it reads no arguments.
            "codex" if told.env.contains_key("CODEX_CONFIG") => {
                let script = told.files.iter().find(|file| file.path == set("CODEX_PATH")).unwrap();
                let all = CODEXS.iter().all(|setting| script.text.contains(&format!(" -c {setting} ")));
                all && script.text.starts_with("#!/bin/sh\n") && !configured("-c")
            }
            "codex" => CODEXS.into_iter().all(configured),
            "gemini" | "qwen" => {
                file("\"usageStatisticsEnabled\":false")
                    && file("\"enableAutoUpdate\":false")
                    && file("\"telemetry\":{\"enabled\":false}")
            }
            // Processes that make one database at the same time collide: each step has its own.
            "opencode" => {
                set("OPENCODE_DISABLE_AUTOUPDATE") == "1"
                    && set("OPENCODE_DISABLE_MODELS_FETCH") == "1"
                    && set("OPENCODE_CONFIG_CONTENT").contains("\"autoupdate\":false")
                    && set("OPENCODE_DB") == "/h/opencode.db"
            }
            "pi" => set("PI_TELEMETRY") == "0" && set("PI_OFFLINE") == "1",
            other => panic!("{other}: by what means?"),
        };
        assert!(quiet, "{}: {told:?}", adapter.name());
    }
}

/// A tool that another program's definition takes away has the agent's own name on its command line, or is said.
#[test]
fn a_tool_that_is_taken_away_is_told_by_its_own_name_or_said() {
    let policy =
        Policy { disallowed_tools: vec!["Write".to_owned(), "Bash(rm *)".to_owned()], ..Policy::default() };
    for adapter in ADAPTERS {
        let told = launch(adapter, |order| order.policy = &policy);
        let text = format!("{told:?}");
        let said = adapter.cannot(&policy).join("; ");
        let is_told = match adapter.name() {
            "claude" => after(&told, "--disallowedTools") == Some("Write,Bash(rm *)"),
            "gemini" => text.contains("\\\"exclude\\\":[\\\"write_file\\\"]"),
            "qwen" => after(&told, "--exclude-tools") == Some("write_file"),
            "opencode" => text.contains("\\\"edit\\\":\\\"deny\\\""),
            "pi" => after(&told, "--exclude-tools") == Some("write"),
            "codex" => said.contains("single tools cannot be taken away"),
            other => panic!("{other}: by what means?"),
        };
        assert!(is_told, "{}: {text} {said}", adapter.name());
        let whole = matches!(adapter.name(), "claude" | "codex");
        assert!(whole || said.contains("Bash(rm *)"), "{}: {said}", adapter.name());
    }
}

#[test]
fn an_effort_is_told_in_the_agents_own_words() {
    let policy = |effort: &str| Policy { effort: Some(effort.to_owned()), ..Policy::default() };
    let (most, number) = (policy("max"), policy("12"));
    let codex = launch(adapter_named("codex").unwrap(), |order| order.policy = &most);
    assert!(codex.argv.iter().any(|word| word == "model_reasoning_effort=\"xhigh\""), "{:?}", codex.argv);
    for name in ["claude", "pi"] {
        let told = launch(adapter_named(name).unwrap(), |order| order.policy = &most);
        assert_eq!(after(&told, "--effort").or(after(&told, "--thinking")), Some("max"));
    }
    for name in ["claude", "codex", "gemini", "qwen", "pi"] {
        let adapter = adapter_named(name).unwrap();
        assert!(adapter.cannot(&number).iter().any(|one| one.contains("effort")), "{name}");
        assert_eq!(launch(adapter, |order| order.policy = &number), launch(adapter, |_| {}), "{name}");
    }
}

/// The whole list: what is not in it an agent cannot write in the sandbox (docs/security.md has the same table).
#[test]
fn each_agent_has_its_own_places_and_no_others() {
    let places = |name: &str| {
        let places = adapter_named(name).unwrap().places();
        (places.folders.to_vec(), places.files.to_vec())
    };
    assert_eq!(places("claude"), (vec![".claude"], vec![".claude.json"]));
    assert_eq!(places("codex"), (vec![".codex"], vec![]));
    assert_eq!(places("gemini"), (vec![".gemini"], vec![]));
    let opencode =
        vec![".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"];
    assert_eq!(places("opencode"), (opencode, vec![]));
    assert_eq!(places("pi"), (vec![".pi"], vec![]));
    assert_eq!(places("qwen"), (vec![".qwen"], vec!["/dev/ptmx", "/dev/pts"]));
    assert_eq!(ADAPTERS.len(), 6);
    for adapter in ADAPTERS {
        let same = acp_named(adapter.name()).places();
        if acp_named(adapter.name()).name() == adapter.name() {
            assert_eq!(same, adapter.places(), "{}: also over ACP", adapter.name());
        }
        // Nothing that another program would run or read its settings from.
        for place in adapter.places().folders {
            assert!(place.starts_with('.') && !place.ends_with('/'), "{}: {place}", adapter.name());
            assert!(place.contains(adapter.name()), "{}: {place} is somebody else's", adapter.name());
        }
    }
    let page = include_str!("../../../docs/security.md");
    for adapter in ADAPTERS {
        let row = page.lines().find(|line| line.starts_with(&format!("| {} |", adapter.name()))).unwrap();
        let own = adapter.places();
        for place in own.folders.iter().chain(own.files) {
            let shown = if place.starts_with('/') { format!("`{place}`") } else { format!("`~/{place}`") };
            assert!(row.contains(&shown), "{}: {shown} is not in docs/security.md: {row}", adapter.name());
        }
    }
}

/// Its own sandbox cannot be made inside ours, and is replaced by it. It never runs without any because of us: only
/// who is in ours is let out of its own.
#[test]
fn codex_leaves_its_own_sandbox_only_for_ours() {
    let codex = adapter_named("codex").unwrap();
    for read_only in [false, true] {
        let policy = |contained| Policy { contained, read_only, ..Policy::default() };
        let (ours, own) = (policy(true), policy(false));
        let inside = launch(codex, |order| order.policy = &ours);
        assert_eq!(after(&inside, "-s"), Some("danger-full-access"));
        assert_eq!(inside.hold_read_only, read_only, "ours holds what its own would have");
        let outside = launch(codex, |order| order.policy = &own);
        let expected = if read_only { "read-only" } else { "workspace-write" };
        assert_eq!(after(&outside, "-s"), Some(expected));
        assert!(!outside.hold_read_only);
    }
    for adapter in ADAPTERS.into_iter().filter(|adapter| adapter.name() != "codex") {
        let ours = Policy { contained: true, ..Policy::default() };
        let (inside, outside) = (launch(adapter, |order| order.policy = &ours), launch(adapter, |_| {}));
        assert_eq!(inside, outside, "{}: has no sandbox of its own to leave", adapter.name());
    }
}

/// What its own sandbox would keep is kept inside ours too: the network by its filter of system calls.
#[test]
fn codex_inside_our_sandbox_keeps_what_a_role_and_a_definition_say() {
    fn told(policy: &Policy) -> Launch {
        launch(adapter_named("codex").unwrap(), |order| order.policy = policy)
    }
    let codex = adapter_named("codex").unwrap();
    let profile = |launch: &Launch| {
        let has = |word: &str| launch.argv.iter().any(|one| one == word);
        has("default_permissions=\"gatewright\"") && has("permissions.gatewright.network.enabled=false")
    };
    let inside = Policy { contained: true, ..Policy::default() };
    let mode = |mode: &str| Policy { sandbox_mode: Some(mode.to_owned()), ..inside.clone() };
    let off = Policy { network: Some(false), ..inside.clone() };
    for (policy, network) in [
        (inside.clone(), true),
        (off.clone(), false),
        (mode("workspace-write"), false),
        (mode("read-only"), false),
        (mode("danger-full-access"), true),
        (Policy { network: Some(true), ..mode("workspace-write") }, true),
    ] {
        let launch = told(&policy);
        assert_eq!(profile(&launch), !network, "{policy:?}: {:?}", launch.argv);
        assert_eq!(after(&launch, "-s"), network.then_some("danger-full-access"), "{:?}", launch.argv);
    }
    let own = Policy { contained: false, ..off };
    let words = told(&own).argv;
    assert!(words.iter().any(|word| word == "sandbox_workspace_write.network_access=false"), "{words:?}");
    assert!(words.iter().any(|word| word == "web_search=\"disabled\""), "{words:?}");
    // A role that may write nothing stays so, whatever its definition wants.
    let reader = Policy { read_only: true, contained: false, ..mode("workspace-write") };
    assert_eq!(after(&told(&reader), "-s"), Some("read-only"));
    let said = codex.cannot(&mode("danger-full-access"));
    assert!(said.iter().any(|sentence| sentence.contains("held by the engine's sandbox")), "{said:?}");
}

/// In the mode that accepts edits Claude Code also runs `touch` and `rm` unasked.
#[test]
fn claude_with_a_list_of_commands_runs_no_other() {
    let claude = adapter_named("claude").unwrap();
    for (may_run, mode) in [
        (None, "acceptEdits"),
        (Some(Vec::new()), "acceptEdits"),
        (Some(vec!["git status*".to_owned()]), "dontAsk"),
    ] {
        let policy = Policy { may_run: may_run.clone(), ..Policy::default() };
        let told = launch(claude, |order| order.policy = &policy);
        assert_eq!(after(&told, "--permission-mode"), Some(mode), "{may_run:?}");
        let allowed = after(&told, "--allowedTools").unwrap_or_default();
        assert_eq!(allowed.contains("Edit(**)"), mode == "dontAsk", "{allowed}");
    }
}

/// A definition may name a mode that would lift what the role may not do: it is not used, and that is said.
#[test]
fn a_mode_of_a_definition_lifts_no_limit_of_its_role() {
    let claude = adapter_named("claude").unwrap();
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let limits = [
        (Policy { read_only: true, ..Policy::default() }, true),
        (Policy { may_write: words(&["docs/**"]), ..Policy::default() }, true),
        (Policy { may_run: words(&["git *"]), ..Policy::default() }, true),
        (Policy { may_run: words(&[]), ..Policy::default() }, false),
        (Policy::default(), false),
    ];
    let modes = [("acceptEdits", true), ("bypassPermissions", true), ("plan", false), ("dontAsk", false)];
    for (limit, limited) in limits {
        for (mode, lifts) in modes {
            let policy = Policy { permission_mode: Some(mode.to_owned()), ..limit.clone() };
            let used = if limited && lifts { "dontAsk" } else { mode };
            let told = launch(claude, |order| order.policy = &policy);
            assert_eq!(after(&told, "--permission-mode"), Some(used), "{policy:?}");
            let acp = launch(acp_named("claude"), |order| order.policy = &policy);
            assert_eq!(after(&acp, "--mode"), (used == mode).then_some(mode), "{policy:?}");
            for adapter in [claude, acp_named("claude")] {
                let said = adapter.cannot(&policy).iter().any(|one| one.contains("would lift"));
                assert_eq!(said, used != mode, "{policy:?}");
            }
        }
    }
    // Nobody else is told a word of Claude's.
    let policy = Policy { permission_mode: Some("acceptEdits".to_owned()), ..Policy::default() };
    for other in ["codex", "gemini", "opencode", "qwen", "mine"].map(acp_named) {
        assert_eq!(after(&launch(other, |order| order.policy = &policy), "--mode"), None, "{}", other.name());
        let said = other.cannot(&policy).join("; ");
        assert!(said.contains("`permissionMode: acceptEdits` is Claude's"), "{}: {said}", other.name());
    }
}

/// The tools of a definition are names; what may be done with them is listed beside, and not by the bare name as well.
#[test]
fn tools_of_a_definition_are_used_within_the_limits_of_its_role() {
    let claude = adapter_named("claude").unwrap();
    let allowed = |policy: &Policy| {
        let told = launch(claude, |order| order.policy = policy);
        let list = after(&told, "--allowedTools").unwrap_or_default().to_owned();
        (list.split(',').map(str::to_owned).collect::<Vec<_>>(), after(&told, "--tools").map(str::to_owned))
    };
    let has = |list: &[String], tool: &str| list.iter().any(|one| one == tool);
    let tools = ["Read", "Edit", "Write", "Bash(git status *)", "Task"];
    let extra = [("tools".to_owned(), json!(tools))].into();
    let globs = ["docs/**".to_owned()];
    let (list, names) = allowed(&policy_of(Some(&globs), None, None, &extra));
    assert_eq!(names.as_deref(), Some("Read,Edit,Write,Bash,Task"));
    for bare in ["Edit", "Write", "Bash"] {
        assert!(!has(&list, bare), "{bare}: {list:?}");
    }
    for one in ["Edit(docs/**)", "Bash(git status *)", "Task", "Read"] {
        assert!(has(&list, one), "{one}: {list:?}");
    }
    let own = ["make *".to_owned()];
    let (list, _) = allowed(&policy_of(None, Some(&own), None, &extra));
    assert!(has(&list, "Bash(make *)") && !has(&list, "Bash(git status *)"), "{list:?}");
    // Without a limit they are allowed as they are.
    let free = [("tools".to_owned(), json!(["Read", "Edit", "Bash"]))].into();
    let (list, _) = allowed(&policy_of(None, None, None, &free));
    assert!(has(&list, "Edit") && has(&list, "Bash"), "{list:?}");
}

/// A pattern that names a whole command is the beginning of one for those that know only beginnings.
#[test]
fn commands_that_may_be_run_with_more_than_listed_are_said() {
    for name in ["gemini", "qwen"] {
        let said = |command: &str| {
            let policy = Policy { may_run: Some(vec![command.to_owned()]), ..Policy::default() };
            adapter_named(name).unwrap().cannot(&policy).join("; ").contains("is the beginning of a command")
        };
        assert!(said("make") && !said("make *") && !said("make*"), "{name}");
    }
}

/// Who has no tool to write with, or only plans, is asked for its files in its last message.
#[test]
fn who_cannot_write_files_is_known() {
    let from = |extra: Value| policy_of(None, None, None, &serde_json::from_value(extra).unwrap());
    let writes = |name: &str, policy: &Policy| adapter_named(name).unwrap().writes_files(policy);
    let limited = Policy { read_only: true, ..Policy::default() };
    for name in ["claude", "codex", "gemini", "opencode", "qwen", "pi"] {
        assert!(writes(name, &Policy::default()), "{name}");
        assert!(writes(name, &from(json!({"tools": "Read, Write"}))), "{name}");
        assert!(!writes(name, &from(json!({"disallowedTools": "Write"}))), "{name}");
        assert_eq!(writes(name, &limited), matches!(name, "claude" | "opencode"), "{name}");
        // Tools and modes of Claude's are its own.
        assert_eq!(writes(name, &from(json!({"tools": "Read, Grep, Glob"}))), name == "opencode", "{name}");
        assert_eq!(writes(name, &from(json!({"permissionMode": "plan"}))), name == "opencode", "{name}");
    }
    for house in houses() {
        assert!(house.writes_files(&Policy::default()) && !house.writes_files(&limited), "{}", house.name());
    }
}

/// Over ACP there is no common word for the model of a turn: each is told in its own way.
#[test]
fn over_acp_known_agents_are_told_the_model_in_their_own_way() {
    for house in houses() {
        let told = launch(house, |order| order.model = Some("big"));
        let set = |name: &str| told.env.get(name).map_or("", String::as_str);
        let setting = |name: &str| serde_json::from_str::<Value>(set(name)).unwrap()["model"].clone();
        let words: Vec<&String> = told.argv.iter().skip_while(|word| *word != "--").skip(1).collect();
        match house.name() {
            "claude" => assert_eq!(set("ANTHROPIC_MODEL"), "big"),
            "codex" => {
                assert_eq!(setting("CODEX_CONFIG"), "big");
                assert_eq!(words, ["codex-acp"], "it reads no arguments");
            }
            "opencode" => assert_eq!(setting("OPENCODE_CONFIG_CONTENT"), "big"),
            "gemini" | "qwen" => assert_eq!(words, [house.name(), "--acp", "-m", "big"]),
            other => panic!("{other}: by what means?"),
        }
        assert!(!format!("{:?}", launch(house, |_| {})).contains("big"), "{}", house.name());
    }
    let other = launch(acp_named("mine"), |order| order.model = Some("big"));
    assert_eq!(after(&other, "--model"), Some("big"));
}

/// Its own sandbox cannot be made inside ours, over ACP neither; outside of ours it has its own.
#[test]
fn codex_over_acp_has_one_sandbox() {
    let mode = |policy: &Policy| {
        let told = launch(acp_named("codex"), |order| order.policy = policy);
        (told.env["INITIAL_AGENT_MODE"].clone(), told.hold_read_only)
    };
    let (any, inside) = (Policy::default(), Policy { contained: true, ..Policy::default() });
    let full = Policy { sandbox_mode: Some("danger-full-access".to_owned()), ..any.clone() };
    let reads = |policy: &Policy| Policy { read_only: true, ..policy.clone() };
    assert_eq!(mode(&inside), ("agent-full-access".to_owned(), false));
    assert_eq!(mode(&reads(&inside)), ("agent-full-access".to_owned(), true));
    assert_eq!(mode(&any), ("workspace-write".to_owned(), false));
    assert_eq!(mode(&reads(&any)), ("read-only".to_owned(), false));
    assert_eq!(mode(&full), ("agent-full-access".to_owned(), false));
    assert_eq!(mode(&reads(&full)), ("read-only".to_owned(), false));
}

/// A user may have put an agent's folders elsewhere: it is there that it has to write.
#[test]
fn folders_that_a_variable_moved_are_found() {
    let (home, here) = (Path::new("/home/u"), Path::new("/w"));
    let is = |name: &str, set: &[(&str, &str)], expected: &[&str]| {
        let value =
            |name: &str| set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        let found = adapter_named(name).unwrap().places().folders_of(home, here, &value);
        assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{name}: {set:?}");
    };
    is("codex", &[], &["/home/u/.codex"]);
    is("codex", &[("CODEX_HOME", "")], &["/home/u/.codex"]);
    is("codex", &[("CODEX_HOME", "/data/codex")], &["/data/codex"]);
    is("claude", &[("CLAUDE_CONFIG_DIR", "own")], &["/w/own"]);
    is("gemini", &[("GEMINI_CLI_HOME", "/data/g")], &["/data/g/.gemini"]);
    is("qwen", &[("QWEN_HOME", "/q")], &["/q"]);
    is("qwen", &[("QWEN_RUNTIME_DIR", "/r")], &["/home/u/.qwen", "/r"]);
    is("pi", &[("PI_CODING_AGENT_DIR", "~/own")], &["/home/u/own"]);
    is(
        "opencode",
        &[("XDG_STATE_HOME", "/s"), ("XDG_DATA_HOME", "/d"), ("OPENCODE_CONFIG_DIR", "/c")],
        &["/home/u/.config/opencode", "/d/opencode", "/s/opencode", "/home/u/.cache/opencode", "/c"],
    );
    // A folder with the home directory in it would open everything.
    for wide in ["/", "/home", "/home/u"] {
        is("codex", &[("CODEX_HOME", wide)], &["/home/u/.codex"]);
    }
    // Each variable is one that the agent is given, and is in the table of docs/security.md.
    let page = include_str!("../../../docs/security.md");
    for adapter in ADAPTERS {
        let told = launch(adapter, |_| {});
        let row = page.lines().find(|line| line.starts_with(&format!("| {} |", adapter.name()))).unwrap();
        for moved in adapter.places().moved {
            let name = moved.variable;
            let given =
                |one: &&str| one.strip_suffix('*').map_or(*one == name, |start| name.starts_with(start));
            assert!(name.starts_with("XDG_") || told.pass.iter().any(given), "{name}: {:?}", told.pass);
            assert!(row.contains(&format!("`{name}`")), "{name} is not in docs/security.md: {row}");
        }
    }
}

/// Who is asked to stop ends what it started: with SIGTERM all but one.
#[test]
fn each_agent_is_stopped_by_its_best_means() {
    for adapter in ADAPTERS {
        let expected = if adapter.name() == "codex" { Stop::Interrupt } else { Stop::Terminate };
        assert_eq!(adapter.stop(), expected, "{}", adapter.name());
    }
    // The client of ACP cancels the turn on either.
    assert!(houses().iter().all(|house| house.stop() == Stop::Terminate));
}
