//! The terminal: colours, widths, whether somebody is there. Knows nothing of runs.

use std::{
    io::{BufRead as _, IsTerminal, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::cli::ColorChoice;

static COLORS: AtomicBool = AtomicBool::new(false);

/// Decides once whether colours are used: the flag, then `NO_COLOR`, then whether stdout is a terminal.
pub fn set_colors(choice: ColorChoice) {
    let wanted = match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
            !refused && !dumb && std::io::stdout().is_terminal()
        }
    };
    COLORS.store(wanted, Ordering::Relaxed);
}

pub fn colors() -> bool {
    COLORS.load(Ordering::Relaxed)
}

/// The bell, and for terminals that can do it a notice on the desktop (OSC 9). Nothing where nobody sits.
pub fn ring(text: &str) {
    use std::io::Write;
    let dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb");
    if dumb || !std::io::stderr().is_terminal() {
        return;
    }
    let text = crate::render::text::one_line(text);
    // A terminal that is gone cannot be told so.
    let _ = write!(std::io::stderr(), "\x07\x1b]9;{text}\x07");
}

/// One of the sixteen colours every terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

/// The text in a colour, where colours are used.
pub fn paint(style: Style, text: &str) -> String {
    if !colors() {
        return text.to_owned();
    }
    let code = match style {
        Style::Bold => 1,
        Style::Dim => 2,
        Style::Red => 31,
        Style::Green => 32,
        Style::Yellow => 33,
        Style::Cyan => 36,
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// The style of a run's or a step's state.
pub fn style_of(state: &str) -> Style {
    match state {
        "done" | "passed" => Style::Green,
        "passed_with_notes" | "waiting" | "paused" | "interrupted" => Style::Yellow,
        "failed" | "blocked" | "abandoned" => Style::Red,
        "running" => Style::Cyan,
        _ => Style::Dim,
    }
}

/// A mark that can be read without colour.
pub fn mark_of(state: &str) -> &'static str {
    match state {
        "done" | "passed" => "✓",
        "passed_with_notes" => "✓",
        "waiting" => "?",
        "failed" | "abandoned" => "✗",
        "blocked" => "■",
        "running" => "▶",
        "skipped" => "–",
        "paused" | "interrupted" => "‖",
        _ => "·",
    }
}

/// Somebody can be asked: both ends are a terminal.
pub fn somebody_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A line from the terminal; nothing where nobody sits.
pub fn ask(question: &str) -> std::io::Result<String> {
    if !somebody_is_there() {
        return Ok(String::new());
    }
    eprint!("{question}");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Columns of the terminal, or a hundred.
pub fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 20)
        .unwrap_or(100)
}

/// Milliseconds as people say them.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms}ms"),
        1..=59 => format!("{}.{}s", seconds, ms % 1000 / 100),
        60..=3599 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `gatewright events … | head` ends without a word, like any other filter.
pub fn pipes_end_quietly() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().cloned().unwrap_or_default();
        if text.contains("failed printing to stdout") {
            std::process::exit(0);
        }
        quiet(info);
    }));
}
