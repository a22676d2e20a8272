//! Checks: commands that the engine runs itself. Short and repeatable, so plain children.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use gatewright_attempts::{
    CheckCommand, CheckResult, CheckSpec, allowed_environment, create_group_tmp, run_marked_check,
};
use gatewright_core::{
    effect::Effect,
    fact::{AttemptReport, CheckFact, InputProblem, Intrusion, IntrusionKind, ProcessEnd, TestCounts},
    ids::{ArtifactName, CheckId, ContentHash, ProfileId, StepId},
    input::Input,
    state::State,
};
use gatewright_workflow::{
    frozen::{Check, CheckClass, Sandbox},
    test_counts::{self, OutputReader},
};

use serde_json::Value;

use crate::{
    collect::{Output, PublishedFile, examine},
    disk::{BelowFolder, Disk, Links},
    machine_pools::Wish,
    mask::Masks,
    perform::{
        Arrival, agent,
        check_slot::{self, Slot},
        executed, in_thread, sandbox,
    },
    project::file_name,
    run_context::{RunContext, is_plain_relative},
    run_masks,
    scope::{
        Watch,
        executed::{Execution, Seen},
    },
    streams::{commit::By, intrusion::Busy, place::Workplace, tip, worktree},
};

/// Output of a check that succeeded is journaled up to this length.
const OUTPUT_OK_CHARS: usize = 400;
const OUTPUT_FAILED_CHARS: usize = 4000;
const LEFT_BEHIND_NAMED: usize = 5;
const CANCEL_FOR: Duration = Duration::from_secs(10);
const CANCEL_EVERY: Duration = Duration::from_millis(20);

/// The shell line of a check, or why there is none; `None`: it is not wanted this time.
pub type Line = Result<Option<String>, String>;

/// What a check step needs besides its check; made before it starts.
pub struct Job {
    pub place: Workplace,
    pub wish: Wish,
    pub line: Line,
    pub timeout_ms: Option<u64>,
    pub outputs: Vec<Output>,
    pub inputs: Vec<(ArtifactName, ContentHash)>,
}

/// Whether a check is a step of its own or looks at what an agent's attempt left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Step,
    Attempt,
}

/// A check step. What it writes is examined like the work of an agent.
#[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename the parts")]
pub fn step(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    check: &CheckId,
    job: Job,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let (context, step, check) = (context.clone(), step.clone(), check.clone());
    let profile = state.profile.clone();
    let notices = results.clone();
    in_thread(effect, results, move || {
        // A check step that is not wanted any more has nobody who waits for its end.
        let _places = job.wish.take(&context.paths.machine_pools(), false, &|| true);
        let by = By { step: step.clone(), attempt };
        if let Err(error) = worktree::ensure(&context, &job.place, &by) {
            let problem = InputProblem::Unusable { message: error.to_string() };
            let report = AttemptReport::new(ProcessEnd::NotStarted { problem });
            return Input::AttemptEnded { step, attempt, report };
        }
        let _busy = Busy::new(job.place.folder());
        let out = context.paths.attempt(step.as_str(), attempt).join("out");
        let before = match empty_out(&context, &out, &job.outputs) {
            Ok(before) => before,
            Err(error) => {
                let message = format!("{}: {error}", out.display());
                let report = AttemptReport::new(ProcessEnd::StartFailed { message });
                return Input::AttemptEnded { step, attempt, report };
            }
        };
        let judged = sandbox::common(&context);
        let watch = Watch {
            step: step.clone(),
            attempt,
            role: String::new(),
            may_write: None,
            protect: context.frozen.protect.clone(),
            on_trespass: context.frozen.on_trespass,
            outputs: job.outputs.iter().map(|output| output.name.clone()).collect(),
            apart: false,
            kept_in: sandbox::confines(&judged),
        };
        let ((fact, duration_ms), seen) =
            watched(&context, watch, job.place.folder(), &check, &job.line, &notices, || {
                run(
                    &context,
                    job.place.folder(),
                    &profile,
                    &step,
                    attempt,
                    &check,
                    &job.line,
                    job.timeout_ms,
                    &judged,
                    Of::Step,
                )
            });
        settle_branch(&context, &job.place, &step, &notices);
        let mut report = AttemptReport::new(ProcessEnd::Exited { code: fact.exit_code.unwrap_or(-1) });
        report.duration_ms = duration_ms;
        report.inputs = job.inputs;
        if fact.ok && matches!(job.line, Ok(Some(_))) {
            before.iter().for_each(|file| file.adopt_if_touched(&context));
            report.artifacts = job.outputs.iter().map(|output| examine(&out, output)).collect();
        }
        report.check = Some(fact);
        report.changes = seen.changes;
        report.changes_left_out = seen.changes_left_out;
        Input::AttemptEnded { step, attempt, report }
    });
}

