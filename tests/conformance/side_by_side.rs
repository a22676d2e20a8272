//! Two runs of one method at the same time in one repository, whose coders edit the same file: both finish,
//! and neither finds anything of the other (decisions 19 and 27).

use std::collections::BTreeSet;

use crate::{
    s0::chain::Chain,
    s1::session::Session,
    s2::feature::Feature,
    s3::cycle::Cycle,
    s4::schedule::Schedule,
    support::{Scratch, text},
};

/// What a coder does before its standard work: both are at work at once, then both edit.
const EDIT: &str = r#"mark "at-$GATEWRIGHT_RUN"; await both; echo "$GATEWRIGHT_RUN" >> src/a.txt; standard"#;

/// Words that let a run go on, in the order in which they are looked for among what may be answered.
const ON: [&str; 9] =
    ["opened", "approved", "per-batch", "1", "continue", "keep", "keep-branch", "accept", "option-1"];

/// The word that lets this question pass.
#[track_caller]
fn word_for(open: &serde_json::Value) -> String {
    let answers = open["answers"].as_array().unwrap();
    // To keep a feature is to leave it active, and to merge both would be a conflict for a person.
    if open["id"] == "finish" {
        return "pr".to_owned();
    }
    let known = ON.iter().find(|word| answers.iter().any(|answer| answer == **word));
    known.map_or_else(|| panic!("nothing to say to {open:#}"), |word| (*word).to_owned())
}

/// Starts a run and answers what it asks until it is over.
fn drives(scratch: &Scratch, words: &[&str], slow: bool) -> String {
    if slow {
        // The first one holds the checkout by then.
        scratch.marked("first-began");
    }
    let engine = scratch.start(words);
    let run = engine.id();
    scratch.mark(if slow { "second-began" } else { "first-began" });
    let mut last = engine.ended();
    for _ in 0..20 {
        let status = scratch.status(&run);
        if text(&status["state"]) != "waiting" {
            assert_eq!(status["state"], "done", "{}", last.err);
            return run;
        }
        let decisions = status["decisions"].as_array().unwrap().clone();
        let open = decisions.iter().find(|one| one["status"] == "pending").unwrap();
        let answer = word_for(open);
        last = scratch.start(&["answer", &run, &text(&open["id"]), &answer]).ended();
    }
    panic!("{run} asks without end: {:#}", scratch.status(&run));
}

/// Both runs, with everything that must hold of them in the end.
#[track_caller]
fn side_by_side(scratch: &Scratch, method: &str, flags: &[&str]) {
    let words = |request: &'static str| [&["run", method, request], flags].concat();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| drives(scratch, &words("First of two"), false));
        let second = scope.spawn(|| drives(scratch, &words("Second of two"), true));
        // Neither goes on before both coders are there: they really are at work at the same time.
        let at_work = || {
            let names = std::fs::read_dir(scratch.home()).unwrap().flatten();
            names.filter(|entry| entry.file_name().to_string_lossy().starts_with("at-")).count()
        };
        crate::support::wait_for("both coders are at work", || {
            let over = first.is_finished() || second.is_finished();
            assert!(!over, "a run ended before the other had begun to code: {:?}", scratch.calls());
            (at_work() == 2).then_some(())
        });
        scratch.mark("both");
        (first.join().unwrap(), second.join().unwrap())
    });
    for run in [&first, &second] {
        assert_eq!(scratch.state(run), "done", "{:#}", scratch.status(run)["blocked_by"]);
        for kind in ["intrusion.noticed", "step.blocked", "step.retry.scheduled"] {
            assert_eq!(scratch.events_of(run, kind), Vec::<serde_json::Value>::new(), "{run}");
        }
    }
    assert_ne!(scratch.run_dir(&first), scratch.run_dir(&second));
    // Each line is in exactly one place, and no place has both.
    let mut places: Vec<String> = vec![std::fs::read_to_string(scratch.root().join("src/a.txt")).unwrap()];
    let branches = scratch.git_says(&["branch", "--format=%(refname:short)"]);
    for branch in branches.lines().filter(|branch| *branch != "main") {
        places.push(scratch.git_says(&["show", &format!("{branch}:src/a.txt")]));
    }
    let with = |run: &String| -> BTreeSet<usize> {
        let has = |place: &&String| place.lines().any(|line| line == run);
        places.iter().enumerate().filter(|(_, place)| has(place)).map(|(at, _)| at).collect()
    };
    let (one, two) = (with(&first), with(&second));
    assert!(!one.is_empty() && !two.is_empty(), "work was lost: {places:#?}");
    assert!(one.is_disjoint(&two), "one has work of the other: {places:#?}");
    assert_eq!(scratch.git_says(&["worktree", "list"]).lines().count(), 1, "nothing is left behind");
}

#[test]
fn two_report_chains_at_once() {
    let scratch = Chain::project(&format!("implementation) {EDIT};;"));
    side_by_side(&scratch, "report-chain", &[]);
}

#[test]
fn two_gated_sessions_at_once() {
    let scratch = Session::project(&format!("tasks/*/code) {EDIT};;"));
    side_by_side(&scratch, "gated-session", &["--set", "ci=true"]);
}

#[test]
fn two_phase_reviews_at_once() {
    let commits = "git add -A; git -c user.name=T -c user.email=t@example.org commit -q -m Built";
    let scratch = Feature::project(&format!("implement) {EDIT}; {commits};;"));
    side_by_side(&scratch, "phase-review", &[]);
}

#[test]
fn two_stream_dags_at_once() {
    let scratch = Cycle::project(&format!("streams/*/backend) {EDIT};;"));
    side_by_side(&scratch, "stream-dag", &["--set", "build=true", "--set", "test=true"]);
}

#[test]
fn two_staged_schedules_at_once() {
    let scratch = Schedule::project(&format!("2.1-waves/*) {EDIT};;"));
    side_by_side(&scratch, "staged-schedule", &["--agent", "mine", "--set", "lint=", "--set", "test=true"]);
}
