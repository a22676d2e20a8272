//! One line of a journal: how it is composed, sealed and taken apart. Pure text; must not know files.

use std::fmt;

use gatewright_attempts::Defence;

use super::JournalError;

/// The version of records that this code writes, and the highest it reads.
pub const VERSION: u64 = 1;

/// An event larger than this is refused; large outputs belong into files that an event names.
pub const EVENT_BYTES_MAX: usize = 16 << 20;

const SUM_HEX: usize = 32;
const MAC_HEX: usize = 64;
const SUM_LABEL: &[u8] = b",\"sum\":\"";
const MAC_LABEL: &[u8] = b"\",\"mac\":\"";
const TAIL_END: &[u8] = b"\"}";

/// The secret with which one run's records are authenticated.
#[derive(Clone, PartialEq, Eq)]
pub struct JournalKey([u8; 32]);

impl JournalKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        JournalKey(bytes)
    }
}

impl fmt::Debug for JournalKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JournalKey(hidden)")
    }
}

/// A record that was verified against everything before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub seq: u64,
    pub version: u64,
    pub at_ms: u64,
    line: String,
    event_start: usize,
    event_end: usize,
}

impl Record {
    /// The line as it stands in the journal, without its end of line.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The event as it was given to `append`: the object without the envelope.
    pub fn event_json(&self) -> String {
        format!("{{{}}}", &self.line[self.event_start..self.event_end])
    }

    /// The event's type, such as `step.attempt.started`.
    pub fn event_type(&self) -> &str {
        let fields = &self.line[self.event_start..self.event_end];
        fields.strip_prefix("\"type\":\"").and_then(|rest| rest.split('"').next()).unwrap_or_default()
    }

    /// The event as one of the caller's types.
    pub fn event<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.event_json())
    }
}

/// The running checksum and the key: what a line is sealed with and verified against.
#[derive(Clone)]
pub(super) struct Chain {
    sum: [u8; SUM_HEX / 2],
    key: Option<JournalKey>,
}

impl Chain {
    /// The checksum of the last record, as it stands there.
    pub(super) fn head(&self) -> String {
        self.sum.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The chain before the first record; the run's id is in it, so journals cannot be exchanged.
    pub(super) fn start(run_id: &str, key: Option<JournalKey>) -> Self {
        let digest = blake3::derive_key("gatewright 2026 journal chain v1", run_id.as_bytes());
        let mut sum = [0; SUM_HEX / 2];
        sum.copy_from_slice(&digest[..SUM_HEX / 2]);
        Chain { sum, key }
    }

    pub(super) fn key(&self) -> Option<JournalKey> {
        self.key.clone()
    }

    /// Whether both stand after the same records.
    pub(super) fn is_at(&self, other: &Chain) -> bool {
        self.sum == other.sum
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Appends one record to `batch`: envelope, the event's text, checksum, end of line.
    pub(super) fn compose(&mut self, batch: &mut Vec<u8>, seq: u64, at: &str, event: &str) {
        let start = batch.len();
        batch.extend_from_slice(format!("{{\"seq\":{seq},\"v\":{VERSION},\"at\":\"{at}\",").as_bytes());
        // `check_event` has proved the braces at both ends.
        batch.extend_from_slice(&event.as_bytes()[1..event.len() - 1]);
        let sum = self.sum_of(&batch[start..]);
        let mac = self.mac_of(&batch[start..]);
        batch.extend_from_slice(SUM_LABEL);
        batch.extend_from_slice(sum.to_hex()[..SUM_HEX].as_bytes());
        if let Some(mac) = mac {
            batch.extend_from_slice(MAC_LABEL);
            batch.extend_from_slice(mac.to_hex().as_bytes());
        }
        batch.extend_from_slice(TAIL_END);
        batch.push(b'\n');
        self.advance(&sum);
    }

    /// Checks a line's tail against everything before it and moves on if it is right.
    pub(super) fn verify(&mut self, parts: &Parts<'_>) -> Seal {
        let sum = self.sum_of(parts.body);
        if &sum.to_hex().as_bytes()[..SUM_HEX] != parts.sum {
            return Seal::WrongSum;
        }
        match (self.mac_of(parts.body).filter(|_| !Defence::Seals.is_off()), parts.mac) {
            (Some(_), None) => return Seal::NoMac,
            (Some(expected), Some(found)) => match blake3::Hash::from_hex(found) {
                // Comparing hashes takes the same time wherever they differ.
                Ok(hash) if hash == expected && found == expected.to_hex().as_bytes() => {}
                Ok(_) | Err(_) => return Seal::WrongMac,
            },
            (None, Some(_) | None) => {}
        }
        self.advance(&sum);
        Seal::Good
    }

    fn sum_of(&self, body: &[u8]) -> blake3::Hash {
        blake3::Hasher::new().update(&self.sum).update(body).finalize()
    }

    fn mac_of(&self, body: &[u8]) -> Option<blake3::Hash> {
        let key = self.key.as_ref()?;
        Some(blake3::Hasher::new_keyed(&key.0).update(&self.sum).update(body).finalize())
    }

    fn advance(&mut self, sum: &blake3::Hash) {
        self.sum.copy_from_slice(&sum.as_bytes()[..SUM_HEX / 2]);
    }
}

/// What the tail of a line says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seal {
    Good,
    WrongSum,
    WrongMac,
    NoMac,
}

/// A line taken apart by its text alone; nothing in it is verified yet.
pub(super) struct Parts<'a> {
    pub(super) seq: u64,
    pub(super) version: u64,
    at: &'a [u8],
    /// The event's fields, from `"type"` on, without the braces.
    event_start: usize,
    /// Everything before `,"sum":`.
    body: &'a [u8],
    sum: &'a [u8],
    pub(super) mac: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// `None` when the envelope or the tail is not there, byte for byte.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let (seq, version, rest) = head(line)?;
        let rest = rest.strip_prefix(b",\"at\":\"")?;
        let at_len = rest.iter().position(|byte| *byte == b'"')?;
        let fields = rest[at_len..].strip_prefix(b"\",")?;
        let event_start = line.len() - fields.len();
        let Tail { body, sum, mac } = tail(line)?;
        let event_ends_in_body = event_start < body.len() && fields.starts_with(b"\"type\":\"");
        event_ends_in_body.then_some(Parts { seq, version, at: &rest[..at_len], event_start, body, sum, mac })
    }

    /// The record, of a line whose seal was good; the reason if it still is none.
    pub(super) fn record(&self, line: &[u8]) -> Result<Record, &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8")?;
        let at_ms = std::str::from_utf8(self.at).ok().and_then(parse_at).ok_or("`at` is not a time")?;
        Ok(Record {
            seq: self.seq,
            version: self.version,
            at_ms,
            line: line.to_owned(),
            event_start: self.event_start,
            event_end: self.body.len(),
        })
    }
}

