//! The merge step: every stream that passed, in the order of dependencies, onto the run's branch. A merge
//! becomes a commit only after its checks held, so a commit that is there is never looked at again. What
//! cannot be merged stops that merge only; it is left in the tree for whoever mends it.

use std::{cell::RefCell, fs::File, path::Path};

use gatewright_attempts::{Defence, Git, GitError};
use gatewright_core::{
    event::ItemEnd,
    fact::{AttemptReport, CheckFact, InputProblem, ProcessEnd},
    ids::{CheckId, ProfileId, StepId},
    outcome::{Outcome, Reply},
    state::{FanOutState, State},
    verdict::{Finding, Severity},
};
use gatewright_workflow::frozen::Sandbox;
use serde::{Deserialize, Serialize};

use super::{
    commit::{self, Alone, By},
    intrusion::Busy,
    judged, lock, lost_locks, nested,
    place::{RUN_STREAM, Stream, Workplace, has_worked},
    tip,
    worktree::{self, WorktreeError},
};
use crate::{
    perform::{check, sandbox},
    plain_file,
    run_context::RunContext,
};

/// Everything a merge needs of the state, taken before its thread starts.
pub struct Job {
    pub step: StepId,
    pub attempt: u32,
    pub target: Workplace,
    /// In the order in which they are merged.
    pub streams: Vec<Stream>,
    /// Streams that did not pass, with their branches: named, not merged, not lost.
    pub lost: Vec<Stream>,
    /// Items that had nothing to do, and so have no branch.
    pub idle: Vec<String>,
    /// With their shell lines, made before the thread starts.
    pub checks: Vec<(CheckId, check::Line)>,
    pub profile: ProfileId,
    /// For each of its checks; without one they have their own.
    pub timeout_ms: Option<u64>,
}

impl Job {
    pub fn new(context: &RunContext, state: &State, step: &StepId, attempt: u32, of: &StepId) -> Job {
        let plan = &context.frozen.plan;
        let own = state.steps.get(step);
        let fan = own.map_or_else(|| of.clone(), |own| state.sibling(plan, own, of));
        let ordered = state.fan_outs.get(&fan).map(in_order).unwrap_or_default();
        let passed = |key: &String| {
            let item = state.fan_outs.get(&fan).and_then(|fan_out| fan_out.items.get(key));
            item.is_some_and(|item| item.end == Some(ItemEnd::Passed))
        };
        let (good, lost): (Vec<String>, Vec<String>) = ordered.into_iter().partition(passed);
        let (good, idle): (Vec<String>, Vec<String>) =
            good.into_iter().partition(|key| has_worked(state, &fan, key));
        let streams = |keys: Vec<String>| {
            keys.iter().map(|key| context.item_stream(state, &fan, key)).collect::<Vec<_>>()
        };
        let document = context.step_document(state, step);
        let checks = state.definition(plan, step).map(|own| own.checks.clone()).unwrap_or_default();
        Job {
            step: step.clone(),
            attempt,
            target: context.place(state, step),
            streams: streams(good),
            lost: streams(lost),
            idle,
            checks: checks.into_iter().map(|id| (id.clone(), check::line(context, &id, &document))).collect(),
            profile: state.profile.clone(),
            timeout_ms: context.text(state, step).timeout_ms,
        }
    }
}

/// Keys with everything they depend on before them, otherwise as in the list.
fn in_order(fan_out: &FanOutState) -> Vec<String> {
    let mut ordered: Vec<String> = Vec::new();
    let mut left: Vec<&String> = fan_out.order.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        let mut waiting = Vec::new();
        for key in left {
            let needs = fan_out.items.get(key).map(|item| item.needs.as_slice()).unwrap_or_default();
            if needs.iter().all(|need| ordered.contains(need)) {
                ordered.push(key.clone());
            } else {
                waiting.push(key);
            }
        }
        left = waiting;
        // A list with a circle never became a fan-out.
        if left.len() == before {
            break;
        }
    }
    ordered
}

/// What is in the tree and not committed: `streams/merging.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Merging {
    version: u32,
    stream: String,
    branch: String,
    /// Files that were in conflict.
    conflicts: Vec<String>,
    /// It was left for somebody to mend; otherwise an engine was killed in the middle of it.
    left: bool,
}

