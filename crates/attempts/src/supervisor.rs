//! The body of `gatewright supervise DIR`: one process that runs one agent, outlives the engine, keeps the
//! limits and writes the exit record. It must not know the engine, its journal or the result's meaning.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::attempt_dir::{AttemptDir, AttemptDirError, AttemptLock, OutputStream};
use crate::census::{Census, Whose};
use crate::defence::Defence;
use crate::exit_record::{Ended, ExitRecord};
use crate::interrupted::{self, now_ms};
use crate::launch::{LaunchSpec, StopSignal};
use crate::output_copy::OutputCopy;
use crate::pid_record::PidRecord;
use crate::private_tmp;
use crate::process_table;
use crate::program::{self, ProgramError};
use crate::signals::Signals;
use crate::sweep::Sweep;

const BUFFER_BYTES: usize = 64 * 1024;
/// A stop comes by signal. The file is looked for as well, for whoever may not signal us.
const STOP_FILE_EVERY: Duration = Duration::from_millis(500);
/// How long after SIGKILL an agent may exist that cannot be killed (another user's, stuck in the kernel).
const GIVE_UP: Duration = Duration::from_secs(10);

/// Runs the agent of an attempt directory to its end. Returns without doing anything if another supervisor
/// lives or the attempt has ended. Must be called by a process that does nothing else: it becomes the
/// leader of a session, takes over signals and waits for all children.
pub fn supervise(dir: &Path) -> io::Result<()> {
    let dir = AttemptDir::open(dir).map_err(io::Error::other)?;
    let Some(lock) = take_lock(&dir).map_err(io::Error::other)? else { return Ok(()) };
    if dir.exit_path().try_exists()? {
        return Ok(());
    }
    // An earlier supervisor got as far as starting the agent and died: a second agent must not run.
    if dir.pid_record().map_err(io::Error::other)?.is_some() {
        interrupted::settle(&dir, &lock).map_err(io::Error::other)?;
        return Ok(());
    }
    let started_at_ms = now_ms();
    let record = match prepare(&dir, started_at_ms) {
        Ok(Prepared::Running(watch)) => watch.run(),
        Ok(Prepared::StopRequested) => never_started(Ended::Stopped, started_at_ms),
        Err(error) => never_started(Ended::StartFailed { message: in_one_line(&error) }, started_at_ms),
    };
    // We hold the lock, so a record that is there by now is nobody's who may write one.
    let forged = dir.set_aside_exit_record(&lock).map_err(io::Error::other)?;
    dir.write_exit_record(ExitRecord { forged, ..record }).map_err(io::Error::other)?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
enum PrepareError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Dir(#[from] AttemptDirError),
    #[error("there is no launch.json in the attempt directory")]
    NoLaunch,
    #[error("cannot start `{program}`: its input {path} cannot be opened")]
    Stdin { program: String, path: std::path::PathBuf, source: io::Error },
    #[error("the supervisor cannot set itself up")]
    Setup(#[from] io::Error),
}

/// A message in a record has no source to ask, so the chain is written out.
fn in_one_line(error: &PrepareError) -> String {
    let mut line = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !line.ends_with(&cause_text) {
            line = format!("{line}: {cause_text}");
        }
        source = cause.source();
    }
    line
}

fn never_started(ended: Ended, started_at_ms: u64) -> ExitRecord {
    let ended_at_ms = now_ms();
    ExitRecord {
        version: ExitRecord::VERSION,
        ended,
        started_at_ms,
        ended_at_ms,
        duration_ms: ended_at_ms.saturating_sub(started_at_ms),
        stdout_bytes: 0,
        stderr_bytes: 0,
        dropped_bytes: 0,
        left_behind: Vec::new(),
        killed: false,
        flooded: false,
        swarmed: None,
        forged: false,
        supervisor_killed: false,
    }
}

/// The starter hands the lock over as our stdin, so that it is never free between the two of us.
/// Started by hand, we take it ourselves.
fn take_lock(dir: &AttemptDir) -> Result<Option<AttemptLock>, AttemptDirError> {
    let handed_over = rustix::stdio::stdin().try_clone_to_owned().map(File::from).ok().filter(|stdin| {
        let is_lock = |stdin: &File| -> io::Result<bool> {
            let (ours, theirs) = (stdin.metadata()?, std::fs::metadata(dir.lock_path())?);
            Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()))
        };
        is_lock(stdin).unwrap_or(false)
    });
    match handed_over {
        Some(file) => dir.lock_file(file),
        None => dir.try_lock(),
    }
}