/// Nothing that a check executes may move the branch it works on.
fn settle_branch(context: &RunContext, place: &Workplace, step: &StepId, notices: &Sender<Arrival>) {
    let Workplace::Worktree(stream) = place else { return };
    if let Some(what) = tip::put_back_own(context, stream) {
        let intrusion = Intrusion { kind: IntrusionKind::Watched, what, by: vec![step.clone()] };
        // Nobody listens any more when the engine is leaving.
        let _ = notices.send(Arrival { effect: None, input: Input::Noticed { intrusion } });
    }
}

/// Runs a check and holds against it what it touched that it may not. What no agent has to do with is not looked at,
/// and what is not run touches nothing.
fn watched(
    context: &RunContext,
    watch: Watch,
    folder: &Path,
    id: &CheckId,
    line: &Line,
    notices: &Sender<Arrival>,
    work: impl FnOnce() -> (CheckFact, u64),
) -> ((CheckFact, u64), Seen) {
    if !sandbox::has_agents(context) || !matches!(line, Ok(Some(_))) {
        return (work(), Seen::default());
    }
    let report = context.frozen.checks.get(id).and_then(|check| check.junit.clone());
    let execution = Execution {
        what: format!("check `{id}`"),
        watch,
        folder: folder.to_owned(),
        spared: report.into_iter().collect(),
        tree: true,
    };
    let ((mut fact, duration_ms), seen) = executed::watch(context, &execution, notices, work);
    executed::hold_against(&seen, &mut fact);
    ((fact, duration_ms), seen)
}

/// A check that is run again after a crash begins with nothing: what lies there is of another execution.
fn empty_out(context: &RunContext, out: &Path, outputs: &[Output]) -> std::io::Result<Vec<PublishedFile>> {
    if outputs.is_empty() {
        return Ok(Vec::new());
    }
    if out.exists() {
        std::fs::remove_dir_all(out)?;
    }
    for output in outputs.iter().filter(|output| is_plain_relative(Path::new(&output.name))) {
        std::fs::create_dir_all(out.join(&output.name).parent().unwrap_or(out))?;
    }
    Ok(outputs.iter().filter_map(|output| PublishedFile::look(context, out, output)).collect())
}

/// Whether a check says anything about the run. What a step sees grows with the run and takes long to put
/// together; most checks need none of it.
pub fn reads_the_run(context: &RunContext, id: &CheckId) -> bool {
    let templated = |text: &str| text.contains("{{") || text.contains("{%");
    context.frozen.checks.get(id).is_some_and(|check| check.when.is_some() || templated(&check.run))
}

/// The line of a check over what the step sees.
pub fn line(context: &RunContext, id: &CheckId, document: &Value) -> Line {
    let Some(check) = context.frozen.checks.get(id) else { return Ok(Some(String::new())) };
    if let Some(when) = &check.when {
        let holds = context.templates.holds("when", when, document);
        if !holds.map_err(|problem| problem.to_string())? {
            return Ok(None);
        }
    }
    context.render("run", &check.run, document).map(Some).map_err(|problem| problem.to_string())
}

fn not_run(ok: bool, message: String) -> (CheckFact, u64) {
    let fact = CheckFact {
        ok,
        exit_code: ok.then_some(0),
        build: false,
        class: None,
        timed_out: false,
        message,
        output: String::new(),
        tests: None,
        flaky: 0,
        duration_ms: 0,
        changes: Vec::new(),
        changes_left_out: 0,
    };
    (fact, 0)
}

