//! What kept an agent from ending well, and whether trying again could help.

use gatewright_core::fact::TroubleKind;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    pub kind: TroubleKind,
    pub message: String,
    /// How long the agent itself was told to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

impl Trouble {
    pub fn new(kind: TroubleKind, message: impl Into<String>) -> Trouble {
        Trouble { kind, message: message.into(), wait_ms: None }
    }

    /// From an HTTP status, if there is one, and the words beside it.
    pub fn read(status: Option<u64>, message: &str) -> Trouble {
        Trouble::new(kind_of(status.or_else(|| status_in(message)), message), message.trim())
    }
}

/// How agents say on stderr that they do not know a conversation (any more).
const LOST: [&str; 6] = [
    "No conversation found",
    "no rollout found",
    "No previous sessions found",
    "Error resuming session",
    "Session not found",
    "No saved session found",
];

/// Whether an agent says that the conversation it should go on with is not there.
pub fn is_lost(stderr: &str) -> bool {
    LOST.iter().any(|words| stderr.contains(words))
}

/// Signs in the words of providers and programs; the first that is found counts.
const SIGNS: [(TroubleKind, &[&str]); 8] = [
    (
        TroubleKind::Context,
        &[
            "prompt is too long",
            "context length",
            "context window",
            "context_length",
            "maximum context",
            "contextoverflow",
            "input is too long",
            "exceeds the maximum number of tokens",
        ],
    ),
    (
        TroubleKind::Auth,
        &[
            "authentication",
            "failed to authenticate",
            "unauthorized",
            "invalid api key",
            "incorrect api key",
            "api key not valid",
            "not logged in",
            "/login",
            "invalid auth method",
            "set an auth method",
            "no auth type is selected",
            "missing environment variable",
            "no api key",
            "credit balance",
        ],
    ),
    (
        TroubleKind::Rate,
        &[
            "rate limit",
            "rate_limit",
            "usage limit",
            "quota",
            "too many requests",
            "resource_exhausted",
            // Claude Code's subscriptions: "You've hit your session limit · resets 3pm".
            "you've hit your",
            "out of usage credits",
        ],
    ),
    (
        TroubleKind::Network,
        &[
            "econnrefused",
            "econnreset",
            "enotfound",
            "etimedout",
            "connection refused",
            "cannot connect",
            "unable to connect",
            "connection error",
            "connection closed",
            "connection reset",
            "stream disconnected",
            "stream closed",
            "terminated",
            "socket",
            "fetch failed",
            "network",
            "error sending request",
            "premature close",
            "aborted",
            "unexpected eof",
        ],
    ),
    (
        TroubleKind::Server,
        &["overloaded", "high demand", "internal server error", "server error", "bad gateway", "unavailable"],
    ),
    (TroubleKind::Budget, &["max_budget", "budget", "max turns", "max_turns"]),
    (TroubleKind::Denied, &["permission denied by", "was rejected", "denied the permission"]),
    (TroubleKind::BadRequest, &["bad request", "invalid_request", "model not found", "not_found_error"]),
];

fn kind_of(status: Option<u64>, message: &str) -> TroubleKind {
    let lower = message.to_lowercase();
    let by_words = || {
        let found = SIGNS.iter().find(|(_, signs)| signs.iter().any(|sign| lower.contains(sign)));
        found.map(|(kind, _)| *kind)
    };
    match status {
        Some(401 | 403) => TroubleKind::Auth,
        Some(429) => TroubleKind::Rate,
        Some(413) => TroubleKind::Context,
        Some(408) => TroubleKind::Network,
        Some(400 | 404 | 422) => by_words()
            .filter(|kind| matches!(kind, TroubleKind::Context | TroubleKind::Auth))
            .unwrap_or(TroubleKind::BadRequest),
        Some(500..=599) => TroubleKind::Server,
        Some(_) | None => by_words().unwrap_or(TroubleKind::Unknown),
    }
}

/// An HTTP status that the words name: `status 401`, `API Error: 500 …`, `"code":429`, `429 …` first.
fn status_in(message: &str) -> Option<u64> {
    let leads = ["status", "error:", "code", "http", "statuscode", "error"];
    let words: Vec<&str> = message
        .split(|c: char| !(c.is_alphanumeric() || c == ':'))
        .filter(|word| *word != ":" && !word.is_empty())
        .collect();
    let number = |word: &str| -> Option<u64> {
        let digits = word.trim_matches(':');
        (digits.len() == 3).then(|| digits.parse::<u64>().ok()).flatten().filter(|n| (400..600).contains(n))
    };
    words.iter().enumerate().find_map(|(place, word)| {
        let found = number(word)?;
        let before = place.checked_sub(1).and_then(|place| words.get(place));
        let led = before.is_none_or(|before| {
            let before = before.to_lowercase();
            leads.iter().any(|lead| before.trim_end_matches(':') == lead.trim_end_matches(':'))
        });
        led.then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_tell_the_kind() {
        let kind = |message: &str| Trouble::read(None, message).kind;
        assert_eq!(kind("Failed to authenticate. API Error: 401 scripted failure"), TroubleKind::Auth);
        assert_eq!(kind("unexpected status 500 Internal Server Error: x"), TroubleKind::Server);
        assert_eq!(kind(r#"[API Error: {"error":{"code":429,"message":"slow down"}}]"#), TroubleKind::Rate);
        assert_eq!(kind(r#"{"error": {"code": 400, "message": "what?"}}"#), TroubleKind::BadRequest);
        assert_eq!(kind("prompt is too long: 250000 tokens > 200000"), TroubleKind::Context);
        assert_eq!(kind("You've hit your session limit · resets 3pm (UTC)"), TroubleKind::Rate);
        assert_eq!(kind("400 prompt is too long"), TroubleKind::Context);
        assert_eq!(
            kind(r#"too large to compact: {"errorName":"ContextOverflowError"}"#),
            TroubleKind::Context
        );
        assert_eq!(kind("404 no such model"), TroubleKind::BadRequest);
        assert_eq!(kind("connect ECONNREFUSED 127.0.0.1:1"), TroubleKind::Network);
        assert_eq!(kind("Connection reset by server"), TroubleKind::Network);
        assert_eq!(kind("it has 500 lines"), TroubleKind::Unknown);
    }

    #[test]
    fn auth_bad_requests_and_context_are_final_the_weather_is_not() {
        for kind in [TroubleKind::Auth, TroubleKind::BadRequest, TroubleKind::Context] {
            assert!(kind.is_final(), "{kind:?}");
        }
        for kind in [TroubleKind::Server, TroubleKind::Network, TroubleKind::Rate, TroubleKind::Interrupted] {
            assert!(!kind.is_final(), "{kind:?}");
        }
    }
}
