//! `gatewright why`: why a step is (not) running, what its gate misses, whose turn it is.

use gatewright_core::{
    explain::{Explanation, Turn, explain_run, explain_step},
    ids::{StepId, Timestamp},
    state::Phase,
};
use gatewright_host::{document::SCHEMA_VERSION, scope::checkout::WAITING_FILE, store::Snapshot};
use serde_json::json;

use crate::{
    cli::WhyArgs,
    command_error::{CommandError, exit},
    definitions::Session,
    render::{
        commands_for,
        rows::in_plan_order,
        text::{iso, near, one_line, put, put_json},
    },
    terminal::{Style, mark_of, paint, style_of},
};

/// Steps that are told without being asked for.
const STEPS_MAX: usize = 50;

pub fn why(args: &WhyArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let store = session.store();
    let snapshot = store.snapshot(&store.find(&args.run)?, None)?;
    let plan = &snapshot.frozen.plan;
    let ids = match &args.step {
        Some(wanted) => vec![find_step(&snapshot, wanted)?],
        None => in_plan_order(plan, &snapshot.state)
            .into_iter()
            .map(|one| one.id)
            .filter(|id| is_open(&snapshot, id))
            .collect(),
    };
    let steps: Vec<Explanation> = ids
        .iter()
        .filter_map(|id| explained(&snapshot, id))
        .map(with_times)
        .map(|one| with_wait(&snapshot, one))
        .collect();
    let run = of_run(&snapshot);
    if args.json {
        let run = if args.step.is_some() { None } else { Some(&run) };
        put_json(
            &json!({"schema_version": SCHEMA_VERSION, "id": snapshot.meta.id, "state": snapshot.state_word(), "run": run, "steps": steps}),
        )?;
        return Ok(exit::DONE);
    }
    let mut text = String::new();
    if args.step.is_none() {
        text.push_str(&paragraph(&snapshot.meta.id, snapshot.state_word(), &run));
        for command in
            commands_for::remedies(&snapshot.meta.id, &snapshot.state, snapshot.state_word() == "interrupted")
        {
            text.push_str(&format!("      {command}\n"));
        }
    }
    for explanation in steps.iter().take(if args.step.is_some() { usize::MAX } else { STEPS_MAX }) {
        text.push_str(&of_step(&snapshot, explanation));
    }
    if steps.len() > STEPS_MAX && args.step.is_none() {
        text.push_str(&format!(
            "… and {} more: gatewright why {} STEP\n",
            steps.len() - STEPS_MAX,
            snapshot.meta.id
        ));
    }
    put(text.as_bytes())?;
    Ok(exit::DONE)
}

/// An attempt that waits for another run in the same checkout has not begun; its own engine says for whom.
fn with_wait(snapshot: &Snapshot, explanation: Explanation) -> Explanation {
    let own = explanation.step.as_ref().and_then(|id| snapshot.state.steps.get(id).map(|own| (id, own)));
    let Some((id, Phase::Running { attempt })) = own.map(|(id, own)| (id, &own.phase)) else {
        return explanation;
    };
    let note = snapshot.paths.attempt(id.as_str(), *attempt).join(WAITING_FILE);
    match std::fs::read_to_string(note) {
        Ok(because) => Explanation { because, turn: Turn::Engine, ..explanation },
        Err(_) => explanation,
    }
}

/// Neither through nor asleep.
fn is_open(snapshot: &Snapshot, id: &StepId) -> bool {
    snapshot.state.steps.get(id).is_some_and(|own| !own.phase.is_satisfied() && own.phase != Phase::Dormant)
}

/// A run that wants to work while nobody drives it says so; the core cannot know.
/// What the record says, and what the machine does not have a place for.
fn explained(snapshot: &Snapshot, id: &StepId) -> Option<Explanation> {
    let mut said = explain_step(&snapshot.frozen.plan, &snapshot.state, id)?;
    if snapshot.held
        && let Ok(note) = std::fs::read_to_string(snapshot.paths.pool_note(id.as_str()))
    {
        said.because = "it waits for a place on this machine".to_owned();
        said.misses.push(note);
        said.turn = Turn::Engine;
    }
    Some(said)
}

