//! A process between the engine and a command that no sandbox keeps in: it is the parent of every orphan of the
//! command, so that whoever asks who is above finds it, and it ends with all of them. Must not know what the command is.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::process_table::{self, ProcessStat};

/// The first word of its command line.
pub const ADOPT: &str = "adopt";
/// Who multiplies while it is ended is ended again. More rounds than this help nobody.
const ROUNDS_MAX: usize = 100;
const NAMED: usize = 5;

/// The command line that runs `argv`, whose program is at `path`, below an adopter; `whose` is for those who look who
/// is above them.
pub(crate) fn line(program: &Path, whose: &Path, path: &Path, argv: &[String]) -> Vec<OsString> {
    let mut line: Vec<OsString> = vec![program.into(), ADOPT.into(), whose.into(), path.into()];
    line.extend(argv.iter().map(OsString::from));
    line
}

/// `adopt WHOSE PATH NAME ARGUMENT…`: runs the program to its end, ends what left its group and outlives it, and ends
/// as it did. Gives back an exit code.
pub fn adopt(arguments: &[OsString]) -> u8 {
    let [_whose, path, name, rest @ ..] = arguments else { return 2 };
    // Without it orphans are init's children, as they were.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let spawned = Command::new(path).arg0(name).args(rest).spawn();
    let child = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            eprintln!("cannot start `{}`: {error}", name.to_string_lossy());
            return 127;
        }
    };
    let status = wait(child);
    end_orphans();
    match status.map(|status| (status.exit_status(), status.terminating_signal())) {
        Some((_, Some(signal))) => {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
            }
            u8::try_from(128 + signal).unwrap_or(255)
        }
        Some((Some(code), None)) => u8::try_from(code).unwrap_or(255),
        Some((None, None)) | None => 255,
    }
}

/// Until the command has ended; orphans that end before it are taken too.
fn wait(child: Pid) -> Option<WaitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => return Some(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Those in its own group are left to whoever started it, who gives them a moment to say their last.
fn end_orphans() {
    let own = std::process::id().cast_signed();
    let group = process_table::stat_of(own).map_or(own, |stat| stat.group);
    let mut names = BTreeSet::new();
    let mut count = 0;
    for _ in 0..ROUNDS_MAX {
        let below = process_table::descendants(&BTreeSet::from([own]), &process_table::all());
        let left: Vec<ProcessStat> = below.into_iter().filter(|stat| stat.group != group).collect();
        if left.is_empty() {
            break;
        }
        for one in left {
            if process_table::signal(one.identity, Signal::KILL) {
                count += 1;
                names.insert(one.name);
            }
        }
        while matches!(rustix::process::wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        std::thread::sleep(Duration::from_millis(2));
    }
    if count > 0 {
        let names: Vec<String> = names.into_iter().take(NAMED).collect();
        println!("\n[it left {count} process(es) behind, which were ended: {}]", names.join(", "));
    }
}
