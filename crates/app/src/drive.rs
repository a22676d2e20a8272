//! Drives a run from the terminal: signals, questions, notices; and delivers orders to whoever
//! drives it elsewhere.

use std::{
    collections::BTreeSet,
    io::{BufRead, Write},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use gatewright_core::{
    event::{Event, Pause},
    ids::{DecisionId, StageId},
    input::{Answer, Input},
    state::{RunPhase, State},
    transition,
};
use gatewright_host::{
    clock::Clock,
    document::Extent,
    inbox::{AckOutcome, Inbox, Verdict},
    journal::JournalError,
    launch::context_of,
    perform::LocalPerformer,
    project::RunPaths,
    run_context::RunContext,
    run_loop::{EngineError, Observer, Opened, Order, Rest, RunLoop, read_verified, take_journal},
    run_meta::RunMeta,
    store::outside_word,
    user_key::UserKey,
};

use crate::{
    at_the_end::AtTheEnd,
    command_error::{CommandError, code_of_state, exit},
    definitions::Session,
    render, terminal,
};

pub type Engine = RunLoop<LocalPerformer>;

/// How long a sender waits for an engine that holds the run.
const ACK_PATIENCE: Duration = Duration::from_secs(30);

/// Where a run is and what it was started with, verified.
fn found(session: &Session, id: &str) -> Result<(RunPaths, RunMeta), CommandError> {
    let paths = session.project.run(id);
    let meta = RunMeta::read(session.disk.as_ref(), &paths)?;
    // Runs of before there were keys get one for the orders that are given from now on.
    UserKey::load_or_create(session.project.state_root())?;
    meta.verify(&paths, session.store().key_of(&paths, id).as_ref())?;
    Ok((paths, meta))
}

/// Takes the lock of a run and folds its journal; `None` if another engine holds it.
pub fn open(session: &Session, id: &str) -> Result<Option<Engine>, CommandError> {
    let (paths, meta) = found(session, id)?;
    let key = meta.journal_key(session.store().key_of(&paths, id).as_ref());
    let disk = session.disk.clone();
    // A long run has a long plan and a long journal: they are read beside each other.
    let (frozen, taken) = std::thread::scope(|scope| {
        let plan = scope.spawn(|| read_verified(disk.as_ref(), &paths.plan(&meta.digest), &meta.digest));
        let taken = take_journal(disk.clone(), &paths, &meta.id, key);
        (plan.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), taken)
    });
    let context = context_of(disk.clone(), session.clock.clone(), paths, meta, frozen?);
    match taken.and_then(|taken| RunLoop::take_up(context, LocalPerformer::default(), taken)) {
        Ok(Opened { engine, recovery }) => {
            if recovery.unauthenticated {
                eprintln!("note: the journal of {id} carries no seal of yours: who wrote it cannot be said");
            }
            if let Some(notice) = recovery.notice {
                eprintln!("note: {notice}");
            }
            Ok(Some(engine))
        }
        Err(EngineError::Journal(JournalError::Locked { .. })) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Drives an engine until it rests; the exit code is that of the run's state.
pub fn drive(session: &Session, engine: &mut Engine) -> Result<u8, CommandError> {
    until_it_rests(session, engine).map(|(code, _)| code)
}

/// The same, and then does away with what nobody wants to keep.
pub fn to_the_end(session: &Session, mut engine: Engine) -> Result<u8, CommandError> {
    let (code, chosen) = until_it_rests(session, &mut engine)?;
    let meta = engine.context.meta.clone();
    // Who removes a run takes its lock.
    drop(engine);
    chosen.carry_out(&meta)?;
    Ok(code)
}

fn until_it_rests(session: &Session, engine: &mut Engine) -> Result<(u8, AtTheEnd), CommandError> {
    gatewright_attempts::allocate_together();
    // What was read to get here is not needed any more.
    gatewright_attempts::give_back_memory();
    let (orders, received) = channel();
    listen_to_signals(&orders);
    let somebody = terminal::somebody_is_there();
    let current = Arc::new(Mutex::new(None));
    if somebody {
        read_answers(&orders, &current);
    }
    let mut face = Face {
        inner: render::observer(false),
        asks: somebody,
        current: Arc::clone(&current),
        notify: session.config.notify.clone(),
        announced: through(&engine.context, &engine.state),
    };
    let rest = run(engine, &mut face, &received, somebody)?;
    let word = outside_word(&engine.state, false);
    face.notify(&engine.context, word, &engine.state);
    drop(face);
    conclude(engine, rest, word);
    let asked = somebody && word == "done" && engine.context.frozen.offers_clean;
    let chosen = if asked { ask_at_the_end(engine, &current, &received) } else { AtTheEnd::Keep };
    Ok((if rest == Rest::Left { exit::PAUSED } else { code_of_state(word) }, chosen))
}

/// Whether the files of the run are kept. Who says nothing that can be understood keeps everything.
fn ask_at_the_end(
    engine: &Engine,
    current: &Arc<Mutex<Option<Prompt>>>,
    orders: &Receiver<Order>,
) -> AtTheEnd {
    let (lines, typed) = channel();
    if let Ok(mut current) = current.lock() {
        *current = Some(Prompt::Line(lines));
    }
    // Whoever wants to leave, or is gone, does not delete anything.
    let gone = || {
        let mut orders = std::iter::from_fn(|| orders.try_recv().ok());
        orders.any(|order| !matches!(order, Order::AskAgain))
    };
    AtTheEnd::ask(&engine.context.meta, &typed, &gone)
}

fn run(
    engine: &mut Engine,
    face: &mut Face,
    orders: &Receiver<Order>,
    stay: bool,
) -> Result<Rest, CommandError> {
    engine.run(face, orders, stay).map_err(|error| {
        let id = engine.context.meta.id.clone();
        CommandError::from(error)
            .hint(format!("what was acknowledged is kept; when the cause is mended: gatewright resume {id}"))
    })
}

/// The last words: where the run stands and what to type next.
fn conclude(engine: &Engine, rest: Rest, word: &str) {
    let id = &engine.context.meta.id;
    if rest == Rest::Left {
        eprintln!("left; agents go on. To pick them up again: gatewright resume {id}");
        return;
    }
    if let RunPhase::Paused(Pause::Until { stage }) = &engine.state.phase {
        let next = transition::next(&engine.context.frozen.plan, &engine.state);
        let next = next.map(|next| format!("; next: gatewright phase {} {id}", next.id)).unwrap_or_default();
        eprintln!("{id} rests after {stage}{next}");
        return;
    }
    match word {
        "waiting" => {
            for pending in
                engine.state.queues.pending_decisions.iter().filter_map(|id| engine.state.decisions.get(id))
            {
                let words: Vec<&str> =
                    pending.decision.answers.iter().map(|answer| answer.word.as_str()).collect();
                let words = if words.is_empty() { "\"your answer\"".to_owned() } else { words.join("|") };
                eprintln!(
                    "waiting for you: {}\n  gatewright answer {id} {} {words}",
                    pending.decision.question, pending.decision.id
                );
            }
        }
        "blocked" | "paused" => {
            let by = gatewright_core::explain::blocked_by(&engine.context.frozen.plan, &engine.state);
            eprintln!("{word}: {}", by.map(|by| by.message).unwrap_or_default());
            eprintln!("\nhint: gatewright why {id}");
            for command in render::commands_for::remedies(id, &engine.state, false) {
                eprintln!("hint: {command}");
            }
        }
        _ => eprintln!("{word}: {id}"),
    }
}

/// The first interrupt is a `stop`, the second (or a hang-up) leaves at once.
fn listen_to_signals(orders: &Sender<Order>) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    let orders = orders.clone();
    std::thread::spawn(move || {
        let mut asked = false;
        for signal in signals.forever() {
            let leaves = asked || signal == SIGHUP;
            let order = if leaves { Order::Leave } else { Order::Input(Input::Stop) };
            if !leaves {
                eprintln!("\nstopping when running attempts have finished; once more to leave at once");
            }
            asked = true;
            if orders.send(order).is_err() {
                return;
            }
        }
    });
}

/// What the next line that is typed at the terminal means.
#[derive(Clone)]
enum Prompt {
    Answer(DecisionId),
    /// An approval with a comment: is the comment a condition?
    Confirm(Answer),
    /// Whatever it is: somebody waits for it.
    Line(Sender<String>),
}

impl Prompt {
    fn taken(self, line: &str) -> Order {
        match self {
            Prompt::Answer(decision) => Order::Input(Input::Answer(answer(&decision, line, "terminal"))),
            Prompt::Confirm(answer) if matches!(line.trim().to_lowercase().as_str(), "y" | "yes") => {
                Order::Input(Input::Answer(Answer { confirmed: true, ..answer }))
            }
            Prompt::Confirm(_) => Order::AskAgain,
            Prompt::Line(waiting) => {
                // Nobody waiting any more is no reason to end.
                let _ = waiting.send(line.to_owned());
                Order::AskAgain
            }
        }
    }
}

/// Lines typed at the terminal are answers to the question that is shown.
fn read_answers(orders: &Sender<Order>, current: &Arc<Mutex<Option<Prompt>>>) {
    let (orders, current) = (orders.clone(), Arc::clone(current));
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let asked = current.lock().ok().and_then(|asked| asked.clone());
            let Some(prompt) = asked else { continue };
            if orders.send(prompt.taken(&line)).is_err() {
                return;
            }
        }
        let _ = orders.send(Order::NobodyAnswers);
    });
}

