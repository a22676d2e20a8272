//! Runs a check: a short, repeatable command as a plain child, its output inline. This is the fast path:
//! posix_spawn, one pipe, one thread, no files. It must not know gates, or what the output means.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};

use crate::adopter;
use crate::census::{self, Census, Whose};
use crate::check_record::CheckMark;
use crate::defence::Defence;
use crate::launch::LaunchSpec;
use crate::private_tmp;
use crate::process_table;
use crate::program::{self, ProgramError};
use crate::sandbox::SandboxSpec;

pub const CHECK_OUTPUT_KEEP_BYTES: usize = 64 * 1024;

/// How long what a check left in the background may still write before it is killed.
const LINGER: Duration = Duration::from_millis(250);
/// How long after SIGKILL a check is waited for (another user's process cannot be killed).
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// How often to look where there is no pidfd.
const TICK: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckCommand {
    Argv(Vec<String>),
    /// A line for `/bin/sh -c`.
    Shell(String),
    /// A line of plain words: they need no shell if the first of them is a program on the PATH.
    Line(String),
}

impl CheckCommand {
    /// Its words, and what starts them.
    fn prepared(
        &self,
        cwd: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<(Vec<String>, Command), ProgramError> {
        let made = |argv: Vec<String>| program::command(&argv, cwd, env).map(|command| (argv, command));
        let by_shell = |line: &String| made(vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()]);
        match self {
            CheckCommand::Argv(argv) => made(argv.clone()),
            CheckCommand::Shell(line) => by_shell(line),
            CheckCommand::Line(line) => {
                let words = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
                made(words.collect()).or_else(|_| by_shell(line))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSpec {
    pub command: CheckCommand,
    pub cwd: PathBuf,
    /// The complete environment. Nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub timeout_ms: Option<u64>,
    /// How much is kept of the head of the output and of its tail, each.
    pub output_keep_bytes: usize,
    /// What it may do: it executes what agents wrote. `None`: whatever the user may.
    pub sandbox: Option<SandboxSpec>,
    /// As for an agent's launch: made before, removed after.
    pub private_tmp: Option<PathBuf>,
    /// An empty temporary folder stays for the next check; whoever named it removes it one day.
    pub keep_empty_tmp: bool,
    /// With more processes at once it is ended with all of them.
    pub processes_max: Option<u32>,
    /// `NAME=value` of `env` that nobody else is started with: by it those are found who left the group.
    pub carrier: Option<String>,
    /// Who is to be the parent of its orphans, where no sandbox keeps them in.
    pub adopter: Option<Adopter>,
}

/// This program as a parent of orphans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopter {
    pub program: PathBuf,
    /// Whose orphans they are; on its command line.
    pub whose: PathBuf,
}

impl CheckSpec {
    /// A check without a timeout that keeps the default amount of output.
    pub fn new(command: CheckCommand, cwd: PathBuf, env: BTreeMap<String, String>) -> Self {
        Self {
            command,
            cwd,
            env,
            timeout_ms: None,
            output_keep_bytes: CHECK_OUTPUT_KEEP_BYTES,
            sandbox: None,
            private_tmp: None,
            keep_empty_tmp: false,
            processes_max: Some(LaunchSpec::PROCESSES_MAX),
            carrier: None,
            adopter: None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// `None` if a signal ended it or it did not start.
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub duration_ms: u64,
    /// Stdout and stderr as they came. What is not UTF-8 is replaced.
    pub output: String,
    /// The middle of the output was left out; a line in it says how much.
    pub output_truncated: bool,
    /// Why it did not start; the program is named.
    pub spawn_error: Option<String>,
    /// It had more processes at once than this and was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swarmed: Option<u32>,
    /// Names of processes that had left its group, outlived it and were ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
}

impl CheckResult {
    pub fn succeeded(&self) -> bool {
        self.exit_code == Some(0) && !self.timed_out && self.swarmed.is_none()
    }
}

/// Runs the check to its end or its timeout. What it leaves in its process group is killed; a background
/// process that keeps the output open is not waited for.
pub fn run_check(spec: &CheckSpec) -> CheckResult {
    run_marked_check(spec, None, &mut |_| {})
}

/// The same; the mark says who it is while it runs, for an engine that comes after this one. `see` is shown all of
/// the output as it comes, also what is not kept.
pub fn run_marked_check(
    spec: &CheckSpec,
    mark: Option<&mut CheckMark>,
    see: &mut dyn FnMut(&[u8]),
) -> CheckResult {
    let made = spec.private_tmp.as_deref().map_or(Ok(()), private_tmp::create);
    let result = match made {
        Ok(()) => run_in_place(spec, mark, see),
        Err(error) => CheckResult { spawn_error: Some(error.to_string()), ..CheckResult::default() },
    };
    if let Some(path) = &spec.private_tmp
        && !(spec.keep_empty_tmp && private_tmp::is_empty(path))
    {
        // What cannot be removed is the system's to clean.
        drop(private_tmp::remove(path));
    }
    result
}

fn run_in_place(spec: &CheckSpec, mark: Option<&mut CheckMark>, see: &mut dyn FnMut(&[u8])) -> CheckResult {
    let started = Instant::now();
    let mut running = match Running::start(spec, started, mark, see) {
        Ok(running) => running,
        Err(error) => return CheckResult { spawn_error: Some(error.to_string()), ..CheckResult::default() },
    };
    let end = running.until_exit();
    let status = if end == End::Exited { running.collect() } else { running.kill() };
    let left_behind = match &spec.carrier {
        Some(carrier) if !Defence::Sweep.is_off() => census::end_left_behind(running.pid, carrier),
        Some(_) | None => Vec::new(),
    };
    let timed_out = end == End::TimedOut;
    let swarmed = running.census.most().filter(|_| end == End::Swarmed);
    let (output, output_truncated) = running.output.into_text();
    CheckResult {
        swarmed,
        left_behind,
        exit_code: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        timed_out,
        duration_ms: started.elapsed().as_millis() as u64,
        output,
        output_truncated,
        spawn_error: None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exited,
    TimedOut,
    Swarmed,
}

struct Running<'a> {
    /// Waited for last: until then its pid and its group's number are its own. `None` when given away.
    child: Option<Child>,
    pid: i32,
    exit_watch: Option<OwnedFd>,
    /// `None` after the end of the output.
    pipe: Option<PipeReader>,
    output: HeadAndTail,
    see: &'a mut dyn FnMut(&[u8]),
    deadline: Option<Instant>,
    census: Census,
}

impl<'a> Running<'a> {
    fn start(
        spec: &CheckSpec,
        started: Instant,
        mark: Option<&mut CheckMark>,
        see: &'a mut dyn FnMut(&[u8]),
    ) -> Result<Self, ProgramError> {
        let (argv, mut command) = spec.command.prepared(&spec.cwd, &spec.env)?;
        if let Some(Adopter { program, whose }) = &spec.adopter {
            let line = adopter::line(program, whose, Path::new(command.get_program()), &argv);
            command = program::below(&line, &spec.cwd, &spec.env);
        }
        let pipe_failed = |source| ProgramError::Spawn { program: argv[0].clone(), source };
        let (pipe, writer) = io::pipe().map_err(pipe_failed)?;
        command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(pipe_failed)?).stderr(writer);
        let child = program::spawn(command, &argv[0], &spec.cwd, spec.sandbox.as_ref())?;
        let pid = child.id().cast_signed();
        if let Some(mark) = mark {
            mark.runs(pid);
        }
        Ok(Self {
            child: Some(child),
            pid,
            exit_watch: process_table::child_exit_watch(pid),
            pipe: Some(pipe),
            output: HeadAndTail::new(spec.output_keep_bytes),
            see,
            deadline: spec.timeout_ms.and_then(|ms| started.checked_add(Duration::from_millis(ms))),
            census: Census::new(
                Whose::Check { leader: pid, carrier: spec.carrier.clone() },
                spec.processes_max,
                started,
            ),
        })
    }

    /// Reads until the child has ended, or must be ended.
    fn until_exit(&mut self) -> End {
        loop {
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                // One last look: a busy engine may come late to a check that was in time.
                return if self.has_exited() { End::Exited } else { End::TimedOut };
            }
            if self.census.is_over(now) {
                return End::Swarmed;
            }
            let wake_at = self.deadline.into_iter().chain(self.census.next_at()).min();
            let wait = wake_at.map(|at| at.saturating_duration_since(Instant::now()));
            if self.pump(wait) && self.has_exited() {
                return End::Exited;
            }
        }
    }

    /// The child has ended: reads what is there, kills what it left, takes its status.
    fn collect(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + LINGER;
        while self.pipe.is_some() {
            let wait = until.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                break;
            }
            self.exit_watch = None;
            self.pump(Some(wait));
        }
        self.kill_group();
        self.child.as_mut()?.wait().ok()
    }

    /// It must not go on: kills the group and what left it, then takes what is there. `None`: it does not die; a
    /// thread waits for it.
    fn kill(&mut self) -> Option<ExitStatus> {
        self.census.end_all();
        self.kill_group();
        let until = Instant::now() + KILL_PATIENCE;
        while !self.has_exited() {
            let wait = until.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                let mut child = self.child.take()?;
                std::thread::spawn(move || drop(child.wait()));
                return None;
            }
            self.pump(Some(wait));
        }
        self.collect()
    }

    fn kill_group(&self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    }

    /// Looks without taking the status.
    fn has_exited(&self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Ok(status) => status.is_some(),
            Err(error) => error != rustix::io::Errno::INTR,
        }
    }