impl Merging {
    fn read(context: &RunContext) -> Option<Merging> {
        let path = context.paths.streams().join("merging.json");
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    fn write(&self, context: &RunContext) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        let path = context.paths.streams().join("merging.json");
        let durable = crate::atomic_file::Durability::Durable;
        crate::atomic_file::replace(context.disk.as_ref(), &path, &bytes, durable)
    }

    fn forget(context: &RunContext) {
        let _ = std::fs::remove_file(context.paths.streams().join("merging.json"));
    }
}

/// Whether this folder holds a merge that the engine left there to be mended. Git's own word for it is the agent's to
/// write.
pub fn is_left_for_a_fixer(context: &RunContext, stream: &Stream, git: &Git) -> bool {
    let left = stream.name == RUN_STREAM && Merging::read(context).is_some_and(|merging| merging.left);
    (left || Defence::OwnIndex.is_off()) && commit::in_merge(git)
}

/// Why a stream is not in yet.
struct Problem {
    stream: String,
    branch: String,
    /// In a few words.
    why: String,
    findings: Vec<Finding>,
}

impl Problem {
    fn new(stream: &str, branch: &str, why: String, findings: Vec<Finding>) -> Problem {
        Problem { stream: stream.to_owned(), branch: branch.to_owned(), why, findings }
    }

    /// One thing that is wrong, which says it all.
    fn only(stream: &str, branch: &str, finding: Finding) -> Problem {
        Problem::new(stream, branch, finding.problem.clone(), vec![finding])
    }

    /// It waits until the tree is free: only that it is not in has to be known meanwhile.
    fn behind(self, first: &str) -> Problem {
        let about = format!(
            "stream `{}` is not merged either: {}; its turn comes after `{first}`, nothing of it is in the tree now",
            self.stream, self.why
        );
        Problem { findings: vec![finding(&self.branch, about)], ..self }
    }

    fn note(&self) -> String {
        format!("stream `{}` is not merged: {}; its work is on {}", self.stream, self.why, self.branch)
    }
}

pub fn merge(context: &RunContext, job: &Job) -> AttemptReport {
    let unusable = |message: String| {
        AttemptReport::new(ProcessEnd::NotStarted { problem: InputProblem::Unusable { message } })
    };
    let Workplace::Worktree(target) = &job.target else {
        return unusable("a merge needs the worktree of its run".to_owned());
    };
    let by = By { step: job.step.clone(), attempt: job.attempt };
    if let Err(error) = worktree::ensure(context, &job.target, &by) {
        return unusable(error.to_string());
    }
    let _busy = Busy::new(&target.path);
    // What is told of it is told when the attempt that did it ends.
    for stream in job.streams.iter().chain([target]) {
        let _ = tip::put_back_own(context, stream);
    }
    let merged = Merger::new(context, job, target).and_then(|merger| {
        let problems = merger.all()?;
        Ok((problems, merger.said.take()))
    });
    match merged {
        Ok((problems, said)) => report(job, target, &problems, said),
        Err(error) => unusable(error.to_string()),
    }
}

fn report(job: &Job, target: &Stream, problems: &[Problem], said: Said) -> AttemptReport {
    let ok = problems.is_empty();
    let mut report = AttemptReport::new(ProcessEnd::Exited { code: i32::from(!ok) });
    let names: Vec<&str> = problems.iter().map(|problem| problem.stream.as_str()).collect();
    let mut reply = Reply::new(if ok { Outcome::Done } else { Outcome::Failed });
    reply.summary = format!(
        "{} of {} streams are on {}",
        job.streams.len() - problems.len(),
        job.streams.len(),
        target.branch
    );
    let kept = |stream: &Stream| {
        format!("stream `{}` did not pass and is not merged; its work is on {}", stream.name, stream.branch)
    };
    let nothing = |key: &String| format!("`{key}` had nothing to do: nothing of it is merged");
    let left = job.lost.iter().map(kept).chain(job.idle.iter().map(nothing));
    reply.disagreements = left.chain(problems.iter().map(Problem::note)).chain(said.flaky).collect();
    reply.findings = problems.iter().flat_map(|problem| problem.findings.clone()).collect();
    report.check = Some(CheckFact {
        ok,
        exit_code: Some(i32::from(!ok)),
        build: false,
        class: None,
        timed_out: false,
        message: if ok { String::new() } else { format!("not merged: {}", names.join(", ")) },
        output: said.output,
        tests: None,
        flaky: 0,
        duration_ms: 0,
        changes: Vec::new(),
        changes_left_out: 0,
    });
    report.reply = Some(reply);
    report
}

