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

/// `retry after 30`, `retry in 90s`, `resets in 5m`.
fn delay(lower: &str) -> Option<u64> {
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.windows(3).find_map(|three| {
        let leads = matches!(three[0], "retry" | "resets" | "reset" | "again")
            && matches!(three[1], "after" | "in" | "after:");
        if !leads {
            return None;
        }
        let number: String = three[2].chars().take_while(char::is_ascii_digit).collect();
        // The words may stand inside a document: `in 30s."}`.
        let unit: String = three[2][number.len()..].chars().take_while(char::is_ascii_alphabetic).collect();
        let value: u64 = number.parse().ok()?;
        match unit.as_str() {
            "" | "s" | "sec" | "seconds" => value.checked_mul(1000),
            "ms" => Some(value),
            "m" | "min" | "minutes" => value.checked_mul(60_000),
            "h" | "hours" => value.checked_mul(3_600_000),
            _ => None,
        }
    })
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