/// A check of what an agent's attempt left.
#[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename the parts")]
pub fn after_attempt(
    context: &RunContext,
    state: &State,
    (place, judged): (Workplace, Sandbox),
    step: &StepId,
    attempt: u32,
    check: &CheckId,
    line: Line,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let (context, step, check) = (context.clone(), step.clone(), check.clone());
    let profile = state.profile.clone();
    let notices = results.clone();
    let mut watch = agent::watch(&context, state, &step, attempt, &[]);
    watch.kept_in = sandbox::confines(&judged);
    in_thread(effect, results, move || {
        let _busy = Busy::new(place.folder());
        let folder = place.folder();
        let ((mut fact, _), seen) = watched(&context, watch, folder, &check, &line, &notices, || {
            run(&context, folder, &profile, &step, attempt, &check, &line, None, &judged, Of::Attempt)
        });
        settle_branch(&context, &place, &step, &notices);
        (fact.changes, fact.changes_left_out) = (seen.changes, seen.changes_left_out);
        Input::CheckEnded { step, attempt, check, fact }
    });
}

/// Ends a check whose result nobody wants any more. It reports its end as always.
pub fn cancel(context: &RunContext, step: &StepId, attempt: u32, check: &CheckId) {
    let (context, step, check) = (context.clone(), step.clone(), check.clone());
    let end = move || {
        let give_up_at = Instant::now() + CANCEL_FOR;
        // It may be about to start: its place is taken first.
        while check_slot::end(&context, &step, attempt, &check) && Instant::now() < give_up_at {
            std::thread::sleep(CANCEL_EVERY);
        }
    };
    // Without a thread it runs to its end or its timeout.
    let _ = std::thread::Builder::new().stack_size(512 * 1024).spawn(end);
}

