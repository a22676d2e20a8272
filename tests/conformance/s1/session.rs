//! A session with scripted agents: everybody does well unless a test says otherwise.

use serde_json::Value;

use crate::support::{Ran, Scratch};

/// Replies and files in the words of the method. A test's own cases come before `standard`.
const SCRIPT: &str = r#"
[ -d "$HOME/seen" ] || mkdir -p "$HOME/seen"
cp "$GATEWRIGHT_RUN_DIR/status.json" "$HOME/seen/$tag.$GATEWRIGHT_ATTEMPT.json" 2>/dev/null
cp "$GATEWRIGHT_RUN_DIR/tasks.yaml" "$HOME/seen/$tag.$GATEWRIGHT_ATTEMPT.yaml" 2>/dev/null
rest='"gates":{"meets_definition_of_done":true,"needs_review":false,"needs_tests":false,"security_concerns":[]},"next":{"recommended_agent":"none","recommended_task_id":"none","reason":"none"}'
say() { printf '{"status":"%s","summary":"%s","artifacts":{%s},%s%s}\n' "$1" "${2:-It is done.}" "$3" "$rest" "$4"; }
fine() { say OK "$1"; }
finds() { say "$1" "Found something." '"findings":[{"severity":"'"$2"'","file":"src/a.txt","description":"'"$3"'"'"$4"'}]'; }
spec() { printf '# Spec\n## Problem\nNone yet.\n## Goals\n- One goal\n## Non-Goals\n- Another\n## User Stories\n- As a user\n- As a guest\n- As an admin\n## Functional Requirements\n- It works\n## Non-Functional Requirements\n- Fast\n## Edge Cases\n- Empty\n- Twice\n- Too large\n- Out of order\n- Without rights\n- Meanwhile\n- Half-way\n- Offline\n## Assumptions\n- Cookies\n## Definition of Done\n- Green\n## Acceptance Criteria\n- AC-001: it holds\n%s' "$1" > "$GATEWRIGHT_OUT/spec.md"; }
acceptance() { printf '{"acceptance_criteria":[{"id":"AC-001","description":"it holds","verify":["%s"]}]}' "${1:-manual: look at it}" > "$GATEWRIGHT_OUT/acceptance.json"; }
triage() { printf '{"project_type":"cli","assumptions":["cookies are allowed"],"research":{"needed":%s,"question":"which store?"},"ui":{"needed":%s}}' "$1" "$2" > "$GATEWRIGHT_OUT/intake.json"; }
architecture() { printf '# Architecture\n## Overview\nOne part.\n## Modules\n- store\n## Data Flow\nIn and out.\n## Interfaces\n- keep\n## Directory Layout\n- src\n## Error Handling\nNone is lost.\n## Configuration\n- none\n## Security\nNothing.\n## Testing\nUnit.\n## Risks\n%s## Coverage\n- %s: store\n' "${2-- old data
}" "${1:-AC-001}" > "$GATEWRIGHT_OUT/architecture.md"; }
task() { # task ID TYPE FLAGS CHECK NEEDS FILES
  printf '  - { id: %s, status: not-started, type: %s, title: Title of %s, depends_on: [%s], goal: Goal of %s, non_goals: [], context_files: [], files_expected: [%s], acceptance_checks: ["%s"], risk_flags: [%s], done_when: [it holds] }\n' "$1" "${2:-feat}" "$1" "$5" "$1" "$6" "${4:-manual: look}" "${3:-none}"; }
plan() { mkdir -p "$GATEWRIGHT_OUT/plan"; { printf 'project: { name: p, definition_of_done: [green] }\ntasks:\n'; if [ -f "$HOME/tasks" ]; then . "$HOME/tasks"; else task T-001; fi; } > "$GATEWRIGHT_OUT/plan/tasks.yaml"; }
issues() { if [ -e "$GATEWRIGHT_RUN_DIR/known-issues.md" ]; then cat "$GATEWRIGHT_RUN_DIR/known-issues.md"; else echo '- None'; fi; }
report() { { printf '# Report\n## What Was Done\n- It\n## How to Run\nrun\n## How to Test\ntest\n## Known Issues\n'; issues; } > "$GATEWRIGHT_OUT/report.md"; }
results() { printf '{"results":[{"id":"AC-001","met":%s,"evidence":"seen"}]}' "${1:-true}" > "$GATEWRIGHT_OUT/acceptance-results.json"; }
research() { mkdir -p "$GATEWRIGHT_OUT/research"; printf '# R\n## Question\nWhich?\n## Context\nNone needed.\n## Methodology\nRead.\n## Findings\n- One\n## Options\n- OPT-1: this\n## Recommendation\nOPT-1, confidence high\n## Sources\n- src/a.txt\n## Open Questions\n- None\n' > "$GATEWRIGHT_OUT/research/research-remember-me.md"; }
design() { mkdir -p "$GATEWRIGHT_OUT/design-specs"; printf '# D\n## Layout\nOne.\n## Interactions\n- click\n## Components\n- box\n## States\n- empty\n## Accessibility\n- label\n' > "$GATEWRIGHT_OUT/design-specs/design-spec-remember-me.md"; }
standard() {
  case $GATEWRIGHT_STEP in
    intake) spec; acceptance; triage false false; fine;;
    intake-lean) spec; acceptance; plan; fine;;
    research) research; fine;;
    architecture) architecture; fine;;
    design) design; fine;;
    plan) plan; fine;;
    docs) report; fine;;
    release) results; fine;;
    *) fine;;
  esac
}
"#;