/// Away from the engine's terminal and session; parent of all orphans below; unreadable for agents.
fn leave_the_engine(label: &str) -> io::Result<()> {
    // Fails only for the leader of a group, which a shell makes of us when we are started by hand.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")?;
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        if !Defence::Privacy.is_off() {
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
        }
        // Names what `ps` shows and nothing else, hence no error. The kernel keeps 15 bytes.
        let name = format!("gw:{}", label.replace('\0', ""));
        if let Ok(name) = std::ffi::CString::new(name) {
            let _ = rustix::thread::set_name(&name);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = label;
    Ok(())
}

enum Prepared {
    Running(Watch),
    StopRequested,
}

/// Everything up to the running agent. The order matters: handlers, then `pid.json`, then a look for
/// `stop`, then the agent; who requests a stop creates `stop` and then reads `pid.json`, so one sees the
/// other. And whoever finds no `pid.json` knows that no agent was started.
fn prepare(dir: &AttemptDir, started_at_ms: u64) -> Result<Prepared, PrepareError> {
    let spec = dir.launch_spec()?.ok_or(PrepareError::NoLaunch)?;
    leave_the_engine(&spec.label)?;
    let signals = Signals::install()?;
    let mut command = program::command(&spec.argv, &spec.cwd, &spec.env)?;
    let stdin = match &spec.stdin {
        Some(path) => Stdio::from(File::open(path).map_err(|source| PrepareError::Stdin {
            program: spec.argv.first().cloned().unwrap_or_default(),
            path: path.clone(),
            source,
        })?),
        None => Stdio::null(),
    };
    let (stdout_reader, stdout_writer) = io::pipe()?;
    let (stderr_reader, stderr_writer) = io::pipe()?;
    let copy = |reader, stream| -> Result<OutputCopy, PrepareError> {
        let most = if Defence::OutputLimits.is_off() { u64::MAX } else { spec.output_max_bytes };
        Ok(OutputCopy::new(reader, dir.create_output(stream)?, most)?)
    };
    let streams = [copy(stdout_reader, OutputStream::Stdout)?, copy(stderr_reader, OutputStream::Stderr)?];
    let mut pids = PidRecord {
        version: PidRecord::VERSION,
        boot_id: process_table::boot_id(),
        session: process_table::session_leader().pid,
        supervisor: process_table::identity_of(std::process::id().cast_signed()),
        agent: None,
        started_at_ms,
    };
    dir.write_pid_record(&pids)?;
    if signals.stop_requested() || dir.stop_requested() {
        return Ok(Prepared::StopRequested);
    }
    if let Some(path) = &spec.private_tmp {
        private_tmp::create(path)?;
    }
    command.stdin(stdin).stdout(stdout_writer).stderr(stderr_writer);
    let started = Instant::now();
    let child = program::spawn(command, &spec.argv[0], &spec.cwd, spec.sandbox.as_ref())?;
    let agent = child.id().cast_signed();
    pids.agent = Some(process_table::identity_of(agent));
    // Without this write (a full disk) the agent runs all the same; a resumer then finds its processes by
    // the attempt's variable only.
    drop(dir.write_pid_record(&pids));
    let census = Census::new(Whose::Ours, spec.processes_max, started);
    let agent = Pid::from_raw(agent).ok_or_else(|| io::Error::other("a child without a pid"))?;
    Ok(Prepared::Running(Watch {
        dir: dir.clone(),
        spec,
        agent,
        signals,
        streams,
        buffer: vec![0; BUFFER_BYTES],
        census,
        started,
        started_at_ms,
        last_output: started,
        extended: false,
        stop_file_at: started + STOP_FILE_EVERY,
        phase: Phase::Running,
        status: None,
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    TimedOut,
    Idle,
    Stopped,
    Flooded,
    Swarmed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// It was asked to stop.
    Stopping {
        reason: Reason,
        kill_at: Instant,
    },
    /// SIGKILL was sent.
    Killing {
        reason: Reason,
        give_up_at: Instant,
    },
}

/// A running agent and all that is known of it. There is one thread, and it blocks in `poll`.
struct Watch {
    dir: AttemptDir,
    spec: LaunchSpec,
    agent: Pid,
    signals: Signals,
    streams: [OutputCopy; 2],
    buffer: Vec<u8>,
    census: Census,
    started: Instant,
    started_at_ms: u64,
    last_output: Instant,
    extended: bool,
    stop_file_at: Instant,
    phase: Phase,
    /// How the agent ended; `None` as long as it was not waited for, and its pid is its own.
    status: Option<WaitStatus>,
}

impl Watch {
    fn run(mut self) -> ExitRecord {
        loop {
            self.reap();
            let now = Instant::now();
            if self.status.is_some() || !self.advance(now) {
                break;
            }
            let wake_at = self.wake_at();
            self.pump(wake_at.saturating_duration_since(now));
        }
        let ended_after = self.started.elapsed();
        let left_behind = self.sweep();
        for stream in &mut self.streams {
            stream.drain(&mut self.buffer);
            stream.finish();
            // The record is written all the same: it is the only proof that the agent ended.
            drop(stream.sync());
        }
        if let Some(path) = &self.spec.private_tmp {
            // What cannot be removed is the system's to clean; the attempt has ended all the same.
            drop(private_tmp::remove(path));
        }
        let [stdout, stderr] = &self.streams;
        ExitRecord {
            version: ExitRecord::VERSION,
            ended: self.ended(),
            started_at_ms: self.started_at_ms,
            ended_at_ms: now_ms(),
            duration_ms: ended_after.as_millis() as u64,
            stdout_bytes: stdout.kept_bytes,
            stderr_bytes: stderr.kept_bytes,
            dropped_bytes: stdout.dropped_bytes + stderr.dropped_bytes,
            left_behind,
            killed: self.was_killed(),
            flooded: self.was_stopped_for(Reason::Flooded),
            swarmed: self.census.most().filter(|_| self.was_stopped_for(Reason::Swarmed)),
            forged: false,
            supervisor_killed: false,
        }
    }

    fn was_stopped_for(&self, what: Reason) -> bool {
        match self.phase {
            Phase::Running => false,
            Phase::Stopping { reason, .. } | Phase::Killing { reason, .. } => reason == what,
        }
    }

    /// It did not end when it was asked to. Who multiplies is not asked.
    fn was_killed(&self) -> bool {
        matches!(self.phase, Phase::Killing { .. }) && !self.was_stopped_for(Reason::Swarmed)
    }

    fn ended(&self) -> Ended {
        match self.phase {
            Phase::Stopping { reason, .. } | Phase::Killing { reason, .. } => match reason {
                Reason::TimedOut => Ended::TimedOut,
                Reason::Idle => Ended::Idle,
                Reason::Stopped => Ended::Stopped,
                Reason::Flooded | Reason::Swarmed => Ended::Signalled { signal: Signal::TERM.as_raw() },
            },
            Phase::Running => match self.status {
                Some(status) => match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Ended::Exited { code },
                    (None, Some(signal)) => Ended::Signalled { signal },
                    (None, None) => Ended::Interrupted,
                },
                // `run` leaves `Running` before it gives up, so this is not reached.
                None => Ended::Interrupted,
            },
        }
    }

    /// Waits for all children that ended: the agent, and orphans that became ours. `false`: none is left.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if pid == self.agent {
                        self.status = Some(status);
                    }
                }
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Moves the phase on. `false`: the agent cannot be ended.
    fn advance(&mut self, now: Instant) -> bool {
        match self.phase {
            Phase::Running => {
                let reason = self.reason_to_stop(now);
                if reason == Some(Reason::Swarmed) {
                    // Whoever is asked to end would go on multiplying.
                    self.census.end_all();
                    self.signal_agent(Signal::KILL);
                    self.phase = Phase::Killing { reason: Reason::Swarmed, give_up_at: now + GIVE_UP };
                } else if let Some(reason) = reason {
                    self.signal_agent(match self.spec.stop {
                        StopSignal::Terminate => Signal::TERM,
                        StopSignal::Interrupt => Signal::INT,
                    });
                    // One that is stopped would not hear the first signal.
                    self.signal_agent(Signal::CONT);
                    self.phase = Phase::Stopping { reason, kill_at: after(now, self.spec.grace_ms) };
                }
                true
            }
            Phase::Stopping { reason, kill_at } => {
                if now >= kill_at || self.signals.kill_requested() {
                    self.signal_agent(Signal::KILL);
                    self.phase = Phase::Killing { reason, give_up_at: now + GIVE_UP };
                }
                true
            }
            Phase::Killing { give_up_at, .. } => now < give_up_at,
        }
    }

    fn reason_to_stop(&mut self, now: Instant) -> Option<Reason> {
        let passed = |from: Instant, limit_ms: Option<u64>| limit_ms.is_some_and(|ms| now >= after(from, ms));
        if self.signals.stop_requested() {
            return Some(Reason::Stopped);
        }
        if now >= self.stop_file_at {
            self.stop_file_at = now + STOP_FILE_EVERY;
            if self.dir.stop_requested() {
                return Some(Reason::Stopped);
            }
        }
        let [stdout, stderr] = &self.streams;
        let printed = stdout.printed_bytes() + stderr.printed_bytes();
        if self.spec.output_stop_bytes.is_some_and(|most| printed > most) && !Defence::OutputLimits.is_off() {
            return Some(Reason::Flooded);
        }
        if self.census.is_over(now) {
            return Some(Reason::Swarmed);
        }
        if passed(self.started, self.limit_ms()) {
            // Who still speaks is not hung: it gets the extension, and only once.
            match self.spec.extension_ms.filter(|_| !self.extended) {
                Some(more) if !passed(self.last_output, Some(more)) => self.extended = true,
                Some(_) | None => return Some(Reason::TimedOut),
            }
        }
        passed(self.last_output, self.spec.idle_timeout_ms).then_some(Reason::Idle)
    }

    /// The time it has, with the extension if that was granted.
    fn limit_ms(&self) -> Option<u64> {
        let more = self.spec.extension_ms.filter(|_| self.extended).unwrap_or(0);
        self.spec.timeout_ms.map(|ms| ms.saturating_add(more))
    }

    /// When there is something to do even if nothing happens.
    fn wake_at(&self) -> Instant {
        match self.phase {
            Phase::Running => {
                let limits = [(self.started, self.limit_ms()), (self.last_output, self.spec.idle_timeout_ms)];
                let limits = limits.into_iter().filter_map(|(from, ms)| Some(after(from, ms?)));
                limits.chain(self.census.next_at()).fold(self.stop_file_at, Instant::min)
            }
            Phase::Stopping { .. } if self.signals.kill_requested() => Instant::now(),
            Phase::Stopping { kill_at, .. } => kill_at,
            Phase::Killing { give_up_at, .. } => give_up_at,
        }
    }

    /// Waits for output or a signal and copies what there is.
    fn pump(&mut self, wait: Duration) {
        let mut fds = vec![PollFd::from_borrowed_fd(self.signals.wake_fd(), PollFlags::IN)];
        for stream in &self.streams {
            fds.extend(stream.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        let timeout = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        // Interrupted is as good as a wake-up. The streams do not block, so each may be tried.
        if poll(&mut fds, Some(&timeout)).is_ok_and(|ready| ready == 0) {
            return;
        }
        drop(fds);
        self.signals.clear();
        let mut copied = 0;
        for stream in &mut self.streams {
            copied += stream.copy_some(&mut self.buffer);
        }
        if copied > 0 {
            self.last_output = Instant::now();
        }
    }

    /// To the group, and to the agent itself if it left that. Only while the agent was not waited for: then
    /// both numbers are still its own.
    fn signal_agent(&self, signal: Signal) {
        if self.status.is_some() {
            return;
        }
        let _ = rustix::process::kill_process_group(self.agent, signal);
        if rustix::process::getpgid(Some(self.agent)).is_ok_and(|group| group != self.agent) {
            let _ = rustix::process::kill_process(self.agent, signal);
        }
    }

    /// Ends whatever is left below us. As sub-reaper we are the parent of every orphan, so "no child" means
    /// that nobody is left, and that is known without reading `/proc`.
    fn sweep(&mut self) -> Vec<String> {
        if Defence::Sweep.is_off() {
            return Vec::new();
        }
        let mut sweep = Sweep::new(Instant::now(), Duration::from_millis(self.spec.grace_ms));
        if self.was_stopped_for(Reason::Swarmed) {
            sweep.hurry(Instant::now());
        }
        while self.reap() {
            let now = Instant::now();
            if self.signals.kill_requested() {
                sweep.hurry(now);
            }
            let Some(wait) = sweep.pass(now) else { break };
            self.pump(wait);
        }
        // Elsewhere orphans go to init; the group is what can be reached.
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process_group(self.agent, Signal::KILL);
        sweep.into_names()
    }
}

/// A limit so large that the clock cannot hold it is a year: no limit.
fn after(from: Instant, ms: u64) -> Instant {
    const YEAR: Duration = Duration::from_hours(365 * 24);
    from + Duration::from_millis(ms).min(YEAR)
}
