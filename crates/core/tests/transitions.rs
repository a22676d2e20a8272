//! The complete table: what becomes of each input in each phase of the step it is about, and of the step.
//!
//! A phase or an input that is new and not in the table is an error of the compiler or of the test.
//! `UPDATE=1` writes `transitions.md` anew; without it a difference fails.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Bench, ask, checked, draft, hash, items, phase_word, reply};
use gatewright_core::{
    advance,
    event::{Beginning, Event},
    fact::{CommitFact, Intrusion, IntrusionKind, LaunchFact, ListNow, News, ProcessEnd},
    ids::DecisionId,
    input::{Input, Raise},
    outcome::Outcome,
    plan::{AnswerEffect, Exhaustion, Hardness},
    state::{DecisionStatus, Phase},
};

/// The names of all variants, and the one of a value. The compiler holds the list complete.
macro_rules! variants {
    ($all:ident, $name:ident, $kind:ident: $($variant:ident)*) => {
        const $all: &[&str] = &[$(stringify!($variant)),*];
        fn $name(value: &$kind) -> &'static str {
            match value { $($kind::$variant { .. } => stringify!($variant)),* }
        }
    };
}

variants!(PHASES, phase_name, Phase:
    Dormant Pending Gated Ready Running Verifying Backoff Waiting Open Fixing Passed Failed Blocked Skipped);
variants!(INPUTS, input_name, Input:
    Start AttemptEnded Underway CheckEnded CommitEnded Evaluated ListRead ListEdited ListChanged Bound Answer
    CancelDecision GiveUpDecision Stop Abort Resume RunUntil Give RestartStage Skip WaiveGate Noticed Unwritten
    Tick Adopt);

/// Runs in which the step `x` is in each of its phases, while `other` keeps the run going.
fn phases() -> Vec<(&'static str, Bench)> {
    let plan = || draft().agent("other");
    let mut benches = vec![
        ("dormant", plan().agent("x").writes("x.md").dormant().run()),
        ("pending", plan().agent("x").writes("x.md").needs(&["other"]).run()),
        ("gated", plan().agent("x").writes("x.md").expression("when", Hardness::Hard).run()),
        ("ready", plan().pool("run", 1).agent("x").writes("x.md").run()),
        ("ready (list)", plan().fan_out("x").agent("x/*/do").run()),
        ("running", plan().agent("x").writes("x.md").run()),
        ("open", plan().sub_run("x").agent("x/do").run()),
        ("waiting", plan().decision("x", &[]).show(&["tree"]).run()),
    ];
    let mut verifying = plan().agent("x").writes("x.md").checks(&["lint"]).run();
    verifying.done(&["x"]);
    let mut committing = plan().agent("x").writes("x.md").commits().run();
    committing.done(&["x"]);
    let mut backoff = plan().agent("x").writes("x.md").edit(|step| step.retry.backoff_ms = vec![1000]).run();
    backoff.dies("x", ProcessEnd::Exited { code: 1 });
    let mut fixing = plan().agent("fix").dormant().review("x", &["fix"]).run();
    fixing.revises("x");
    let mut passed = plan().agent("x").writes("x.md").run();
    passed.done(&["x"]);
    let mut failed = plan().agent("x").writes("x.md").attempts(1).on_exhausted(vec![Exhaustion::Fail]).run();
    failed.dies("x", ProcessEnd::Exited { code: 1 });
    let mut blocked = plan().agent("x").writes("x.md").attempts(1).run();
    blocked.dies("x", ProcessEnd::Exited { code: 1 });
    let mut shut = plan().agent("x").writes("x.md").expression("when", Hardness::Hard).run();
    shut.evaluated("x", "when", false);
    let mut asking = plan()
        .agent("x")
        .writes("x.md")
        .attempts(1)
        .on_exhausted(vec![ask(&[("again", AnswerEffect::Again)])])
        .run();
    asking.dies("x", ProcessEnd::Exited { code: 1 });
    let mut at_work = plan().fan_out("x").agent("x/*/do").run();
    at_work.list("x", &[("a", &[])]);
    let mut skipped = plan().agent("x").writes("x.md").run();
    skipped.skip("x");
    benches.extend(vec![
        ("verifying", verifying),
        ("verifying (commit)", committing),
        ("backoff", backoff),
        ("waiting (exhausted)", asking),
        ("open (list)", at_work),
        ("fixing", fixing),
        ("passed", passed),
        ("failed", failed),
        ("blocked", blocked),
        ("blocked (gate)", shut),
        ("skipped", skipped),
    ]);
    for (phase, bench) in &benches {
        bench.is("x", phase.split(' ').next().unwrap_or_default());
    }
    benches
}

