//! The observer without a terminal: one line per event on stderr, no animation.

use std::{collections::BTreeSet, io::Write};

use gatewright_core::{event::Event, ids::DecisionId, state::State};
use gatewright_host::{run_context::RunContext, run_loop::Observer};

use crate::{
    render::{
        event_line::event_line,
        text::{fit, one_line},
    },
    terminal::duration,
};

/// Of a question, in the line that says that it was put: all of it is said at the end.
const QUESTION_COLUMNS: usize = 400;

/// Says nothing; for `--json`.
pub struct Silent;

impl Observer for Silent {
    fn events(&mut self, _context: &RunContext, _state: &State, _events: &[Event]) {}

    fn asked(&mut self, _context: &RunContext, _state: &State, _open: &BTreeSet<DecisionId>) {}

    fn tick(&mut self, _context: &RunContext, _state: &State) {}
}

/// One line per event. What cannot be written is lost: the journal has it.
pub struct PlainLines<W: Write> {
    out: W,
}

impl<W: Write> PlainLines<W> {
    pub fn new(out: W) -> PlainLines<W> {
        PlainLines { out }
    }
}

impl<W: Write> Observer for PlainLines<W> {
    fn events(&mut self, context: &RunContext, state: &State, events: &[Event]) {
        let since = duration(state.updated_at.since(state.started_at));
        // Standard error is not buffered: every piece would be a write of its own.
        let mut text = String::new();
        for event in events {
            if let Some(line) = event_line(&context.frozen.plan, state, event) {
                text.push_str(&format!("{since:>7} {line}\n"));
            }
        }
        if !text.is_empty() {
            let _ = self.out.write_all(text.as_bytes());
        }
    }

    /// The commands that answer are said at the end, when nothing else can go on.
    fn asked(&mut self, _context: &RunContext, state: &State, open: &BTreeSet<DecisionId>) {
        for pending in open.iter().filter_map(|id| state.decisions.get(id)) {
            let _ = writeln!(
                self.out,
                "        ? waiting for you: {}: {}",
                pending.decision.id,
                fit(&one_line(&pending.decision.question), QUESTION_COLUMNS)
            );
        }
    }

    fn tick(&mut self, _context: &RunContext, _state: &State) {}
}