/// An answer with nothing but its words.
pub fn answer(decision: &DecisionId, value: &str, channel: &str) -> Answer {
    Answer {
        decision: decision.clone(),
        value: value.to_owned(),
        comment: None,
        route: None,
        confirmed: false,
        channel: channel.to_owned(),
        seen: std::collections::BTreeMap::new(),
    }
}

/// What a person sees, plus questions at the terminal and notices.
struct Face {
    inner: Box<dyn Observer>,
    asks: bool,
    current: Arc<Mutex<Option<Prompt>>>,
    notify: Vec<String>,
    /// Stages that are through and of which that was said.
    announced: BTreeSet<StageId>,
}

/// Stages with something to say that are through.
fn through(context: &RunContext, state: &State) -> BTreeSet<StageId> {
    let stages = context.frozen.announce.keys().filter_map(|id| state.graph(&context.frozen.plan).stage(id));
    let done = stages.filter(|stage| stage.disabled.is_none() && transition::is_through(state, stage));
    done.map(|stage| stage.id.clone()).collect()
}

impl Observer for Face {
    fn events(&mut self, context: &RunContext, state: &State, events: &[Event]) {
        self.inner.events(context, state, events);
        self.announce(context, state);
    }

    fn asked(&mut self, context: &RunContext, state: &State, open: &BTreeSet<DecisionId>) {
        self.inner.asked(context, state, open);
        let first = open.first().cloned();
        if let Ok(mut current) = self.current.lock() {
            *current = first.clone().map(Prompt::Answer);
        }
        let Some(pending) = first.and_then(|id| state.decisions.get(&id)) else { return };
        if self.asks {
            ask(context, pending);
            self.notify(context, "waiting", state);
        }
    }

