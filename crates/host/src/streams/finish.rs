//! The last step of a run with a branch of its own: bring it home, keep it, hand it over, or throw it away.
//! The only place where the user's checkout is touched, and there only by a fast-forward that git itself
//! refuses if it would overwrite anything.

use std::collections::BTreeMap;

use gatewright_attempts::{CheckCommand, CheckSpec, Defence, GIT_PLACES, Git, run_check};
use gatewright_core::{
    fact::{AttemptReport, CheckFact, InputProblem, ProcessEnd},
    ids::StepId,
    outcome::{Outcome, Question, Reply},
    state::{DecisionStatus, State},
};

use super::{
    commit::{self, By},
    intrusion::Busy,
    judged, merge,
    place::{Stream, Workplace},
    public_name, tip,
    worktree::{self, Record},
};
use crate::{perform::sandbox, run_context::RunContext};

const COMMAND_MS: u64 = 10 * 60 * 1000;
/// What has to be said before a branch is thrown away.
const DISCARD: &str = "discard";
const KEEP: &str = "keep";
const MERGE: &str = "merge";
const PULL_REQUEST: &str = "pull_request";
/// A person is asked, if there is anything to ask about.
const ASK: &str = "ask";

pub struct Job {
    pub how: String,
    pub place: Workplace,
    /// A person said it twice.
    pub confirmed: bool,
    pub title: String,
    pub by: By,
}

impl Job {
    pub fn new(
        context: &RunContext,
        state: &State,
        step: &StepId,
        attempt: u32,
        asked: Option<&StepId>,
    ) -> Job {
        let own = state.steps.get(step);
        let answered = own.zip(asked).and_then(|(own, asked)| {
            let asked = state.sibling(&context.frozen.plan, own, asked);
            let mut known = state.decisions.values();
            known
                .find(|one| one.decision.step == asked && one.status == DecisionStatus::Answered)
                .and_then(|one| one.answer.clone())
        });
        let how = answered.or_else(|| context.text(state, step).finish).unwrap_or_else(|| KEEP.to_owned());
        let answers = own.map(|own| own.answers.as_slice()).unwrap_or_default();
        let mut said = answers.iter().map(|(_, answer)| answer.as_str());
        let how = if how == ASK {
            said.find(|word| [MERGE, KEEP, PULL_REQUEST, DISCARD].contains(word)).unwrap_or(ASK).to_owned()
        } else {
            how
        };
        let word = said.next_back();
        Job {
            how: if how == DISCARD && word == Some(KEEP) { KEEP.to_owned() } else { how },
            place: context.run_place(),
            confirmed: word == Some(DISCARD) || context.text(state, step).confirmed,
            title: state.request.lines().next().unwrap_or_default().to_owned(),
            by: By { step: step.clone(), attempt },
        }
    }
}

pub fn finish(context: &RunContext, job: &Job) -> AttemptReport {
    let Workplace::Worktree(stream) = &job.place else {
        let message = "there is no branch of this run to finish".to_owned();
        return AttemptReport::new(ProcessEnd::NotStarted { problem: InputProblem::Unusable { message } });
    };
    if let Err(error) = worktree::ensure(context, &job.place, &job.by) {
        let problem = InputProblem::Unusable { message: error.to_string() };
        return AttemptReport::new(ProcessEnd::NotStarted { problem });
    }
    if !judged::is_linked(context, &stream.path) {
        return report(Err(format!("{}: git leads elsewhere from there", stream.path.display())));
    }
    let _busy = Busy::new(&stream.path);
    let _ = tip::put_back_own(context, stream);
    // A merge that a person let be is in nobody's way.
    merge::undo_left_over(context, &job.place);
    let done = match job.how.as_str() {
        MERGE => bring_home(context, stream, &job.by),
        PULL_REQUEST => pull_request(context, stream, &job.title),
        ASK if is_home(context, stream) => Ok("nothing was changed".to_owned()),
        ASK => return ask(offer(context, stream)),
        DISCARD if !job.confirmed => return ask(really(stream)),
        DISCARD => discard(context, stream),
        _ => Ok(format!("the work is on branch {}", context.own_branch().unwrap_or_default())),
    };
    report(done)
}

