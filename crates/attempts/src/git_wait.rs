//! Waits for a git of the engine's, but not for ever: in a folder that agents worked in a file that git reads may have
//! become a named pipe, and whoever opens one waits until somebody writes. It must not know what git was asked.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process_table::{self, ProcessIdentity, ProcessStat};

/// Git is at work for this long before anybody asks what it waits for.
const PATIENCE: Duration = Duration::from_secs(2);
/// It waits for the same pipe in two looks in a row: then it is stuck.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// However busy it looks.
const TIME_MAX: Duration = Duration::from_mins(30);
/// Longer names of files there are none.
const NAME_BYTES: usize = 4096;

/// Why a git was ended before it had ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    #[error(
        "it waits for {}, which is a named pipe and not a file; remove it: rm {}",
        path.display(),
        path.display()
    )]
    Pipe { path: PathBuf },
    #[error("it was not done after {} minutes and was ended", TIME_MAX.as_secs() / 60)]
    TooLong,
}

/// Waits for the end of a git whose output is piped. What hangs is ended with everything below it.
pub fn wait_for_git(child: Child) -> io::Result<Result<Output, Stuck>> {
    let git = process_table::identity_of(child.id().cast_signed());
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        let watcher = std::thread::Builder::new().stack_size(256 * 1024);
        let watcher = watcher.spawn_scoped(scope, move || watch(git, &is_done))?;
        let output = child.wait_with_output();
        drop(done);
        match watcher.join() {
            Ok(Some(stuck)) => Ok(Err(stuck)),
            Ok(None) | Err(_) => output.map(Ok),
        }
    })
}

fn watch(git: ProcessIdentity, is_done: &Receiver<()>) -> Option<Stuck> {
    let started = Instant::now();
    let mut seen = None;
    let mut wait = PATIENCE;
    while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(wait) {
        wait = LOOK_EVERY;
        let table = process_table::all();
        let below = process_table::descendants(&BTreeSet::from([git.pid]), &table);
        let pipe = std::iter::once(git.pid)
            .chain(below.iter().filter(|stat| is_git(stat)).map(pid))
            .find_map(awaited_pipe);
        let stuck = match pipe {
            Some(path) if seen.as_ref() == Some(&path) => Some(Stuck::Pipe { path }),
            pipe => {
                seen = pipe;
                (started.elapsed() > TIME_MAX).then_some(Stuck::TooLong)
            }
        };
        if stuck.is_some() {
            process_table::signal(git, Signal::KILL);
            for one in below {
                process_table::signal(one.identity, Signal::KILL);
            }
            return stuck;
        }
    }
    None
}

/// What git starts may have good reasons to wait for a pipe; git has none.
fn is_git(stat: &ProcessStat) -> bool {
    stat.name.starts_with("git")
}

fn pid(stat: &ProcessStat) -> i32 {
    stat.identity.pid
}

/// The named pipe that a process waits for: the one that it opens or reads right now. The kernel tells which call it is
/// in and with which arguments; that number of a call means something else on every machine, so the first arguments are
/// taken for what they may be.
fn awaited_pipe(pid: i32) -> Option<PathBuf> {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    // `257 0xffffff9c 0x55b3fd6c1af0 …`; `running` or `-1 …` if it is in none.
    let mut words = call.split_ascii_whitespace();
    words.next()?.parse::<u64>().ok()?;
    let argument = |word: Option<&str>| u64::from_str_radix(word?.strip_prefix("0x")?, 16).ok();
    let (first, second) = (argument(words.next())?, argument(words.next())?);
    let read_from = || std::fs::read_link(format!("/proc/{pid}/fd/{first}")).ok();
    let opened = |address: u64| {
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        Some(cwd.join(text_at(pid, address)?))
    };
    let is_pipe = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|data| data.file_type().is_fifo());
    opened(second)
        .filter(is_pipe)
        .or_else(|| opened(first).filter(is_pipe))
        .or_else(|| read_from().filter(is_pipe))
}

/// A text in the memory of a process below this one.
fn text_at(pid: i32, address: u64) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut memory = std::fs::File::open(Path::new("/proc").join(pid.to_string()).join("mem")).ok()?;
    memory.seek(SeekFrom::Start(address)).ok()?;
    let mut bytes = vec![0; NAME_BYTES];
    let count = memory.read(&mut bytes).ok()?;
    let end = bytes[..count].iter().position(|byte| *byte == 0)?;
    bytes.truncate(end);
    (end > 0).then(|| PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn piped(command: &mut Command) -> Child {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_git_that_waits_for_a_pipe_is_ended_and_the_pipe_is_named() {
        for name in [".gitignore", "sub/.gitignore", ".git/config", ".git/info/exclude"] {
            let folder = tempfile::tempdir().unwrap();
            let git =
                |arguments: &[&str]| piped(Command::new("git").args(arguments).current_dir(folder.path()));
            assert!(git(&["init", "-q"]).wait_with_output().unwrap().status.success());
            std::fs::create_dir(folder.path().join("sub")).unwrap();
            std::fs::write(folder.path().join("sub/file"), "x").unwrap();
            let pipe = folder.path().join(name);
            let _ = std::fs::remove_file(&pipe);
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &pipe,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::from_raw_mode(0o644),
                0,
            )
            .unwrap();
            let started = Instant::now();
            let stuck = wait_for_git(git(&["status", "--porcelain", "-uall"])).unwrap().unwrap_err();
            let named = |path: &Path| path.canonicalize().unwrap() == pipe.canonicalize().unwrap();
            assert!(matches!(&stuck, Stuck::Pipe { path } if named(path)), "{name}: {stuck}");
            assert!(started.elapsed() < Duration::from_secs(30));
        }
    }

    #[test]
    fn a_slow_git_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut slow = Command::new("git");
        slow.args(["-c", "alias.w=!sleep 4; echo done", "w"]).current_dir(folder.path());
        let output = wait_for_git(piped(&mut slow)).unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    }
}
