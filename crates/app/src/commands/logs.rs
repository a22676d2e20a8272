//! `gatewright logs` and `gatewright events`: what agents printed, and the journal itself.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{IsTerminal, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gatewright_agents::Reader;
use gatewright_attempts::{AttemptDir, OutputStream};
use gatewright_core::{
    event::Event,
    fact::CheckFact,
    ids::{AgentId, StepId},
};
use gatewright_host::{
    journal::{JournalReader, Record},
    mask::{MaskedStream, Masks},
    perform::{check::check_output_file, repair},
    project::RunPaths,
    run_masks,
    run_meta::RunMeta,
    store::{RunStore, Snapshot},
    voice::{Lines, Voice},
};
use gatewright_workflow::frozen::Agent;

use crate::{
    cli::{EventsArgs, LogsArgs},
    command_error::{CommandError, exit},
    commands::{activity::Activity, why::find_step},
    definitions::Session,
    render::{
        agent_line,
        text::{clean, count, flush, one_line, put},
    },
};

const POLL: Duration = Duration::from_millis(100);
/// A run that was just started in the background is not held yet.
const START_PATIENCE: Duration = Duration::from_secs(3);
/// Output goes through a buffer of this size, however much there is.
const BUFFER_BYTES: usize = 64 * 1024;

pub fn events(args: &EventsArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let store = session.store();
    let id = store.find(&args.run)?;
    let mut follower = Follower::new(&store, &id);
    let mut activity = args.agents.then(Activity::default);
    loop {
        let (records, rests) = follower.read()?;
        for record in &records {
            if let Some(activity) = &mut activity {
                for event in activity.before(&store, &id, record) {
                    put(format!("{event}\n").as_bytes())?;
                }
            }
            put(record.line().as_bytes())?;
            put(b"\n")?;
        }
        for event in activity.as_mut().map(Activity::since).unwrap_or_default() {
            put(format!("{event}\n").as_bytes())?;
        }
        flush()?;
        // Whatever is wrong behind the last good record is said by the next reading.
        if records.is_empty() && (!args.follow || rests) {
            return Ok(exit::DONE);
        }
        if args.follow {
            std::thread::sleep(POLL);
        }
    }
}

/// Reads a journal as it grows and notices when it will not any more.
struct Follower<'a> {
    store: &'a RunStore,
    id: &'a str,
    reader: JournalReader,
    since: Instant,
    seen: bool,
    over: bool,
}

impl<'a> Follower<'a> {
    fn new(store: &'a RunStore, id: &'a str) -> Follower<'a> {
        let paths = store.project.run(id);
        // A run whose beginning cannot be read is read without its key: the records say what is wrong.
        let meta = RunMeta::read(store.disk.as_ref(), &paths).ok();
        let key = meta.and_then(|meta| meta.journal_key(store.key_of(&paths, id).as_ref()));
        let reader = JournalReader::follow(store.disk.clone(), &paths.journal(), id, key);
        Follower { store, id, reader, since: Instant::now(), seen: false, over: false }
    }

    /// New records, and whether these were the last for now.
    fn read(&mut self) -> Result<(Vec<Record>, bool), CommandError> {
        // Asked before reading: what a leaving engine wrote last is then read below.
        let held = self.store.is_held(&self.store.project.run(self.id));
        let records = self.reader.read_new()?;
        self.seen |= held || records.iter().any(|record| record.event_type() != "run.started");
        for record in &records {
            match record.event_type() {
                "run.ended" => self.over = true,
                "run.resumed" | "stage.restarted" => self.over = false,
                _ => {}
            }
        }
        let begun = self.seen || self.since.elapsed() > START_PATIENCE;
        let rests = records.is_empty() && (self.over || (!held && begun));
        Ok((records, rests))
    }
}

