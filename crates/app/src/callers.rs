//! Who calls: people give orders, agents and what executes their work do not. Must not know what is ordered.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::Write,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use gatewright_attempts::{ADOPT, Defence};
use gatewright_host::{collect::REFUSED_FILE, perform::refused_in_run};

use crate::{command_error::CommandError, definitions::Session};

/// Agents may not speak for people (J-38). Their processes carry a mark; and since a mark can be
/// taken off, whoever lives below a supervisor of this state directory is an agent's process too, and so is
/// whoever lives below an engine: what engines execute is what agents wrote, in checks and in hooks.
/// What was tried is left where the engine finds it.
pub fn refuse_agents(session: &Session) -> Result<(), CommandError> {
    let marked = ["GATEWRIGHT_STEP", "GATEWRIGHT_ATTEMPT", "GATEWRIGHT_RUN_DIR"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let above = above(session.project.state_root());
    if (!marked && above.is_none()) || Defence::Callers.is_off() {
        return Ok(());
    }
    match above {
        Some(above) => above.leave_notice(),
        None => {
            let out = std::env::var_os("GATEWRIGHT_OUT").map(PathBuf::from);
            let _ = out.map(|out| leave_notice(&out.join(REFUSED_FILE)));
        }
    }
    Err(CommandError::refused("this is an agent's process: only people answer, approve, skip or restart")
        .hint("end your attempt with questions instead: reply NEEDS_INPUT"))
}

/// An engine below a supervisor or an engine would outlive the attempt that started it and speak for a person.
pub fn refuse_engines_of_agents(session: &Session) -> Result<(), CommandError> {
    let above = above(session.project.state_root()).filter(|_| !Defence::Callers.is_off());
    let Some(above) = above else { return Ok(()) };
    above.leave_notice();
    Err(CommandError::refused("this is an agent's process: it may not drive runs here"))
}

/// Only words; they are read as such. An agent that forges or removes them harms nobody.
fn leave_notice(path: &Path) -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).take(6).collect();
    let called: String = words.join(" ").chars().filter(|c| !c.is_control()).take(200).collect();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "an agent's process called `gatewright {called}`")
}

/// Who is above this process.
enum Above {
    /// The supervisor of this attempt.
    Attempt(PathBuf),
    /// The engine of this run, whose state is in this folder.
    Engine(PathBuf),
}

impl Above {
    /// Beside the attempt's artifacts, or where the run's checks work. One that cannot be left (a sandbox, a full
    /// disk) changes nothing about the refusal.
    fn leave_notice(&self) {
        let places = match self {
            Above::Attempt(dir) => vec![dir.join("out").join(REFUSED_FILE)],
            Above::Engine(run) => refused_in_run(run),
        };
        let _ = places.iter().any(|place| leave_notice(place).is_ok());
    }
}

/// The nearest supervisor or engine among our ancestors. Orphans of an agent are adopted by its supervisor, and those
/// of a check that has no sandbox by a process of ours that names its run. Another state directory is another matter:
/// agents may try a workflow in a scratch project.
fn above(state: &Path) -> Option<Above> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let state = real(state);
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut pid = std::process::id();
    // A process can be its own ancestor only if /proc lies; no line is this long.
    for _ in 0..1000 {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&OsStr> = line.split(|byte| *byte == 0).map(OsStr::from_bytes).collect();
        if let [_, what, dir, ..] = words.as_slice()
            && real(Path::new(dir)).starts_with(&state)
        {
            if *what == "supervise" {
                return Some(Above::Attempt(PathBuf::from(dir)));
            }
            if *what == ADOPT {
                return Some(Above::Engine(PathBuf::from(dir)));
            }
        }
        if let Some(run) = run_held_by(pid, &locks, &state).filter(|_| pid != std::process::id()) {
            return Some(Above::Engine(run));
        }
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat).into_owned();
        // `PID (NAME) STATE PPID …`; the name may hold anything.
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1))
            .and_then(|parent| parent.parse().ok());
        match parent {
            Some(parent) if parent > 1 => pid = parent,
            Some(_) | None => return None,
        }
    }
    None
}

/// The run of this state directory that a process drives: it holds the lock of its journal, and the kernel says so to
/// everybody.
fn run_held_by(pid: u32, locks: &str, state: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let held: BTreeSet<u64> = locks.lines().filter_map(|line| held_by(pid, line)).collect();
    if held.is_empty() {
        return None;
    }
    let folders = |of: &Path| std::fs::read_dir(of).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs = folders(&state.join("projects")).flat_map(|project| folders(&project.join("runs")));
    runs.find(|run| {
        let lock = gatewright_host::journal::lock_path(&run.join("journal.jsonl"));
        std::fs::metadata(lock).is_ok_and(|data| held.contains(&data.ino()))
    })
}

/// `1: FLOCK  ADVISORY  WRITE 4861 fe:00:5310104 0 EOF`: the inode that this process has locked.
fn held_by(pid: u32, line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", holder, file, ..] = words.as_slice() else { return None };
    (holder.parse() == Ok(pid)).then(|| file.rsplit(':').next()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_of_locks_says_who_holds_which_file() {
        let line = "12: FLOCK  ADVISORY  WRITE 4861 fe:00:5310104 0 EOF";
        assert_eq!(held_by(4861, line), Some(5_310_104));
        assert_eq!(held_by(486, line), None);
        assert_eq!(held_by(4861, "12: FLOCK  ADVISORY  READ 4861 fe:00:5310104 0 EOF"), None);
        assert_eq!(held_by(4861, "12: -> FLOCK  ADVISORY  WRITE 4861 fe:00:5310104 0 EOF"), None);
        assert_eq!(held_by(4861, ""), None);
    }
}
