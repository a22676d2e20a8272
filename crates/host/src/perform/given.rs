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

use gatewright_workflow::frozen::Import;

use crate::{
    collect::{Output, Spoken, examine, judgement_in_files},
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
    let text = context.text(state, step);
    let reviewer = matches!(kind, Some(Kind::Review(_)));
    let words = text.words.clone().unwrap_or_else(|| context.frozen.words.clone());
    let (context, step, from) = (context.clone(), step.clone(), from.to_owned());
    in_thread(effect, results, move || {
        // What follows it (its checks, its commit) finds the place where it would have worked.
        let by = By { step: step.clone(), attempt };
        if let Err(error) = worktree::ensure(&context, &place, &by) {
            let problem = InputProblem::Unusable { message: error.to_string() };
            let report = AttemptReport::new(ProcessEnd::NotStarted { problem });
            return Input::AttemptEnded { step, attempt, report };
        }
        let spoken = Spoken { format: text.reply, words: &words, reviewer };
        let report = taken(&context, &step, attempt, &from, &outputs, by_command, &spoken)
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
    spoken: &Spoken<'_>,
) -> Result<AttemptReport, String> {
    let folder = context.paths.given(from);
    // What was made under other conventions is held against those.
    let imports: &[Import] =
        if context.meta.beginning.given.contains_key(step) { &context.frozen.imports } else { &[] };
    let outputs: Vec<Output> = outputs
        .iter()
        .map(|output| {
            let own = imports.iter().find_map(|import| import.contract_of(&output.name));
            Output { contract: own.unwrap_or(&output.contract).clone(), ..output.clone() }
        })
        .collect();
    let outputs = outputs.as_slice();
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
    // A judgement is what its report says, whoever gave it.
    let judged = spoken.reviewer.then(|| judgement_in_files(&dir.out_dir(), outputs, spoken).ok()).flatten();
    let reply = judged.unwrap_or_else(|| Reply::new(Outcome::Done));
    report.reply = Some(Reply { summary: format!("Taken over: {from}."), ..reply });
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
        changes: Vec::new(),
        changes_left_out: 0,
    });
    Ok(report)
}