pub fn logs(args: &LogsArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let store = session.store();
    let id = store.find(&args.run)?;
    let snapshot = store.snapshot(&id, None)?;
    let step = args.step.as_ref().map(|wanted| find_step(&snapshot, wanted)).transpose()?;
    let mut screen = Screen {
        escape: std::io::stdout().is_terminal(),
        headers: true,
        last: None,
        growing: args.follow,
        agents: snapshot.frozen.agents.clone(),
        readers: BTreeMap::new(),
        masks: run_masks::of_reader(&snapshot.paths, &snapshot.frozen),
        streams: BTreeMap::new(),
    };
    if args.follow {
        follow(&store, &id, step.as_ref(), args, &mut screen)?;
        return Ok(exit::DONE);
    }
    let pieces = pieces(&snapshot, step.as_ref(), args.attempt, args.raw)?;
    screen.headers = pieces.len() > 1;
    for piece in &pieces {
        screen.print(piece, &mut 0)?;
    }
    if pieces.is_empty() {
        eprintln!("nothing was printed so far");
    }
    flush()?;
    Ok(exit::DONE)
}

/// Something that was printed: a file that may be long and may grow, or a text of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    title: String,
    source: Source,
    /// Where all of it is, if it is a check's.
    file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    /// The stream of an agent, told in words.
    Stream {
        path: PathBuf,
        agent: String,
    },
    Text(String),
}

impl Piece {
    fn check(step: &StepId, attempt: u32, check: &str, fact: &CheckFact) -> Piece {
        let verdict = if fact.ok { "ok".to_owned() } else { one_line(&fact.message) };
        Piece {
            title: format!("{step}, attempt {attempt}, check {check}: {verdict}"),
            source: Source::Text(fact.output.clone()),
            file: Some(check_output_file(Some(check).filter(|check| !check.is_empty()))),
        }
    }

    /// With all that is kept of a check's output, where the record has only its end.
    fn whole(mut self, paths: &RunPaths, step: &StepId, attempt: u32) -> Piece {
        if let Some(file) = &self.file {
            let path = paths.attempt(step.as_str(), attempt).join(file);
            if let Ok(text) = std::fs::read_to_string(path) {
                self.source = Source::Text(text);
            }
        }
        self
    }

    fn is_empty(&self) -> bool {
        match &self.source {
            Source::File(path) | Source::Stream { path, .. } => {
                std::fs::metadata(path).map_or(true, |data| data.len() == 0)
            }
            Source::Text(text) => text.is_empty(),
        }
    }
}

/// Files of one attempt, and of the turns that mended it.
fn files(paths: &RunPaths, step: &StepId, attempt: u32, agent: Option<&str>) -> Vec<Piece> {
    let main = AttemptDir { path: paths.attempt(step.as_str(), attempt) };
    let mends = (1..)
        .map(|number| (format!(", repair {number}"), AttemptDir { path: repair::turn_dir(&main, number) }));
    let mends = mends.take_while(|(_, dir)| dir.path.exists());
    std::iter::once((String::new(), main.clone()))
        .chain(mends)
        .flat_map(|(which, dir)| {
            [(OutputStream::Stdout, "stdout"), (OutputStream::Stderr, "stderr")].map(|(stream, name)| {
                let path = dir.output_path(stream);
                let source = match agent.filter(|_| stream == OutputStream::Stdout) {
                    Some(agent) => Source::Stream { path, agent: agent.to_owned() },
                    None => Source::File(path),
                };
                Piece { title: format!("{step}, attempt {attempt}{which}, {name}"), source, file: None }
            })
        })
        .collect()
}

/// The agent that plays a step, if its output is a stream that can be told in words.
fn agent_of(snapshot: &Snapshot, step: &StepId, raw: bool) -> Option<String> {
    let definition = snapshot.state.definition(&snapshot.frozen.plan, step)?;
    let name = definition.agent()?;
    let agent = snapshot.frozen.agents.get(name)?;
    (!raw && Voice::of(name.as_str(), agent).reader().is_some()).then(|| name.to_string())
}

