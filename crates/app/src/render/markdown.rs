//! Markdown for a terminal: headings bold, lists, tables aligned, code indented. Pure over text; what
//! agents wrote is made safe first.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::{
    render::text::{clean, columns, pad},
    terminal::{Style, paint},
};

/// The text as a person reads it, lines of at most `width` columns where that is possible.
pub fn render(markdown: &str, width: usize) -> String {
    let safe = clean(markdown);
    let mut page = Page { width: width.max(20), ..Page::default() };
    for event in Parser::new_ext(
        &safe,
        Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH,
    ) {
        page.take(event);
    }
    page.end_block();
    let text = page.out.trim_matches('\n').to_owned();
    if text.is_empty() { text } else { text + "\n" }
}

/// What is being written.
#[derive(Default)]
struct Page {
    out: String,
    width: usize,
    /// Inline text of the block that is open.
    inline: String,
    heading: Option<HeadingLevel>,
    in_code: bool,
    quote_depth: usize,
    /// Open lists: the next number, or none for bullets.
    lists: Vec<Option<u64>>,
    /// The mark of the item whose first line is not written yet.
    mark: Option<String>,
    table: Vec<Vec<String>>,
    link: Option<String>,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.inline.push_str(&text),
            Event::Code(code) => {
                self.inline.push('`');
                self.inline.push_str(&code);
                self.inline.push('`');
            }
            Event::InlineHtml(html) | Event::Html(html) => self.inline.push_str(&html),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.push_str(&text),
            Event::FootnoteReference(name) => self.inline.push_str(&format!("[{name}]")),
            Event::SoftBreak => self.inline.push(' '),
            Event::HardBreak => self.inline.push('\n'),
            Event::Rule => {
                self.end_block();
                self.write_line(&"─".repeat(self.width.min(40)));
                self.blank();
            }
            Event::TaskListMarker(done) => self.inline.push_str(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.end_block();
                self.blank();
                self.heading = Some(level);
            }
            Tag::CodeBlock(_) => {
                self.end_block();
                self.in_code = true;
            }
            Tag::BlockQuote(_) => {
                self.end_block();
                self.quote_depth += 1;
            }
            Tag::List(first) => {
                self.end_block();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_block();
                self.mark = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "• ".to_owned(),
                });
            }
            Tag::Table(_) => {
                self.end_block();
                self.table.clear();
            }
            Tag::TableHead | Tag::TableRow => self.table.push(Vec::new()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.to_string());
            }
            Tag::Strikethrough => self.inline.push('~'),
            Tag::Paragraph
            | Tag::HtmlBlock
            | Tag::TableCell
            | Tag::Emphasis
            | Tag::Strong
            | Tag::FootnoteDefinition(_)
            | Tag::MetadataBlock(_) => {}
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_block();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::Heading(_) => {
                self.end_block();
                self.blank();
            }
            TagEnd::CodeBlock => {
                let code = std::mem::take(&mut self.inline);
                for line in code.lines() {
                    self.write_line(&format!("    {line}"));
                }
                self.in_code = false;
                self.blank();
            }
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.quote_depth = self.quote_depth.saturating_sub(1);
            }
            TagEnd::List(_) => {
                self.end_block();
                self.lists.pop();
                if self.lists.is_empty() {
                    self.blank();
                }
            }
            TagEnd::Item => {
                self.end_block();
                // An item without text still has its mark.
                if let Some(mark) = self.mark.take() {
                    self.write_line(&format!("{}{mark}", self.list_indent()));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.last_mut() {
                    row.push(cell.trim().to_owned());
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Link | TagEnd::Image => {
                if let Some(url) =
                    self.link.take().filter(|url| !url.is_empty() && !self.inline.ends_with(url.as_str()))
                {
                    self.inline.push_str(&format!(" <{url}>"));
                }
            }
            TagEnd::Strikethrough => self.inline.push('~'),
            _ => {}
        }
    }

    fn list_indent(&self) -> String {
        "  ".repeat(self.lists.len().saturating_sub(1))
    }

    /// Writes the inline text that was gathered, wrapped.
    fn end_block(&mut self) {
        if self.in_code || self.inline.trim().is_empty() {
            if !self.in_code {
                self.inline.clear();
            }
            return;
        }
        let text = std::mem::take(&mut self.inline);
        if let Some(level) = self.heading.take() {
            let text =
                if level == HeadingLevel::H1 { text.trim().to_uppercase() } else { text.trim().to_owned() };
            self.write_line(&paint(Style::Bold, &text));
            return;
        }
        let indent = self.list_indent();
        let mark = self.mark.take();
        let under = match (&mark, self.lists.is_empty()) {
            (Some(mark), _) => format!("{indent}{}", " ".repeat(columns(mark))),
            (None, true) => indent.clone(),
            (None, false) => format!("{indent}  "),
        };
        let first = mark.map_or_else(|| under.clone(), |mark| format!("{indent}{mark}"));
        let width = self.width.saturating_sub(self.quote_depth * 2);
        for line in wrap(&text, &first, &under, width) {
            self.write_line(&line);
        }
    }

    fn end_table(&mut self) {
        let rows = std::mem::take(&mut self.table);
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count)
            .map(|column| {
                rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max().unwrap_or(0)
            })
            .collect();
        for (index, row) in rows.iter().enumerate() {
            let cells: Vec<String> = widths.iter().zip(row).map(|(width, cell)| pad(cell, *width)).collect();
            let line = cells.join("  ").trim_end().to_owned();
            if index == 0 {
                self.write_line(&paint(Style::Bold, &line));
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.write_line(&rule.join("  "));
            } else {
                self.write_line(&line);
            }
        }
        self.blank();
    }

    fn write_line(&mut self, line: &str) {
        self.out.push_str(&"│ ".repeat(self.quote_depth));
        self.out.push_str(line);
        self.out.push('\n');
    }

    /// One empty line, never two.
    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }
}

fn wrap(text: &str, first: &str, under: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    for (index, part) in text.split('\n').enumerate() {
        if index > 0 {
            lines.push(std::mem::replace(&mut line, under.to_owned()));
        }
        let mut fresh = true;
        for word in part.split_whitespace() {
            if !fresh && columns(&line) + 1 + columns(word) > width {
                lines.push(std::mem::replace(&mut line, under.to_owned()));
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
            fresh = false;
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_well_without_colour() {
        let text = "# Plan\n**Status:** DONE\n\n## Steps\n1. one\n2. two\n   - inner\n\n| a | bb |\n|---|---|\n| ccc | d |\n\n```sh\nls  -l\n```\n> quoted\n\n[x](http://y)\n";
        let expected = "PLAN\n\nStatus: DONE\n\nSteps\n\n1. one\n2. two\n  • inner\n\na    bb\n───  ──\nccc  d\n\n    ls  -l\n\n│ quoted\n\nx <http://y>\n";
        assert_eq!(render(text, 80), expected);
    }

    #[test]
    fn long_items_hang_under_their_text() {
        assert_eq!(render("- one two three four five\n", 20), "• one two three four\n  five\n");
    }

    #[test]
    fn control_characters_of_agents_are_shown() {
        let shown = render("a \x1b[31mred\n", 80);
        assert_eq!(shown, "a \\u{1b}[31mred\n");
        assert_eq!(render("", 80), "");
    }
}