fn inputs(bench: &Bench) -> Vec<(&'static str, Input)> {
    let pending = |(id, state): (&DecisionId, &gatewright_core::state::DecisionState)| {
        (state.status == DecisionStatus::Pending).then(|| id.clone())
    };
    let decision = bench.state.decisions.iter().find_map(pending).unwrap_or_else(|| "x".into());
    let attempt = bench.state.steps["x"].attempts;
    let ended = |attempt| Input::AttemptEnded { step: "x".into(), attempt, report: reply(Outcome::Done) };
    let word = if decision.as_str() == "x" { "approved" } else { "again" };
    vec![
        (
            "start",
            Input::Start { run: "run".to_owned(), request: String::new(), beginning: Beginning::default() },
        ),
        ("end of the current attempt", ended(attempt)),
        ("end of an attempt that never was", ended(attempt + 7)),
        (
            "end of a check",
            Input::CheckEnded { step: "x".into(), attempt, check: "lint".into(), fact: checked(true, "") },
        ),
        ("end of a commit", Input::CommitEnded { step: "x".into(), attempt, fact: CommitFact::Nothing }),
        (
            "value of an expression",
            Input::Evaluated { step: "x".into(), gate: "when".into(), value: Ok(true) },
        ),
        (
            "list that was edited",
            Input::ListEdited { step: "x".into(), name: "tasks.yaml".into(), found: hash("other") },
        ),
        (
            "list that changes at work",
            Input::ListChanged {
                step: "x".into(),
                name: "tasks.yaml".into(),
                now: ListNow::Changed { found: hash("other"), what: "it changed".to_owned() },
            },
        ),
        ("list", Input::ListRead { step: "x".into(), hash: hash("list"), items: Ok(items(&[("a", &[])])) }),
        (
            "hash of what is shown",
            Input::Bound {
                decision: decision.clone(),
                bound: BTreeMap::from([("tree".into(), hash("t"))]),
                question: None,
            },
        ),
        ("answer", Input::Answer(bench.say(decision.as_str(), word))),
        (
            "decision put off",
            Input::CancelDecision { decision: decision.clone(), reason: "later".to_owned() },
        ),
        ("decision given up", Input::GiveUpDecision { decision }),
        ("stop", Input::Stop),
        ("abort", Input::Abort { reason: "enough".to_owned() }),
        ("resume", Input::Resume { raise: Raise::default(), substitutes: BTreeMap::new() }),
        ("go on up to its stage", Input::RunUntil { stage: "main".into(), skipping: None }),
        ("its work, handed in", Input::Give { step: "x".into(), from: "given".to_owned() }),
        ("restart of its stage", Input::RestartStage { stage: "main".into(), reason: "again".to_owned() }),
        ("skip", Input::Skip { step: "x".into(), reason: "not needed".to_owned() }),
        (
            "waiver of its gate",
            Input::WaiveGate { step: "x".into(), gate: None, reason: "it is fine".to_owned() },
        ),
        (
            "an intrusion",
            Input::Noticed {
                intrusion: Intrusion {
                    kind: IntrusionKind::UnsealedOrder,
                    what: "a message".to_owned(),
                    by: Vec::new(),
                },
            },
        ),
        (
            "a file that cannot be written",
            Input::Unwritten { problem: "status.json: cannot write it".to_owned() },
        ),
        (
            "news of its attempt",
            Input::Underway {
                step: "x".into(),
                attempt: 1,
                news: News::Launched { fact: LaunchFact::default() },
            },
        ),
        ("tick", Input::Tick),
        ("tick, an hour later", Input::Tick),
        ("new plan", Input::Adopt { digest: "d".to_owned() }),
    ]
}

fn outcome(bench: &Bench, kind: &str, input: &Input) -> String {
    let mut state = bench.state.clone();
    let now = if kind.ends_with("an hour later") { bench.now.plus_ms(3_600_000) } else { bench.now };
    match advance(&bench.plan, &mut state, input, now) {
        Err(_) => {
            assert_eq!(state, bench.state, "a refusal changes nothing");
            "refused".to_owned()
        }
        Ok(events) if events.iter().all(|event| matches!(event, Event::ResultIgnored { .. })) => {
            "ignored".to_owned()
        }
        Ok(_) => match state.steps.get("x").map(|own| phase_word(&own.phase)) {
            Some(phase) if phase == phase_word(&bench.state.steps["x"].phase) => "accepted".to_owned(),
            Some(phase) => format!("→ {phase}"),
            None => "→ gone".to_owned(),
        },
    }
}

fn table() -> String {
    let phases = phases();
    let names: Vec<&str> = phases.iter().map(|(phase, _)| *phase).collect();
    let mut text = String::from(
        "# What becomes of an input, by the phase of the step it is about\n\n\
         Written by `UPDATE=1 cargo test -p gatewright-core --test transitions`; a difference fails the test.\n\
         *accepted*: events follow, *→*: and the step is in this phase when the engine rests again. *ignored*: nothing \
         changes. *refused*: nothing changes, and the sender is told why.\n\n",
    );
    text.push_str(&format!("| input | {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len() + 1)));
    let kinds: Vec<&str> = inputs(&phases[0].1).iter().map(|(kind, _)| *kind).collect();
    for (place, kind) in kinds.iter().enumerate() {
        let row: Vec<String> =
            phases.iter().map(|(_, bench)| outcome(bench, kind, &inputs(bench)[place].1)).collect();
        text.push_str(&format!("| {kind} | {} |\n", row.join(" | ")));
    }
    text
}

#[test]
fn every_phase_and_every_input_is_in_the_table() {
    let phases = phases();
    let in_columns: BTreeSet<&str> =
        phases.iter().map(|(_, bench)| phase_name(&bench.state.steps["x"].phase)).collect();
    assert_eq!(in_columns, PHASES.iter().copied().collect());
    let in_rows: BTreeSet<&str> = inputs(&phases[0].1).iter().map(|(_, input)| input_name(input)).collect();
    assert_eq!(in_rows, INPUTS.iter().copied().collect());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the table is a file beside the test")]
fn the_table_of_transitions_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/transitions.md");
    let fresh = table();
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(path, &fresh).expect("the table can be written");
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(stored, fresh, "run it with UPDATE=1");
}