    fn confirm(&mut self, _context: &RunContext, answer: &Answer) {
        if let Ok(mut current) = self.current.lock() {
            *current = Some(Prompt::Confirm(answer.clone()));
        }
        let mut out = std::io::stderr().lock();
        // A terminal that is gone cannot be told so.
        let _ = writeln!(out, "A comment beside an approval may be a condition; nobody would act on it.");
        let _ = write!(out, "Really approve `{}` with this comment? (yes | no) > ", answer.decision);
        let _ = out.flush();
    }

    fn tick(&mut self, context: &RunContext, state: &State) {
        self.inner.tick(context, state);
    }
}

fn ask(context: &RunContext, pending: &gatewright_core::state::DecisionState) {
    let mut out = std::io::stderr().lock();
    // A terminal that is gone cannot be told so.
    let _ = writeln!(out, "\n{}", pending.decision.question);
    for name in &pending.decision.show {
        let _ = writeln!(out, "  see {}", context.meta.run_dir.join(name.as_str()).display());
    }
    let words: Vec<&str> = pending.decision.answers.iter().map(|answer| answer.word.as_str()).collect();
    if !words.is_empty() {
        let _ = writeln!(out, "  answers: {} (a comment may follow after a colon)", words.join(" | "));
    }
    let _ = write!(out, "{} > ", pending.decision.id);
    let _ = out.flush();
}

impl Face {
    /// What the definition has to say of stages that are through now.
    fn announce(&mut self, context: &RunContext, state: &State) {
        let through = through(context, state);
        for stage in through.difference(&self.announced) {
            let Some(text) = context.frozen.announce.get(stage) else { continue };
            let document = context.document(state, Extent::All);
            match context.render("announce", text, &document) {
                Ok(text) => self.inner.warn(text.trim()),
                Err(problem) => self.inner.warn(&format!("{stage}: {problem}")),
            }
        }
        self.announced = through;
    }