/// Whether a complete line looks like a record, of whatever version: JSON that begins as every record does.
pub(super) fn looks_like_record(line: &[u8]) -> Option<(u64, u64)> {
    let (seq, version, _) = head(line)?;
    serde_json::from_slice::<serde::de::IgnoredAny>(line).ok()?;
    Some((seq, version))
}

/// Whether this text of an event can stand in a line. It is not parsed: our own serialiser wrote it.
pub(super) fn check_event(index: usize, event: &str) -> Result<(), JournalError> {
    let reason = if !event.starts_with("{\"type\":\"") {
        "it does not begin with {\"type\":\""
    } else if !event.ends_with('}') {
        "it does not end with }"
    } else if event.len() > EVENT_BYTES_MAX {
        "it is larger than 16 MiB"
    } else if event.bytes().any(|byte| byte < b' ') {
        "it contains a line break or another control character"
    } else {
        return Ok(());
    };
    Err(JournalError::InvalidEvent { index, reason })
}

/// RFC 3339 in UTC with three decimals.
pub(super) fn format_at(at_ms: u64) -> Result<String, JournalError> {
    let invalid = || JournalError::InvalidTime { at_ms };
    let signed = i64::try_from(at_ms).map_err(|_| invalid())?;
    let time = jiff::Timestamp::from_millisecond(signed).map_err(|_| invalid())?;
    Ok(format!("{time:.3}"))
}

fn parse_at(text: &str) -> Option<u64> {
    let usual = as_written(text.as_bytes());
    if usual.is_some() {
        return usual;
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}

/// The time in exactly the form that [`format_at`] writes, from 1970 on; any other is left to the library, which is
/// slower than everything else that happens to a record.
fn as_written(text: &[u8]) -> Option<u64> {
    let digits = |from: usize, length: usize| {
        text[from..from + length].iter().try_fold(0, |value: u64, byte| {
            byte.is_ascii_digit().then(|| value * 10 + u64::from(byte - b'0'))
        })
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if text.len() != 24 || marks.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second, milli) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?, digits(20, 3)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if year < 1970 || day == 0 || day > length || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let before = year - 1;
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let days = (year - 1970) * 365 + leap_days(before) - leap_days(1969)
        + lengths[..month as usize - 1].iter().sum::<u64>()
        + day
        - 1;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milli)
}

/// `{"seq":N,"v":M` and the rest of the line.
fn head(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (seq, rest) = number(line.strip_prefix(b"{\"seq\":")?)?;
    let (version, rest) = number(rest.strip_prefix(b",\"v\":")?)?;
    Some((seq, version, rest))
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    Some((value, &text[digits..]))
}

/// What stands at the end of a line.
struct Tail<'a> {
    body: &'a [u8],
    sum: &'a [u8],
    mac: Option<&'a [u8]>,
}

/// Read from the end, so that nothing in the event can be taken for it.
fn tail(line: &[u8]) -> Option<Tail<'_>> {
    let line = line.strip_suffix(TAIL_END)?;
    if let Some((body, sum)) = labelled(line, SUM_LABEL, SUM_HEX) {
        return Some(Tail { body, sum, mac: None });
    }
    let (line, mac) = labelled(line, MAC_LABEL, MAC_HEX)?;
    let (body, sum) = labelled(line, SUM_LABEL, SUM_HEX)?;
    Some(Tail { body, sum, mac: Some(mac) })
}

fn labelled<'a>(line: &'a [u8], label: &[u8], hex: usize) -> Option<(&'a [u8], &'a [u8])> {
    let (line, value) = line.split_at_checked(line.len().checked_sub(hex)?)?;
    Some((line.strip_suffix(label)?, value))
}

#[cfg(test)]
mod tests {
    use super::{as_written, format_at, parse_at};

    /// Both readers of times agree wherever the quick one answers.
    #[test]
    fn times_are_read_as_they_were_written() {
        let day = 86_400_000;
        let every_day = (0..60_000_u64).map(|number| number * day + number * 1_009 % day);
        for at_ms in every_day.chain([0, 1, 951_827_696_123, 4_107_542_399_999]) {
            let text = format_at(at_ms).expect("a time");
            assert_eq!(as_written(text.as_bytes()), Some(at_ms), "{text}");
        }
        for odd in [
            "2026-02-30T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T00:00:00Z",
        ] {
            assert_eq!(as_written(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(parse_at("2026-01-01T00:00:00Z"), Some(1_767_225_600_000), "other forms are read too");
        assert_eq!(parse_at("2026-02-30T00:00:00.000Z"), None, "and what is no time is none");
    }
}
