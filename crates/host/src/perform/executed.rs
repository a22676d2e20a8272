//! What an agent wrote is executed: by a check, by a hook at a commit. What it touches meanwhile is told, and so are
//! orders that it tries to give.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
};

use gatewright_attempts::{Defence, private_tmp_path};
use gatewright_core::{
    event::FailureClass,
    fact::{CheckFact, Intrusion, IntrusionKind},
    input::Input,
};

use crate::{
    collect::REFUSED_FILE,
    perform::Arrival,
    plain_file,
    run_context::RunContext,
    scope::executed::{Execution, Seen, Watching},
};

/// Orders that one execution is told of, and what is read of them.
const ORDERS_MAX: usize = 5;
const ORDERS_BYTES: u64 = 4096;

/// Does the work and tells what was touched meanwhile. What may not be touched is in the result too: whoever called
/// decides what it is worth.
pub fn watch<T>(
    context: &RunContext,
    execution: &Execution,
    results: &Sender<Arrival>,
    work: impl FnOnce() -> T,
) -> (T, Seen) {
    let watching = Watching::begin(context, execution);
    let done = work();
    let mut seen = match watching {
        Ok(watching) => watching.end(),
        // As for an attempt: where nothing is forbidden in the tree nothing is lost.
        Err(_) if execution.watch.may_write.is_none() => Seen::default(),
        Err(problem) => {
            let trespass = format!("what {} changed cannot be told: {problem}", execution.what);
            Seen { trespasses: vec![trespass], ..Seen::default() }
        }
    };
    if Defence::Scope.is_off() {
        seen.trespasses.clear();
    }
    let step = &execution.watch.step;
    let by_step = |kind, what| Intrusion { kind, what, by: vec![step.clone()] };
    let orders = refused_orders(context).into_iter().map(|what| by_step(IntrusionKind::AgentOrder, what));
    let trespasses = seen.trespasses.iter().map(|what| by_step(IntrusionKind::Trespass, what.clone()));
    let found = seen.found.iter().map(|one| by_step(one.kind, one.what.clone()));
    for intrusion in orders.chain(trespasses).chain(found).collect::<Vec<_>>() {
        tell(results, intrusion);
    }
    (done, seen)
}

fn tell(results: &Sender<Arrival>, intrusion: Intrusion) {
    // Nobody listens any more when the engine is leaving.
    let _ = results.send(Arrival { effect: None, input: Input::Noticed { intrusion } });
}

/// A check that touched what it may not does not count, whatever it said.
pub fn hold_against(seen: &Seen, fact: &mut CheckFact) {
    if seen.trespasses.is_empty() {
        return;
    }
    fact.ok = false;
    fact.class = Some(FailureClass::Reality);
    fact.timed_out = false;
    fact.message = seen.trespasses.join("; ");
}

/// Where a process below the engine of a run leaves word that it was refused: in the folder of the run's state, or, if a
/// sandbox keeps it from there, in the temporary folder that checks and hooks have in common.
pub fn refused_in_run(run: &Path) -> Vec<PathBuf> {
    let common = private_tmp_path(&run.join("checks"));
    // Seen from inside, the folder for temporary files is one in there.
    let own = std::env::var_os("TMPDIR").map(PathBuf::from);
    let around = own.as_deref().and_then(Path::parent);
    let around = around.filter(|folder| folder.file_name() == common.file_name()).map(Path::to_owned);
    [run.to_owned(), around.unwrap_or(common)].map(|folder| folder.join(REFUSED_FILE)).to_vec()
}

/// Words only, and few of them: whoever wrote them may have written anything.
fn refused_orders(context: &RunContext) -> Vec<String> {
    let mut orders = Vec::new();
    for path in refused_in_run(&context.paths.dir) {
        // A link may lead anywhere.
        if !std::fs::symlink_metadata(&path).is_ok_and(|data| data.is_file()) {
            continue;
        }
        let mut bytes = Vec::new();
        let read = plain_file::open(&path).and_then(|file| file.take(ORDERS_BYTES).read_to_end(&mut bytes));
        let _ = std::fs::remove_file(&path);
        if read.is_ok() {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let shown = |line: &str| line.chars().filter(|c| !c.is_control()).take(300).collect::<String>();
            orders.extend(text.lines().filter(|line| !line.trim().is_empty()).map(shown));
        }
    }
    orders.truncate(ORDERS_MAX);
    orders
}