/// A scratch project and the run in it.
pub struct Session {
    pub scratch: Scratch,
    pub run: String,
}

impl Session {
    /// A project whose agents do this besides the standard; nothing runs yet.
    pub fn project(cases: &str) -> Scratch {
        Session::project_with("", cases)
    }

    /// The same with more functions for the cases.
    pub fn project_with(functions: &str, cases: &str) -> Scratch {
        let scratch = Scratch::new();
        scratch.script(&format!(
            "{SCRIPT}{functions}\ncase $GATEWRIGHT_STEP in\n{cases}\n*) standard;;\nesac\n"
        ));
        scratch
    }

    /// Starts a session; it has to rest with this exit code.
    #[track_caller]
    pub fn starts(scratch: Scratch, more: &[&str], code: i32) -> Session {
        let mut words = vec!["run", "gated-session", "Remember me", "--set", "ci=true"];
        words.extend(more);
        let run = scratch.gatewright(&words).exits(code).id();
        Session { scratch, run }
    }

    /// A full session that waits for the approval of its design.
    #[track_caller]
    pub fn designed(cases: &str) -> Session {
        Session::starts(Session::project(cases), &[], 10)
    }

    /// A full session that waits for the review strategy; `tasks` are lines of `task …`.
    #[track_caller]
    pub fn planned(tasks: &str, cases: &str) -> Session {
        let scratch = Session::project(cases);
        std::fs::write(scratch.home().join("tasks"), tasks).unwrap();
        let session = Session::starts(scratch, &[], 10);
        session.answer("UD-APPROVE-DESIGN", "approved", 10);
        session
    }

    /// A full session with this strategy, driven until it rests.
    #[track_caller]
    pub fn built(strategy: &str, tasks: &str, cases: &str, code: i32) -> Session {
        let session = Session::planned(tasks, cases);
        session.answer("UD-REVIEW-STRATEGY", strategy, code);
        session
    }

    #[track_caller]
    pub fn lean(cases: &str, code: i32) -> Session {
        Session::starts(Session::project(cases), &["--profile", "lean"], code)
    }

    #[track_caller]
    pub fn answer(&self, decision: &str, words: &str, code: i32) -> Ran {
        self.scratch.gatewright(&["answer", &self.run, decision, words]).exits(code)
    }

    /// status.json as it is now.
    #[track_caller]
    pub fn status(&self) -> Value {
        let text = self.scratch.published(&self.run, "status.json").unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// `current_state` of status.json.
    #[track_caller]
    pub fn current_state(&self) -> String {
        self.status()["current_state"].as_str().unwrap().to_owned()
    }

    /// status.json as an attempt found it.
    #[track_caller]
    pub fn seen(&self, step: &str, attempt: u32) -> Value {
        let name = format!("seen/{}.{attempt}.json", step.replace('/', "_"));
        let text = std::fs::read_to_string(self.scratch.home().join(&name)).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// tasks.yaml as an attempt found it.
    #[track_caller]
    pub fn seen_tasks(&self, step: &str, attempt: u32) -> String {
        let name = format!("seen/{}.{attempt}.yaml", step.replace('/', "_"));
        std::fs::read_to_string(self.scratch.home().join(name)).unwrap()
    }

    /// One record of `user_decisions`.
    #[track_caller]
    pub fn decision(&self, id: &str) -> Value {
        let status = self.status();
        let all = status["user_decisions"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["decision_id"] == id).unwrap_or_else(|| panic!("{id}: {status:#}"))
    }

    /// The input JSON of a dispatch.
    #[track_caller]
    pub fn input(&self, step: &str, attempt: u32) -> Value {
        let prompt = self.scratch.prompt(step, attempt);
        let rest = prompt.split("## Input\n").nth(1).unwrap_or_else(|| panic!("no input in {prompt}"));
        let text = rest.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The context files of a dispatch, without the session's folder.
    #[track_caller]
    pub fn context_files(&self, step: &str) -> Vec<String> {
        let input = self.input(step, 1);
        let folder = format!(".agents-work/{}/", self.run);
        let files = input["task"]["context_files"].as_array().unwrap().clone();
        files.iter().map(|file| file.as_str().unwrap().strip_prefix(&folder).unwrap().to_owned()).collect()
    }
}
