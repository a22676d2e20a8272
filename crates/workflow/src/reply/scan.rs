//! Finds the places in an agent's output where a reply may stand; knows nothing of any format.
//!
//! Cleans what programs wrap around text (bytes that are no UTF-8, colours, CRLF) and says of each
//! line whether it is quoted: a quoted reply counts only if nothing follows it (J-04).

use crate::json::parse_json_prefix;

/// Only the last part of an output is looked at; a reply stands at the end.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;
/// How many bytes may be walked in search of the end of broken JSON, so that hostile output stays cheap.
const BROKEN_JSON_WORK_MAX: usize = 4 * 1024 * 1024;

/// Cleaned output with its lines.
pub(crate) struct Text {
    pub text: String,
    pub lines: Vec<Line>,
}

/// One line: a span of the text without its line end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub start: usize,
    pub end: usize,
    /// Inside a code block (fenced or indented), so shown rather than said.
    pub quoted: bool,
    /// The fence itself.
    pub fence: bool,
}

/// A JSON object in the text, or something that begins like one.
pub(crate) struct JsonBlock {
    pub start: usize,
    pub end: usize,
    pub value: Result<serde_json::Value, String>,
}

impl Text {
    pub fn new(output: &[u8]) -> Text {
        let tail = &output[output.len().saturating_sub(OUTPUT_BYTES_MAX)..];
        let text = clean(&String::from_utf8_lossy(tail));
        let lines = lines_of(&text);
        Text { text, lines }
    }

    pub fn line(&self, index: usize) -> &str {
        self.lines.get(index).map_or("", |line| &self.text[line.start..line.end])
    }

    /// Index of the line that holds this byte.
    pub fn line_at(&self, at: usize) -> usize {
        self.lines.partition_point(|line| line.start <= at).saturating_sub(1)
    }

    /// The next line from `index` on that is neither blank nor a fence of a code block.
    pub fn next_filled(&self, index: usize) -> Option<usize> {
        (index..self.lines.len()).find(|i| !self.line(*i).trim().is_empty())
    }

    /// Whether the reply that ends here is the last thing said; closing fences are not said.
    pub fn nothing_follows(&self, end: usize) -> bool {
        self.text[end..].chars().all(|c| c.is_whitespace() || c == '`' || c == '~')
    }

    /// Whether a block at this place may be the reply at all.
    pub fn admits(&self, start: usize, end: usize, quoted: bool) -> bool {
        let line = self.lines.get(self.line_at(start));
        !(quoted || line.is_some_and(|line| line.quoted)) || self.nothing_follows(end)
    }

    /// Every outermost JSON object, with broken ones kept as such so that a part of a broken reply
    /// is never taken for the reply.
    pub fn json_blocks(&self) -> Vec<JsonBlock> {
        let text = &self.text;
        let mut blocks = Vec::new();
        let mut work = BROKEN_JSON_WORK_MAX;
        let mut at = 0;
        while let Some(offset) = text[at..].find('{') {
            let start = at + offset;
            at = start + 1;
            if self.is_nested(start) {
                continue;
            }
            let rest = &text[start..];
            let (len, value) = match parse_json_prefix(rest) {
                Ok((value, len)) => (len, Ok(value)),
                Err(error) if begins_like_object(rest) => match balanced_len(rest, &mut work) {
                    Some(len) => (len, Err(error.to_string())),
                    None => continue,
                },
                Err(_) => continue,
            };
            at = start + len;
            blocks.push(JsonBlock { start, end: start + len, value });
        }
        blocks
    }

    /// Whether the object at `start` is a value inside a larger JSON text that did not end.
    fn is_nested(&self, start: usize) -> bool {
        let before = self.text[..start].trim_end();
        before.ends_with('[')
            || before.ends_with("},")
            || before.strip_suffix(':').is_some_and(|key| key.trim_end().ends_with('"'))
    }

    /// Whether other text stands before this byte on its line: a quotation or the end of a sentence.
    pub fn is_inside_line(&self, at: usize) -> bool {
        self.lines.get(self.line_at(at)).is_some_and(|line| !self.text[line.start..at].trim().is_empty())
    }
}

fn begins_like_object(text: &str) -> bool {
    text[1..].trim_start().starts_with('"')
}