fn report(done: Result<String, String>) -> AttemptReport {
    let ok = done.is_ok();
    let mut report = AttemptReport::new(ProcessEnd::Exited { code: i32::from(!ok) });
    let (note, message) = match done {
        Ok(note) => (note, String::new()),
        Err(message) => (String::new(), message),
    };
    let mut reply = Reply::new(if ok { Outcome::Done } else { Outcome::Failed });
    reply.summary = if ok { note } else { message.clone() };
    report.reply = Some(reply);
    report.check = Some(CheckFact {
        ok,
        exit_code: Some(i32::from(!ok)),
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
    });
    report
}

/// The user's branch first comes into ours, where a conflict hurts nobody; then theirs moves forward.
fn bring_home(context: &RunContext, stream: &Stream, by: &By) -> Result<String, String> {
    let home = Git::at(&context.meta.root);
    let branch = home.text(&["symbolic-ref", "-q", "--short", "HEAD"]).unwrap_or_default();
    let expected = context.meta.base_branch.clone().unwrap_or_default();
    if branch.is_empty() || branch != expected {
        let found = if branch.is_empty() { "no branch".to_owned() } else { format!("`{branch}`") };
        return Err(format!(
            "your checkout is on {found}, the run began on `{expected}`: switch, then resume"
        ));
    }
    let own = judged::git(context, &stream.path, &sandbox::common(context));
    if !own.holds(&["merge-base", "--is-ancestor", &branch, "HEAD"]) {
        commit::own_index(&own, &stream.path).map_err(|error| error.to_string())?;
        let message = format!("Merge {branch} into {}", stream.branch);
        commit::merge_in(context, stream, &own, &["--no-ff", &branch], &message, by).map_err(|why| {
            format!("`{branch}` has moved on, and does not merge into {}: {why}", stream.branch)
        })?;
        let inside = || judged::git(context, &stream.path, &sandbox::common(context));
        worktree::submodules(&context.meta.root, &stream.path, &inside);
    }
    // An engine may have been killed between a merge and its signature.
    commit::sign_own(context, stream, &own)?;
    tip::keep(context, stream);
    home.text(&["merge", "-q", "--ff-only", &stream.branch])
        .map_err(|error| format!("your checkout was left as it is: {error}"))?;
    Ok(format!("{} is in `{branch}`", stream.branch))
}

fn pull_request(context: &RunContext, stream: &Stream, title: &str) -> Result<String, String> {
    let base = context.meta.base_branch.clone().unwrap_or_default();
    let branch = context.own_branch().unwrap_or_else(|| stream.branch.clone());
    let values = [
        ("{branch}", branch.as_str()),
        ("{base}", base.as_str()),
        ("{title}", title),
        ("{run}", context.meta.id.as_str()),
    ];
    let own = |name: &str| name.starts_with("GATEWRIGHT_") || GIT_PLACES.contains(&name);
    let mut env: BTreeMap<String, String> =
        context.environment.iter().filter(|(name, _)| !own(name)).cloned().collect();
    let command = match context.frozen.pull_request.as_slice() {
        [] => {
            return Err(
                "no `pull_request: { command: … }` is configured in .gatewright/config.yaml".to_owned()
            );
        }
        // A line for the shell: values are never pasted into it.
        [line] if line.contains(' ') => {
            let named = values.iter().fold(line.clone(), |line, (place, value)| {
                let name = format!("PULL_REQUEST_{}", place.trim_matches(['{', '}']).to_uppercase());
                env.insert(name.clone(), (*value).to_owned());
                line.replace(place, &format!("\"${name}\""))
            });
            CheckCommand::Shell(named)
        }
        words => CheckCommand::Argv(
            words
                .iter()
                .map(|word| {
                    values.iter().fold(word.clone(), |word, (place, value)| word.replace(place, value))
                })
                .collect(),
        ),
    };
    // It needs the network and your rights, so nothing of an agent's may be executed: not in its folder, whose
    // settings are the agent's to write, and without hooks, which may be in the tree.
    let folder = if Defence::QuietGit.is_off() {
        stream.path.clone()
    } else {
        without_hooks(&mut env);
        context.meta.root.clone()
    };
    let mut spec = CheckSpec::new(command, folder, env);
    spec.timeout_ms = Some(COMMAND_MS);
    let result = run_check(&spec);
    let said = result.output.trim().lines().last().unwrap_or_default().to_owned();
    if result.succeeded() {
        return Ok(said);
    }
    Err(result.spawn_error.unwrap_or_else(|| format!("the command for pull requests failed: {said}")))
}

