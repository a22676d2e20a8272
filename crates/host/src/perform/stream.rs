//! Commits of what attempts changed, merges of streams and the end of a branch, in a thread each.

use std::sync::mpsc::Sender;

use gatewright_core::{effect::Effect, fact::CommitFact, ids::StepId, input::Input, state::State};
use gatewright_workflow::frozen::may_write;

use crate::{
    machine_pools::Wish,
    perform::{Arrival, agent, executed, in_thread, sandbox},
    run_context::RunContext,
    scope::{
        self, Watch,
        executed::{Execution, commits_run_something},
    },
    streams::{
        commit::{self, Order},
        finish, judged, merge, nested,
        place::Workplace,
    },
};

/// Commits what an accepted attempt changed.
pub fn commit(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let definition = state.definition(&context.frozen.plan, step);
    let role = definition.and_then(|definition| definition.role()).cloned();
    let declared = role.as_ref().and_then(|role| context.frozen.roles.get(role));
    let may_write = may_write(Some(&context.text(state, step)), declared);
    let order = Order {
        step: step.clone(),
        attempt,
        summary: state.steps.get(step).map(|own| own.summary.clone()).unwrap_or_default(),
        role: role.map(|role| role.to_string()).unwrap_or_default(),
        may_write,
        judged: sandbox::of_step(context, state, step),
    };
    let mut watch = agent::watch(context, state, step, attempt, &[]);
    watch.kept_in = sandbox::confines(&order.judged);
    let (context, place) = (context.clone(), context.place(state, step));
    let notices = results.clone();
    in_thread(effect, results, move || {
        let fact = watched(&context, &place, &order, watch, &notices);
        Input::CommitEnded { step: order.step, attempt, fact }
    });
}

/// Hooks and filters at a commit execute what agents wrote: what they touch that the role may not is held against it.
fn watched(
    context: &RunContext,
    place: &Workplace,
    order: &Order,
    watch: Watch,
    notices: &Sender<Arrival>,
) -> CommitFact {
    let folder = place.folder();
    let runs_something = commits_run_something(folder);
    let wanted = || {
        let git = judged::git(context, folder, &order.judged);
        nested::changes(&git).map(|all| all.into_iter().map(|one| one.path).collect()).unwrap_or_default()
    };
    let execution = Execution {
        what: "the commit (a hook or a filter)".to_owned(),
        watch,
        folder: folder.to_owned(),
        // A formatter may have its say about what is committed.
        spared: if runs_something { wanted() } else { Vec::new() },
        tree: runs_something,
    };
    let before = scope::head_of(folder).commit;
    let (fact, seen) =
        executed::watch(context, &execution, notices, || commit::commit(context, place, order));
    if seen.trespasses.is_empty() {
        return fact;
    }
    if let (CommitFact::Made { .. }, Some(before)) = (&fact, before) {
        commit::take_back(context, place, order, &before);
    }
    CommitFact::Refused { message: seen.trespasses.join("; ") }
}

/// What all agents wrote comes together: the tree is meant to change, and only what is not the run's is looked at.
fn of_all(context: &RunContext, state: &State, step: &StepId, attempt: u32) -> Execution {
    let mut watch = agent::watch(context, state, step, attempt, &[]);
    watch.kept_in = sandbox::confines(&sandbox::common(context));
    let folder = context.place(state, step).folder().to_owned();
    Execution { what: format!("`{step}`"), watch, folder, spared: Vec::new(), tree: false }
}

/// Brings the streams of a fan-out together.
pub fn merge(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    of: &StepId,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let job = merge::Job::new(context, state, step, attempt, of);
    let wish = Wish::of(context, state, step, attempt);
    let execution = of_all(context, state, step, attempt);
    let (context, step) = (context.clone(), step.clone());
    let notices = results.clone();
    in_thread(effect, results, move || {
        let _places = wish.take(&context.paths.machine_pools(), false, &|| true);
        let (report, _) = executed::watch(&context, &execution, &notices, || merge::merge(&context, &job));
        Input::AttemptEnded { step, attempt, report }
    });
}

/// Does with the run's branch what was decided.
pub fn finish(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    asked: Option<&StepId>,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let job = finish::Job::new(context, state, step, attempt, asked);
    let wish = Wish::of(context, state, step, attempt);
    let execution = of_all(context, state, step, attempt);
    let (context, step) = (context.clone(), step.clone());
    let notices = results.clone();
    in_thread(effect, results, move || {
        let _places = wish.take(&context.paths.machine_pools(), false, &|| true);
        let (report, _) = executed::watch(&context, &execution, &notices, || finish::finish(&context, &job));
        Input::AttemptEnded { step, attempt, report }
    });
}