/// Runs a check in this folder.
#[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename the parts")]
pub fn run(
    context: &RunContext,
    workdir: &Path,
    profile: &ProfileId,
    step: &StepId,
    attempt: u32,
    id: &CheckId,
    line: &Line,
    timeout_ms: Option<u64>,
    judged: &Sandbox,
    of: Of,
) -> (CheckFact, u64) {
    let Some(check) = context.frozen.checks.get(id) else {
        return not_run(false, format!("there is no check `{id}`"));
    };
    let line = match line {
        Ok(Some(line)) => line,
        Ok(None) => return not_run(true, format!("check `{id}` was left out: its `when` does not hold")),
        Err(problem) => return not_run(false, format!("check `{id}` could not be started: {problem}")),
    };
    if let Err(error) = crate::fault::point("spawn") {
        return not_run(false, format!("check `{id}` could not be started: {error}"));
    }
    let mut env: BTreeMap<String, String> = allowed_environment(&[], context.environment.iter().cloned());
    env.extend(check.env.clone());
    env.insert("GATEWRIGHT_RUN_DIR".to_owned(), context.meta.run_dir.to_string_lossy().into_owned());
    let out = context.paths.attempt(step.as_str(), attempt).join("out");
    env.insert("GATEWRIGHT_STEP".to_owned(), step.to_string());
    env.extend(crate::launch::program_variable());
    env.insert("GATEWRIGHT_OUT".to_owned(), out.to_string_lossy().into_owned());
    env.extend(settings(context, profile));
    let mut slot = Slot::take(context, step, attempt, id);
    env.insert(check_slot::VARIABLE.to_owned(), slot.value().to_owned());
    let carrier = slot.carrier();
    let cwd = match folder_of(check, workdir) {
        Ok(cwd) => cwd,
        Err(problem) => return not_run(false, format!("check `{id}` could not be started: {problem}")),
    };
    let (shared_tmp, private_tmp) = match create_group_tmp(&context.paths.checks()) {
        Ok(shared) => (shared, slot.private_tmp()),
        Err(error) => return not_run(false, format!("check `{id}` could not be started: {error}")),
    };
    env.insert("TMPDIR".to_owned(), private_tmp.to_string_lossy().into_owned());
    let masks = Masks::of_launch(&env).and(run_masks::of_engine(context));
    let attempt_dir = context.paths.attempt(step.as_str(), attempt);
    // A step of its own delivers there, if it delivers anything; a check of an agent's attempt only looks.
    let (own, evidence) = match of {
        Of::Step => (out.exists().then_some(attempt_dir.as_path()), None),
        Of::Attempt => (None, Some(attempt_dir.as_path())),
    };
    let place =
        sandbox::Place { workdir, attempt: own, evidence, private_tmp: &shared_tmp, agents: Vec::new() };
    let limits = sandbox::spec(context, judged, &place);
    let mut spec = CheckSpec::new(command(line), cwd, env);
    spec.sandbox = limits;
    spec.private_tmp = Some(private_tmp);
    let timeout_ms = timeout_ms.unwrap_or(check.timeout_ms);
    spec.timeout_ms = Some(timeout_ms);
    spec.keep_empty_tmp = true;
    spec.processes_max = check.processes_max.or(spec.processes_max);
    spec.carrier = Some(carrier);
    // A sandbox keeps them in; without one they could leave and speak for a person.
    spec.adopter = (sandbox::has_agents(context) && !sandbox::confines(judged)).then(|| context.adopter());
    let junit = check.junit.as_ref().map(|path| workdir.join(path));
    let mut failures = 0;
    let mut duration_ms = 0;
    loop {
        // A report of an earlier execution must never count for this one.
        if let Some(path) = &junit
            && let Err(problem) = forget(path, reports_in(workdir).and_then(|disk| disk.remove_file(path)))
        {
            return not_run(false, format!("check `{id}` is not verified: {problem}"));
        }
        let counted = check.tests_min.is_some() || check.skipped_max.is_some() || check.counts.is_some();
        let mut reader = match &check.counts {
            Some(pattern) => OutputReader::of_pattern(pattern),
            None => OutputReader::of_runners(),
        };
        // All of it: of long output the middle is not kept, and a summary may be there.
        let mut see = |bytes: &[u8]| reader.push(bytes);
        let mut result = run_marked_check(&spec, slot.mark.as_mut(), &mut see);
        tell_left_behind(&mut result);
        // Before anything is cut off: half a secret is not told by its shape.
        result.output = masks.mask_output(&result.output);
        duration_ms += result.duration_ms;
        let mut fact = judge(id, check, timeout_ms, &result);
        let counts = match &junit {
            Some(path) => read_junit(path, workdir).and_then(|bytes| test_counts::from_junit(&bytes)),
            None => reader.finish(),
        };
        if counted || junit.is_some() {
            verify_counts(id, check, counts, &mut fact);
        } else if let Ok(counts) = counts {
            verify_by_itself(id, check, counts, &mut fact);
        }
        fact.duration_ms = duration_ms;
        let had_its_run = result.spawn_error.is_none() && result.swarmed.is_none();
        let may_be_chance = !fact.ok && had_its_run && !check.expect_failure;
        if may_be_chance && failures < u64::from(check.reruns) && slot.is_wanted() {
            failures += 1;
            continue;
        }
        let own_name = (of == Of::Attempt).then(|| id.as_str());
        keep_output(&attempt_dir, own_name, &result.output, &fact.output);
        if fact.ok {
            fact.flaky = failures;
        } else if failures > 0 {
            fact.message = format!("{} (in each of {} runs)", fact.message, failures + 1);
        }
        return (masks.mask_record(fact), duration_ms);
    }
}

/// Whoever left the check's group and outlived it is named where its output is read.
fn tell_left_behind(result: &mut CheckResult) {
    let mut names = std::mem::take(&mut result.left_behind);
    let count = names.len();
    if count == 0 {
        return;
    }
    names.sort_unstable();
    names.dedup();
    names.truncate(LEFT_BEHIND_NAMED);
    result.output.push_str(&format!(
        "\n[it left {count} process(es) behind, which were ended: {}]\n",
        names.join(", ")
    ));
}

/// A line of plain words whose first is a program needs no shell: half the cost of a small check.
/// Anything a shell would look at twice goes to one.
fn command(line: &str) -> CheckCommand {
    /// Built into shells with a meaning of their own.
    const SHELL_ONLY: [&str; 16] = [
        "cd", "exit", "set", "export", ".", "eval", "exec", "ulimit", "umask", "type", "command", "test",
        "echo", "printf", "kill", "time",
    ];
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, ' ' | '_' | '.' | '/' | ':' | ',' | '+' | '@' | '%' | '-' | '=')
    };
    let may_be_program = |name: &str| {
        // With `=` it is an assignment.
        !SHELL_ONLY.contains(&name) && !name.contains(['=', '/'])
    };
    let first = line.split(' ').find(|word| !word.is_empty());
    if line.chars().all(plain) && first.is_some_and(may_be_program) {
        CheckCommand::Line(line.to_owned())
    } else {
        CheckCommand::Shell(line.to_owned())
    }
}