    /// Rings, and runs the configured command, when a person is needed or the run has ended.
    fn notify(&self, context: &RunContext, word: &str, state: &State) {
        if !matches!(word, "waiting" | "done" | "failed" | "blocked" | "paused" | "abandoned") {
            return;
        }
        let title = format!("gatewright: {word}");
        let body = format!("{} ({})", context.meta.id, state.request.lines().next().unwrap_or_default());
        terminal::ring(&format!("{title}: {body}"));
        if self.notify.is_empty() {
            return;
        }
        let fill = |part: &str, quote: bool| {
            let shown = |text: &str| {
                if quote { format!("'{}'", text.replace('\'', "'\\''")) } else { text.to_owned() }
            };
            part.replace("{title}", &shown(&title))
                .replace("{body}", &shown(&body))
                .replace("{run}", &shown(&context.meta.id))
        };
        let line: Vec<String> = match self.notify.as_slice() {
            [line] => vec!["/bin/sh".to_owned(), "-c".to_owned(), fill(line, true)],
            parts => parts.iter().map(|part| fill(part, false)).collect(),
        };
        // Not below this process: it is a command of the user's, who may answer with it.
        let apart = r#"command -v "$1" >&2 || exit 127; "$@" &"#;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", apart, "notify"]).args(&line);
        let told = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let problem = match told {
            Ok(status) if status.success() => return,
            Ok(_) => format!("`{}` cannot be started", line[0]),
            Err(error) => error.to_string(),
        };
        eprintln!("warning: the notification could not be sent: {problem}");
    }
}

/// What became of an order.
pub enum Delivered {
    /// The engine that holds the run took it.
    ByEngine,
    /// Nobody held the run: it was taken here, and this is its engine.
    Here(Box<Engine>),
}

/// Gives an order to the engine of a run, or takes the run over and carries it out.
pub fn deliver(session: &Session, id: &str, input: &Input) -> Result<Delivered, CommandError> {
    let paths = session.project.run(id);
    let store = session.store();
    loop {
        if store.is_held(&paths) {
            let body = serde_json::to_string(input)?;
            let key = UserKey::load_or_create(session.project.state_root())?.for_run(id);
            let at_ms = session.clock.now().0;
            let sent = Inbox::send_order(session.disk.as_ref(), &paths.inbox(), at_ms, Some(&key), &body)?;
            let free = || !store.is_held(&paths);
            match Inbox::wait_for_ack(
                session.disk.as_ref(),
                &paths.inbox(),
                &sent,
                Instant::now() + ACK_PATIENCE,
                &free,
            )? {
                AckOutcome::Acked(ack) if ack.verdict == Verdict::Accepted => return Ok(Delivered::ByEngine),
                AckOutcome::Acked(ack) => return Err(CommandError::refused(ack.message)),
                AckOutcome::TimedOut => {
                    return Err(CommandError::failed(format!("the engine of {id} did not answer"))
                        .hint("the order stays in its inbox and will be read"));
                }
                // Our message is in the inbox: whoever opens the run reads it first.
                AckOutcome::LockIsFree => {
                    let Some(mut engine) = open(session, id)? else { continue };
                    let acknowledged = engine.drain_inbox()?;
                    let ack = acknowledged.into_iter().find(|(other, _)| *other == sent).map(|(_, ack)| ack);
                    return match ack {
                        Some(ack) if ack.verdict == Verdict::Refused => {
                            Err(CommandError::refused(ack.message))
                        }
                        Some(_) | None => Ok(Delivered::Here(Box::new(engine))),
                    };
                }
            }
        }
        let Some(mut engine) = open(session, id)? else { continue };
        return match engine.human(input)? {
            Ok(_) => Ok(Delivered::Here(Box::new(engine))),
            Err(rejected) => Err(CommandError::refused(rejected)),
        };
    }
}

/// Goes on with a run that was taken over: here, or in the background if it was started so.
pub fn go_on(session: &Session, engine: Box<Engine>) -> Result<u8, CommandError> {
    if engine.context.meta.detached && !engine.state.is_over() {
        let id = engine.context.meta.id.clone();
        drop(engine);
        return start_in_background(session, &id);
    }
    to_the_end(session, *engine)
}

/// Starts `gatewright engine RUN` in a session of its own.
pub fn start_in_background(session: &Session, id: &str) -> Result<u8, CommandError> {
    use std::os::unix::process::CommandExt;
    let log =
        std::fs::OpenOptions::new().create(true).append(true).open(session.project.run(id).engine_log())?;
    let program = gatewright_host::launch::own_program();
    Command::new(program)
        .args(["engine", id])
        .current_dir(&session.project.root)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()?;
    Ok(exit::DONE)
}

/// A run that rests may have been killed between its last record and its last file; whoever looks at
/// it next brings the files up to date. Quietly: looking must work on a read-only disk too.
pub fn tidy(session: &Session, id: &str) {
    let paths = session.project.run(id);
    let store = session.store();
    if store.is_held(&paths)
        || gatewright_host::summary::read(session.disk.as_ref(), &paths, id).is_some()
        || store.continued_by(id).is_some()
    {
        return;
    }
    let rests = store
        .snapshot(id, None)
        .is_ok_and(|snapshot| snapshot.state.status() != gatewright_core::state::RunStatus::Running);
    if rests && let Ok(Some(mut engine)) = open(session, id) {
        let _ = engine.tidy();
    }
}
