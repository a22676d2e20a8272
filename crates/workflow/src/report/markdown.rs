//! Builds the tree from the events of the Markdown parser; the one place that knows the library.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::{Body, Field, Item, Paragraph, Report, Section, Table, field_of};

/// Deeper list items are added to the item at this depth, so that hostile nesting stays flat.
const ITEM_DEPTH_MAX: usize = 12;

pub(super) fn parse(text: &str) -> Report {
    let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut builder = Builder::new(text);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        builder.take(event, range.start);
    }
    builder.finish()
}

/// What the text that arrives belongs to.
enum Place {
    Nothing,
    Heading(u8),
    Paragraph,
    Code,
    Metadata,
}

struct Builder<'t> {
    source: &'t str,
    line_starts: Vec<usize>,
    place: Place,
    text: String,
    line: usize,
    /// Open list items, outermost first, and whether each open list is numbered.
    items: Vec<Item>,
    lists: Vec<bool>,
    depth: usize,
    table: Option<Table>,
    cells: Vec<String>,
    /// Sections in the order of the text, nested at the end.
    flat: Vec<Section>,
    preamble: Body,
    title: Option<String>,
}

impl<'t> Builder<'t> {
    fn new(source: &'t str) -> Self {
        let line_starts =
            std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Builder {
            source,
            line_starts,
            place: Place::Nothing,
            text: String::new(),
            line: 0,
            items: Vec::new(),
            lists: Vec::new(),
            depth: 0,
            table: None,
            cells: Vec::new(),
            flat: Vec::new(),
            preamble: Body::default(),
            title: None,
        }
    }

    fn body(&mut self) -> &mut Body {
        match self.flat.last_mut() {
            Some(section) => &mut section.body,
            None => &mut self.preamble,
        }
    }

    fn take(&mut self, event: Event<'_>, at: usize) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) | Event::Html(text) => {
                self.text.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text.push_str(&text);
            }
            Event::Rule | Event::TaskListMarker(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        match tag {
            Tag::Heading { level, .. } => {
                self.open_text(at);
                // Text underlined with `---` is a header followed by a rule more often than a heading.
                let underlined = !self.source[at..].trim_start().starts_with('#');
                let is_text = underlined && level != HeadingLevel::H1;
                // A heading inside a list item is that item's text.
                self.place = if is_text || !self.items.is_empty() {
                    Place::Paragraph
                } else {
                    Place::Heading(level as u8)
                };
            }
            Tag::Paragraph => {
                self.open_text(at);
                self.place = Place::Paragraph;
            }
            Tag::CodeBlock(_) => {
                self.open_text(at);
                self.place = Place::Code;
            }
            Tag::MetadataBlock(_) => {
                self.open_text(at);
                self.place = Place::Metadata;
            }
            Tag::HtmlBlock => self.open_text(at),
            Tag::List(first) => {
                self.flush_item_text();
                self.lists.push(first.is_some());
            }
            Tag::Item => {
                self.flush_item_text();
                self.depth += 1;
                if self.depth <= ITEM_DEPTH_MAX {
                    let ordered = self.lists.last().copied().unwrap_or(false);
                    let line = self.line_of(at);
                    self.items.push(Item { ordered, text: String::new(), line, children: Vec::new() });
                }
            }
            Tag::Table(_) => {
                self.flush_item_text();
                let line = self.line_of(at);
                self.table = Some(Table { columns: Vec::new(), rows: Vec::new(), line });
            }
            Tag::TableHead | Tag::TableRow => self.cells.clear(),
            Tag::TableCell => self.text.clear(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::Paragraph | TagEnd::CodeBlock | TagEnd::HtmlBlock => {
                self.close_text();
            }
            TagEnd::MetadataBlock(_) => {
                self.text.clear();
                self.place = Place::Nothing;
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush_item_text();
                if self.depth <= ITEM_DEPTH_MAX
                    && let Some(item) = self.items.pop()
                {
                    match self.items.last_mut() {
                        Some(parent) => parent.children.push(item),
                        None => self.body().items.push(item),
                    }
                }
                self.depth = self.depth.saturating_sub(1);
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text).trim().to_owned();
                self.cells.push(cell);
            }
            TagEnd::TableHead => {
                let cells = std::mem::take(&mut self.cells);
                if let Some(table) = self.table.as_mut() {
                    table.columns = cells;
                }
            }
            TagEnd::TableRow => {
                let cells = std::mem::take(&mut self.cells);
                if let Some(table) = self.table.as_mut() {
                    table.rows.push(cells);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.body().tables.push(table);
                }
            }
            _ => {}
        }
    }

    fn open_text(&mut self, at: usize) {
        self.flush_item_text();
        self.text.clear();
        self.line = self.line_of(at);
    }

    fn close_text(&mut self) {
        let place = std::mem::replace(&mut self.place, Place::Nothing);
        if !self.items.is_empty() {
            self.flush_item_text();
            return;
        }
        let text = std::mem::take(&mut self.text).trim().to_owned();
        let line = self.line;
        match place {
            Place::Heading(1) if self.title.is_none() && self.flat.is_empty() => self.title = Some(text),
            Place::Heading(level) => {
                let body = Body::default();
                self.flat.push(Section { level, heading: text, line, body, children: Vec::new() });
            }
            Place::Code => self.body().code_blocks.push(text),
            // A comment of a template is no content.
            Place::Nothing if text.starts_with("<!--") => {}
            Place::Paragraph | Place::Nothing => self.body().paragraphs.push(Paragraph { text, line }),
            Place::Metadata => {}
        }
    }

