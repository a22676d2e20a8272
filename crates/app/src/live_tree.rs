//! The observer on a terminal: the tree of a run, redrawn in place on stderr. Uses only cursor
//! movement and erasing; the cursor is never hidden, so nothing has to be repaired after a kill.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    time::{Duration, Instant},
};

use gatewright_agents::{Event, Reader};
use gatewright_attempts::{AttemptDir, OutputStream};
use gatewright_core::{
    event::Event as RunEvent,
    ids::{DecisionId, StepId, Timestamp},
    plan::Plan,
    state::{Phase, RunStatus, ScopeId, Spent, State},
};
use gatewright_host::{
    document::status_word,
    perform::repair,
    run_context::RunContext,
    run_loop::Observer,
    voice::{Lines, Voice},
};

use crate::{
    render::{
        agent_line,
        event_line::event_line,
        rows::{self, Row},
        text::{fit, one_line},
    },
    terminal::{self, Style, mark_of, paint, style_of},
};

const DRAW_EVERY: Duration = Duration::from_millis(100);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Items of one fan-out that are shown at the same time.
const ITEMS_MAX: usize = 12;

/// Where the picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub lines: usize,
}

/// A tree that is redrawn in place. While a person is asked it stands still and tells events as
/// lines, so that the question and what is typed are not painted over.
pub struct LiveTree<W: Write> {
    out: W,
    drawn_lines: usize,
    frame: usize,
    drawn_at: Option<Instant>,
    asking: bool,
    /// What the agents of live attempts do.
    watched: BTreeMap<(StepId, u32), Watched>,
}

/// One live attempt and what was last seen of it.
struct Watched {
    /// The turn that is looked at: the first, or one that mends.
    turn: u32,
    reader: Option<Box<dyn Reader>>,
    lines: Lines,
    doing: String,
    /// Tools that have begun and not ended.
    tools: u32,
    tokens: String,
}

impl<W: Write> LiveTree<W> {
    pub fn new(out: W) -> LiveTree<W> {
        LiveTree { out, drawn_lines: 0, frame: 0, drawn_at: None, asking: false, watched: BTreeMap::new() }
    }

    /// Looks at what the agents of live attempts printed since the last time.
    fn look(&mut self, context: &RunContext, state: &State) -> BTreeMap<StepId, String> {
        let live: BTreeSet<(StepId, u32)> = state
            .steps
            .iter()
            .filter_map(|(id, own)| match own.phase {
                Phase::Running { attempt } => Some((id.clone(), attempt)),
                _ => None,
            })
            .collect();
        self.watched.retain(|key, _| live.contains(key));
        for (id, attempt) in live {
            let agent = state.definition(&context.frozen.plan, &id).and_then(|definition| definition.agent());
            let Some((name, agent)) =
                agent.and_then(|name| Some((name.as_str(), context.frozen.agents.get(name)?)))
            else {
                continue;
            };
            let first = AttemptDir { path: context.paths.attempt(id.as_str(), attempt) };
            let begin = |turn: u32, dir: &AttemptDir| Watched {
                turn,
                reader: Voice::of(name, agent).reader(),
                lines: Lines::new(dir.output_path(OutputStream::Stdout)),
                doing: String::new(),
                tools: 0,
                tokens: String::new(),
            };
            let watched = self.watched.entry((id, attempt)).or_insert_with(|| begin(0, &first));
            let next = AttemptDir { path: repair::turn_dir(&first, watched.turn + 1) };
            if next.path.exists() {
                *watched = begin(watched.turn + 1, &next);
            }
            watched.look();
        }
        let said = |one: &Watched| {
            let parts = [one.doing.as_str(), one.tokens.as_str()];
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
        };
        self.watched.iter().map(|((id, _), one)| (id.clone(), said(one))).collect()
    }

    fn draw(&mut self, context: &RunContext, state: &State, size: Size) {
        let spinner = (state.status() == RunStatus::Running).then(|| SPINNER[self.frame % SPINNER.len()]);
        self.frame += 1;
        self.drawn_at = Some(Instant::now());
        let now = context.clock.now();
        let doing = self.look(context, state);
        let lines = picture(&context.meta.id, &context.frozen.plan, state, &doing, now, spinner, size);
        let _ = self.out.write_all(repaint(self.drawn_lines, &lines).as_bytes());
        let _ = self.out.flush();
        self.drawn_lines = lines.len();
    }

    /// What is drawn stays where it is; the next picture begins below.
    fn leave(&mut self) {
        self.drawn_lines = 0;
    }
}

impl Watched {
    fn look(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        let (doing, tools, tokens) = (&mut self.doing, &mut self.tools, &mut self.tokens);
        self.lines.each(false, |line| {
            for event in reader.line(line) {
                match &event {
                    Event::Usage { usage } => {
                        *tokens = agent_line::tokens(usage).unwrap_or_default();
                        *tools = 0;
                    }
                    Event::ToolStarted { .. } => *tools += 1,
                    Event::ToolEnded { .. } => *tools = tools.saturating_sub(1),
                    // opencode may print what its model said before a tool after that has begun.
                    Event::Text { .. } if *tools > 0 => continue,
                    _ => {}
                }
                if let Some(words) = agent_line::doing(&event) {
                    *doing = words;
                }
            }
        });
    }
}

