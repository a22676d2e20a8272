//! How an agent's output is listened to: by its adapter, as its configuration declares, or as text.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use gatewright_agents::{Adapter, Declared, DeclaredReader, Event, Exit, Reader, ReplyFrom, Told, Usage};
use gatewright_attempts::{AttemptDir, Ended, ExitRecord, OutputStream};
use gatewright_workflow::frozen::Agent;

use crate::purse::{Allowance, Purse};

/// How much of stderr an adapter sees.
const STDERR_BYTES: u64 = 16 * 1024;
/// A longer line is no event of any agent.
const LINE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Who explains an agent's output.
#[derive(Clone)]
pub enum Voice {
    Adapter(&'static dyn Adapter),
    Declared(Declared),
}

impl Voice {
    pub fn of(name: &str, agent: &Agent) -> Voice {
        match agent.adapter(name) {
            Some(adapter) => Voice::Adapter(adapter),
            None => Voice::Declared(agent.declared.clone()),
        }
    }

    /// Nothing, if the output is plain text.
    pub fn reader(&self) -> Option<Box<dyn Reader>> {
        match self {
            Voice::Adapter(adapter) => Some(adapter.reader()),
            Voice::Declared(Declared { reply: ReplyFrom::Text, .. }) => None,
            Voice::Declared(declared) => Some(Box::new(DeclaredReader::new(declared))),
        }
    }

    /// Whether a conversation can go on.
    pub fn resumes(&self) -> bool {
        match self {
            Voice::Adapter(_) => true,
            Voice::Declared(declared) => {
                declared.session.as_ref().is_some_and(|session| !session.resume.is_empty())
            }
        }
    }

    /// What a whole stream says. Nothing for plain text.
    pub fn listen(&self, dir: &AttemptDir, record: &ExitRecord) -> Option<Told> {
        let mut reader = self.reader()?;
        let mut lines = Lines::new(dir.output_path(OutputStream::Stdout));
        lines.each(true, |line| drop(reader.line(line)));
        let stderr = dir
            .read_output_tail(OutputStream::Stderr, STDERR_BYTES)
            .map(|(bytes, _)| bytes)
            .unwrap_or_default();
        let code = match record.ended {
            Ended::Exited { code } => Some(code),
            Ended::Signalled { .. }
            | Ended::TimedOut
            | Ended::Idle
            | Ended::Stopped
            | Ended::Interrupted
            | Ended::StartFailed { .. } => None,
        };
        Some(reader.told(&Exit { code, stderr: &String::from_utf8_lossy(&stderr) }))
    }
}

/// The lines of a file that grows.
pub struct Lines {
    path: PathBuf,
    offset: u64,
}

impl Lines {
    pub fn new(path: PathBuf) -> Lines {
        Lines { path, offset: 0 }
    }

    /// Every whole line since the last call; also the last one without an end if nothing more will come.
    pub fn each(&mut self, over: bool, mut told: impl FnMut(&str)) {
        let Ok(mut file) = File::open(&self.path) else { return };
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return;
        }
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let Ok(read) = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) else { return };
            let whole = line.last() == Some(&b'\n') || read as u64 == LINE_BYTES_MAX;
            if read == 0 || (!whole && !over) {
                return;
            }
            self.offset += read as u64;
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            if !text.trim().is_empty() {
                told(text);
            }
        }
    }
}

/// Follows a stream while its agent works, to see what it spends.
pub struct Meter {
    reader: Option<Box<dyn Reader>>,
    lines: Lines,
    /// In turns of the attempt that are over.
    before: Usage,
    spent: Usage,
}

impl Meter {
    pub fn new(voice: &Voice, stdout: &Path, allowance: &Allowance, before: Usage) -> Meter {
        Meter {
            reader: voice.reader().filter(|_| allowance.is_limited()),
            lines: Lines::new(stdout.to_owned()),
            before,
            spent: Usage::default(),
        }
    }

    /// Whether more was spent, by it and those beside it, than there was.
    pub fn is_over(&mut self, purse: &Purse, allowance: &Allowance) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let spent = &mut self.spent;
        self.lines.each(false, |line| {
            for event in reader.line(line) {
                if let Event::Usage { usage } = event {
                    *spent = usage;
                }
            }
        });
        let sum = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().reduce(u64::saturating_add);
        let all = Usage {
            input_tokens: sum(self.before.tokens(), self.spent.tokens()),
            micro_usd: sum(self.before.micro_usd, self.spent.micro_usd),
            ..Usage::default()
        };
        purse.is_over(allowance, all)
    }
}