fn of_run(snapshot: &Snapshot) -> Explanation {
    let run = with_times(explain_run(&snapshot.frozen.plan, &snapshot.state));
    if snapshot.state_word() != "interrupted" {
        return run;
    }
    Explanation { because: "it is interrupted: no engine drives it".to_owned(), turn: Turn::Person, ..run }
}

fn of_step(snapshot: &Snapshot, explanation: &Explanation) -> String {
    let Some(id) = &explanation.step else { return String::new() };
    let word = snapshot
        .state
        .steps
        .get(id)
        .map_or("pending", |own| gatewright_host::document::step_word(&snapshot.state, id, own));
    let mut text = paragraph(id.as_str(), word, explanation);
    let pending =
        snapshot.state.queues.pending_decisions.iter().filter_map(|id| snapshot.state.decisions.get(id));
    for pending in pending.filter(|pending| pending.decision.step == *id) {
        for command in commands_for::answers(&snapshot.meta.id, pending) {
            text.push_str(&format!("      {command}\n"));
        }
    }
    text
}

fn paragraph(name: &str, word: &str, explanation: &Explanation) -> String {
    let turn = match explanation.turn {
        Turn::Person => " (your turn)",
        Turn::Engine | Turn::Agent | Turn::Nobody => "",
    };
    let mut text = format!(
        "{} {}: {}{turn}\n",
        paint(style_of(word), mark_of(word)),
        paint(Style::Bold, &one_line(name)),
        one_line(&explanation.because)
    );
    for miss in &explanation.misses {
        text.push_str(&format!("    - {}\n", one_line(miss)));
    }
    text
}

fn with_times(mut explanation: Explanation) -> Explanation {
    explanation.because = times_as_people_read(&explanation.because);
    explanation.misses = explanation.misses.iter().map(|miss| times_as_people_read(miss)).collect();
    explanation
}

/// The core only counts milliseconds; here `1763… ms since the epoch` becomes a date.
pub fn times_as_people_read(text: &str) -> String {
    const UNIT: &str = " ms since the epoch";
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(UNIT) {
        let digits = rest[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
        let (before, number) = rest[..at].split_at(at - digits);
        shown.push_str(before);
        match number.parse() {
            Ok(ms) => shown.push_str(&iso(Timestamp(ms))),
            Err(_) => shown.push_str(&rest[at - digits..at + UNIT.len()]),
        }
        rest = &rest[at + UNIT.len()..];
    }
    shown.push_str(rest);
    shown
}

/// The step a person means: its id, or its last part where only one has it.
pub fn find_step(snapshot: &Snapshot, wanted: &str) -> Result<StepId, CommandError> {
    let steps = &snapshot.state.steps;
    let id = StepId::new(wanted);
    if steps.contains_key(&id) {
        return Ok(id);
    }
    let ends: Vec<&StepId> =
        steps.keys().filter(|id| id.as_str().rsplit('/').next() == Some(wanted)).collect();
    if let [one] = ends.as_slice() {
        return Ok((*one).clone());
    }
    let error = CommandError::usage(format!("`{}` has no step `{}`", snapshot.meta.id, one_line(wanted)));
    let close: Vec<&str> = if ends.is_empty() {
        near(wanted, steps.keys().map(StepId::as_str))
    } else {
        ends.iter().take(5).map(|id| id.as_str()).collect()
    };
    Err(if close.is_empty() {
        error.hint(format!("gatewright status {} lists its steps", snapshot.meta.id))
    } else {
        error.hint(format!("did you mean {}?", close.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_become_dates() {
        assert_eq!(
            times_as_people_read("tries again at 0 ms since the epoch."),
            "tries again at 1970-01-01T00:00:00Z."
        );
        assert_eq!(times_as_people_read("no time"), "no time");
        assert_eq!(
            times_as_people_read("99999999999999999999999 ms since the epoch"),
            "99999999999999999999999 ms since the epoch"
        );
    }
}
