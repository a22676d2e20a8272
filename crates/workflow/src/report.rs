//! Markdown reports as a light tree: title, header fields, sections, lists, tables.
//!
//! Knows Markdown, not any contract. What stands in a code block is never a heading or a field.

pub mod findings;
mod markdown;

use serde::Serialize;

use crate::reply::{
    WordMap,
    scan::{field, plain},
};
use gatewright_core::outcome::{Outcome, Reply};

pub use self::findings::findings_of_report;

/// A report. Lines count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The first heading of level 1.
    pub title: Option<String>,
    /// `**Status:** PASS` or `Status: PASS`, between the title and the first section.
    pub header: Vec<Field>,
    /// What else stands before the first section.
    pub preamble: Body,
    pub sections: Vec<Section>,
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    pub name: String,
    pub value: String,
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    pub level: u8,
    pub heading: String,
    pub line: usize,
    pub body: Body,
    pub children: Vec<Section>,
}

/// What stands directly under a heading. Inline markup is removed from all texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Body {
    pub paragraphs: Vec<Paragraph>,
    /// Outermost list items, bullets and numbered ones.
    pub items: Vec<Item>,
    pub tables: Vec<Table>,
    pub code_blocks: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Paragraph {
    pub text: String,
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    pub ordered: bool,
    pub text: String,
    pub line: usize,
    pub children: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub line: usize,
}

/// What a report's header says of the attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderReply {
    pub outcome: Outcome,
    pub word: String,
}

impl Report {
    pub fn parse(bytes: &[u8]) -> Report {
        markdown::parse(&String::from_utf8_lossy(bytes))
    }

    /// The value of a header field, by its name in any case.
    pub fn header_field(&self, name: &str) -> Option<&Field> {
        self.header.iter().find(|field| field.name.eq_ignore_ascii_case(name))
    }

    /// Whether anything stands in it besides headings and header fields.
    pub fn has_content(&self) -> bool {
        !self.preamble.is_empty() || self.sections.iter().any(Section::has_content)
    }
}

impl Section {
    pub fn has_content(&self) -> bool {
        !self.body.is_empty() || self.children.iter().any(Section::has_content)
    }

    /// All text of the section and what is below it, one piece per line.
    pub fn full_text(&self) -> String {
        let mut pieces = Vec::new();
        self.collect(&mut pieces);
        pieces.join("\n")
    }

    fn collect<'a>(&'a self, pieces: &mut Vec<&'a str>) {
        self.body.collect(pieces);
        for child in &self.children {
            pieces.push(&child.heading);
            child.collect(pieces);
        }
    }
}

impl Body {
    pub fn is_empty(&self) -> bool {
        let blank = |text: &str| text.trim().is_empty();
        self.paragraphs.iter().all(|paragraph| blank(&paragraph.text))
            && self.items.iter().all(Item::is_blank)
            && self.tables.iter().all(|table| table.rows.iter().flatten().all(|cell| blank(cell)))
            && self.code_blocks.iter().all(|code| blank(code))
    }

    fn collect<'a>(&'a self, pieces: &mut Vec<&'a str>) {
        pieces.extend(self.paragraphs.iter().map(|paragraph| paragraph.text.as_str()));
        for item in &self.items {
            item.collect(pieces);
        }
        for table in &self.tables {
            pieces.extend(table.columns.iter().chain(table.rows.iter().flatten()).map(String::as_str));
        }
        pieces.extend(self.code_blocks.iter().map(String::as_str));
    }
}

impl Item {
    fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && self.children.iter().all(Item::is_blank)
    }

    fn collect<'a>(&'a self, pieces: &mut Vec<&'a str>) {
        pieces.push(&self.text);
        for child in &self.children {
            child.collect(pieces);
        }
    }

    /// `Name: value` of the sub-bullets and of the lines after the first.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields: Vec<Field> =
            self.text.lines().skip(1).filter_map(|text| field_of(text, self.line)).collect();
        fields.extend(self.children.iter().filter_map(Item::as_field));
        fields
    }

    /// This item itself as `Name: value`; deeper items continue the value.
    pub fn as_field(&self) -> Option<Field> {
        let Field { name, mut value, line } = field_of(&self.text, self.line)?;
        for child in &self.children {
            value.push('\n');
            value.push_str(&child.text);
        }
        Some(Field { name, value: value.trim().to_owned(), line })
    }

    /// The first line of its text.
    pub fn title(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

fn field_of(text: &str, line: usize) -> Option<Field> {
    let (first, more) = text.split_once('\n').unwrap_or((text, ""));
    let (name, value) = field(first)?;
    let value = format!("{value}\n{more}").trim().to_owned();
    Some(Field { name: name.to_owned(), value, line })
}

/// What the header's Status says, if it is a known word; other words are the contract's business.
pub fn header_reply(report: &Report, words: &WordMap) -> Option<HeaderReply> {
    let word = plain(&report.header_field("Status")?.value).to_owned();
    words.outcome(&word).map(|outcome| HeaderReply { outcome, word })
}

/// A report as a channel beside the final message: its header's word and its findings.
pub fn reply_of_report(report: &Report, words: &WordMap) -> Option<Reply> {
    let header = header_reply(report, words)?;
    let mut reply = Reply::new(header.outcome);
    reply.word = header.word;
    reply.findings = findings_of_report(report, words);
    Some(reply)
}

/// Heading or field names that mean the same: any case, without numbering, `(if any)` or colon.
pub fn same_name(found: &str, wanted: &str) -> bool {
    bare_name(found).eq_ignore_ascii_case(bare_name(wanted))
}

fn bare_name(name: &str) -> &str {
    let name = name.trim();
    let unnumbered =
        name.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ')').trim_start();
    let name = if unnumbered.is_empty() { name } else { unnumbered };
    let name = match name.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        Some((before, _)) if !before.trim().is_empty() => before,
        _ => name,
    };
    name.trim().trim_end_matches(':').trim_end()
}
