//! What becomes of the files of a run that is done: somebody at the terminal keeps or deletes them. Deleting is `clean`.

use std::{
    io::Write,
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use gatewright_host::run_meta::RunMeta;

use crate::{cli::CleanArgs, command_error::CommandError, commands::clean::clean};

const ASKED_MAX: u32 = 3;
/// Nobody who is there takes longer; everything is kept then.
const PATIENCE: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AtTheEnd {
    Keep,
    Delete,
    /// And those of all runs beside it that are done.
    DeleteAll,
}

impl AtTheEnd {
    /// Who says nothing that can be understood keeps everything.
    pub fn ask(meta: &RunMeta, typed: &Receiver<String>, gone: &dyn Fn() -> bool) -> AtTheEnd {
        let dir = meta.run_dir.strip_prefix(&meta.root).unwrap_or(&meta.run_dir).display();
        eprintln!("Keep {dir}? `delete` removes it, `delete-all` also every completed run beside it.");
        for _ in 0..ASKED_MAX {
            let mut out = std::io::stderr().lock();
            // A terminal that is gone cannot be told so.
            let _ = write!(out, "keep | delete | delete-all > ");
            let _ = out.flush();
            drop(out);
            match line(typed, gone).as_deref().map(str::trim) {
                None | Some("" | "keep") => return AtTheEnd::Keep,
                Some("delete") => return AtTheEnd::Delete,
                Some("delete-all") => return AtTheEnd::DeleteAll,
                Some(_) => {}
            }
        }
        AtTheEnd::Keep
    }

    pub fn carry_out(self, meta: &RunMeta) -> Result<(), CommandError> {
        let (runs, under) = match self {
            AtTheEnd::Keep => return Ok(()),
            AtTheEnd::Delete => (vec![meta.id.clone()], None),
            AtTheEnd::DeleteAll => {
                let dir = meta.run_dir.strip_prefix(&meta.root).unwrap_or(&meta.run_dir);
                (Vec::new(), dir.parent().map(Path::to_owned))
            }
        };
        let args =
            CleanArgs { runs, older_than_days: None, under, completed: true, artifacts: true, yes: true };
        clean(&args).map(|_| ())
    }
}

fn line(typed: &Receiver<String>, gone: &dyn Fn() -> bool) -> Option<String> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && !gone() {
        match typed.recv_timeout(LOOK_EVERY) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}