/// Where a check runs: a folder that an agent made a link is followed only inside the tree that is judged.
fn folder_of(check: &Check, workdir: &Path) -> Result<PathBuf, String> {
    let Some(cwd) = &check.cwd else { return Ok(workdir.to_owned()) };
    let folder = workdir.join(cwd);
    match (folder.canonicalize(), workdir.canonicalize()) {
        (Ok(real), Ok(root)) if is_plain_relative(Path::new(cwd)) && !real.starts_with(&root) => {
            Err(format!("its folder `{cwd}` leads out of {}", workdir.display()))
        }
        _ => Ok(folder),
    }
}

/// Nothing to remove is fine, and what is no file, or leads elsewhere, is refused when it is read.
fn forget(path: &Path, removed: std::io::Result<()>) -> Result<(), String> {
    match removed.as_ref().map_err(std::io::Error::kind) {
        Ok(()) | Err(ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory) => Ok(()),
        Err(kind) => Err(format!("a report of before cannot be removed ({}: {kind})", path.display())),
    }
}

/// The whole of what is kept of a check's output, where the record has only a part of it. It is for `logs`; without it
/// they show that part.
fn keep_output(attempt: &Path, check: Option<&str>, output: &str, recorded: &str) {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let path = attempt.join(check_output_file(check));
    // Of an execution before this one.
    let _ = std::fs::remove_file(&path);
    if output.len() > recorded.len() {
        let _ = std::fs::create_dir_all(attempt);
        let file = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
        let _ = file.and_then(|mut file| file.write_all(output.as_bytes()));
    }
}

/// Beside the attempt that a check belongs to; a check step has one only.
pub fn check_output_file(check: Option<&str>) -> String {
    check.map_or_else(|| "check.log".to_owned(), |id| format!("check-{}.log", file_name(id)))
}

/// Where a report is looked for: in the folder in which the check runs, whatever links an agent put there.
fn reports_in(workdir: &Path) -> std::io::Result<BelowFolder> {
    BelowFolder::open(workdir, Links::Inside)
}

/// At most one byte more than is allowed, which is then refused. Only of a plain file: a pipe would be read for ever.
fn read_junit(path: &Path, workdir: &Path) -> Result<Vec<u8>, String> {
    let most = test_counts::JUNIT_BYTES_MAX as u64 + 1;
    reports_in(workdir).and_then(|disk| disk.read_range(path, 0, most)).map_err(|error| {
        let problem = match error.kind() {
            ErrorKind::NotADirectory => "leads out of the folder in which it runs".to_owned(),
            ErrorKind::InvalidInput | ErrorKind::IsADirectory => "is not a file".to_owned(),
            _ => error.to_string(),
        };
        format!("{}: {problem}", path.display())
    })
}

/// Nobody said that the command runs tests, but it says so itself. How it ends is its own matter then: it may go on after
/// tests that failed. What it cannot be is a proof without any test.
fn verify_by_itself(id: &CheckId, check: &Check, counts: TestCounts, fact: &mut CheckFact) {
    if fact.ok && counts.run == 0 {
        fact.ok = false;
        fact.message = none_ran(id, &counts, 1);
    } else if fact.ok && check.expect_failure && !counts.is_red() {
        fact.ok = false;
        fact.message = none_failed(id);
    }
    fact.tests = Some(counts);
}

fn none_ran(id: &CheckId, counts: &TestCounts, min: u64) -> String {
    format!("check `{id}` is not verified: {} test(s) ran, at least {min} must", counts.run)
}

/// What does not build or load is not a test that is red (S0-20).
fn none_failed(id: &CheckId) -> String {
    format!("check `{id}` is not verified: it failed, but none of its tests did")
}