    /// Text inside a list item belongs to the item, whatever block it stands in.
    fn flush_item_text(&mut self) {
        if let Some(item) = self.items.last_mut() {
            let text = std::mem::take(&mut self.text);
            if !text.trim().is_empty() {
                if !item.text.is_empty() {
                    item.text.push('\n');
                }
                item.text.push_str(text.trim());
            }
        }
    }

    fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    fn finish(self) -> Report {
        let mut report = Report {
            title: self.title,
            header: Vec::new(),
            preamble: self.preamble,
            sections: nest(self.flat),
        };
        take_header(&mut report);
        report
    }
}

/// Moves the `Name: value` lines before the first section out of the text.
fn take_header(report: &mut Report) {
    let mut header: Vec<Field> = Vec::new();
    report.preamble.paragraphs.retain_mut(|paragraph| {
        let mut rest = Vec::new();
        for (offset, text) in paragraph.text.lines().enumerate() {
            match field_of(text, paragraph.line + offset) {
                Some(field) => header.push(field),
                None => rest.push(text),
            }
        }
        let rest = rest.join("\n");
        let keep = !rest.trim().is_empty();
        paragraph.text = rest;
        keep
    });
    // Some agents write the header as a list.
    report.preamble.items.retain(|item| match item.as_field() {
        Some(field) => {
            header.push(field);
            false
        }
        None => true,
    });
    header.sort_by_key(|field| field.line);
    report.header = header;
}

/// Puts each section under the nearest earlier one of a lower level.
fn nest(flat: Vec<Section>) -> Vec<Section> {
    let mut roots: Vec<Section> = Vec::new();
    let mut open: Vec<Section> = Vec::new();
    let close = |open: &mut Vec<Section>, roots: &mut Vec<Section>, level: u8| {
        while open.last().is_some_and(|section| section.level >= level) {
            if let Some(section) = open.pop() {
                match open.last_mut() {
                    Some(parent) => parent.children.push(section),
                    None => roots.push(section),
                }
            }
        }
    };
    for section in flat {
        close(&mut open, &mut roots, section.level);
        open.push(section);
    }
    close(&mut open, &mut roots, 0);
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "# Planning Report\n\n**Status:** DONE\n**Agent:** plan-creator\nTimestamp: 2026-01-02T03:04:05Z\n\n## Summary\n- one\n- two `code`\n\n## Requirements\n1. REQ-1: a\n2. REQ-2: b\n   - Location: `src/a.rs:4`\n     more\n\n## Implementation Plan\n\n### Test Steps (for automation-qa)\n1. t\n\n```markdown\n## Not a heading\n```\n\n## Table\n| ID | Status |\n|---|---|\n| REQ-1 | ok |\n";

    #[test]
    fn a_report_becomes_a_tree() {
        let report = parse(PLAN);
        assert_eq!(report.title.as_deref(), Some("Planning Report"));
        let header: Vec<_> =
            report.header.iter().map(|f| (f.name.as_str(), f.value.as_str(), f.line)).collect();
        assert_eq!(
            header,
            [("Status", "DONE", 3), ("Agent", "plan-creator", 4), ("Timestamp", "2026-01-02T03:04:05Z", 5)]
        );
        let names: Vec<_> = report.sections.iter().map(|s| s.heading.as_str()).collect();
        assert_eq!(names, ["Summary", "Requirements", "Implementation Plan", "Table"]);
        assert_eq!(report.sections[0].body.items[1].text, "two code");
        let requirement = &report.sections[1].body.items[1];
        assert!(requirement.ordered);
        assert_eq!(requirement.line, 13);
        assert_eq!(requirement.fields()[0].value, "src/a.rs:4\nmore");
        let plan = &report.sections[2];
        assert_eq!(plan.children[0].heading, "Test Steps (for automation-qa)");
        assert_eq!(plan.children[0].body.code_blocks, ["## Not a heading"]);
        assert_eq!(report.sections[3].body.tables[0].rows, [["REQ-1", "ok"]]);
    }

    #[test]
    fn a_rule_under_the_header_makes_no_heading() {
        let report = parse("# T\n**Status:** PASS\n**Agent:** a\n---\n\ntext\n");
        assert_eq!(report.header.len(), 2);
        assert!(report.sections.is_empty());
        assert_eq!(report.preamble.paragraphs[0].text, "text");
    }

    #[test]
    fn front_matter_and_comments_are_no_content() {
        let report = parse("---\nname: x\n---\n# T\n<!-- fill this in -->\n");
        assert!(!report.has_content(), "{report:?}");
        assert_eq!(report.title.as_deref(), Some("T"));
    }

    #[test]
    fn hostile_nesting_stays_flat() {
        let report = parse(&"- ".repeat(20_000));
        assert_eq!(report.sections.len(), 0);
        let report = parse(&format!("{}x", "> ".repeat(20_000)));
        assert!(report.title.is_none());
    }
}
