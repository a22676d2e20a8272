//! Durations, money and names as people write them.

use gatewright_core::plan::limits::LIMIT_CEILING;
use serde_json::Number;

use crate::yaml::tree::{Node, NodeValue};

/// No duration a person means is longer: ten years.
const DURATION_MS_MAX: u64 = 10 * 365 * 24 * 3_600_000;
/// No budget a person means is larger: a billion dollars.
const USD_MAX: f64 = 1e9;

/// `90s`, `20m`, `4h`, `1500ms`, `2d`, and such parts one after the other: `1h30m`.
pub fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0)?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, ms) = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
            .into_iter()
            .find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        total = total.checked_add(number.checked_mul(ms)?)?;
    }
    (1..=DURATION_MS_MAX).contains(&total).then_some(total)
}

/// Millionths of a dollar.
pub fn micro_usd(number: &Number) -> Option<u64> {
    let usd = number.as_f64().filter(|usd| (0.0..=USD_MAX).contains(usd))?;
    Some((usd * 1e6).round() as u64)
}

/// An id of a step, role, stage, …: it becomes a part of paths and of file names.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// A reference to a step: names with `/` between, `*` for the items of a fan-out.
pub fn is_path(text: &str) -> bool {
    text.split('/').all(|part| part == "*" || is_name(part))
}

/// What a number is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Fine(u32),
    /// A whole number, but 0 or above the ceiling.
    OutOfRange,
    NoCount,
}

/// A limit: at least `from`, at most [`LIMIT_CEILING`].
pub fn count(node: &Node, from: u32) -> Counted {
    let NodeValue::Number { value, .. } = &node.value else { return Counted::NoCount };
    if let Some(number) = value.as_u64() {
        return match u32::try_from(number) {
            Ok(number) if (from..=LIMIT_CEILING).contains(&number) => Counted::Fine(number),
            Ok(_) | Err(_) => Counted::OutOfRange,
        };
    }
    if value.is_i64() { Counted::OutOfRange } else { Counted::NoCount }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration_ms("90s"), Some(90_000));
        assert_eq!(duration_ms("20m"), Some(1_200_000));
        assert_eq!(duration_ms("4h"), Some(14_400_000));
        assert_eq!(duration_ms("1500ms"), Some(1_500));
        assert_eq!(duration_ms("1h30m"), Some(5_400_000));
        for wrong in ["", "90", "s", "1.5h", "-1s", "0s", "9999999999999999999s", "99999d", "4 h"] {
            assert_eq!(duration_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_are_safe_in_paths() {
        assert!(is_name("approve-plan") && is_name("1.2") && is_name("_x"));
        for wrong in ["", "a/b", "..", "a b", "*", "-x", "a\n"] {
            assert!(!is_name(wrong), "{wrong}");
        }
        assert!(is_path("tasks/*/code") && !is_path("a//b") && !is_path("../x"));
    }

    #[test]
    fn money_is_exact_to_the_millionth() {
        assert_eq!(micro_usd(&Number::from_f64(0.1).unwrap()), Some(100_000));
        assert_eq!(micro_usd(&Number::from(20)), Some(20_000_000));
        assert_eq!(micro_usd(&Number::from(-1)), None);
    }
}