/// What is printed without `-f`: of each step its last attempt, or the one that was asked for.
fn pieces(
    snapshot: &Snapshot,
    step: Option<&StepId>,
    attempt: Option<u32>,
    raw: bool,
) -> Result<Vec<Piece>, CommandError> {
    let mut order: Vec<StepId> = Vec::new();
    let mut last: BTreeMap<StepId, u32> = BTreeMap::new();
    let mut checks: BTreeMap<(StepId, u32), Vec<Piece>> = BTreeMap::new();
    for record in &snapshot.records {
        let Some(told) = told(record) else { continue };
        match told {
            Told::Started(id, number) => {
                order.retain(|known| *known != id);
                order.push(id.clone());
                last.insert(id, number);
            }
            Told::Checked(id, number, piece) => {
                checks.entry((id.clone(), number)).or_default().push(piece.whole(
                    &snapshot.paths,
                    &id,
                    number,
                ));
            }
        }
    }
    let wanted = |id: &StepId| {
        step.is_none_or(|step| {
            id == step || id.as_str().strip_prefix(step.as_str()).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    let mut pieces = Vec::new();
    for id in order.iter().filter(|id| wanted(id)) {
        let newest = last.get(id).copied().unwrap_or(0);
        let number = attempt.unwrap_or(newest);
        if number == 0 || number > newest {
            if step.is_some() {
                return Err(CommandError::usage(format!("`{id}` has no attempt {number}"))
                    .hint(format!("it had {}", count(newest as usize, "attempt"))));
            }
            continue;
        }
        pieces.extend(files(&snapshot.paths, id, number, agent_of(snapshot, id, raw).as_deref()));
        pieces.extend(checks.remove(&(id.clone(), number)).unwrap_or_default());
    }
    pieces.retain(|piece| !piece.is_empty());
    Ok(pieces)
}

enum Told {
    Started(StepId, u32),
    Checked(StepId, u32, Piece),
}

fn told(record: &Record) -> Option<Told> {
    if !matches!(record.event_type(), "step.attempt.started" | "step.attempt.ended" | "step.check.ended") {
        return None;
    }
    match record.event::<Event>().ok()? {
        Event::AttemptStarted { step, attempt, .. } => Some(Told::Started(step, attempt)),
        Event::AttemptEnded { step, attempt, report } => {
            let piece = Piece::check(&step, attempt, "", report.check.as_ref()?);
            Some(Told::Checked(
                step,
                attempt,
                Piece { title: piece.title.replace("check : ", "check: "), ..piece },
            ))
        }
        Event::CheckEnded { step, attempt, check, fact } => {
            let piece = Piece::check(&step, attempt, check.as_str(), &fact);
            Some(Told::Checked(step, attempt, piece))
        }
        _ => None,
    }
}

/// Prints what there is, then what comes, until nobody drives the run.
fn follow(
    store: &RunStore,
    run: &str,
    step: Option<&StepId>,
    args: &LogsArgs,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let attempt = args.attempt;
    let paths = store.project.run(run);
    let mut follower = Follower::new(store, run);
    let mut open: Vec<(Piece, u64)> = Vec::new();
    let mut started: Vec<(StepId, u32, Option<String>)> = Vec::new();
    let mut more = false;
    let wanted = |id: &StepId, number: u32| {
        step.is_none_or(|step| {
            id == step || id.as_str().strip_prefix(step.as_str()).is_some_and(|rest| rest.starts_with('/'))
        }) && attempt.is_none_or(|attempt| attempt == number)
    };
    loop {
        let (records, rests) = follower.read()?;
        for record in &records {
            match told(record) {
                Some(Told::Started(id, number)) if wanted(&id, number) => {
                    // Which agent it is stands in the plan that holds now.
                    let agent = store.snapshot(run, None).ok().and_then(|now| agent_of(&now, &id, args.raw));
                    started.push((id, number, agent));
                    more = true;
                }
                Some(Told::Checked(id, number, piece)) if wanted(&id, number) => {
                    screen.print(&piece.whole(&paths, &id, number), &mut 0)?;
                }
                Some(_) | None => {}
            }
        }
        screen.growing = !rests;
        // It may have been given something else than those before it.
        if std::mem::take(&mut more)
            && let Ok(now) = store.snapshot(run, None)
        {
            screen.masks = run_masks::of_reader(&now.paths, &now.frozen);
        }
        for (id, number, agent) in &started {
            // A turn that mends begins later than its attempt.
            for piece in files(&paths, id, *number, agent.as_deref()) {
                if !open.iter().any(|(known, _)| known.title == piece.title) {
                    open.push((piece, 0));
                }
            }
        }
        for (piece, offset) in &mut open {
            screen.print(piece, offset)?;
        }
        flush()?;
        if rests {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
}

/// Stdout, and which piece was printed last.
struct Screen {
    /// More may come: the beginning of a line is kept until the line is whole.
    growing: bool,
    /// At a terminal, control characters of agents are shown instead of obeyed.
    escape: bool,
    headers: bool,
    last: Option<String>,
    agents: BTreeMap<AgentId, Agent>,
    /// Streams that are being told, by their file.
    readers: BTreeMap<PathBuf, (Box<dyn Reader>, Lines)>,
    /// What must not be shown: what the run's agents and checks were given, and what looks like a secret.
    masks: Masks,
    /// Plain output that is being shown, by its file.
    streams: BTreeMap<PathBuf, MaskedStream>,
}

impl Screen {
    /// Prints a piece from `offset` on and moves it.
    fn print(&mut self, piece: &Piece, offset: &mut u64) -> Result<(), CommandError> {
        match &piece.source {
            Source::Text(text) => {
                if *offset == 0 {
                    self.header(piece)?;
                    let text = self.masks.mask(text).into_owned();
                    self.put(text.as_bytes())?;
                    if !text.ends_with('\n') {
                        put(b"\n")?;
                    }
                    *offset = 1;
                }
            }
            Source::Stream { path, agent } => self.tell(piece, path, agent)?,
            Source::File(path) => {
                let Ok(mut file) = File::open(path) else { return Ok(()) };
                file.seek(SeekFrom::Start(*offset))?;
                let mut stream =
                    self.streams.remove(path).unwrap_or_else(|| MaskedStream::new(Masks::default()));
                stream.set_masks(&self.masks);
                loop {
                    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
                    let read = (&mut file).take(BUFFER_BYTES as u64).read_to_end(&mut buffer)?;
                    *offset += read as u64;
                    let ends = read < BUFFER_BYTES;
                    let shown = stream.push(&buffer, ends && !self.growing);
                    if !shown.is_empty() {
                        self.header(piece)?;
                        self.put(&shown)?;
                    }
                    if ends {
                        break;
                    }
                }
                self.streams.insert(path.clone(), stream);
            }
        }
        Ok(())
    }

    /// What a stream says, in words.
    fn tell(&mut self, piece: &Piece, path: &Path, agent: &str) -> Result<(), CommandError> {
        if !self.readers.contains_key(path) {
            let voice = self.agents.get(agent).map(|known| Voice::of(agent, known));
            let Some(reader) = voice.and_then(|voice| voice.reader()) else { return Ok(()) };
            self.readers.insert(path.to_owned(), (reader, Lines::new(path.to_owned())));
        }
        let Some((reader, lines)) = self.readers.get_mut(path) else { return Ok(()) };
        let mut words = Vec::new();
        lines.each(!self.growing, |line| {
            words.extend(reader.line(line).iter().filter_map(agent_line::log_line));
        });
        if !words.is_empty() {
            self.header(piece)?;
            let text = format!("{}\n", words.join("\n"));
            let text = self.masks.mask(&text).into_owned();
            self.put(text.as_bytes())?;
        }
        Ok(())
    }

    fn header(&mut self, piece: &Piece) -> Result<(), CommandError> {
        if self.headers && self.last.as_deref() != Some(piece.title.as_str()) {
            let gap = if self.last.is_some() { "\n" } else { "" };
            put(format!("{gap}==> {} <==\n", one_line(&piece.title)).as_bytes())?;
            self.last = Some(piece.title.clone());
        }
        Ok(())
    }

    fn put(&self, bytes: &[u8]) -> Result<(), CommandError> {
        if self.escape {
            Ok(put(clean(&String::from_utf8_lossy(bytes)).as_bytes())?)
        } else {
            Ok(put(bytes)?)
        }
    }
}
