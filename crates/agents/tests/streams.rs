//! Streams that the real programs printed, read again. `tests/streams/AGENT/SCENARIO.out` with the
//! exit code in `.code` and stderr in `.err`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::PathBuf};

use gatewright_agents::{ADAPTERS, Adapter, Event, Exit, Reader, Told, acp_named, adapter_named};
use gatewright_core::fact::TroubleKind;

struct Stream {
    agent: String,
    scenario: String,
    lines: Vec<String>,
    code: i32,
    stderr: String,
}

fn streams() -> Vec<Stream> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut found = Vec::new();
    for agent in fs::read_dir(root).unwrap().map(|entry| entry.unwrap()) {
        for file in fs::read_dir(agent.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_none_or(|end| end != "out") {
                continue;
            }
            found.push(Stream {
                agent: agent.file_name().into_string().unwrap(),
                scenario: file.file_stem().unwrap().to_str().unwrap().to_owned(),
                lines: fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect(),
                code: fs::read_to_string(file.with_extension("code")).unwrap().trim().parse().unwrap(),
                stderr: fs::read_to_string(file.with_extension("err")).unwrap_or_default(),
            });
        }
    }
    found
}

/// `claude-acp` is what `gatewright acp-turn` made of that agent.
fn adapter(name: &str) -> &'static dyn Adapter {
    match name.strip_suffix("-acp") {
        Some(house) => acp_named(house),
        None => adapter_named(name).unwrap(),
    }
}

fn read(stream: &Stream, lines: &[String], code: Option<i32>) -> (Told, Vec<Event>) {
    let mut reader = adapter(&stream.agent).reader();
    let events = lines.iter().flat_map(|line| reader.line(line)).collect();
    (reader.told(&Exit { code, stderr: &stream.stderr }), events)
}

fn whole(stream: &Stream) -> (Told, Vec<Event>) {
    read(stream, &stream.lines, Some(stream.code))
}

/// What each recorded scenario is; a recording of a new one has to be entered here.
fn expected(agent: &str, scenario: &str) -> Option<TroubleKind> {
    match (agent, scenario) {
        // Qwen Code goes on by itself after a cut and says that all is well: our own check of the reply is the net.
        ("qwen", "drop") => None,
        (_, "write" | "shell" | "denied") => None,
        (_, "auth") => Some(TroubleKind::Auth),
        (_, "context") => Some(TroubleKind::Context),
        (_, "missing") => Some(TroubleKind::BadRequest),
        (_, "rate") => Some(TroubleKind::Rate),
        (_, "server") => Some(TroubleKind::Server),
        (_, "drop") => Some(TroubleKind::Network),
        // Its own limit of turns; SIGINT while a tool ran; a permission that nobody was there to give.
        ("claude", "turns") => Some(TroubleKind::Budget),
        ("claude", "interrupted") => Some(TroubleKind::Interrupted),
        ("opencode", "rejected") => Some(TroubleKind::Denied),
        (_, other) => panic!("{agent}: what is `{other}`?"),
    }
}

#[test]
fn every_recorded_end_is_understood() {
    let streams = streams();
    assert!(streams.len() >= 40, "{} streams", streams.len());
    for stream in &streams {
        let (told, _) = whole(stream);
        let place = format!("{} {}", stream.agent, stream.scenario);
        let kind = told.trouble.as_ref().map(|trouble| trouble.kind);
        assert_eq!(kind, expected(&stream.agent, &stream.scenario), "{place}: {:?}", told.trouble);
        assert!(told.session.is_some(), "{place}: its conversation");
        assert_eq!(told.unknown, 0, "{place}: lines that are not known");
    }
}

#[test]
fn the_last_message_usage_and_tools_are_read() {
    for adapter in ADAPTERS {
        let streams = streams();
        let stream =
            streams.iter().find(|one| one.agent == adapter.name() && one.scenario == "write").unwrap();
        let (told, events) = whole(stream);
        assert_eq!(
            told.text, "STATUS: DONE\nFILE: none\nSUMMARY: fine\nNEXT_INPUT: none",
            "{}",
            stream.agent
        );
        assert_eq!(told.usage.tokens(), Some(390), "{}", stream.agent);
        let cost = told.usage.micro_usd;
        assert_eq!(cost.is_some(), matches!(adapter.name(), "claude" | "pi"), "{}: {cost:?}", stream.agent);
        let started = events.iter().any(|event| matches!(event, Event::ToolStarted { .. }));
        let ended = events.iter().any(|event| matches!(event, Event::ToolEnded { ok: true, .. }));
        assert!(started && ended, "{}: {events:?}", stream.agent);
    }
}

