//! Processes of the binary: run to the end, or held while something is done to them.

use std::{
    io::Write,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{DEADLINE, wait_for};

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Fails with everything that was printed unless the exit code is this.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "exit code\n--- stdout\n{}\n--- stderr\n{}", self.out, self.err);
        self
    }

    /// The first line of stdout: the run id.
    #[track_caller]
    pub fn id(&self) -> String {
        let first = self.out.lines().next();
        first.unwrap_or_else(|| panic!("no run id; stderr: {}", self.err)).to_owned()
    }

    /// Fails unless stdout has this.
    #[track_caller]
    pub fn prints(self, text: &str) -> Ran {
        assert!(self.out.contains(text), "stdout does not have {text:?}:\n{}", self.out);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Ran {
        assert!(self.err.contains(text), "stderr does not say {text:?}:\n{}", self.err);
        self
    }
}

/// A command that has not ended yet. Its output goes to files, so that it never waits for a reader.
pub struct Running {
    child: Child,
    out: std::path::PathBuf,
    err: std::path::PathBuf,
}

impl Running {
    pub fn start(command: &mut Command, dir: &Path, stdin: Option<&str>) -> Running {
        let kept = tempfile::tempdir_in(dir).unwrap().keep();
        let (out, err) = (kept.join("out"), kept.join("err"));
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().unwrap();
        if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
            // A command that never reads its stdin may be gone by now.
            let _ = pipe.write_all(text.as_bytes());
        }
        Running { child, out, err }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Where its stdout goes.
    pub fn out_path(&self) -> &Path {
        &self.out
    }

    pub fn out(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.out).unwrap()).into_owned()
    }

    pub fn err(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.err).unwrap()).into_owned()
    }

    /// The run id, as soon as it is printed.
    pub fn id(&self) -> String {
        wait_for("the run id on stdout", || {
            self.out().split_once('\n').map(|(first, _)| first.to_owned()).filter(|first| !first.is_empty())
        })
    }

    /// Waits for the end; a command that hangs is killed and fails the test.
    #[track_caller]
    pub fn ended(mut self) -> Ran {
        let deadline = Instant::now() + DEADLINE;
        let status: ExitStatus = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                panic!("the command hangs\n--- stdout\n{}\n--- stderr\n{}", self.out(), self.err());
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let code = status.code().unwrap_or_else(|| -signal.unwrap_or_default());
        Ran { code, out: self.out(), err: self.err() }
    }
}