impl<W: Write> Observer for LiveTree<W> {
    fn events(&mut self, context: &RunContext, state: &State, events: &[RunEvent]) {
        if self.asking {
            for line in events.iter().filter_map(|event| event_line(&context.frozen.plan, state, event)) {
                let _ = writeln!(self.out, "{line}");
            }
        }
    }

    fn asked(&mut self, context: &RunContext, state: &State, open: &BTreeSet<DecisionId>) {
        if !self.asking {
            self.draw(context, state, screen());
        }
        self.asking = !open.is_empty();
        if self.asking {
            self.leave();
        }
    }

    fn tick(&mut self, context: &RunContext, state: &State) {
        let rests = state.status() != RunStatus::Running;
        let due = self.drawn_at.is_none_or(|at| at.elapsed() >= DRAW_EVERY);
        if !self.asking && (rests || due) {
            self.draw(context, state, screen());
        }
    }
}

fn screen() -> Size {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let lines = size.map(|size| usize::from(size.ws_row)).filter(|lines| *lines > 4).unwrap_or(24);
    Size { columns: terminal::width(), lines }
}

/// The bytes that put `lines` in the place of the last `drawn` lines.
fn repaint(drawn: usize, lines: &[String]) -> String {
    let mut bytes = String::new();
    if drawn > 0 {
        bytes.push_str(&format!("\x1b[{drawn}A\r\x1b[J"));
    }
    for line in lines {
        bytes.push_str(line);
        bytes.push('\n');
    }
    bytes
}

/// The whole picture, at most one line less than the screen has.
pub fn picture(
    run: &str,
    plan: &Plan,
    state: &State,
    doing: &BTreeMap<StepId, String>,
    now: Timestamp,
    spinner: Option<&str>,
    size: Size,
) -> Vec<String> {
    let width = size.columns.saturating_sub(1).max(20);
    let waiting = waiting_lines(state, width);
    let room = size.lines.saturating_sub(2 + waiting.len()).max(1);
    let mut rows = rows::rows(plan, state, now, ITEMS_MAX);
    for row in &mut rows {
        if let Some(words) =
            row.step.as_ref().and_then(|step| doing.get(step)).filter(|words| !words.is_empty())
        {
            row.summary.clone_from(words);
        }
    }
    let rows = fit_height(rows, room);
    let name_columns = rows::name_columns(&rows).min(width / 3);
    let mut lines = vec![header(run, plan, state, now, spinner, width)];
    for row in &rows {
        let mark = spinner.filter(|_| row.state == "running" && row.step.is_some());
        lines.push(rows::line(row, mark, name_columns, width));
    }
    lines.extend(waiting);
    lines.truncate(size.lines.saturating_sub(1).max(1));
    lines
}

fn header(
    run: &str,
    plan: &Plan,
    state: &State,
    now: Timestamp,
    spinner: Option<&str>,
    width: usize,
) -> String {
    let word = status_word(state);
    let mark = spinner.unwrap_or_else(|| mark_of(word));
    let end = if state.is_over() { state.updated_at } else { now.max(state.updated_at) };
    let rest = format!(
        "  {}  {}  {}",
        one_line(&plan.workflow),
        terminal::duration(end.since(state.started_at)),
        cost_words(state)
    );
    let head = fit(&format!("{mark} {run}"), width / 2);
    let room = width.saturating_sub(crate::render::text::columns(&head) + word.len() + 2);
    format!("{}  {}{}", paint(Style::Bold, &head), paint(style_of(word), word), fit(&rest, room))
}

/// What was spent; what nobody told is said to be unknown.
pub fn cost_words(state: &State) -> String {
    let spent = state.spent.get(&ScopeId::top()).cloned().unwrap_or_default();
    let limit = state.budgets.get(&ScopeId::top()).and_then(|budget| budget.micro_usd);
    let of =
        limit.map(|limit| format!(" of ${}", gatewright_core::explain::dollars(limit))).unwrap_or_default();
    dollars_of(&spent, &of)
}

/// Money that was spent. `of`: the words of a limit.
pub fn dollars_of(spent: &Spent, of: &str) -> String {
    let Some(known) = spent.known_micro_usd() else { return format!("cost unknown{of}") };
    let unknown = if spent.unpriced > 0 {
        format!(" + {} of unknown cost", crate::render::text::count(spent.unpriced as usize, "attempt"))
    } else {
        String::new()
    };
    format!("${}{of}{unknown}", gatewright_core::explain::dollars(known))
}

