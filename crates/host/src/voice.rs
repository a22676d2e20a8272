//! How an agent's output is listened to: by its adapter, as its configuration declares, or as text.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::PathBuf,
    time::{Duration, Instant},
};

use gatewright_agents::{Adapter, Declared, DeclaredReader, Event, Exit, Reader, ReplyFrom, Told, Usage};
use gatewright_attempts::{AttemptDir, Ended, ExitRecord, OutputStream, request_stop};
use gatewright_core::fact::TroubleKind;
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

    /// Whether the id of a new conversation is chosen by us.
    pub fn chooses_session(&self) -> bool {
        match self {
            Voice::Adapter(adapter) => adapter.capabilities().session_chosen,
            Voice::Declared(declared) => declared
                .session
                .as_ref()
                .is_some_and(|session| session.start.iter().any(|part| part.contains("{session}"))),
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

    /// Only what comes from now on.
    fn at_end(path: PathBuf) -> Lines {
        let offset = std::fs::metadata(&path).map_or(0, |data| data.len());
        Lines { path, offset }
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

/// An agent that waits longer than this for its provider's limit need not be there meanwhile.
const OWN_WAIT_MAX_MS: u64 = 30_000;

/// Follows a stream while its agent works, to see what it spends and whether it only waits.
pub struct Meter {
    reader: Option<Box<dyn Reader>>,
    limited: bool,
    lines: Lines,
    errors: Lines,
    /// In turns of the attempt that are over.
    before: Usage,
    spent: Usage,
    /// The conversation that it told, until somebody asks.
    session: Option<String>,
    /// Since when it has said nothing but that it waits, and how long it may.
    waits_since: Option<Instant>,
    patience: Duration,
}

impl Meter {
    /// `patience`: how long it may be idle.
    pub fn new(
        voice: &Voice,
        dir: &AttemptDir,
        allowance: &Allowance,
        before: Usage,
        patience: Duration,
    ) -> Meter {
        Meter {
            reader: voice.reader(),
            limited: allowance.is_limited(),
            lines: Lines::new(dir.output_path(OutputStream::Stdout)),
            // A wait that an earlier engine may have seen the end of is none of this one's.
            errors: Lines::at_end(dir.output_path(OutputStream::Stderr)),
            before,
            spent: Usage::default(),
            session: None,
            waits_since: None,
            patience,
        }
    }

    /// The conversation that it has told since the last time.
    pub fn new_session(&mut self) -> Option<String> {
        self.session.take()
    }

    /// Ends an attempt that has spent what there was, or that would only wait until its provider's limit is over: the run
    /// waits for that without a process. To say again and again that it waits is to be idle, too.
    pub fn watch(&mut self, dir: &AttemptDir, purse: &Purse, allowance: &Allowance) {
        let over = self.is_over(purse, allowance);
        let rests = self.rests();
        if rests {
            // What ended it is known to the next engine too. Without the mark it counts as interrupted.
            let _ = std::fs::write(dir.path.join(RESTS), "");
        }
        if over || rests {
            let _ = request_stop(dir);
        }
    }

    fn rests(&mut self) -> bool {
        let Some(trouble) = self.reader.as_ref().and_then(|reader| reader.waits()) else {
            self.waits_since = None;
            return false;
        };
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let until_the_limit_is_over =
            trouble.kind == TroubleKind::Rate && trouble.wait_ms.is_some_and(|wait| wait > OWN_WAIT_MAX_MS);
        until_the_limit_is_over || since.elapsed() >= self.patience
    }

    /// Whether more was spent, by it and those beside it, than there was.
    fn is_over(&mut self, purse: &Purse, allowance: &Allowance) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let (spent, begun) = (&mut self.spent, &mut self.session);
        self.lines.each(false, |line| {
            for event in reader.line(line) {
                match event {
                    Event::Usage { usage } => *spent = usage,
                    Event::Started { session: Some(session), .. } => *begun = Some(session),
                    Event::Started { session: None, .. }
                    | Event::Text { .. }
                    | Event::ToolStarted { .. }
                    | Event::ToolEnded { .. }
                    | Event::Waiting { .. }
                    | Event::Denied { .. }
                    | Event::Finished { .. }
                    | Event::Unknown { .. } => {}
                }
            }
        });
        self.errors.each(false, |line| reader.aside(line));
        let sum = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().reduce(u64::saturating_add);
        let all = Usage {
            input_tokens: sum(self.before.tokens(), self.spent.tokens()),
            micro_usd: sum(self.before.micro_usd, self.spent.micro_usd),
            ..Usage::default()
        };
        self.limited && purse.is_over(allowance, all)
    }
}

/// The mark of an attempt that was ended because it only waited for its provider.
const RESTS: &str = "rests";

/// Whether an attempt was ended for that.
pub fn was_resting(dir: &AttemptDir) -> bool {
    dir.path.join(RESTS).exists()
}
