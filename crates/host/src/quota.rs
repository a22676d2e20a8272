//! Reads from an agent's last words that a provider's quota is used up, and until when (J-44).

mod clock;

use gatewright_core::ids::Timestamp;

/// Words that speak of a quota rather than of any other trouble.
const SIGNS: [&str; 5] = ["quota", "rate limit", "rate_limit", "usage limit", "too many requests"];
/// A wait longer than this is a misread number.
const WAIT_MAX_MS: u64 = 8 * 24 * 3600 * 1000;

/// The first wait for a provider that says only that its limit is reached, doubled from wait to wait.
const UNTOLD_WAIT_MS: u64 = 15_000;
const UNTOLD_WAIT_MAX_MS: u64 = 10 * 60_000;

/// How long to wait where nobody says how long. `waited`: times in a row before.
pub fn wait_without_time_ms(waited: u32) -> u64 {
    UNTOLD_WAIT_MS.saturating_mul(1 << waited.min(10)).min(UNTOLD_WAIT_MAX_MS)
}

/// The time at which the quota is filled again, if the text names one.
pub fn reset_time(text: &str, now: Timestamp) -> Option<Timestamp> {
    let lower = text.to_lowercase();
    if !SIGNS.iter().any(|sign| lower.contains(sign)) {
        return None;
    }
    let until = stamp(text)
        .or_else(|| delay(&lower).map(|ms| now.plus_ms(ms)))
        .or_else(|| clock::reset_time(text, now, &jiff::tz::TimeZone::system()))?;
    (until > now && until.since(now) <= WAIT_MAX_MS).then_some(until)
}

/// An ISO 8601 time with zone anywhere in the text.
fn stamp(text: &str) -> Option<Timestamp> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '(' | ')' | ']' | '['))
        .map(|word| word.trim_end_matches(['.', ';', ':']))
        .filter_map(|word| word.parse::<jiff::Timestamp>().ok())
        .next_back()
        .and_then(|time| u64::try_from(time.as_millisecond()).ok())
        .map(Timestamp)
}

/// `retry after 30`, `retry in 90s`, `resets in 5m`, `try again in 2 hours 30 minutes`.
fn delay(lower: &str) -> Option<u64> {
    let words: Vec<&str> = lower.split_whitespace().collect();
    (0..words.len().saturating_sub(2)).find_map(|at| {
        let leads = matches!(words[at], "retry" | "resets" | "reset" | "again")
            && matches!(words[at + 1], "after" | "in" | "after:");
        leads.then(|| span(&words[at + 2..].join(" ")))?
    })
}

/// A span at the start of the text, of several parts perhaps: `6m13.5s`, `3 days 4 hours`. A bare number is seconds.
fn span(text: &str) -> Option<u64> {
    let (mut rest, mut sum) = (text, None::<u64>);
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
        let (whole, after) = digits(rest);
        let Ok(whole) = whole.parse::<u64>() else { return sum };
        let (thousandths, after) = after.strip_prefix('.').map_or((0, after), |fraction| {
            let (part, after) = digits(fraction);
            (format!("{part:0<3}")[..3].parse::<u64>().unwrap_or(0), after)
        });
        let after_space = after.trim_start();
        let end = after_space.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after_space.len());
        let (unit, next) = after_space.split_at(end);
        let Some(factor) = unit_ms(unit) else {
            // Another word follows, or nothing does.
            let is_bare = unit.is_empty() || after_space.len() < after.len();
            return sum.or_else(|| whole.checked_mul(1000).filter(|_| is_bare));
        };
        let part = whole.checked_mul(factor)?.checked_add(thousandths * factor / 1000)?;
        sum = Some(sum.unwrap_or(0).checked_add(part)?);
        rest = next;
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit_ms(unit: &str) -> Option<u64> {
    match unit {
        "ms" => Some(1),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1000),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60_000),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600_000),
        "d" | "day" | "days" => Some(86_400_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j_44_a_named_reset_time_is_understood() {
        let now = Timestamp(1_763_240_000_000);
        let at = |text: &str| reset_time(text, now);
        assert_eq!(
            at("Usage limit reached; resets at 2025-11-15T21:00:00Z."),
            Some(Timestamp(1_763_240_400_000))
        );
        assert_eq!(at("429 rate limit, retry after 30"), Some(Timestamp(1_763_240_030_000)));
        assert_eq!(at("quota exceeded, resets in 5m"), Some(Timestamp(1_763_240_300_000)));
        assert_eq!(at("{\"message\":\"rate limit, try again in 30s.\"}"), Some(Timestamp(1_763_240_030_000)));
        for (words, seconds) in [
            ("rate limit reached. Please try again in 6m13.512s. Visit", 373),
            ("You've hit your usage limit. Try again in 3 days 4 hours 9 minutes.", 274_140),
            ("quota exhausted: it will reset after 3h20m5s.", 12_005),
            ("usage limit, resets in 1 hour and 30 minutes", 5400),
            ("rate limit, retry after 30 please", 30),
            ("rate limit, retry in 1.5s (attempt 2)", 1),
        ] {
            let waits = at(words).map(|until| until.since(now) / 1000);
            assert_eq!(waits, Some(seconds), "{words}");
        }
        assert_eq!(at("rate limit, retry in 5x"), None, "no span");
        assert_eq!(at("done at 2025-11-15T21:00:00Z"), None, "no word of a quota");
        assert_eq!(at("rate limit hit"), None, "no time");
        assert_eq!(at("rate limit until 2024-01-01T00:00:00Z"), None, "in the past");
    }

    #[test]
    fn j_44_without_a_time_each_wait_is_longer_and_none_is_endless() {
        let waits: Vec<u64> = (0..20).map(wait_without_time_ms).collect();
        assert_eq!(&waits[..3], [15_000, 30_000, 60_000]);
        assert!(waits.is_sorted() && waits.iter().all(|wait| *wait <= UNTOLD_WAIT_MAX_MS));
    }
}
