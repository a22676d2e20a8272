//! An attempt in which nobody works: the files of a step that are there already are taken, and held against
//! their contracts like anybody's work.

use std::{path::Path, sync::mpsc::Sender};

use gatewright_attempts::AttemptDir;
use gatewright_core::{
    effect::Effect,
    fact::{AttemptReport, CheckFact, InputProblem, ProcessEnd},
    ids::StepId,
    input::Input,
    outcome::{Outcome, Reply},
    plan::Kind,
    state::State,
};

use crate::{
    collect::{Output, examine},
    given::keep_one,
    perform::{Arrival, in_thread},
    run_context::{RunContext, is_plain_relative},
    streams::{commit::By, worktree},
};

#[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename the parts")]
pub fn take(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    from: &str,
    mut outputs: Vec<Output>,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    for output in &mut outputs {
        let other = context.frozen.imports.iter().find_map(|import| import.accept.get(&output.name));
        output.contract = other.unwrap_or(&output.contract).clone();
    }
    let place = context.place(state, step);
    let kind = state.definition(&context.frozen.plan, step).map(|definition| &definition.kind);
    let by_command = matches!(kind, Some(Kind::Check { .. }));
    let (context, step, from) = (context.clone(), step.clone(), from.to_owned());
    in_thread(effect, results, move || {
        // What follows it (its checks, its commit) finds the place where it would have worked.
        let by = By { step: step.clone(), attempt };
        if let Err(error) = worktree::ensure(&context, &place, &by) {
            let problem = InputProblem::Unusable { message: error.to_string() };
            let report = AttemptReport::new(ProcessEnd::NotStarted { problem });
            return Input::AttemptEnded { step, attempt, report };
        }
        let report = taken(&context, &step, attempt, &from, &outputs, by_command)
            .unwrap_or_else(|message| AttemptReport::new(ProcessEnd::StartFailed { message }));
        Input::AttemptEnded { step, attempt, report }
    });
}

fn taken(
    context: &RunContext,
    step: &StepId,
    attempt: u32,
    from: &str,
    outputs: &[Output],
    by_command: bool,
) -> Result<AttemptReport, String> {
    let folder = context.paths.given(from);
    let path = context.paths.attempt(step.as_str(), attempt);
    let dir = AttemptDir::create(&path).map_err(|error| error.to_string())?;
    let there = |output: &&Output| {
        let name = Path::new(&output.name);
        is_plain_relative(name) && folder.join(name).is_file()
    };
    for output in outputs.iter().filter(there) {
        keep_one(&folder, Path::new(&output.name), &dir.out_dir())
            .map_err(|error| format!("{}: {error}", folder.join(&output.name).display()))?;
    }
    let mut report = AttemptReport::new(ProcessEnd::Exited { code: 0 });
    report.artifacts = outputs.iter().map(|output| examine(&dir.out_dir(), output)).collect();
    report.reply = Some(Reply { summary: format!("Taken over: {from}."), ..Reply::new(Outcome::Done) });
    // For a step that is a command: nobody ran it, which is on record; what it would have written is there.
    report.check = by_command.then(|| CheckFact {
        ok: true,
        exit_code: None,
        build: false,
        class: None,
        timed_out: false,
        message: format!("not run: taken over from {from}"),
        output: String::new(),
        tests: None,
        flaky: 0,
        duration_ms: 0,
    });
    Ok(report)
}