    /// Waits for output or the end, at most for `wait`, and reads once. Returns whether the child may have
    /// ended.
    fn pump(&mut self, wait: Option<Duration>) -> bool {
        let wait =
            if self.exit_watch.is_none() { Some(wait.map_or(TICK, |wait| wait.min(TICK))) } else { wait };
        let timeout = wait.map(|wait| Timespec {
            tv_sec: wait.as_secs().cast_signed(),
            tv_nsec: wait.subsec_nanos().into(),
        });
        let (pipe_ready, exit_ready) = {
            let fds = [self.pipe.as_ref().map(AsFd::as_fd), self.exit_watch.as_ref().map(AsFd::as_fd)];
            let mut fds: Vec<PollFd<'_>> =
                fds.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            if poll(&mut fds, timeout.as_ref()).is_err() {
                return true;
            }
            let ready = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
            match (&self.pipe, &self.exit_watch) {
                (Some(_), Some(_)) => (ready(0), ready(1)),
                (Some(_), None) => (ready(0), true),
                (None, Some(_)) => (false, ready(0)),
                (None, None) => (false, true),
            }
        };
        if pipe_ready {
            self.read_once();
        }
        exit_ready
    }

    fn read_once(&mut self) {
        let mut buffer = [0; 16 * 1024];
        match self.pipe.as_mut().map(|pipe| pipe.read(&mut buffer)) {
            Some(Ok(count)) if count > 0 => {
                self.output.push(&buffer[..count]);
                (self.see)(&buffer[..count]);
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Some(Ok(_) | Err(_)) | None => self.pipe = None,
        }
    }
}

/// The first and the last bytes of a stream of any length.
#[derive(Debug)]
struct HeadAndTail {
    keep: usize,
    head: Vec<u8>,
    /// Up to twice as long as kept, so that it is not moved for each byte.
    tail: Vec<u8>,
    left_out: u64,
}

impl HeadAndTail {
    fn new(keep: usize) -> Self {
        Self { keep, head: Vec::new(), tail: Vec::new(), left_out: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let (head, tail) = bytes.split_at(bytes.len().min(self.keep - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if self.tail.len() > 2 * self.keep {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.keep);
        self.tail.drain(..surplus);
        self.left_out += surplus as u64;
    }

    fn into_text(mut self) -> (String, bool) {
        self.trim();
        let mut bytes = self.head;
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[… {} bytes left out …]\n", self.left_out).as_bytes());
        }
        bytes.extend_from_slice(&self.tail);
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        (text, self.left_out > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: CheckCommand) -> CheckSpec {
        let env = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        CheckSpec::new(command, std::env::temp_dir(), env)
    }

    fn shell(line: &str) -> CheckSpec {
        check(CheckCommand::Shell(line.to_owned()))
    }

    fn argv(argv: &[&str]) -> CheckSpec {
        check(CheckCommand::Argv(argv.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn output_of_both_streams_comes_in_order() {
        let result = run_check(&shell("echo one; echo two >&2; echo three; exit 7"));
        assert_eq!(result.output, "one\ntwo\nthree\n");
        assert_eq!((result.exit_code, result.signal, result.timed_out), (Some(7), None, false));
        assert!(!result.output_truncated && result.spawn_error.is_none() && !result.succeeded());
        assert!(run_check(&argv(&["true"])).succeeded());
    }

    #[test]
    fn a_signal_is_reported() {
        let result = run_check(&shell("kill -9 $$"));
        assert_eq!((result.exit_code, result.signal), (None, Some(9)));
    }

    #[test]
    fn what_cannot_start_is_named() {
        let missing = run_check(&argv(&["no-such-program-here"])).spawn_error.unwrap();
        assert!(missing.contains("`no-such-program-here`"), "{missing}");
        let missing = run_check(&argv(&["/no/such/program"])).spawn_error.unwrap();
        assert!(missing.contains("`/no/such/program`"), "{missing}");
        let mut spec = argv(&["true"]);
        spec.cwd = "/no/such/directory".into();
        let missing = run_check(&spec).spawn_error.unwrap();
        assert!(missing.contains("/no/such/directory"), "{missing}");
    }

    #[test]
    fn the_environment_is_exactly_the_given_one() {
        let mut spec = argv(&["/usr/bin/env"]);
        spec.env = BTreeMap::from([("ONLY".to_owned(), "this".to_owned())]);
        assert_eq!(run_check(&spec).output, "ONLY=this\n");
    }

    #[test]
    fn head_and_tail_of_large_output_are_kept() {
        let mut spec = shell("echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo end");
        spec.output_keep_bytes = 100;
        let result = run_check(&spec);
        assert!(result.output_truncated && result.exit_code == Some(0));
        assert!(result.output.starts_with("begin\nxxx") && result.output.ends_with("xxxend\n"));
        assert!(result.output.contains("2999810 bytes left out"), "{}", result.output);
    }

    #[test]
    fn head_and_tail_meet_without_a_gap() {
        for length in 0..=8u8 {
            let mut kept = HeadAndTail::new(4);
            (0..length).for_each(|byte| kept.push(&[b'0' + byte]));
            let expected: String = (0..length).map(|byte| char::from(b'0' + byte)).collect();
            assert_eq!(kept.into_text(), (expected, false));
        }
        let mut kept = HeadAndTail::new(2);
        kept.push(b"0123456789");
        assert_eq!(kept.into_text(), ("01\n[… 6 bytes left out …]\n89".to_owned(), true));
        let mut none = HeadAndTail::new(0);
        none.push(b"abc");
        assert!(none.into_text().1);
    }

    #[test]
    fn in_a_sandbox_only_what_is_listed_is_written_and_what_is_hidden_is_not_read() {
        if !crate::sandbox_support().files() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "state/own", "other"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for (file, text) in [("state/key", "secret"), ("state/own/prompt", "prompt"), ("other/text", "text")]
        {
            std::fs::write(root.path().join(file), text).unwrap();
        }
        let mut spec = shell(
            "cd ..; echo x > work/new; cat other/text state/own/prompt; cat state/key; echo y > other/new; \
             rm other/text; mv other/text work/; ln other/text work/text; echo z > state/own/new; \
             [ -d \"$TMPDIR\" ] && echo t > $TMPDIR/t && echo; echo > /dev/null && cat work/new",
        );
        spec.cwd = root.path().join("work");
        let tmp = private_tmp::tests_path(root.path());
        spec.env.insert("TMPDIR".to_owned(), tmp.to_str().unwrap().to_owned());
        spec.private_tmp = Some(tmp.clone());
        spec.sandbox = Some(SandboxSpec {
            write: vec![root.path().join("work"), tmp.clone()],
            hide: vec![root.path().join("state")],
            read: vec![root.path().join("state/own")],
            ..SandboxSpec::default()
        });
        let result = run_check(&spec);
        assert_eq!(result.exit_code, Some(0), "{}", result.output);
        assert!(
            result.output.starts_with("textprompt") && result.output.ends_with("\nx\n"),
            "{}",
            result.output
        );
        assert!(!result.output.contains("secret"), "{}", result.output);
        assert!(root.path().join("other/text").exists() && !root.path().join("other/new").exists());
        assert!(!root.path().join("state/own/new").exists() && !root.path().join("work/text").exists());
        assert!(!tmp.exists(), "the private folder is gone");
        spec.sandbox = None;
        let control = run_check(&spec);
        assert!(control.output.contains("secret"), "without the sandbox all of it works: {}", control.output);
        assert!(root.path().join("other/new").exists());
    }

    #[test]
    fn in_a_sandbox_that_hides_nothing_everything_is_read_and_only_what_is_listed_is_written() {
        if !crate::sandbox_support().files() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        std::fs::write(root.path().join("text"), "text").unwrap();
        let mut spec = shell("cat ../text && echo x > new && ! echo y > ../new");
        spec.cwd = root.path().join("work");
        spec.sandbox = Some(SandboxSpec { write: vec![spec.cwd.clone()], ..SandboxSpec::default() });
        let result = run_check(&spec);
        assert_eq!(result.exit_code, Some(0), "{:?}: {}", result.spawn_error, result.output);
        assert!(root.path().join("work/new").exists() && !root.path().join("new").exists());
    }

    #[test]
    fn in_the_same_sandbox_again_names_stand_for_what_is_there_now() {
        if !crate::sandbox_support().files() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        std::fs::create_dir(root.path().join("state")).unwrap();
        let mut spec = shell("echo x > new && { [ ! -e ../later ] || cat ../later; }");
        spec.cwd.clone_from(&work);
        spec.sandbox = Some(SandboxSpec {
            write: vec![work.clone()],
            hide: vec![root.path().join("state")],
            ..SandboxSpec::default()
        });
        for later in [None, None, Some("later"), Some("much later")] {
            let _ = std::fs::remove_dir_all(&work);
            std::fs::create_dir(&work).unwrap();
            if let Some(text) = later {
                let _ = std::fs::remove_file(root.path().join("later"));
                std::fs::write(root.path().join("later"), text).unwrap();
            }
            let result = run_check(&spec);
            assert_eq!(result.exit_code, Some(0), "{:?}: {}", result.spawn_error, result.output);
            assert_eq!(result.output, later.unwrap_or_default());
            assert!(work.join("new").exists());
        }
    }

    #[test]
    fn in_a_sandbox_nobody_outside_is_signalled_and_the_network_can_be_off() {
        let support = crate::sandbox_support();
        if !support.signals() || !support.network() {
            return;
        }
        let mut outside = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let mut spec = shell(&format!(
            "kill -9 {}; sleep 60 & kill $! && echo own; python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\" && echo connected",
            outside.id()
        ));
        spec.sandbox = Some(SandboxSpec { network: crate::Network::Off, ..SandboxSpec::default() });
        let result = run_check(&spec);
        assert!(outside.try_wait().unwrap().is_none(), "{}", result.output);
        assert!(result.output.contains("own") && !result.output.contains("connected"), "{}", result.output);
        spec.sandbox = None;
        let control = run_check(&spec);
        assert!(control.output.contains("connected"), "{}", control.output);
        assert_eq!(outside.wait().unwrap().signal(), Some(9), "without the sandbox it is killed");
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(run_check(&shell("printf 'a\\377b'")).output, "a\u{fffd}b");
    }

    #[test]
    fn a_timeout_ends_the_whole_group_and_who_left_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = shell(
            "echo before; setsid sh -c 'echo $$ > session; sleep 300' & sleep 300 & echo $! > group; \
             while ! [ -s session ]; do sleep 0.01; done; wait",
        );
        spec.cwd = folder.path().to_owned();
        spec.timeout_ms = Some(700);
        let result = run_check(&spec);
        assert!(result.timed_out && !result.succeeded());
        assert_eq!(result.output, "before\n");
        assert!(result.duration_ms >= 700 && result.duration_ms < 5000, "{}", result.duration_ms);
        for name in ["session", "group"] {
            let pid: i32 = std::fs::read_to_string(folder.path().join(name)).unwrap().trim().parse().unwrap();
            // Killed, and perhaps not waited for yet by init.
            let until = Instant::now() + Duration::from_secs(10);
            while process_table::stat_of(pid).is_some_and(|stat| stat.alive) {
                assert!(Instant::now() < until, "{name} survived");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn a_background_process_that_keeps_the_output_open_is_not_waited_for() {
        let mut spec = shell("sleep 300 & echo started $!");
        spec.timeout_ms = Some(60_000);
        let result = run_check(&spec);
        assert_eq!(result.exit_code, Some(0));
        assert!(!result.timed_out && result.duration_ms < 30_000);
        let pid: i32 = result.output.trim().strip_prefix("started ").unwrap().parse().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        while process_table::stat_of(pid).is_some_and(|stat| stat.alive) {
            assert!(Instant::now() < until, "the background process survived");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn late_output_of_a_background_process_is_read() {
        for _ in 0..20 {
            let result = run_check(&shell("(:; :; echo late) & echo early"));
            assert!(result.output.contains("early\n") && result.output.contains("late\n"), "{result:?}");
        }
    }

    #[test]
    fn many_checks_at_once_do_not_disturb_each_other() {
        std::thread::scope(|scope| {
            for number in 0..16 {
                scope.spawn(move || {
                    for round in 0..10 {
                        let result = run_check(&shell(&format!("echo {number} {round}")));
                        assert_eq!(result.output, format!("{number} {round}\n"));
                    }
                });
            }
        });
    }
}