/// A command that succeeded because nothing ran has verified nothing (J-47).
fn verify_counts(id: &CheckId, check: &Check, counts: Result<TestCounts, String>, fact: &mut CheckFact) {
    let counts = match counts {
        Ok(counts) => counts,
        Err(problem) => {
            if fact.ok {
                fact.ok = false;
                fact.message = format!("check `{id}` is not verified: {problem}");
            }
            return;
        }
    };
    let (min, max) = (check.tests_min.unwrap_or(1), check.skipped_max);
    if fact.ok && counts.run < min {
        fact.ok = false;
        fact.message = none_ran(id, &counts, min);
    } else if fact.ok && !check.expect_failure && counts.failed > 0 {
        // The command's last program may be another one than the tests: `tests | tee log`.
        fact.ok = false;
        fact.message =
            format!("check `{id}` is not ok: {} test(s) failed although it exited with 0", counts.failed);
    } else if fact.ok && check.expect_failure && !counts.is_red() {
        fact.ok = false;
        fact.message = none_failed(id);
    } else if let Some(max) = max.filter(|max| fact.ok && counts.skipped > *max) {
        fact.ok = false;
        fact.message = format!(
            "check `{id}` is not verified: {} test(s) were skipped, at most {max} may be",
            counts.skipped
        );
    }
    fact.tests = Some(counts);
}

/// `--set test="cargo test"` is `$GATEWRIGHT_SET_TEST` in a check's command: settings are never
/// pasted into shell lines.
fn settings(context: &RunContext, profile: &ProfileId) -> impl Iterator<Item = (String, String)> {
    context.frozen.settings_of(profile).iter().map(|(name, value)| {
        let name: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (format!("GATEWRIGHT_SET_{name}"), value)
    })
}

fn judge(id: &CheckId, check: &Check, timeout_ms: u64, result: &CheckResult) -> CheckFact {
    let succeeded = result.succeeded();
    // A shell that finds no program, or one it may not run, says so with these.
    let nothing_ran = matches!(result.exit_code, Some(126 | 127));
    let ok = if check.expect_failure {
        !succeeded
            && !nothing_ran
            && result.spawn_error.is_none()
            && !result.timed_out
            && result.swarmed.is_none()
    } else {
        succeeded
    };
    let message = match (ok, &result.spawn_error, result.timed_out, result.exit_code) {
        (true, ..) => String::new(),
        (false, None, ..) if result.swarmed.is_some() => {
            let most = result.swarmed.unwrap_or_default();
            format!(
                "check `{id}` had more than {most} processes at once and was ended with all of them; `processes_max` of the check says how many it may have"
            )
        }
        (false, Some(error), ..) => format!("check `{id}` could not be started: {error}"),
        (false, None, true, _) => format!("check `{id}` ran longer than {timeout_ms} ms"),
        (false, None, false, Some(code)) if nothing_ran && check.expect_failure => {
            format!("check `{id}` is not verified: its command could not be run (exit code {code})")
        }
        (false, None, false, Some(0)) => format!("check `{id}` succeeded although it must fail first"),
        (false, None, false, Some(code)) => {
            format!("check `{id}` exited with {code}: {}", last_line(&result.output))
        }
        (false, None, false, None) => format!("check `{id}` was ended by a signal"),
    };
    CheckFact {
        ok,
        exit_code: result.exit_code,
        build: check.class == CheckClass::Build,
        class: result.exit_code.filter(|_| !ok).and_then(|code| check.classes.get(&code).copied()),
        timed_out: result.timed_out,
        message,
        output: ends(&result.output, if ok { OUTPUT_OK_CHARS } else { OUTPUT_FAILED_CHARS }),
        tests: None,
        flaky: 0,
        duration_ms: 0,
        changes: Vec::new(),
        changes_left_out: 0,
    }
}

fn last_line(output: &str) -> &str {
    output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("(no output)")
}

/// The end of a text, at most so many characters.
fn ends(text: &str, most: usize) -> String {
    let skip = text.chars().count().saturating_sub(most);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent can leave a report in a folder that nobody may write to.
    #[test]
    fn j_47_a_report_that_cannot_be_removed_verifies_nothing() {
        let path = Path::new("reports/junit.xml");
        for kind in [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::IsADirectory] {
            assert_eq!(forget(path, Err(kind.into())), Ok(()), "{kind}");
        }
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem, ErrorKind::ResourceBusy] {
            let problem = forget(path, Err(kind.into())).unwrap_err();
            assert!(
                problem.contains("reports/junit.xml") && problem.contains("cannot be removed"),
                "{problem}"
            );
        }
    }
}