/// For budgets that are watched: between the first tool and the last words, or only when all is over.
#[test]
fn what_is_spent_is_told_when_the_table_says() {
    for stream in streams().iter().filter(|one| one.scenario == "write") {
        let (_, events) = whole(stream);
        let first = events.iter().position(|event| matches!(event, Event::Usage { .. })).unwrap();
        let ended = events.iter().rposition(|event| matches!(event, Event::ToolEnded { .. })).unwrap();
        let last = events.iter().rposition(|event| matches!(event, Event::Text { .. })).unwrap();
        let spending = adapter(&stream.agent).capabilities().spending;
        assert_eq!(first < last, spending, "{}: {events:?}", stream.agent);
        assert!(ended < last, "{}", stream.agent);
    }
}

#[test]
fn over_acp_the_same_is_read() {
    for stream in streams().iter().filter(|one| one.agent.ends_with("-acp")) {
        let (told, events) = whole(stream);
        match stream.scenario.as_str() {
            "write" => {
                assert_eq!(told.text, "STATUS: DONE\nFILE: none\nSUMMARY: fine\nNEXT_INPUT: none");
                // What is told of the last call only is not what the turn has spent.
                let told_by_protocol = told.usage.tokens().is_some();
                assert_eq!(told_by_protocol, stream.agent != "opencode-acp", "{:?}", told.usage);
                assert!(told.usage.micro_usd.is_some(), "{:?}", told.usage);
                assert!(events.iter().any(|event| matches!(event, Event::ToolEnded { ok: true, .. })));
            }
            "denied" => {
                assert_eq!(told.denied, ["Write b.txt"]);
                assert!(events.iter().any(|event| matches!(event, Event::ToolEnded { ok: false, .. })));
            }
            _ => assert!(told.trouble.is_some(), "{} {}", stream.agent, stream.scenario),
        }
    }
}

#[test]
fn a_stream_that_breaks_off_is_never_success() {
    for stream in streams().iter().filter(|one| one.scenario == "write") {
        let last_word = stream.lines.iter().rposition(|line| {
            line.contains("\"result\"")
                || line.contains("turn.completed")
                || line.contains("step_finish")
                || line.contains("agent_end")
                || line.contains("\"finished\"")
        });
        for cut in 0..last_word.unwrap() {
            for code in [Some(0), Some(1), Some(143), None] {
                let (told, _) = read(stream, &stream.lines[..cut], code);
                assert!(told.trouble.is_some(), "{} after {cut} lines with {code:?}", stream.agent);
            }
        }
    }
}

#[test]
fn unknown_lines_are_kept_out_and_never_fatal() {
    for stream in streams() {
        let (plain, _) = whole(&stream);
        let odd = [
            "",
            "plain words",
            "[]",
            "null",
            "{\"type\": 7}",
            "{\"type\": \"of.the.future\", \"x\": [1]}",
            "{",
        ];
        let lines: Vec<String> = stream
            .lines
            .iter()
            .flat_map(|line| odd.iter().map(|odd| (*odd).to_owned()).chain([line.clone()]))
            .collect();
        let (told, _) = read(&stream, &lines, Some(stream.code));
        assert!(told.unknown > 0, "{} {}", stream.agent, stream.scenario);
        assert_eq!(
            (told.text, told.trouble, told.usage),
            (plain.text, plain.trouble, plain.usage),
            "{}",
            stream.agent
        );
    }
}

#[test]
fn a_limit_of_the_provider_says_how_long_to_wait() {
    let mut seen = Vec::new();
    for stream in streams().iter().filter(|one| one.scenario == "rate") {
        let trouble = whole(stream).0.trouble.unwrap();
        let told = trouble.wait_ms.is_some() || trouble.message.contains("retry after 30");
        // Codex says only that it is one.
        assert!(told || stream.agent == "codex", "{}: {trouble:?}", stream.agent);
        seen.push(stream.agent.clone());
    }
    assert!(seen.len() >= 4, "{seen:?}");
}

