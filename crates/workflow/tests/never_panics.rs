//! Whatever an agent writes, reading it ends without a panic.

use gatewright_workflow::{
    contract::{Contract, check},
    reply::{ReplyFormat, WordMap, parse_reply},
    report::{Report, findings_of_report, header_reply},
    yaml::parse_yaml_value,
};
use proptest::prelude::*;

/// Pieces of real replies and reports, so that random texts reach deep into the readers.
const PIECES: &[&str] = &[
    "STATUS: PASS",
    "STATUS:",
    "FILE: a.md",
    "SUMMARY: s",
    "NEXT_INPUT: none",
    "---",
    "- ",
    "* x",
    "  more",
    "\n",
    "\r\n",
    "\r",
    "```",
    "````json",
    "~~~",
    "> ",
    "**Status**: complete",
    "**Output**: `a` written to `b/`",
    "**Blocking issues**: none",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    "\"approved\": true",
    "\"issues\": []",
    "\"status\": \"OK\"",
    "\"severity\": \"x\"",
    "null",
    "1e999",
    "\u{1b}[31m",
    "\u{1b}]0;t\u{7}",
    "\u{1b}",
    "ü",
    "\u{feff}",
    "# T",
    "## Blocking Issues",
    "### Non-Blocking",
    "## Requirements",
    "1. REQ-1: a",
    "   - Location: `a:1`",
    "   - Severity: High",
    "| a | b |",
    "|---|---|",
    "- BLOCKING: x (a:1)",
    "- [high] y ROUTE: z",
    "- Q: why?",
    "    ",
    "\t",
    "<!-- c -->",
    "(",
    ")",
    "&amp;",
    "Low/Medium",
    "**",
    "===",
];

const CONTRACTS: &[&str] = &[
    "any",
    "text: {min_bytes: 2, contains: [x]}",
    "json: {type: object, required: [a], properties: {a: {type: string, pattern: '^(a+)+$'}}}",
    "yaml: {type: object, additionalProperties: {type: array, uniqueItems: true}}",
    "markdown: {title: 'T {}', header: {Status: [PASS], Timestamp: iso8601}, order: true, sections: {Blocking Issues: \
     {fields: [Location], bullets: [1, 2], one_of: [Low, ü]}, Requirements: {ids: 'REQ-{n}', min: 2, columns: [a], rows_min: 1, \
     contains: [ü], items_min: 1, sections: {X: {}}}}}",
];

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        2 => Just(b"\n".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replies(output in texts()) {
        let words = WordMap::default();
        for format in [None, Some(ReplyFormat::Brief), Some(ReplyFormat::Universal), Some(ReplyFormat::Review), Some(ReplyFormat::Completion), Some(ReplyFormat::Task)] {
            let first = parse_reply(&output, format, &words);
            prop_assert_eq!(&first, &parse_reply(&output, format, &words));
        }
    }

    #[test]
    fn reports(bytes in texts()) {
        let report = Report::parse(&bytes);
        let words = WordMap::default();
        header_reply(&report, &words);
        findings_of_report(&report, &words);
    }

    #[test]
    fn contracts(bytes in texts(), which in 0..CONTRACTS.len()) {
        let value = parse_yaml_value(CONTRACTS[which]).unwrap();
        let contract = Contract::from_value(&value).unwrap();
        if let Err(violations) = check(&contract, "a.md", &bytes) {
            prop_assert!(!violations.is_empty());
        }
    }
}
