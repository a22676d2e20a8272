//! The engine's side of an attempt: start or attach, wait for the end, ask to stop.
//! It must not know steps or journals, and nothing here is lost when the engine dies.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::attempt_dir::{AttemptDir, AttemptDirError, AttemptLock};
use crate::descriptors;
use crate::exit_record::{Ended, ExitRecord};
use crate::interrupted::{self, Suspicion};
use crate::launch::LaunchSpec;
use crate::own_supervisor;
use crate::pid_record::PidRecord;
use crate::process_table;

/// How `gatewright supervise` is called; the attempt directory is added as the last argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    /// A path, not a name: the supervisor is started with an empty environment.
    pub program: PathBuf,
    pub args: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// A supervisor was started by this call.
    Launched,
    /// Somebody holds the attempt: a living supervisor.
    Attached,
    /// There is an exit record, from before or because the supervisor had died.
    AlreadyEnded(ExitRecord),
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Dir(#[from] AttemptDirError),
    #[error("cannot start the supervisor {program}")]
    Supervisor { program: PathBuf, source: io::Error },
    #[error("nobody started the attempt in {path}")]
    NotStarted { path: PathBuf },
    #[error("the supervisor of the attempt in {path} does not end")]
    Stuck { path: PathBuf },
}

/// Makes sure that the attempt runs or has ended, however often it is called and by whomever. An agent is
/// started at most once: only when no supervisor before got as far as writing `pid.json`.
pub fn start_or_attach(
    dir: &AttemptDir,
    spec: &LaunchSpec,
    supervisor: &SupervisorCommand,
) -> Result<Started, StartError> {
    if let Some(record) = dir.exit_record()? {
        return Ok(Started::AlreadyEnded(record));
    }
    let Some(lock) = dir.try_lock()? else { return Ok(Started::Attached) };
    if let Some(record) = dir.exit_record()? {
        return Ok(Started::AlreadyEnded(record));
    }
    if dir.pid_record()?.is_some() {
        return Ok(Started::AlreadyEnded(interrupted::settle(dir, &lock)?));
    }
    dir.write_launch_spec(spec)?;
    launch_supervisor(dir, supervisor, lock)?;
    Ok(Started::Launched)
}

/// The lock goes to the supervisor as its stdin, so it is held from here to the supervisor's end: whoever
/// gets it later knows that the supervisor is dead.
fn launch_supervisor(
    dir: &AttemptDir,
    supervisor: &SupervisorCommand,
    lock: AttemptLock,
) -> Result<(), StartError> {
    descriptors::keep_inherited_from_children();
    let start = |lock: File| {
        let mut command = Command::new(&supervisor.program);
        command
            .args(&supervisor.args)
            .arg(&dir.path)
            // Secrets of the engine are none of the supervisor's business; the agent's are in launch.json.
            .env_clear()
            .stdin(Stdio::from(lock))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        #[cfg(feature = "fault-injection")]
        command
            .envs(std::env::var_os(crate::defence::VARIABLE).map(|names| (crate::defence::VARIABLE, names)));
        command.spawn()
    };
    let child = lock
        .hand_over(start)
        .map_err(|source| StartError::Supervisor { program: supervisor.program.clone(), source })?;
    own_supervisor::watch(&dir.path, child);
    Ok(())
}

/// Blocks until the attempt has ended or `cancel` says so (asked every `poll_every`; then `None`). If the
/// supervisor dies without a record, what survived it is ended and `interrupted` is recorded.
pub fn wait_for_exit(
    dir: &AttemptDir,
    cancel: &dyn Fn() -> bool,
    poll_every: Duration,
) -> Result<Option<ExitRecord>, StartError> {
    loop {
        match dir.try_lock()? {
            Some(lock) => {
                if let Some(record) = dir.exit_record()? {
                    return Ok(Some(genuine(dir, record, &lock)?));
                }
                if dir.launch_spec()?.is_some() {
                    let supervisor_killed = own_supervisor::was_killed(&dir.path);
                    let suspicion = Suspicion { forged: false, supervisor_killed };
                    return Ok(Some(interrupted::settle_suspected(dir, &lock, suspicion)?));
                }
                return Err(StartError::NotStarted { path: dir.path.clone() });
            }
            // A record beside a living supervisor is forged, or the supervisor is about to end.
            None if cancel() => return Ok(None),
            None => wait_for_supervisor(dir, poll_every)?,
        }
    }
}