/// Each of them in its own way, on stdout or beside it; and what it says next ends the wait.
#[test]
fn who_waits_for_a_limit_says_so_until_it_goes_on() {
    let said = [
        (
            "claude",
            r#"{"type":"system","subtype":"api_retry","error_status":429,"error":"rate_limit","retry_delay_ms":200000}"#,
            "",
        ),
        (
            "qwen",
            r#"{"type":"system","subtype":"retry","data":{"reason":"retry","attempt":1,"maxRetries":10,"delayMs":200000}}"#,
            "",
        ),
        ("qwen", "", "[qwen-code] Waiting for API capacity... attempt 1, retry in 200s"),
        ("gemini", "", "Attempt 1 failed: You exceeded your current quota.. Retrying after 200000ms..."),
        ("opencode", r#"{"type":"retry","sessionID":"ses_1","message":"slow down","wait_ms":200000}"#, ""),
        (
            "pi",
            r#"{"type":"auto_retry_start","attempt":1,"delayMs":200000,"errorMessage":"429: rate limit"}"#,
            "",
        ),
        ("opencode-acp", r#"{"event":"waiting","why":"rate limit reached","wait_ms":200000}"#, ""),
    ];
    let goes_on = [
        ("claude", r#"{"type":"assistant","message":{"content":[]}}"#),
        ("qwen", r#"{"type":"assistant","message":{"content":[]}}"#),
        ("gemini", r#"{"type":"message","role":"assistant","content":"so"}"#),
        ("opencode", r#"{"type":"step_start","sessionID":"ses_1"}"#),
        ("pi", r#"{"type":"turn_start"}"#),
        ("opencode-acp", r#"{"event":"text","text":"so"}"#),
    ];
    for (name, line, aside) in said {
        let mut reader = adapter(name).reader();
        assert_eq!(reader.waits(), None, "{name}");
        let events = if line.is_empty() { Vec::new() } else { reader.line(line) };
        reader.aside(aside);
        assert!(
            line.is_empty() || events.iter().any(|event| matches!(event, Event::Waiting { .. })),
            "{events:?}"
        );
        let waits = reader.waits().unwrap_or_else(|| panic!("{name} waits"));
        assert_eq!((waits.kind, waits.wait_ms), (TroubleKind::Rate, Some(200_000)), "{name}");
        // Ended meanwhile, it has told what the engine has to wait for.
        let told = reader.told(&Exit { code: None, stderr: aside }).trouble.unwrap();
        assert_eq!((told.kind, told.wait_ms), (TroubleKind::Rate, Some(200_000)), "{name}");
        let (_, next) = goes_on.iter().find(|(other, _)| *other == name).unwrap();
        reader.line(next);
        assert_eq!(reader.waits(), None, "{name} goes on");
    }
}

/// Of Codex's streams: it says that it connects again before it gives up.
#[test]
fn codex_says_that_it_waits() {
    let (_, events) =
        whole(streams().iter().find(|one| one.agent == "codex" && one.scenario == "server").unwrap());
    let waits = events
        .iter()
        .position(|event| matches!(event, Event::Waiting { why, .. } if why.starts_with("Reconnecting")));
    let ended = events.iter().position(|event| matches!(event, Event::Finished { ok: false }));
    assert!(waits.is_some() && waits < ended, "{events:?}");
    assert!(adapter("codex").capabilities().shows_waiting);
}

/// It says again and again that it waits for the network; whoever ends it then knows why it got nowhere.
#[test]
fn codex_that_is_ended_while_it_waits_was_not_reached() {
    let mut reader = adapter("codex").reader();
    let ended = Exit { code: None, stderr: "" };
    let kind = |reader: &dyn Reader| reader.told(&ended).trouble.map(|trouble| trouble.kind);
    reader.line(r#"{"type":"thread.started","thread_id":"t"}"#);
    reader.line(r#"{"type":"turn.started"}"#);
    assert_eq!((reader.waits(), kind(&*reader)), (None, Some(TroubleKind::Interrupted)));
    let waits = "Reconnecting... waiting for network (Connection failed: error sending request)";
    reader.line(&format!(r#"{{"type":"error","message":"{waits}"}}"#));
    reader.line(r#"{"type":"item.completed","item":{"id":"i","type":"error","message":"a warning"}}"#);
    assert_eq!(reader.waits().map(|trouble| trouble.kind), Some(TroubleKind::Network));
    assert_eq!(kind(&*reader), Some(TroubleKind::Network));
    reader.line(r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Here."}}"#);
    assert_eq!((reader.waits(), kind(&*reader)), (None, Some(TroubleKind::Interrupted)));
}

/// What each says where nobody has logged in and no key is set; trying again would not help.
#[test]
fn who_is_not_logged_in_says_so_in_words_of_its_own() {
    let gemini = "Please set an Auth method in your /home/u/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY";
    let pi = "No API key found for the selected model.\n\nUse /login to log into a provider via OAuth or API key. See:\n  /opt/pi/docs/models.md";
    let qwen = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"usage":{},"error":{"message":"No auth type is selected. Please configure an auth type (e.g. via settings or `--auth-type`) before running in non-interactive mode."}}"#;
    let codex = r#"{"type":"turn.failed","error":{"message":"Missing environment variable: `KEY`."}}"#;
    for (agent, line, code, stderr, says) in [
        ("gemini", "", 41, gemini, "Please set an Auth method"),
        (
            "pi",
            r#"{"type":"session","version":3,"id":"s"}"#,
            1,
            pi,
            "No API key found for the selected model.",
        ),
        ("qwen", qwen, 1, "", "No auth type is selected."),
        ("codex", codex, 1, "", "Missing environment variable: `KEY`."),
    ] {
        let mut reader = adapter(agent).reader();
        if !line.is_empty() {
            reader.line(line);
        }
        let trouble = reader.told(&Exit { code: Some(code), stderr }).trouble.unwrap();
        assert_eq!(trouble.kind, TroubleKind::Auth, "{agent}: {trouble:?}");
        assert!(trouble.message.starts_with(says), "{agent}: {trouble:?}");
    }
}

/// A tool that the plugin told of when it began is told once, and ends.
#[test]
fn a_tool_of_opencode_is_told_when_it_begins() {
    let begins = r#"{"type":"tool_begins","sessionID":"ses_1","tool":"bash","callID":"c1","input":{"command":"sleep 9"}}"#;
    let ends = r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"bash","callID":"c1","state":{"status":"completed","input":{"command":"sleep 9"}}}}"#;
    let started = Event::ToolStarted { tool: "bash".to_owned(), on: "sleep 9".to_owned() };
    let ended = Event::ToolEnded { tool: "bash".to_owned(), ok: true };
    let mut reader = adapter("opencode").reader();
    assert_eq!(reader.line(begins).last(), Some(&started));
    assert_eq!(reader.line(ends), std::slice::from_ref(&ended));
    // Without the plugin: both when it has ended.
    assert_eq!(reader.line(ends), [started, ended]);
}

/// opencode tells the tokens of its last call and the cost of the whole conversation; a plugin of ours tells the sum.
#[test]
fn over_acp_a_number_that_is_not_the_turns_is_unknown() {
    let read = |agent: &str, resumed: bool, worked: bool, summed: bool| {
        let mut reader = adapter(agent).reader();
        reader.line(&format!(r#"{{"event":"started","session":"s","resumed":{resumed}}}"#));
        if worked {
            reader.line(r#"{"event":"tool_started","tool":"bash"}"#);
        }
        let usage = r#"{"input_tokens":200,"output_tokens":40,"micro_usd":7}"#;
        let events = reader.line(&format!(r#"{{"event":"usage","usage":{usage},"summed":{summed}}}"#));
        let told = reader.told(&Exit { code: Some(0), stderr: "" }).usage;
        assert_eq!(events, [Event::Usage { usage: told }], "{agent}");
        (told.tokens(), told.micro_usd)
    };
    assert_eq!(read("opencode-acp", false, false, false), (Some(240), Some(7)));
    assert_eq!(read("opencode-acp", false, true, false), (None, Some(7)));
    assert_eq!(read("opencode-acp", true, false, false), (Some(240), None));
    assert_eq!(read("opencode-acp", true, true, true), (Some(240), Some(7)));
    assert_eq!(read("claude-acp", true, true, false), (Some(240), Some(7)));
}

/// The same streams with the time taken out of the provider's words: still a limit, for the engine to wait for.
#[test]
fn a_limit_without_a_time_is_a_limit_all_the_same() {
    for stream in streams().iter().filter(|one| one.scenario == "rate") {
        let lines: Vec<String> = stream.lines.iter().map(|line| line.replace("retry after 30", "")).collect();
        let stderr = stream.stderr.replace("retry after 30", "");
        let mut reader = adapter(&stream.agent).reader();
        lines.iter().for_each(|line| drop(reader.line(line)));
        let trouble = reader.told(&Exit { code: Some(stream.code), stderr: &stderr }).trouble.unwrap();
        assert_eq!(trouble.kind, TroubleKind::Rate, "{}: {trouble:?}", stream.agent);
    }
}

/// The lines of the protocol are kept beside what was understood of them: they are no events, and no end of a wait.
#[test]
fn the_wire_of_acp_is_kept_and_changes_nothing() {
    let wire =
        r#"{"event":"wire","to":"client","line":"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\"}"}"#;
    for stream in streams().iter().filter(|one| one.agent.ends_with("-acp")) {
        let read = |wired: bool| {
            let mut reader = adapter(&stream.agent).reader();
            let mut events = Vec::new();
            for line in &stream.lines {
                if wired {
                    assert_eq!(reader.line(wire), Vec::new());
                }
                events.extend(reader.line(line));
            }
            (events, reader.told(&Exit { code: Some(stream.code), stderr: &stream.stderr }))
        };
        assert_eq!(read(true), read(false), "{} {}", stream.agent, stream.scenario);
    }
    let mut reader = adapter("opencode-acp").reader();
    reader.line(r#"{"event":"waiting","why":"rate limit reached","wait_ms":200000}"#);
    reader.line(wire);
    assert!(reader.waits().is_some(), "it still waits");
}
