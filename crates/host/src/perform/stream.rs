//! Commits of what attempts changed, merges of streams and the end of a branch, in a thread each.

use std::sync::mpsc::Sender;

use gatewright_core::{effect::Effect, ids::StepId, input::Input, state::State};
use gatewright_workflow::frozen::may_write;

use crate::{
    machine_pools::Wish,
    perform::{Arrival, in_thread, sandbox, unconfined},
    run_context::RunContext,
    streams::{
        commit::{self, Order},
        finish, merge,
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
    let (context, place) = (context.clone(), context.place(state, step));
    let notices = results.clone();
    in_thread(effect, results, move || {
        let fact = unconfined::watch(&context, &order.judged, &order.step, &notices, || {
            commit::commit(&context, &place, &order)
        });
        Input::CommitEnded { step: order.step, attempt, fact }
    });
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
    let (context, step) = (context.clone(), step.clone());
    in_thread(effect, results, move || {
        let _places = wish.take(&context.paths.machine_pools(), false, &|| true);
        let report = merge::merge(&context, &job);
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
    let (context, step) = (context.clone(), step.clone());
    in_thread(effect, results, move || {
        let _places = wish.take(&context.paths.machine_pools(), false, &|| true);
        let report = finish::finish(&context, &job);
        Input::AttemptEnded { step, attempt, report }
    });
}