/// A record proves nothing if the agent lives, for its supervisor writes it afterwards, nor if the supervisor was
/// killed, for then anybody may have written it. It is set aside, and what survived is ended.
fn genuine(dir: &AttemptDir, record: ExitRecord, lock: &AttemptLock) -> Result<ExitRecord, StartError> {
    let lives = |pids: PidRecord| {
        pids.boot_id == process_table::boot_id() && pids.agent.is_some_and(process_table::is_alive)
    };
    let forged = pids(dir).is_some_and(lives);
    let supervisor_killed = own_supervisor::was_killed(&dir.path);
    // `interrupted` is no claim that anybody gains from.
    if (!forged && !supervisor_killed) || record.ended == Ended::Interrupted {
        return Ok(record);
    }
    Ok(interrupted::settle_suspected(dir, lock, Suspicion { forged, supervisor_killed })?)
}

/// Who runs, as far as that can be read: an agent without a sandbox can write anything there.
fn pids(dir: &AttemptDir) -> Option<PidRecord> {
    dir.pid_record().ok().flatten()
}

/// Until the supervisor ends, at most for `wait`. By pidfd and not by a thread that blocks on the lock:
/// such a thread could not be cancelled. The lock is freed before the pidfd says so.
fn wait_for_supervisor(dir: &AttemptDir, wait: Duration) -> Result<(), StartError> {
    /// For the moment in which the supervisor lives but did not write `pid.json`, or ends and is settled.
    const MOMENT: Duration = Duration::from_millis(5);
    let supervisor = pids(dir).map(|pids| pids.supervisor);
    let Some(supervisor) = supervisor else {
        std::thread::sleep(wait.min(MOMENT));
        return Ok(());
    };
    match process_table::exit_watch(supervisor) {
        Some(watch) => {
            let timeout =
                Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
            // Whatever poll says, the caller looks again.
            let _ = poll(&mut [PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN)], Some(&timeout));
        }
        None if process_table::is_alive(supervisor) => std::thread::sleep(wait),
        None => std::thread::sleep(wait.min(MOMENT)),
    }
    Ok(())
}

/// Asks for the end of the attempt and returns at once; the agent has its grace. Asking again, or asking an
/// attempt that has ended or not begun, does no harm: one that begins later ends as stopped.
pub fn request_stop(dir: &AttemptDir) -> Result<(), StartError> {
    dir.write_stop()?;
    signal_supervisor(dir, Signal::TERM)
}

/// Ends the attempt without grace and waits for its record, a supervisor that does not react included.
/// `None`: it was never started, and now never will be.
pub fn kill_now(dir: &AttemptDir) -> Result<Option<ExitRecord>, StartError> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const POLL_EVERY: Duration = Duration::from_millis(50);
    dir.write_stop()?;
    let wait = |signal: Signal| {
        signal_supervisor(dir, signal)?;
        let give_up_at = Instant::now() + PATIENCE;
        wait_for_exit(dir, &|| Instant::now() >= give_up_at, POLL_EVERY)
    };
    for signal in [Signal::USR1, Signal::KILL] {
        match wait(signal) {
            Ok(Some(record)) => return Ok(Some(record)),
            Ok(None) => {}
            Err(StartError::NotStarted { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Err(StartError::Stuck { path: dir.path.clone() })
}

fn signal_supervisor(dir: &AttemptDir, signal: Signal) -> Result<(), StartError> {
    // Whatever record is there: the number is a process's own for good.
    if let Some(pids) = pids(dir)
        && pids.boot_id == process_table::boot_id()
    {
        process_table::signal(pids.supervisor, signal);
    }
    Ok(())
}