/// Length up to the brace that closes the first one, strings skipped.
fn balanced_len(text: &str, work: &mut usize) -> Option<usize> {
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        *work = work.checked_sub(1)?;
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn lines_of(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut start = 0;
    for piece in text.split_inclusive('\n') {
        let line = piece.strip_suffix('\n').unwrap_or(piece);
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let marker = if indent < 4 && !line.starts_with('\t') { fence_marker(line.trim()) } else { None };
        let (quoted, is_fence) = match (fence, marker) {
            (None, Some((mark, len, _))) => {
                fence = Some((mark, len));
                (true, true)
            }
            (Some((mark, len)), Some((this, this_len, bare))) if this == mark && this_len >= len && bare => {
                fence = None;
                (true, true)
            }
            (Some(_), _) => (true, false),
            (None, None) => (indent >= 4 || line.starts_with('\t'), false),
        };
        lines.push(Line { start, end: start + line.len(), quoted, fence: is_fence });
        start += piece.len();
    }
    lines
}

/// The fence character, its length, and whether nothing follows it (only such a line closes a block).
fn fence_marker(line: &str) -> Option<(char, usize, bool)> {
    let mark = line.chars().next().filter(|c| *c == '`' || *c == '~')?;
    let len = line.chars().take_while(|c| *c == mark).count();
    let rest = &line[len..];
    // Backticks later on the line make it inline code.
    let is_fence = len >= 3 && !(mark == '`' && rest.contains('`'));
    is_fence.then(|| (mark, len, rest.trim().is_empty()))
}

/// Removes terminal control sequences and a byte order mark, and makes every line end a line feed.
fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut chars = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_control_sequence(&mut chars),
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    cleaned.push('\n');
                }
            }
            _ => cleaned.push(c),
        }
    }
    cleaned
}

fn skip_control_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            // Parameters, then one final byte; anything else is text that only looked like a sequence.
            while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
            chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        Some(']') => {
            // Title or link, ended by BEL or ESC \; never beyond the line.
            while let Some(c) = chars.next_if(|c| *c != '\n') {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next_if(|c| *c == '\\');
                    break;
                }
            }
        }
        Some(c) if !c.is_whitespace() => {
            chars.next();
        }
        Some(_) | None => {}
    }
}

/// Splits `**STATUS:** PASS`, `**STATUS**: PASS`, `**STATUS: PASS**` or `STATUS: PASS` into name and
/// value. The value keeps its own markup.
pub(crate) fn field(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let bare = line.trim_start_matches(['*', '_']);
    let opened = line.len() - bare.len();
    let (name, value) = bare.split_once(':')?;
    let closed_name = name.trim_end_matches(['*', '_']);
    let closed_value = value.trim_start_matches('*');
    let mut closed = (name.len() - closed_name.len()) + (value.len() - closed_value.len());
    let mut value = if opened > 0 { closed_value } else { value }.trim();
    if opened > closed && value.ends_with("**") {
        value = value[..value.len() - 2].trim_end();
        closed += 2;
    }
    let is_name =
        !closed_name.is_empty() && closed_name.chars().all(|c| c.is_alphanumeric() || " _-/&".contains(c));
    (is_name && (opened == 0 || closed > 0)).then(|| (closed_name.trim(), value))
}

/// A word without the markup around it.
pub(crate) fn plain(value: &str) -> &str {
    value.trim().trim_matches(['`', '*', '"']).trim()
}

/// `a.md, b.md` or `none`.
pub(crate) fn file_list(value: &str) -> Vec<String> {
    let value = value.trim().trim_start_matches('[').trim_end_matches(']');
    let names = value.split(',').map(plain);
    names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("none")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lose_their_wrapping_only() {
        for (line, expected) in [
            ("STATUS: PASS", Some(("STATUS", "PASS"))),
            ("**STATUS:** PASS", Some(("STATUS", "PASS"))),
            ("**STATUS**: PASS", Some(("STATUS", "PASS"))),
            ("**STATUS: PASS**", Some(("STATUS", "PASS"))),
            ("SUMMARY: say \"a: b\" **loudly**", Some(("SUMMARY", "say \"a: b\" **loudly**"))),
            ("**SUMMARY:** **all** of it", Some(("SUMMARY", "**all** of it"))),
            ("I said STATUS", None),
            ("see `x`: y", None),
        ] {
            assert_eq!(field(line), expected, "{line}");
        }
    }

    #[test]
    fn colours_and_line_ends_are_removed() {
        let text = Text::new(
            b"\xef\xbb\xbf\x1b[1;32mgreen\x1b[0m\r\n\x1b]8;;http://x\x07link\x1b]8;;\x1b\\\rend\xff",
        );
        assert_eq!(text.text, "green\nlink\nend\u{fffd}");
    }

    #[test]
    fn fences_follow_markdown() {
        let text = Text::new(b"a\n```rust\nb\n```js\n````\nc\n    d\n~~~\n```\n");
        let quoted: Vec<bool> = text.lines.iter().map(|line| line.quoted).collect();
        assert_eq!(quoted, [false, true, true, true, true, false, true, true, true]);
    }

    #[test]
    fn broken_json_hides_its_parts() {
        let text = Text::new(br#"{"a": {"approved": true}, }"#);
        let blocks = text.json_blocks();
        assert_eq!(blocks.len(), 1);
        assert!(blocks[0].value.is_err());
        let text = Text::new(b"{\"a\": 1, \"previous\": {\"approved\": true}");
        assert!(text.json_blocks().is_empty(), "a part of JSON that never ends");
    }

    #[test]
    fn hostile_braces_are_cheap() {
        for piece in ["{", "{\"a\":", "{\"a\":[1,", "{\"", "{\"a\":1,"] {
            let blocks = Text::new(piece.repeat(50_000 / piece.len()).as_bytes()).json_blocks();
            assert!(blocks.is_empty(), "{piece}");
        }
    }
}
