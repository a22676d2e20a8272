//! Text of strangers made safe for a terminal, measured and cut. Knows nothing of runs.

use std::io::Write;

use gatewright_attempts::Defence;
use gatewright_core::ids::Timestamp;
use gatewright_host::mask::Masks;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Control characters, and marks that make text read other than it is stored, as `\u{1b}`; line
/// breaks and tabs stay.
pub fn clean(text: &str) -> String {
    if Defence::CleanOutput.is_off() {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\n' | '\t') || !is_unsafe(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
    shown
}

/// The same on one line: white space of any kind is one blank.
pub fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Columns that a text takes on a terminal.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// The beginning of a text in at most so many columns, with `…` where it was cut.
pub fn fit(text: &str, columns_max: usize) -> String {
    if columns(text) <= columns_max {
        return text.to_owned();
    }
    let mut cut = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > columns_max {
            break;
        }
        cut.push(character);
    }
    if columns_max > 0 {
        cut.push('…');
    }
    cut
}

/// The text with blanks up to so many columns.
pub fn pad(text: &str, to: usize) -> String {
    format!("{text}{}", " ".repeat(to.saturating_sub(columns(text))))
}

/// A word for a shell; quoted where it is not plain.
pub fn shell_word(word: &str) -> String {
    let plain =
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:@%+".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// `1 step`, `3 steps`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Seconds are enough for people.
pub fn iso(at: Timestamp) -> String {
    gatewright_host::document::iso(Timestamp(at.0 / 1000 * 1000))
}

/// Sizes as people say them.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Bytes to stdout; a reader that went away ends the program without a word, like any filter.
///
/// Keys and tokens are masked by their shape here, whatever else was done to the text before.
pub fn put(bytes: &[u8]) -> std::io::Result<()> {
    let masked = std::str::from_utf8(bytes).ok().map(|text| Masks::default().mask(text));
    let bytes = masked.as_deref().map_or(bytes, str::as_bytes);
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other,
    }
}

/// What was written so far is seen by who reads.
pub fn flush() -> std::io::Result<()> {
    match std::io::stdout().flush() {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other,
    }
}

/// One JSON document on stdout.
pub fn put_json(document: &serde_json::Value) -> Result<(), crate::command_error::CommandError> {
    let mut document = document.clone();
    Masks::default().mask_json(&mut document);
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(put(text.as_bytes())?)
}

/// Those of `known` that a mistyped word may have meant, nearest first.
pub fn near<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> = known
        .map(|name| (distance(wanted, name), name))
        .filter(|(far, name)| {
            *far <= 1 + name.len().min(wanted.len()) / 3 || (wanted.len() > 2 && name.contains(wanted))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Edits between two words; bounded by looking at their beginnings only.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, from) in left.chars().take(64).enumerate() {
        let mut corner = row[0];
        row[0] = index + 1;
        for (column, to) in right.iter().enumerate() {
            let swap = corner + usize::from(from != *to);
            corner = row[column + 1];
            row[column + 1] = swap.min(row[column] + 1).min(corner + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_move_the_cursor_is_shown_instead() {
        assert_eq!(clean("a\x1b[2Jb\r\u{202e}c\u{9b}1m\td\n"), "a\\u{1b}[2Jb\\u{d}\\u{202e}c\\u{9b}1m\td\n");
        assert_eq!(one_line(" a\n b\tc \x07"), "a b c \\u{7}");
    }

    #[test]
    fn cutting_counts_columns_and_never_splits_a_character() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abc", 0), "");
        assert_eq!(pad("日", 4), "日  ");
    }

    #[test]
    fn commands_can_be_pasted() {
        assert_eq!(shell_word("build/T-1/code"), "build/T-1/code");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn mistyped_words_are_recognised() {
        assert_eq!(near("pln", ["plan", "review", "code"].into_iter()), ["plan"]);
        assert!(near("zzzz", ["plan"].into_iter()).is_empty());
    }
}
