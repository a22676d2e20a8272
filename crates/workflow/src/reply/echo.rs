//! Output that repeats the prompt: a reply that stands in there was said by nobody.

use std::collections::BTreeMap;

/// So many lines in a row, blank ones apart, are no coincidence. The longest reply that is worth quoting in a prompt
/// is shorter, so one that is given again word by word counts.
const LINES_MIN: usize = 8;
/// A line that the prompt has more often than this says little about where in the prompt it is.
const PLACES_MAX: usize = 64;

/// The output without what it repeats of the prompt; `None`: it repeats nothing.
pub fn without_echo(output: &[u8], prompt: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(output);
    let asked: Vec<&str> = prompt.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in asked.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let said: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (at, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let mut repeated = vec![false; lines.len()];
    let mut at = 0;
    while at < said.len() {
        let known = places.get(said[at].1).map(Vec::as_slice).unwrap_or_default();
        let length = |place: &usize| {
            said[at..].iter().zip(&asked[*place..]).take_while(|((_, said), asked)| said == *asked).count()
        };
        let longest = known.iter().take(PLACES_MAX).map(length).max().unwrap_or(0);
        if longest >= LINES_MIN {
            said[at..at + longest].iter().for_each(|(line, _)| repeated[*line] = true);
        }
        at += if longest >= LINES_MIN { longest } else { 1 };
    }
    if !repeated.contains(&true) {
        return None;
    }
    let kept = lines.iter().zip(&repeated).map(|(line, repeated)| if *repeated { "\n" } else { line });
    Some(kept.collect::<String>().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &str = "STATUS: DONE\nFILE: none\nSUMMARY: Fine.\nNEXT_INPUT: none\n";

    fn prompt() -> String {
        format!("You build.\n\nAnswer with four lines.\nDo this:\n\n{REPLY}\nAnd nothing else.\nOne\nTwo\n")
    }

    #[test]
    fn what_is_repeated_of_the_prompt_is_left_out() {
        let kept = without_echo(prompt().as_bytes(), &prompt()).unwrap();
        assert!(String::from_utf8(kept).unwrap().trim().is_empty());
        let more = format!("user: go\n{}STATUS: BLOCKED\nFILE: none\n", prompt().replace('\n', "\r\n"));
        let kept = String::from_utf8(without_echo(more.as_bytes(), &prompt()).unwrap()).unwrap();
        assert_eq!(
            kept.split_whitespace().collect::<Vec<_>>().join(" "),
            "user: go STATUS: BLOCKED FILE: none"
        );
    }

    #[test]
    fn a_reply_that_the_prompt_quotes_counts_when_it_is_given() {
        assert_eq!(without_echo(REPLY.as_bytes(), &prompt()), None);
        assert_eq!(without_echo(format!("I am done.\n{REPLY}").as_bytes(), &prompt()), None);
    }
}
