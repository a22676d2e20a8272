//! Carries effects out in threads and reports what happened as inputs. Decides nothing.

pub mod agent;
pub mod changed_lists;
pub mod check;
mod check_slot;
mod executed;
pub mod facts;
pub mod given;
pub mod repair;
pub mod sandbox;
pub mod stream;
mod threads;
pub mod turn;

use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, Sender},
    time::Duration,
};

use gatewright_core::{
    effect::Effect,
    fact::{AttemptReport, CheckFact, CommitFact, ProcessEnd},
    input::Input,
    state::State,
};

pub use executed::refused_in_run;

use crate::{perform::facts::DiskFailure, run_context::RunContext, streams::tip};

/// Makes wanted effects happen. The run loop tells it what is wanted and not under way yet.
pub trait Performer {
    /// Starts one effect; its result arrives later as an input.
    /// An error ends the engine.
    fn start(
        &mut self,
        context: &RunContext,
        state: &State,
        effect: &Effect,
        results: &Sender<Arrival>,
    ) -> Result<(), DiskFailure>;

    /// An effect that was started is wanted no more; its result is ignored when it comes, soon if possible.
    fn cancel(&mut self, _context: &RunContext, _effect: &Effect) {}

    /// Waits for the next result, at most so long, and gives all that arrived together: the one place where the run
    /// loop rests. A simulated machine goes on here.
    fn wait(&mut self, results: &Receiver<Arrival>, at_most: Duration) -> Vec<Arrival> {
        results.recv_timeout(at_most).into_iter().chain(results.try_iter()).collect()
    }

    /// The run was taken over: what an engine before this one left behind and nobody can pick up is ended.
    fn sweep(&mut self, _context: &RunContext, _state: &State) {}

    /// The run rests and nothing is under way: what was kept for the next effect is given back.
    fn rest(&mut self, _context: &RunContext) {}
}

/// Something that happened, with the effect that it ends.
#[derive(Debug)]
pub struct Arrival {
    pub effect: Option<Effect>,
    pub input: Input,
}

/// Processes of this machine.
#[derive(Debug, Default)]
pub struct LocalPerformer {
    /// Agents whose binary was looked for already.
    pub announced: BTreeSet<String>,
    /// How often nothing arrived since something did.
    silences: u32,
}

/// After so many waits in a row the engine is taken to wait for its agents, and gives back what it does not need for that.
const SILENCES_UNTIL_REST: u32 = 25;

impl Performer for LocalPerformer {
    fn start(
        &mut self,
        context: &RunContext,
        state: &State,
        effect: &Effect,
        results: &Sender<Arrival>,
    ) -> Result<(), DiskFailure> {
        match effect {
            Effect::Run { step, attempt } => agent::run(context, state, step, *attempt, effect, results),
            Effect::Check { step, attempt, check } => {
                let document = if check::reads_the_run(context, check) {
                    context.step_document(state, step)
                } else {
                    serde_json::Value::Null
                };
                let line = check::line(context, check, &document);
                check::after_attempt(
                    context,
                    state,
                    (context.place(state, step), sandbox::of_step(context, state, step)),
                    step,
                    *attempt,
                    check,
                    line,
                    effect,
                    results,
                );
            }
            Effect::Commit { step, attempt } => {
                stream::commit(context, state, step, *attempt, effect, results);
            }
            Effect::Evaluate { step, gate } => facts::evaluate(context, state, step, gate, effect, results),
            Effect::ReadList { step } => facts::read_list(context, state, step, effect, results)?,
            Effect::Bind { decision } => facts::bind(context, state, decision, effect, results)?,
            // Asking is the renderer's; a pending decision is an answerable fact whoever shows it.
            Effect::Ask { .. } => {}
            Effect::Stop { step, attempt } => agent::stop(context, state, step, *attempt, effect, results),
        }
        Ok(())
    }

    fn cancel(&mut self, context: &RunContext, effect: &Effect) {
        if let Effect::Check { step, attempt, check } = effect {
            check::cancel(context, step, *attempt, check);
        }
    }

    fn wait(&mut self, results: &Receiver<Arrival>, at_most: Duration) -> Vec<Arrival> {
        let arrived: Vec<Arrival> =
            results.recv_timeout(at_most).into_iter().chain(results.try_iter()).collect();
        self.silences = if arrived.is_empty() { self.silences.saturating_add(1) } else { 0 };
        if self.silences == SILENCES_UNTIL_REST {
            gatewright_attempts::give_back_heap();
        }
        arrived
    }

    fn sweep(&mut self, context: &RunContext, state: &State) {
        check_slot::sweep(context);
        if !state.has_live_attempts() {
            tip::adopt(context);
        }
    }

    fn rest(&mut self, context: &RunContext) {
        check_slot::rest(context);
    }
}

/// Runs `work` in a thread of its own and sends what it returns. Whatever happens, the effect ends with a
/// result: a run never waits for a thread that is gone.
fn in_thread(effect: &Effect, results: &Sender<Arrival>, work: impl FnOnce() -> Input + Send + 'static) {
    let (thread_effect, thread_results) = (effect.clone(), results.clone());
    let run = move || {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let input = done.ok().or_else(|| broken(&thread_effect, "an assumption of the program did not hold"));
        if let Some(input) = input {
            // Nobody listens any more when the engine is leaving: the result is found again at resume.
            let _ = thread_results.send(Arrival { effect: Some(thread_effect), input });
        }
    };
    if let Err(error) = threads::run(Box::new(run))
        && let Some(input) = broken(effect, &format!("no thread could be started: {error}"))
    {
        let _ = results.send(Arrival { effect: Some(effect.clone()), input });
    }
}

/// The result of an effect that this program itself could not carry out.
fn broken(effect: &Effect, why: &str) -> Option<Input> {
    match effect {
        Effect::Run { step, attempt } | Effect::Stop { step, attempt } => {
            let report = AttemptReport::new(ProcessEnd::StartFailed { message: why.to_owned() });
            Some(Input::AttemptEnded { step: step.clone(), attempt: *attempt, report })
        }
        Effect::Check { step, attempt, check } => {
            let fact = CheckFact {
                ok: false,
                exit_code: None,
                build: false,
                class: None,
                timed_out: false,
                message: format!("check `{check}` could not be run: {why}"),
                output: String::new(),
                tests: None,
                flaky: 0,
                duration_ms: 0,
                changes: Vec::new(),
                changes_left_out: 0,
            };
            Some(Input::CheckEnded { step: step.clone(), attempt: *attempt, check: check.clone(), fact })
        }
        Effect::Commit { step, attempt } => {
            let fact = CommitFact::Refused { message: why.to_owned() };
            Some(Input::CommitEnded { step: step.clone(), attempt: *attempt, fact })
        }
        Effect::Evaluate { .. } | Effect::ReadList { .. } | Effect::Bind { .. } | Effect::Ask { .. } => None,
    }
}
