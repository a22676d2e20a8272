//! Files that cannot be written, and what becomes of the run then.

use super::chain::Chain;

/// Every step of a run without loops.
const STEPS: [&str; 12] = [
    "requirements",
    "plan",
    "tests-design",
    "tests-review",
    "implementation",
    "stabilization",
    "acceptance",
    "performance-security/performance",
    "performance-security/security",
    "refactoring",
    "code-review",
    "documentation",
];

/// An agent that does what it was told when it cannot write: it tries to make the folder once, then says so.
fn cannot_write(step: &str, target: &str, cause: &str) -> String {
    format!(
        r#"{step}) {cause}
  target={target}
  if error=$(cp "$HOME/reports/plan.md" "$target" 2>&1); then echo "it could be written" >&2; exit 9; fi
  mkdir -p "$(dirname "$target")" 2> /dev/null && cp "$HOME/reports/plan.md" "$target" 2> /dev/null && {{ standard; exit 0; }}
  printf 'STATUS: ERROR\nFILE: none\nSUMMARY: Cannot write output file: %s\nNEXT_INPUT: none\n---\n' "$target"
  printf -- '- Attempted to write: %s\n- Error: %s\n- Recovery attempted: mkdir -p, failed\n- Current directory: %s\n' "$target" "$(echo $error)" "$PWD";;"#
    )
}

#[test]
fn s0_49_everybody_is_told_what_to_do_when_a_report_cannot_be_written() {
    let chain = Chain::runs(&[], "", 0);
    for step in STEPS {
        let prompt = chain.scratch.prompt(step, 1);
        let prompt = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in
            ["create its directory once with `mkdir -p`", "`STATUS: ERROR`, `FILE: none`, `NEXT_INPUT: none`"]
        {
            assert!(prompt.contains(words), "{step}: {words}\n{prompt}");
        }
    }
    // Making the directory helps: then nothing is halted.
    let missing = cannot_write("plan", r#""$GATEWRIGHT_OUT/gone/x""#, ":;");
    let chain = Chain::runs(&[], &missing, 0);
    assert_eq!(chain.scratch.count("plan"), 1);
}

#[test]
fn s0_51_a_failed_write_halts_at_once_and_the_halt_says_everything() {
    let cases = cannot_write(
        "implementation",
        r#""$GATEWRIGHT_OUT/implementation.md/x""#,
        r#": > "$GATEWRIGHT_OUT/implementation.md""#,
    );
    let chain = Chain::runs(&[], &cases, 11);
    assert_eq!(chain.scratch.count("implementation"), 1);
    assert_eq!(chain.scratch.count("stabilization"), 0);
    let halted = chain.file("halted.md");
    for words in [
        "# WORKFLOW HALTED - Write Failure\n",
        "Agent: backend-developer",
        "\nCould not write: ",
        "\nError: ",
        &format!("Workflow directory: .workflow/{}", chain.run),
        "Attempted to write: ",
        "implementation.md/x",
        "Not a directory",
        "Recovery attempted: mkdir -p, failed",
        "the engine can write to ",
        "ls -la",
        "mkdir -p",
        "df -h .",
        &format!("gatewright resume {}", chain.run),
        "- plan.md (from `plan`)",
    ] {
        assert!(halted.contains(words), "{words}\n{halted}");
    }
    // The engine tries for itself: a run directory that is gone and cannot be made again.
    let blocked = r#"rm -r "$GATEWRIGHT_RUN_DIR"; : > "$GATEWRIGHT_RUN_DIR""#;
    let cases = cannot_write("plan", r#""$GATEWRIGHT_RUN_DIR/plan.md""#, blocked);
    let scratch = Chain::project(&cases);
    let ran = scratch.gatewright(&["run", "report-chain", "x"]);
    assert_eq!(ran.code, 70, "{}", ran.err);
    for words in ["the engine cannot write to ", "Not a directory", "hint: ", "gatewright resume "] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
}

/// An agent that misses its input: what lies there under another name is named, whoever put it there.
#[test]
fn s0_47_a_halt_names_what_is_there_and_what_the_record_says_of_the_cause() {
    let cases = r#"plan) mv "$GATEWRIGHT_RUN_DIR/requirements.md" "$GATEWRIGHT_RUN_DIR/requirement.md"
  printf 'STATUS: ERROR\nFILE: none\nSUMMARY: Required input file not found: requirements.md\nNEXT_INPUT: none\n---\n- Expected: requirements.md\n- Cannot proceed\n';;"#;
    let chain = Chain::runs(&[], cases, 11);
    let halted = chain.file("halted.md");
    for words in [
        "# WORKFLOW HALTED\n",
        "Agent: plan-creator",
        "Step: plan of stage `prepare`",
        "\nMissing file: requirements.md\n",
        "\nPossible causes",
        "- Expected: requirements.md",
        "- requirement.md (no report of this run)",
        "- no step was skipped",
        "gatewright restart",
        "--use MISSING=OTHER",
    ] {
        assert!(halted.contains(words), "{words}\n{halted}");
    }
    // Who was left out is a cause, and so is an attempt that broke.
    let cases = "plan) [ $GATEWRIGHT_ATTEMPT = 1 ] && exit 3; brief ERROR;;";
    let scratch = Chain::project(cases);
    let run = scratch.gatewright(&["run", "report-chain", "x"]).exits(11).id();
    let halted = scratch.published(&run, "halted.md").unwrap();
    assert!(halted.contains("- failed: `plan`, "), "{halted}");
}

#[test]
fn s0_63_every_cause_of_a_failed_write_ends_in_an_error_and_no_file() {
    let long = format!("\"$GATEWRIGHT_OUT/{}\"", "x".repeat(300));
    for (cause, target, before, words) in [
        (
            "missing directory",
            r#""$GATEWRIGHT_OUT/a-file/plan.md""#,
            r#": > "$GATEWRIGHT_OUT/a-file";"#,
            "Not a directory",
        ),
        ("permission denied", "/proc/sys/kernel/version", ":;", "Permission denied"),
        (
            "held by another process",
            r#""$HOME/busy""#,
            r#"cp "$(command -v sleep)" "$HOME/busy"; "$HOME/busy" 60 & trap "kill $!" EXIT;
               until grep -q busy "/proc/$!/comm"; do sleep 0.01; done;"#,
            "Text file busy",
        ),
        ("disk full", "/dev/full", ":;", "No space left"),
        ("invalid path", long.as_str(), ":;", "File name too long"),
    ] {
        let chain = Chain::runs(&[], &cannot_write("plan", target, before), 11);
        let (reason, message) = chain.scratch.blocked_by(&chain.run);
        assert_eq!(reason, "agent_error", "{cause}");
        assert!(message.contains(words), "{cause}: {message}");
        assert_eq!(chain.scratch.called(), ["requirements", "plan"], "{cause}: nobody is tried again");
        assert!(chain.scratch.published(&chain.run, "plan.md").is_none(), "{cause}");
    }
    // An error that names a file all the same is no well-formed one.
    let named = "plan) report; printf 'STATUS: ERROR\\nFILE: plan.md\\nSUMMARY: It is locked.\\nNEXT_INPUT: none\\n';;";
    let chain = Chain::runs(&[], named, 11);
    assert_eq!(chain.scratch.blocked_by(&chain.run).0, "agent_error");
    assert!(chain.scratch.published(&chain.run, "plan.md").is_none());
}
