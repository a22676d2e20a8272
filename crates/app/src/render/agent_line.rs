//! What an agent does, one line per event of its stream.

use gatewright_agents::{Event, Usage};

use crate::{
    render::text::one_line,
    terminal::{Style, paint},
};

/// The event for a log; nothing for what only counts in sum.
pub fn log_line(event: &Event) -> Option<String> {
    let dim = |text: String| Some(paint(Style::Dim, &text));
    match event {
        Event::Text { text } if text.trim().is_empty() => None,
        Event::Text { text } => Some(text.trim_end().to_owned()),
        Event::Started { model: Some(model), .. } => dim(format!("· started with {}", one_line(model))),
        Event::Started { model: None, .. } => dim("· started".to_owned()),
        Event::ToolStarted { tool, on } => {
            dim(format!("→ {} {}", one_line(tool), one_line(on)).trim_end().to_owned())
        }
        Event::ToolEnded { tool, ok: false } => dim(format!("✗ {} failed", one_line(tool))),
        Event::ToolEnded { ok: true, .. } | Event::Usage { .. } | Event::Unknown { .. } => None,
        Event::Waiting { why, wait_ms } => {
            let wait = wait_ms.map(|ms| format!(", {}s", ms.div_ceil(1000))).unwrap_or_default();
            dim(format!("… waits for the provider: {}{wait}", one_line(why)))
        }
        Event::Denied { tool } => dim(format!("✗ {} is not allowed", one_line(tool))),
        Event::Finished { ok } => dim(if *ok { "· finished" } else { "· failed" }.to_owned()),
    }
}

/// What it is doing now, in a few words; nothing if the event does not change that.
pub fn doing(event: &Event) -> Option<String> {
    match event {
        Event::Text { text } => {
            let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
            Some(one_line(last.trim()))
        }
        Event::ToolStarted { tool, on } => {
            Some(format!("{} {}", one_line(tool), one_line(on)).trim_end().to_owned())
        }
        Event::Waiting { why, .. } => Some(format!("waits for the provider: {}", one_line(why))),
        Event::Denied { tool } => Some(format!("{} is not allowed", one_line(tool))),
        Event::Started { .. } => Some("started".to_owned()),
        Event::ToolEnded { .. } | Event::Usage { .. } | Event::Finished { .. } | Event::Unknown { .. } => {
            None
        }
    }
}

/// Tokens so far, short.
pub fn tokens(usage: &Usage) -> Option<String> {
    let tokens = usage.tokens()?;
    Some(if tokens >= 10_000 { format!("{}k tokens", tokens / 1000) } else { format!("{tokens} tokens") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_tools_waits_and_denials_and_leaves_sums_out() {
        let on = "cargo test\u{1b}[31m".to_owned();
        let events = [
            Event::Started { session: None, model: Some("m-1".to_owned()) },
            Event::Text { text: "I look.\n".to_owned() },
            Event::ToolStarted { tool: "Bash".to_owned(), on },
            Event::ToolEnded { tool: "Bash".to_owned(), ok: true },
            Event::Waiting { why: "rate_limit".to_owned(), wait_ms: Some(1500) },
            Event::Denied { tool: "Write".to_owned() },
            Event::Usage { usage: Usage::default() },
            Event::Finished { ok: true },
        ];
        let lines: Vec<String> = events.iter().filter_map(log_line).collect();
        let expected = [
            "· started with m-1",
            "I look.",
            "→ Bash cargo test\\u{1b}[31m",
            "… waits for the provider: rate_limit, 2s",
            "✗ Write is not allowed",
            "· finished",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_last_line_of_a_text_is_what_it_is_doing() {
        let text = Event::Text { text: "First.\nNow the tests.\n\n".to_owned() };
        assert_eq!(doing(&text).as_deref(), Some("Now the tests."));
        let usage = Usage { input_tokens: Some(12_345), output_tokens: Some(5), ..Usage::default() };
        assert_eq!(tokens(&usage).as_deref(), Some("12k tokens"));
        assert_eq!(tokens(&Usage::default()), None);
    }
}
