//! What an agent wrote is executed without a sandbox: by a check, by a hook at a commit. What it changes of the user's
//! own files meanwhile is named; it cannot be prevented, nor undone.

use std::sync::mpsc::Sender;

use gatewright_core::{
    fact::{Intrusion, IntrusionKind},
    ids::StepId,
    input::Input,
};
use gatewright_workflow::frozen::Sandbox;

use crate::{
    perform::{Arrival, sandbox},
    run_context::RunContext,
    scope::{listed, watched},
};

/// Does the work and tells what became of the user's files meanwhile, if nothing kept it from them.
pub fn watch<T>(
    context: &RunContext,
    judged: &Sandbox,
    step: &StepId,
    results: &Sender<Arrival>,
    work: impl FnOnce() -> T,
) -> T {
    let confined = *judged != Sandbox::Off && sandbox::is_enforced();
    let before = (!confined).then(|| watched::of_user(context));
    let done = work();
    let changed = before.map(|before| watched::changed_of_user(context, &before)).unwrap_or_default();
    if !changed.is_empty() {
        let what = format!(
            "files of the user changed while what `{step}` wrote was executed without a sandbox: {}",
            listed(&changed)
        );
        let intrusion = Intrusion { kind: IntrusionKind::Watched, what, by: vec![step.clone()] };
        // Nobody listens any more when the engine is leaving.
        let _ = results.send(Arrival { effect: None, input: Input::Noticed { intrusion } });
    }
    done
}
