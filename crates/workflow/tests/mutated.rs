//! What is read from outside, mutated: every kept example of `tests/corpus/` is cut, spliced and flipped, and
//! its reader must end with a value or an error that stands inside the text. New finds are kept there.

#![expect(clippy::unwrap_used, reason = "tests: a panic is the report")]

use std::path::Path;

use gatewright_workflow::{
    config::Config,
    contract::{Contract, check},
    load::{LoadOptions, MapSources, lint, load},
    reply::{WordMap, parse_reply},
    report::{Report, findings_of_report, header_reply},
    test_counts::{OutputReader, from_junit},
    yaml::parse_yaml_value,
};
use proptest::prelude::*;

/// One change of a text. Positions are fractions, so that one mutation fits every text.
#[derive(Clone, Debug)]
enum Mutation {
    Cut { from: u16, length: u16 },
    Repeat { from: u16, length: u16, times: u8 },
    Splice { other: u8, from: u16, length: u16, at: u16 },
    Insert { token: u8, at: u16 },
    Flip { at: u16, bits: u8 },
}

/// What readers look for, and what breaks them.
const TOKENS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "&a",
    "*a",
    "- ",
    ": ",
    "\n",
    "\t",
    "\"",
    "'",
    "|",
    "{{ ",
    " }}",
    "{% if %}",
    "<testcase",
    "/>",
    "<![CDATA[",
    "&#x41;",
    "99999999999999999999",
    "\u{0}",
    "ü",
    "# ",
];

fn corpus(folder: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no examples", path.display());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn mutations() -> impl Strategy<Value = (usize, Vec<Mutation>)> {
    let one = prop_oneof![
        (any::<u16>(), 0..200u16).prop_map(|(from, length)| Mutation::Cut { from, length }),
        (any::<u16>(), 0..60u16, 1..20u8).prop_map(|(from, length, times)| Mutation::Repeat {
            from,
            length,
            times
        }),
        (any::<u8>(), any::<u16>(), 0..200u16, any::<u16>())
            .prop_map(|(other, from, length, at)| Mutation::Splice { other, from, length, at }),
        (any::<u8>(), any::<u16>()).prop_map(|(token, at)| Mutation::Insert { token, at }),
        (any::<u16>(), 1..=255u8).prop_map(|(at, bits)| Mutation::Flip { at, bits }),
    ];
    (any::<usize>(), proptest::collection::vec(one, 0..6))
}

fn place(at: u16, length: usize) -> usize {
    usize::from(at) * length / usize::from(u16::MAX)
}

fn range(from: u16, length: u16, of: usize) -> std::ops::Range<usize> {
    let from = place(from, of);
    from..(from + usize::from(length)).min(of)
}

fn mutated(examples: &[Vec<u8>], which: usize, mutations: &[Mutation]) -> Vec<u8> {
    let mut text = examples[which % examples.len()].clone();
    for mutation in mutations {
        match mutation {
            Mutation::Cut { from, length } => drop(text.drain(range(*from, *length, text.len()))),
            Mutation::Repeat { from, length, times } => {
                let range = range(*from, *length, text.len());
                let part = text[range.clone()].repeat(usize::from(*times));
                text.splice(range.end..range.end, part);
            }
            Mutation::Splice { other, from, length, at } => {
                let other = &examples[usize::from(*other) % examples.len()];
                let at = place(*at, text.len());
                text.splice(at..at, other[range(*from, *length, other.len())].iter().copied());
            }
            Mutation::Insert { token, at } => {
                let at = place(*at, text.len());
                text.splice(at..at, TOKENS[usize::from(*token) % TOKENS.len()].bytes());
            }
            Mutation::Flip { at, bits } => {
                let at = place(*at, text.len().saturating_sub(1));
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= bits;
                }
            }
        }
    }
    text
}

/// Bounded: a failing case is printed with its mutations, and its text belongs into the corpus.
fn bounded(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_time: 5_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(bounded(300))]

    #[test]
    fn definitions((which, changes) in mutations()) {
        let text = String::from_utf8_lossy(&mutated(&corpus("definitions"), which, &changes)).into_owned();
        let (config, _) = Config::parse(&[]);
        let found = lint("w.yaml", &text, &MapSources::default(), &LoadOptions::new(&config));
        let lines = text.lines().count().max(1);
        for one in &found {
            prop_assert!(one.line <= lines + 1, "{} of {lines}: {}", one.line, one.message);
        }
        let _ = load("w.yaml", &text, &MapSources::default(), &LoadOptions::new(&config));
    }
}

proptest! {
    #![proptest_config(bounded(1500))]

    #[test]
    fn replies((which, changes) in mutations()) {
        let bytes = mutated(&corpus("replies"), which, &changes);
        let words = WordMap::default();
        prop_assert_eq!(parse_reply(&bytes, None, &words), parse_reply(&bytes, None, &words));
    }

    #[test]
    fn reports((which, changes) in mutations()) {
        let bytes = mutated(&corpus("reports"), which, &changes);
        let (report, words) = (Report::parse(&bytes), WordMap::default());
        header_reply(&report, &words);
        findings_of_report(&report, &words);
        let contract = "markdown: {title: 'T {}', header: {Status: [PASS]}, order: true, sections: {Requirements: {ids: 'REQ-{n}', min: 2}}}";
        let contract = Contract::from_value(&parse_yaml_value(contract).unwrap()).unwrap();
        if let Err(violations) = check(&contract, "a.md", &bytes) {
            prop_assert!(!violations.is_empty());
        }
    }

    #[test]
    fn test_counts((which, changes) in mutations()) {
        let bytes = mutated(&corpus("junit"), which, &changes);
        if let Ok(counts) = from_junit(&bytes) {
            prop_assert!(counts.run <= bytes.len() as u64, "never more tests than bytes");
        }
        let mut reader = OutputReader::of_runners();
        bytes.chunks(7).for_each(|piece| reader.push(piece));
        let _ = reader.finish();
    }
}
