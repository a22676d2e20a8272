//! A feature with scripted agents: everybody does well unless a test says otherwise.

use serde_json::Value;

use crate::support::Scratch;

/// Files and replies. A test's own cases come before `standard`.
const SCRIPT: &str = r#"
[ -d "$HOME/seen" ] || mkdir -p "$HOME/seen"
cp "$GATEWRIGHT_RUN_DIR/.meta.json" "$HOME/seen/$tag.$GATEWRIGHT_ATTEMPT.json" 2>/dev/null
file() { name=$1; shift; { echo '# Title'; for heading in "$@"; do printf '## %s\n- one\n' "$heading"; done; } > "$GATEWRIGHT_OUT/$name"; }
tasks() { printf '# Tasks\n## Tasks\n- T1: column `ends_at`. Done when: the migration runs.\n- T2: `keep()` writes it. Done when: it is tested.\n' > "$GATEWRIGHT_OUT/tasks.md"; }
built() { printf '# Implementation\n## Done\n- %s: `src/a.txt`\n## Tests\n- one\n' "$1" > "$GATEWRIGHT_OUT/implementation.md"; }
standard() {
  case $GATEWRIGHT_STEP in
    brainstorm) file brainstorm.md Problem Options Intent; brief DONE brainstorm.md "Explored.";;
    specify) file spec.md Requirements 'Acceptance Criteria' Scope; brief DONE spec.md "Specified, take $GATEWRIGHT_ROUND.";;
    design) file design.md Components Interfaces Dependencies Risks; brief DONE design.md "Designed, take $GATEWRIGHT_ROUND.";;
    create-plan) file plan.md Steps Coverage; brief DONE plan.md "Planned.";;
    create-tasks) tasks; brief DONE tasks.md "Cut.";;
    implement) built 'T1, T2'; brief DONE implementation.md "Built, take $GATEWRIGHT_ROUND.";;
    verify) file verification.md Findings Verdict; brief PASS verification.md "Seen.";;
    *-review) approve;;
    *) ok;;
  esac
}
"#;

pub struct Feature {
    pub scratch: Scratch,
    pub run: String,
}

impl Feature {
    pub fn project(cases: &str) -> Scratch {
        let scratch = Scratch::new();
        scratch.script(&format!("{SCRIPT}\ncase $GATEWRIGHT_STEP in\n{cases}\n*) standard;;\nesac\n"));
        scratch
    }

    /// A feature in this mode, driven until it rests.
    #[track_caller]
    pub fn runs(mode: &str, cases: &str, code: i32) -> Feature {
        let scratch = Feature::project(cases);
        let run =
            scratch.gatewright(&["run", "phase-review", "Remember me", "--profile", mode]).exits(code).id();
        Feature { scratch, run }
    }

    /// `.meta.json` as it is now.
    #[track_caller]
    pub fn meta(&self) -> Value {
        let text = self.scratch.published(&self.run, ".meta.json").unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// `.meta.json` as an attempt found it.
    #[track_caller]
    pub fn seen(&self, step: &str, attempt: u32) -> Value {
        let text = std::fs::read_to_string(self.scratch.home().join(format!("seen/{step}.{attempt}.json")));
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    pub fn history(&self) -> Option<String> {
        self.scratch.published(&self.run, ".review-history.md")
    }

    #[track_caller]
    pub fn answer(&self, decision: &str, words: &str, code: i32) {
        self.scratch.gatewright(&["answer", &self.run, decision, words]).exits(code);
    }
}