fn waiting_lines(state: &State, width: usize) -> Vec<String> {
    let open = state.queues.pending_decisions.iter().filter_map(|id| state.decisions.get(id));
    open.take(5)
        .map(|pending| {
            let text = format!(
                "? waiting for you: {}: {}",
                pending.decision.id,
                one_line(&pending.decision.question)
            );
            paint(Style::Yellow, &fit(&text, width))
        })
        .collect()
}

/// At most `lines_max` rows: first steps of stages that are through go, then everything that is not
/// live, then the rest is counted.
fn fit_height(rows: Vec<Row>, lines_max: usize) -> Vec<Row> {
    if rows.len() <= lines_max {
        return rows;
    }
    let mut stage_state = "pending";
    let mut open = Vec::new();
    for row in rows {
        if row.step.is_none() {
            stage_state = row.state;
        }
        if row.step.is_none() || !matches!(stage_state, "passed" | "passed_with_notes" | "skipped") {
            open.push(row);
        }
    }
    if open.len() > lines_max {
        open.retain(Row::is_live);
    }
    if open.len() > lines_max {
        let more = open.len() - lines_max + 1;
        open.truncate(lines_max.saturating_sub(1));
        open.push(Row {
            depth: 0,
            step: None,
            name: format!("… and {more} more"),
            state: "",
            details: String::new(),
            summary: String::new(),
        });
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample::{NOW, Sample};

    fn row(step: Option<&str>, state: &'static str) -> Row {
        let name = step.unwrap_or("stage").to_owned();
        Row {
            depth: usize::from(step.is_some()),
            step: step.map(Into::into),
            name,
            state,
            details: String::new(),
            summary: String::new(),
        }
    }

    fn shown(sample: &Sample, spinner: Option<&str>, lines: usize) -> String {
        let size = Size { columns: 90, lines };
        picture("r-1", &sample.frozen.plan, &sample.state, &BTreeMap::new(), NOW, spinner, size).join("\n")
    }

    #[test]
    fn what_works_spins_and_who_waits_is_named() {
        let working = "* r-1  running  sample  1m00s  cost unknown\n▶ design   running\n  * plan   running           1m00s\n  · agree  pending\n· build    pending\n  · tasks  pending";
        assert_eq!(shown(&Sample::started(), Some("*"), 24), working);
        let asked = shown(&Sample::asked(), None, 24);
        assert!(asked.starts_with("? r-1  waiting  sample  "), "{asked}");
        assert!(asked.ends_with("\n? waiting for you: agree: Build it?"), "{asked}");
    }

    #[test]
    fn the_picture_is_never_higher_than_the_screen() {
        for lines in 1..12 {
            assert!(shown(&Sample::in_the_middle(), Some("*"), lines).lines().count() < lines.max(2));
        }
    }

    #[test]
    fn the_second_picture_replaces_the_first() {
        assert_eq!(repaint(0, &["a".to_owned()]), "a\n");
        assert_eq!(repaint(2, &["b".to_owned(), "c".to_owned()]), "\x1b[2A\r\x1b[Jb\nc\n");
    }

    #[test]
    fn a_low_screen_keeps_what_is_live() {
        let rows = vec![
            row(None, "passed"),
            row(Some("a"), "passed"),
            row(Some("b"), "passed"),
            row(None, "running"),
            row(Some("c"), "passed"),
            row(Some("d"), "running"),
            row(Some("e"), "pending"),
        ];
        let names = |rows: &[Row]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&fit_height(rows.clone(), 7)).len(), 7);
        assert_eq!(names(&fit_height(rows.clone(), 5)), ["stage", "stage", "c", "d", "e"]);
        assert_eq!(names(&fit_height(rows.clone(), 4)), ["stage", "d"]);
        assert_eq!(names(&fit_height(rows, 1)), ["… and 2 more"]);
    }

    /// What an agent's model said before a tool may be printed after that has begun.
    #[test]
    fn a_tool_at_work_is_what_an_agent_does_until_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let adapter = gatewright_agents::adapter_named("opencode").unwrap();
        let mut watched = Watched {
            turn: 0,
            reader: Some(adapter.reader()),
            lines: Lines::new(path.clone()),
            doing: String::new(),
            tools: 0,
            tokens: String::new(),
        };
        let mut printed = String::new();
        let mut after = |line: &str| {
            printed.push_str(line);
            printed.push('\n');
            std::fs::write(&path, &printed).unwrap();
            watched.look();
            watched.doing.clone()
        };
        let text = r#"{"type":"text","sessionID":"s","part":{"type":"text","text":"I work."}}"#;
        let begins = r#"{"type":"tool_begins","sessionID":"s","tool":"bash","callID":"c","input":{"command":"sleep 9"}}"#;
        let ends = r#"{"type":"tool_use","sessionID":"s","part":{"tool":"bash","callID":"c","state":{"status":"completed","input":{"command":"sleep 9"}}}}"#;
        let at_work = after(begins);
        assert!(at_work.contains("sleep 9"), "{at_work}");
        assert_eq!(after(text), at_work);
        after(ends);
        assert!(after(text).contains("I work."));
    }
}
