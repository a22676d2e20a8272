//! Times as people read them: `Try again at 5:40 PM.`, `resets 3am (Europe/Berlin)`, `Feb 3rd, 2026 5:40 AM`.

use gatewright_core::ids::Timestamp;
use jiff::{SignedDuration, civil, tz::TimeZone};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The end of the minute that a text names after `again at` or `resets`, on the reader's clock unless it names
/// another. A time without a day is the next one that is not over.
pub fn reset_time(text: &str, now: Timestamp, here: &TimeZone) -> Option<Timestamp> {
    let lower = text.to_lowercase();
    let from = ["again at ", "resets at ", "resets "].iter().find_map(|lead| {
        let at = lower.find(lead)?;
        Some(at + lead.len())
    })?;
    let words: Vec<&str> = lower[from..].split_whitespace().take(6).collect();
    let zone = text.get(from..).and_then(zone_named).unwrap_or_else(|| here.clone());
    let now = jiff::Timestamp::from_millisecond(i64::try_from(now.0).ok()?).ok()?;
    let today = now.to_zoned(zone.clone()).date();
    let minute_over = |date: civil::Date, time: civil::Time| {
        let at = date.to_datetime(time).to_zoned(zone.clone()).ok()?;
        at.timestamp().checked_add(SignedDuration::from_secs(60)).ok()
    };
    let at = if let Some((date, words)) = date_of(&words, today) {
        minute_over(date, time_of(words)?)?
    } else {
        let time = time_of(&words)?;
        [today, today.tomorrow().ok()?]
            .into_iter()
            .filter_map(|date| minute_over(date, time))
            .find(|at| *at > now)?
    };
    u64::try_from(at.as_millisecond()).ok().map(Timestamp)
}

/// `feb 3rd, 2026`, or `feb 3,` of the year in which that is next; and the words after it.
fn date_of<'w>(words: &'w [&'w str], today: civil::Date) -> Option<(civil::Date, &'w [&'w str])> {
    let [month, day, after @ ..] = words else { return None };
    let month = MONTHS.iter().position(|name| month.starts_with(name))? + 1;
    let digits = |word: &str| word.chars().take_while(char::is_ascii_digit).collect::<String>();
    let (month, day) = (i8::try_from(month).ok()?, digits(day).parse().ok()?);
    let year = after.first().map(|word| digits(word)).filter(|year| year.len() == 4);
    if let Some(year) = year {
        return Some((civil::Date::new(year.parse().ok()?, month, day).ok()?, &after[1..]));
    }
    let after = after.strip_prefix(&["at"]).unwrap_or(after);
    let date = civil::Date::new(today.year(), month, day).ok()?;
    let date =
        if date < today { civil::Date::new(today.year().checked_add(1)?, month, day).ok()? } else { date };
    Some((date, after))
}

/// `5:40 pm`, `5pm`, `17:40`
fn time_of(words: &[&str]) -> Option<civil::Time> {
    let first = words.first()?.trim_end_matches(['.', ',', ';', '·']);
    let number = first.trim_end_matches(['a', 'p', 'm']);
    let half = if number.len() < first.len() {
        &first[number.len()..]
    } else {
        words.get(1).map_or("", |word| word.trim_end_matches(['.', ',', ';', '·']))
    };
    let (hour, minute) = match number.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i8>().ok()?, minute.parse::<i8>().ok()?),
        // A bare number is no time of day.
        None if matches!(half, "am" | "pm") => (number.parse::<i8>().ok()?, 0),
        None => return None,
    };
    let hour = match half {
        "am" if hour == 12 => 0,
        "pm" if hour < 12 => hour + 12,
        _ => hour,
    };
    civil::Time::new(hour, minute, 0, 0).ok()
}

/// `(Europe/Berlin)`
fn zone_named(text: &str) -> Option<TimeZone> {
    let inside = text.split_once('(')?.1.split_once(')')?.0;
    TimeZone::get(inside.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2025-11-15T20:53:20Z
    const NOW: Timestamp = Timestamp(1_763_240_000_000);

    fn at(text: &str) -> Option<String> {
        let until = reset_time(text, NOW, &TimeZone::UTC)?;
        Some(jiff::Timestamp::from_millisecond(until.0.cast_signed()).unwrap().to_string())
    }

    #[test]
    fn j_44_a_time_of_day_is_the_next_one() {
        for (text, expected) in [
            ("You’ve hit your usage limit. Try again at 9:40 PM.", "2025-11-15T21:41:00Z"),
            ("You’ve hit your usage limit. Try again at 8:53 PM.", "2025-11-15T20:54:00Z"),
            ("usage limit; try again at 5:40 AM.", "2025-11-16T05:41:00Z"),
            ("You've hit your usage limit · resets 3am (UTC)", "2025-11-16T03:01:00Z"),
            ("limit reached, resets at 23:15", "2025-11-15T23:16:00Z"),
            ("Try again at Feb 3rd, 2026 12:05 AM.", "2026-02-03T00:06:00Z"),
            ("You've hit your weekly limit · resets Nov 20, 3pm (UTC)", "2025-11-20T15:01:00Z"),
            ("You've hit your weekly limit · resets Jan 2 at 3:30pm (UTC)", "2026-01-02T15:31:00Z"),
        ] {
            assert_eq!(at(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_names_no_time_of_day_has_none() {
        for text in
            ["try again at once", "resets soon", "try again at 25:61", "resets 3", "it is 5:40 PM", ""]
        {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