/// One more setting for every git that is started with this environment.
fn without_hooks(env: &mut BTreeMap<String, String>) {
    let count: usize = env.get("GIT_CONFIG_COUNT").and_then(|text| text.parse().ok()).unwrap_or(0);
    env.insert(format!("GIT_CONFIG_KEY_{count}"), "core.hooksPath".to_owned());
    env.insert(format!("GIT_CONFIG_VALUE_{count}"), "/dev/null".to_owned());
    env.insert("GIT_CONFIG_COUNT".to_owned(), (count + 1).to_string());
}

/// Nothing is on the branch that the user's own does not have.
fn is_home(context: &RunContext, stream: &Stream) -> bool {
    let base = context.meta.base_branch.as_deref().unwrap_or("HEAD");
    Git::at(&context.meta.root).holds(&["merge-base", "--is-ancestor", &stream.branch, base])
}

fn ask(question: Question) -> AttemptReport {
    let mut report = AttemptReport::new(ProcessEnd::Exited { code: 0 });
    let mut reply = Reply::new(Outcome::NeedsInput);
    reply.questions = vec![question];
    report.reply = Some(reply);
    report
}

fn question(question: String, options: &[&str]) -> Question {
    let options = options.iter().map(|word| (*word).to_owned()).collect();
    Question { question, options, recommendation: None, security: false }
}

fn really(stream: &Stream) -> Question {
    let text = format!("Really throw away everything on {}? A patch of it is kept.", stream.branch);
    question(text, &[DISCARD, KEEP])
}

fn offer(context: &RunContext, stream: &Stream) -> Question {
    let home = context.meta.base_branch.as_deref();
    let request = (!context.frozen.pull_request.is_empty()).then_some(PULL_REQUEST);
    let words = home.map(|_| MERGE).into_iter().chain([KEEP]).chain(request).chain([DISCARD]);
    let target = home.map(|home| format!(" Merge it into `{home}`?")).unwrap_or_default();
    question(
        format!("The work of this run is on {}.{target} What becomes of it?", stream.branch),
        &words.collect::<Vec<_>>(),
    )
}

fn discard(context: &RunContext, stream: &Stream) -> Result<String, String> {
    let patch = context.paths.patch("discarded");
    for record in Record::all(&context.paths) {
        let file = context.paths.patch(&format!("discarded-{}", record.name));
        if record.path.exists() {
            let bytes = worktree::patch(context, &record).map_err(|error| error.to_string())?;
            let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&file, bytes))
                .map_err(|error| format!("{}: {error}", file.display()))?;
            worktree::remove(&context.meta.root, &record.path).map_err(|error| error.to_string())?;
        }
        public_name::take(context, &record.branch);
        let _ = Git::at(&context.meta.root).text(&["branch", "-D", &record.branch]);
        let _ = std::fs::remove_file(context.paths.stream(&record.name));
    }
    let folder = patch.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    Ok(format!("{} is gone; patches are in {folder}", stream.branch))
}
