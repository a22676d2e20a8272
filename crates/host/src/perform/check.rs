//! Checks: commands that the engine runs itself. Short and repeatable, so plain children.

use std::{
    collections::BTreeMap,
    io::Read,
    path::Path,
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use gatewright_attempts::{
    CheckCommand, CheckResult, CheckSpec, allowed_environment, create_group_tmp, run_marked_check,
};
use gatewright_core::{
    effect::Effect,
    fact::{AttemptReport, CheckFact, InputProblem, ProcessEnd},
    ids::{ArtifactName, CheckId, ContentHash, ProfileId, StepId},
    input::Input,
    state::State,
};
use gatewright_workflow::{
    frozen::{Check, CheckClass, Sandbox},
    test_counts,
};

use serde_json::Value;

use crate::{
    collect::{Output, PublishedFile, examine},
    machine_pools::Wish,
    mask::Masks,
    perform::{
        Arrival,
        check_slot::{self, Slot},
        in_thread, sandbox, unconfined,
    },
    run_context::{RunContext, is_plain_relative},
    streams::{commit::By, intrusion::Busy, place::Workplace, worktree},
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
        let (fact, duration_ms) = unconfined::watch(&context, &judged, &step, &notices, || {
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
        let mut report = AttemptReport::new(ProcessEnd::Exited { code: fact.exit_code.unwrap_or(-1) });
        report.duration_ms = duration_ms;
        report.inputs = job.inputs;
        if fact.ok && matches!(job.line, Ok(Some(_))) {
            before.iter().for_each(|file| file.adopt_if_touched(&context));
            report.artifacts = job.outputs.iter().map(|output| examine(&out, output)).collect();
        }
        report.check = Some(fact);
        Input::AttemptEnded { step, attempt, report }
    });
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
    in_thread(effect, results, move || {
        let _busy = Busy::new(place.folder());
        let folder = place.folder();
        let (fact, _) = unconfined::watch(&context, &judged, &step, &notices, || {
            run(&context, folder, &profile, &step, attempt, &check, &line, None, &judged, Of::Attempt)
        });
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
    let cwd = check.cwd.as_ref().map_or_else(|| workdir.to_owned(), |cwd| workdir.join(cwd));
    let (shared_tmp, private_tmp) = match create_group_tmp(&context.paths.checks()) {
        Ok(shared) => (shared, slot.private_tmp()),
        Err(error) => return not_run(false, format!("check `{id}` could not be started: {error}")),
    };
    env.insert("TMPDIR".to_owned(), private_tmp.to_string_lossy().into_owned());
    let masks = Masks::of_launch(&env);
    let attempt_dir = context.paths.attempt(step.as_str(), attempt);
    // A step of its own delivers there, if it delivers anything; a check of an agent's attempt only looks.
    let (own, evidence) = match of {
        Of::Step => (out.exists().then_some(attempt_dir.as_path()), None),
        Of::Attempt => (None, Some(attempt_dir.as_path())),
    };
    let place =
        sandbox::Place { workdir, attempt: own, evidence, private_tmp: &shared_tmp, agents: Vec::new() };
    let limits = sandbox::spec(context, judged, &place);
    let mut spec = CheckSpec::new(command(line, &env), cwd, env);
    spec.sandbox = limits;
    spec.private_tmp = Some(private_tmp);
    let timeout_ms = timeout_ms.unwrap_or(check.timeout_ms);
    spec.timeout_ms = Some(timeout_ms);
    spec.keep_empty_tmp = true;
    spec.processes_max = check.processes_max.or(spec.processes_max);
    spec.carrier = Some(carrier);
    let junit = check.junit.as_ref().map(|path| workdir.join(path));
    let mut failures = 0;
    let mut duration_ms = 0;
    loop {
        // A report of an earlier execution must never count for this one.
        if let Some(path) = junit.as_ref().filter(|path| leads_out(path, workdir).is_none()) {
            let _ = std::fs::remove_file(path);
        }
        let mut result = run_marked_check(&spec, slot.mark.as_mut());
        tell_left_behind(&mut result);
        duration_ms += result.duration_ms;
        let mut fact = judge(id, check, timeout_ms, &result);
        let counted = check.tests_min.is_some() || check.skipped_max.is_some() || check.counts.is_some();
        if counted || junit.is_some() {
            verify_counts(id, check, junit.as_deref().map(|path| (path, workdir)), &result, &mut fact);
        }
        fact.duration_ms = duration_ms;
        let had_its_run = result.spawn_error.is_none() && result.swarmed.is_none();
        let may_be_chance = !fact.ok && had_its_run && !check.expect_failure;
        if may_be_chance && failures < u64::from(check.reruns) && slot.is_wanted() {
            failures += 1;
            continue;
        }
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
fn command(line: &str, env: &BTreeMap<String, String>) -> CheckCommand {
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, ' ' | '_' | '.' | '/' | ':' | ',' | '+' | '@' | '%' | '-' | '=')
    };
    let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let is_program = |name: &String| {
        // Built into shells with a meaning of their own, or an assignment.
        let shell_only = matches!(
            name.as_str(),
            "cd" | "exit"
                | "set"
                | "export"
                | "."
                | "eval"
                | "exec"
                | "ulimit"
                | "umask"
                | "type"
                | "command"
                | "test"
                | "echo"
                | "printf"
                | "kill"
                | "time"
        );
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        !shell_only
            && !name.contains('=')
            && !name.contains('/')
            && std::env::split_paths(path).any(|dir| dir.join(name).is_file())
    };
    if line.chars().all(plain) && words.first().is_some_and(is_program) {
        CheckCommand::Argv(words)
    } else {
        CheckCommand::Shell(line.to_owned())
    }
}

/// Why a report is not to be touched: the folder it is in is not where the check ran. An agent may have put a link there.
fn leads_out(path: &Path, workdir: &Path) -> Option<String> {
    let inside = match (path.parent().map(Path::canonicalize), workdir.canonicalize()) {
        (Some(Ok(folder)), Ok(workdir)) => folder.starts_with(workdir),
        // No such folder yet: nothing can be reached through it.
        (Some(Err(_)), Ok(_)) => true,
        (_, Err(_)) | (None, Ok(_)) => false,
    };
    (!inside).then(|| format!("{}: leads out of the folder in which it runs", path.display()))
}

/// At most one byte more than is allowed, which is then refused. Only of a plain file: a pipe would be read for ever.
fn read_junit(path: &Path, workdir: &Path) -> Result<Vec<u8>, String> {
    if let Some(problem) = leads_out(path, workdir) {
        return Err(problem);
    }
    if std::fs::symlink_metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(format!("{}: is not a file", path.display()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(test_counts::JUNIT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// A command that succeeded because nothing ran has verified nothing (J-47).
fn verify_counts(
    id: &CheckId,
    check: &Check,
    junit: Option<(&Path, &Path)>,
    result: &CheckResult,
    fact: &mut CheckFact,
) {
    let counts = match junit {
        Some((path, workdir)) => read_junit(path, workdir).and_then(|bytes| test_counts::from_junit(&bytes)),
        None if check.counts.is_some() => {
            test_counts::from_pattern(check.counts.as_deref().unwrap_or_default(), &result.output)
        }
        None => test_counts::from_output(&result.output)
            .ok_or_else(|| "its output names no number of tests".to_owned()),
    };
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
        fact.message =
            format!("check `{id}` is not verified: {} test(s) ran, at least {min} must", counts.run);
    } else if fact.ok && !check.expect_failure && counts.failed > 0 {
        // The command's last program may be another one than the tests: `tests | tee log`.
        fact.ok = false;
        fact.message =
            format!("check `{id}` is not ok: {} test(s) failed although it exited with 0", counts.failed);
    } else if fact.ok && check.expect_failure && counts.failed == 0 {
        // It failed, but no test did: code that does not build is not a test that is red (S0-20).
        fact.ok = false;
        fact.message = format!("check `{id}` is not verified: it failed, but none of its tests did");
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
    let ok = if check.expect_failure {
        !succeeded && result.spawn_error.is_none() && !result.timed_out && result.swarmed.is_none()
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
