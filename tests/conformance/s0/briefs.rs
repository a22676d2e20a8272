//! What a run is called and holds, and what agents say in the end.

use serde_json::Value;

use super::chain::{Chain, REPORTS};
use crate::support::text;

#[test]
fn s0_02_a_task_is_named_after_the_request_in_thirty_characters_that_fit_into_an_address() {
    let scratch = Chain::project("requirements) brief ERROR;;");
    for (request, slug) in [
        ("End ALL other sessions: now & for ever, Émile's too!", None),
        ("  Add   OAuth2/OIDC login  ", Some("add-oauth2-oidc-login")),
        ("a", Some("a")),
    ] {
        let run = scratch.gatewright(&["run", "report-chain", request]).exits(11).id();
        let rest = run.strip_prefix("develop-feature-").unwrap_or_else(|| panic!("{run}"));
        let (found, seconds) = rest.rsplit_once('-').unwrap();
        assert!(seconds.parse::<u64>().is_ok(), "{run}");
        assert!(!found.is_empty() && found.chars().count() <= 30, "{found}");
        let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(found.chars().all(fits) && !found.starts_with('-') && !found.ends_with('-'), "{found}");
        assert_eq!(slug.unwrap_or(found), found);
        assert!(scratch.root().join(".workflow").join(&run).is_dir(), "its folder has the name");
    }
}

#[test]
fn s0_06_the_folder_of_a_task_has_metadata_one_report_a_step_and_the_files_of_loops() {
    let once = "tests-review) if [ $GATEWRIGHT_ROUND = 1 ]; then objects 'no test'; else standard; fi;;";
    let chain = Chain::runs(&[], once, 0);
    let seen = std::fs::read_to_string(chain.scratch.home().join("seen/tests-design.json")).unwrap();
    let metadata: Value = serde_json::from_str(&seen).unwrap();
    let keys: Vec<&String> = metadata.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["taskId", "command", "feature", "started", "currentStep", "status"]);
    assert_eq!((&metadata["feature"], &metadata["currentStep"]), (&"End other sessions".into(), &3.into()));
    assert_eq!(
        (text(&metadata["taskId"]), text(&metadata["command"])),
        (chain.run.clone(), "develop-feature".to_owned())
    );
    assert!(text(&metadata["started"]).ends_with('Z'), "{metadata}");
    for (name, _) in REPORTS {
        assert!(chain.file(&format!("{name}.md")).starts_with("# "), "{name}");
    }
    // Where loop files go is there before there is one: agents are told to look into it.
    assert!(chain.scratch.home().join("seen/loop-iterations").exists());
    let folder = chain.scratch.run_dir(&chain.run).join("loop-iterations");
    let mut loops: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    loops.sort();
    assert_eq!(loops, ["tests-review-fix-1.md", "tests-review-review-2.md"]);
}

/// What a first attempt was refused for; the second one does well.
#[track_caller]
fn refused(first: &str) -> String {
    let cases = format!(
        "requirements) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then report; {first}; else standard; fi;;\nplan) brief ERROR;;"
    );
    let chain = Chain::runs(&[], &cases, 11);
    assert_eq!(chain.scratch.count("requirements"), 2, "{first}");
    text(&chain.scratch.events_of(&chain.run, "step.retry.scheduled")[0]["message"])
}

#[test]
fn s0_11_a_reply_of_more_than_ten_lines_is_no_brief() {
    let many = "reply DONE; printf -- '---\\n- 1\\n- 2\\n- 3\\n- 4\\n- 5\\n- 6\\n'";
    let message = refused(many);
    assert!(message.contains("the brief has 11 lines, at most 10 are allowed"), "{message}");
    // Ten are accepted, and everybody is told how many there may be.
    let ten = "requirements) report; reply DONE; printf -- '---\\n- 1\\n- 2\\n- 3\\n- 4\\n- 5\\n';;\nplan) brief ERROR;;";
    let chain = Chain::runs(&[], ten, 11);
    assert_eq!(chain.scratch.called(), ["requirements", "plan"]);
    assert!(chain.scratch.prompt("requirements", 1).contains("ten lines at most"));
}

#[test]
fn s0_13_a_status_is_one_of_five_words_and_the_other_fields_must_be_there() {
    for (first, sentence) in [
        ("reply OK", "STATUS is `OK`"),
        ("reply 'PASS | PARTIAL'", "STATUS is `PASS | PARTIAL`"),
        ("reply DONE | sed '/^SUMMARY/d'", "SUMMARY"),
        ("reply DONE | sed '/^NEXT_INPUT/d'", "NEXT_INPUT"),
    ] {
        let message = refused(first);
        assert!(message.contains(sentence), "{first}: {message}");
    }
}

#[test]
fn s0_44_a_report_under_a_near_name_is_used_and_the_reader_is_told_to_say_so() {
    let chain = Chain::runs(&[], "requirements) brief ERROR;;\ntests-design) brief ERROR;;", 11);
    let written = chain.scratch.run_dir(&chain.run).join("requirments.md");
    std::fs::write(written, REPORTS[0].1).unwrap();
    chain.scratch.gatewright(&["skip", &chain.run, "requirements", "--reason", "by hand"]).exits(11);
    let (reason, message) = chain.scratch.blocked_by(&chain.run);
    assert_eq!(reason, "missing_input", "{message}");
    assert!(
        message.contains("`requirements.md`") && message.contains("near matches: requirments.md"),
        "{message}"
    );
    assert_eq!(chain.scratch.count("plan"), 0);
    let used = "requirements.md=requirments.md";
    let missing = format!("\nMissing file: .workflow/{}/requirements.md\n", chain.run);
    assert!(chain.file("halted.md").contains(&missing), "{}", chain.file("halted.md"));
    chain.scratch.gatewright(&["resume", &chain.run, "--use", used]).exits(11);
    let attempt = chain
        .scratch
        .calls()
        .iter()
        .find(|call| call.starts_with("plan "))
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let prompt = chain.scratch.prompt("plan", attempt);
    assert!(prompt.contains("/requirments.md"), "{prompt}");
    assert!(prompt.contains("`WARNING: expected …, used …` into Handoff Notes"), "{prompt}");
    let resumed = chain.scratch.events_of(&chain.run, "run.resumed");
    assert!(
        resumed.iter().any(|event| event["substitutes"]["requirements.md"] == "requirments.md"),
        "{resumed:?}"
    );
}