struct Merger<'a> {
    context: &'a RunContext,
    job: &'a Job,
    git: Git,
    target: &'a Stream,
    folder: &'a Path,
    alone: Alone,
    judged: Sandbox,
    /// What its checks said that a reader of the step should know.
    said: RefCell<Said>,
    _lock: File,
}

/// Of the checks of a merge.
#[derive(Default)]
struct Said {
    flaky: Vec<String>,
    /// What the last one printed that was not ok; else what the last one printed.
    output: String,
}

impl<'a> Merger<'a> {
    fn new(context: &'a RunContext, job: &'a Job, target: &'a Stream) -> Result<Merger<'a>, WorktreeError> {
        let path = context.paths.streams().join(format!("{RUN_STREAM}.lock"));
        let io = |source| WorktreeError::Io { path: path.clone(), source };
        let lock = lock::take(&path).map_err(io)?;
        if !judged::is_linked(context, &target.path) {
            let (path, root) = (target.path.clone(), context.meta.root.clone());
            return Err(WorktreeError::Foreign { path, root });
        }
        let judged = sandbox::common(context);
        let git = judged::git(context, &target.path, &judged)
            .with_lock(lock.try_clone().map_err(io)?)
            .with_setting("rerere.enabled=false")
            // Both sides and what they come from, in the file itself.
            .with_setting("merge.conflictStyle=diff3");
        let alone = Alone::new(context, &target.name);
        lost_locks::clear(context, target);
        let (folder, said) = (target.path.as_path(), RefCell::default());
        Ok(Merger { context, job, git, target, folder, alone, judged, said, _lock: lock })
    }

    fn all(&self) -> Result<Vec<Problem>, WorktreeError> {
        if let Some(problem) = self.mended()? {
            // The tree is still taken: nothing else can be tried before this one is in.
            let mut problems = vec![problem];
            let left = self.job.streams.iter().filter(|stream| !self.is_in(&stream.branch));
            for stream in left.filter(|stream| stream.name != problems[0].stream).collect::<Vec<_>>() {
                let why = "it was not tried yet".to_owned();
                let untried = Problem::new(&stream.name, &stream.branch, why, Vec::new());
                problems.push(untried.behind(&problems[0].stream));
            }
            return Ok(problems);
        }
        let mut problems: Vec<Problem> = Vec::new();
        for stream in &self.job.streams {
            if self.is_in(&stream.branch) {
                continue;
            }
            if let Err(problem) = self.one(stream)? {
                self.abandon();
                // One at a time is in the tree, so one at a time is mended.
                let first = problems.first().map(|first| first.stream.clone());
                problems.push(match first {
                    Some(first) => problem.behind(&first),
                    None => problem,
                });
            }
        }
        if let Some(first) = problems.first() {
            let stream = self.job.streams.iter().find(|stream| stream.name == first.stream);
            if let Some(stream) = stream {
                self.leave(stream)?;
            }
        }
        Ok(problems)
    }

    fn is_in(&self, branch: &str) -> bool {
        self.git.holds(&["merge-base", "--is-ancestor", branch, "HEAD"])
    }

    fn abandon(&self) {
        let _ = self.git.text(&["merge", "--abort"]);
        let _ = self.git.text(&["reset", "-q", "--hard", "HEAD"]);
        let _ = self.git.text(&["clean", "-qfd"]);
        self.settle();
        Merging::forget(self.context);
    }

    /// What was left for a fixer is verified and committed; what a crash cut off is undone.
    fn mended(&self) -> Result<Option<Problem>, WorktreeError> {
        let known = Merging::read(self.context);
        let Some(merging) = known.filter(|merging| merging.left && commit::in_merge(&self.git)) else {
            commit::own_index(&self.git, self.folder)?;
            if commit::in_merge(&self.git) || !worktree::is_clean(self.folder) {
                self.abandon();
            }
            Merging::forget(self.context);
            return Ok(None);
        };
        if self.is_in(&merging.branch) {
            // Killed after the commit: nothing of the merge is left to be done.
            self.git.text(&["merge", "--quit"])?;
            Merging::forget(self.context);
            return Ok(None);
        }
        let marked: Vec<Finding> = merging
            .conflicts
            .iter()
            .filter(|file| has_markers(&self.folder.join(file)))
            .map(|file| finding(file, format!("`{file}` still has conflict markers")))
            .collect();
        if !marked.is_empty() {
            let why = "conflict markers are left".to_owned();
            return Ok(Some(Problem::new(&merging.stream, &merging.branch, why, marked)));
        }
        if let Some(message) = self.stage()? {
            let about = finding(&merging.branch, message);
            return Ok(Some(Problem::only(&merging.stream, &merging.branch, about)));
        }
        let verified = self.verify(&merging.stream, &merging.branch)?;
        match verified {
            Ok(()) => {
                Merging::forget(self.context);
                Ok(None)
            }
            Err(problem) => Ok(Some(problem)),
        }
    }

    /// What was mended is staged, or it is said why it must not be committed.
    fn stage(&self) -> Result<Option<String>, WorktreeError> {
        commit::own_index(&self.git, self.folder)?;
        let (changes, left_out) = commit::wanted(self.context, nested::changes(&self.git)?);
        if let Some(message) = nested::refusal(&changes) {
            return Ok(Some(message));
        }
        commit::stage(&self.git, &left_out)?;
        let links = nested::links(&self.git, &["--cached", "HEAD"])?;
        let unfiltered = nested::unfiltered(&self.git, &changes)?;
        Ok(unfiltered.or_else(|| commit::keep_links(self.context, self.target, &links).err()))
    }

    /// Merges one stream, up to and with its commit.
    fn one(&self, stream: &Stream) -> Result<Result<(), Problem>, WorktreeError> {
        match self.try_merge(&stream.branch)? {
            Merge::Clean => self.verify(&stream.name, &stream.branch),
            Merge::Conflicts(files) => Ok(Err(self.conflict(stream, &files)?)),
            Merge::Impossible(message) => {
                Ok(Err(Problem::only(&stream.name, &stream.branch, finding(&stream.branch, message))))
            }
        }
    }

    /// Submodules stand where the merged tree says.
    fn settle(&self) {
        let git = || judged::git(self.context, self.folder, &self.judged);
        worktree::submodules(&self.context.meta.root, self.folder, &git);
    }

    fn try_merge(&self, branch: &str) -> Result<Merge, GitError> {
        let merged = self.git.text(&["merge", "-q", "--no-ff", "--no-commit", branch]);
        self.settle();
        let Err(error) = merged else { return Ok(Merge::Clean) };
        let files = self.git.names(&["diff", "--name-only", "--diff-filter=U", "-z"])?;
        Ok(if files.is_empty() { Merge::Impossible(error.to_string()) } else { Merge::Conflicts(files) })
    }

    fn conflict(&self, stream: &Stream, files: &[String]) -> Result<Problem, GitError> {
        let base = self.git.text(&["merge-base", "HEAD", &stream.branch])?;
        let ours = self.git.text(&["rev-parse", "HEAD"])?;
        let theirs = self.git.text(&["rev-parse", &stream.branch])?;
        let about = |file: &String| {
            let mut one = finding(
                file,
                format!(
                    "`{file}` is changed by stream `{}` and by what was merged before it; the file holds both sides \
                     and the base between conflict markers",
                    stream.name
                ),
            );
            one.fix = Some(format!(
                "keep what both sides want; base: git show {base}:{file}, run: git show {ours}:{file}, stream: git show {theirs}:{file}"
            ));
            one
        };
        let named: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
        let why = format!("it conflicts in {}", named.join(", "));
        Ok(Problem::new(&stream.name, &stream.branch, why, files.iter().map(about).collect()))
    }

    /// The merged tree: nothing is gone that the stream did not delete, the checks hold; then the commit.
    fn verify(&self, stream: &str, branch: &str) -> Result<Result<(), Problem>, WorktreeError> {
        let lost = self.lost_files(branch)?;
        if !lost.is_empty() {
            let about = |file: &String| {
                finding(
                    file,
                    format!("merging `{stream}` would delete `{file}`, which the stream did not delete"),
                )
            };
            let why = format!("it would delete {}", lost.join(", "));
            let findings = lost.iter().map(about).collect();
            return Ok(Err(Problem::new(stream, branch, why, findings)));
        }
        for (id, line) in &self.job.checks {
            let (fact, _) = check::run(
                self.context,
                self.folder,
                &self.job.profile,
                &self.job.step,
                self.job.attempt,
                id,
                line,
                self.job.timeout_ms,
                &self.judged,
                check::Of::Attempt,
            );
            let mut said = self.said.borrow_mut();
            if fact.flaky > 0 {
                said.flaky.push(format!(
                    "check `{id}` is flaky: with `{stream}` merged it failed {} time(s) before it was ok",
                    fact.flaky
                ));
            }
            said.output.clone_from(&fact.output);
            if !fact.ok {
                let mut one = finding(branch, format!("with `{stream}` merged, {}", fact.message));
                one.fix = (!fact.output.is_empty()).then(|| format!("the check said: {}", fact.output));
                return Ok(Err(Problem::new(stream, branch, fact.message, vec![one])));
            }
        }
        let message = format!("Merge {branch}");
        let mut trailers = commit::trailers(self.context, &self.job.step, self.job.attempt);
        trailers.push(format!("Gatewright-Stream: {stream}"));
        let made = commit::make(self.context, self.target, &self.alone, &self.judged, &message, &trailers);
        tip::keep(self.context, self.target);
        match made {
            Ok(()) => Ok(Ok(())),
            Err(message) => Ok(Err(Problem::only(stream, branch, finding(branch, message)))),
        }
    }

    /// Deleted by the merge, not by the stream itself (J-49).
    fn lost_files(&self, branch: &str) -> Result<Vec<String>, GitError> {
        let deleted = ["--name-only", "--diff-filter=D", "--no-renames", "-z"];
        let merged = self.git.names(&[&["diff", "--cached"], &deleted[..], &["HEAD"]].concat())?;
        if merged.is_empty() {
            return Ok(merged);
        }
        let base = self.git.text(&["merge-base", "HEAD", branch])?;
        let own = self.git.names(&[&["diff"], &deleted[..], &[&base, branch]].concat())?;
        Ok(merged.into_iter().filter(|file| !own.contains(file)).collect())
    }

    /// Puts the merge into the tree once more and leaves it there.
    fn leave(&self, stream: &Stream) -> Result<(), WorktreeError> {
        let conflicts = match self.try_merge(&stream.branch)? {
            Merge::Conflicts(files) => files,
            Merge::Clean | Merge::Impossible(_) => Vec::new(),
        };
        let merging = Merging {
            version: 1,
            stream: stream.name.clone(),
            branch: stream.branch.clone(),
            conflicts,
            left: true,
        };
        let path = self.context.paths.streams().join("merging.json");
        merging.write(self.context).map_err(|source| WorktreeError::Io { path, source })
    }
}

enum Merge {
    Clean,
    Conflicts(Vec<String>),
    Impossible(String),
}

fn finding(location: &str, problem: String) -> Finding {
    let mut finding = Finding::new(Severity::High, problem);
    finding.location = Some(location.to_owned());
    finding.category = Some("merge".to_owned());
    finding
}

fn has_markers(path: &Path) -> bool {
    let bytes = plain_file::read(path).unwrap_or_default();
    bytes
        .split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> "))
}

/// Nobody mends a merge any more, but its tree is still taken: it is kept as a patch and undone.
pub fn undo_left_over(context: &RunContext, place: &Workplace) {
    let Workplace::Worktree(stream) = place else { return };
    if stream.name != RUN_STREAM || Merging::read(context).is_none() {
        return;
    }
    let git = judged::git(context, &stream.path, &sandbox::common(context));
    let keep = |patch: Vec<u8>| {
        let path = context.paths.patch("unfinished-merge");
        path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, patch))
    };
    let kept = worktree::Record::read(&context.paths, RUN_STREAM)
        .and_then(|record| worktree::patch(context, &record).ok())
        .is_some_and(|patch| keep(patch).is_ok());
    if commit::in_merge(&git) {
        let _ = git.text(&["merge", "--abort"]);
    }
    if kept {
        // New files of whoever was to mend it.
        let _ = git.text(&["reset", "-q", "--hard", "HEAD"]);
        let _ = git.text(&["clean", "-qfd"]);
    }
    Merging::forget(context);
}
