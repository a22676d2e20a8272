//! The real agents, at pinned versions, against a scripted model: `./test agents`.
//!
//! Every test writes what it has shown into `target/agents/`, one line per cell of the table agent ×
//! scenario; `table` makes the table and fails on an empty cell.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "shared with other tests")]
mod support;

mod cells;
mod denies;
mod fake_model;
mod forms;
mod ground;
mod mixed;
mod moved;
mod over_acp;
mod quiet;
mod refused;
mod rounds;
mod rules;
mod stops;
mod table;
mod weather;
mod works;

/// The same tests for each agent; nextest runs them beside each other.
macro_rules! for_each_agent {
    ($($agent:ident)*) => {$(
        mod $agent {
            const AGENT: &str = stringify!($agent);

            #[test]
            fn a_whole_run_with_repair_review_and_fix() {
                crate::works::works(&AGENT.replace('_', "-"));
            }

            #[test]
            fn fix_rounds() {
                crate::rounds::rounds(&AGENT.replace('_', "-"));
            }

            #[test]
            fn bad_weather() {
                crate::weather::weather(&AGENT.replace('_', "-"));
            }

            #[test]
            fn a_limit_with_its_time() {
                crate::weather::limit(&AGENT.replace('_', "-"));
            }

            #[test]
            fn a_refused_key() {
                crate::weather::auth(&AGENT.replace('_', "-"));
            }

            #[test]
            fn refused() {
                crate::refused::refused(&AGENT.replace('_', "-"));
            }

            #[test]
            fn nobody_there() {
                crate::refused::nobody_there(&AGENT.replace('_', "-"));
            }

            #[test]
            fn quiet() {
                crate::quiet::quiet(&AGENT.replace('_', "-"));
            }

            #[test]
            fn denied() {
                crate::denies::denies(&AGENT.replace('_', "-"));
            }

            #[test]
            fn silent() {
                crate::stops::silent(&AGENT.replace('_', "-"));
            }

            #[test]
            fn killed_and_stopped() {
                crate::stops::stops(&AGENT.replace('_', "-"));
            }
        }
    )*};
}

for_each_agent!(claude codex gemini opencode qwen pi claude_acp opencode_acp);
