//! The schedule, its state, and a run with scripted agents: everybody does well unless a test says otherwise.

use serde_json::{Value, json};

use crate::support::Scratch;

/// Files and replies of every phase. A test's own cases come before `standard`.
const SCRIPT: &str = r#"
mkdir -p "$GATEWRIGHT_OUT/phases/0-explore" "$GATEWRIGHT_OUT/phases/1.2-plan"
item=$(printf %s "$GATEWRIGHT_STEP" | cut -d/ -f2)
printf '%s %s\n' "$GATEWRIGHT_STEP" "$1" >> "$HOME/models"
[ -d "$HOME/seen" ] || mkdir -p "$HOME/seen"
cp "$GATEWRIGHT_RUN_DIR/state.json" "$HOME/seen/$tag.$GATEWRIGHT_ATTEMPT.json" 2>/dev/null
file() { name=$1; shift; { echo '# Title'; for heading in "$@"; do printf '## %s\n- one\n' "$heading"; done; } > "$GATEWRIGHT_OUT/$name"; brief DONE "$name" "Wrote $name."; }
areas() { printf '{"areas": [{"id": "store", "question": "How is it kept?"}, {"id": "page", "question": "Where is it shown?"}]}' > "$GATEWRIGHT_OUT/$1"; }
task() { printf '{"id": "%s", "description": "%s", "files": [], "dependencies": [%s], "complexity": "%s", "instructions": "Do %s."}' "$1" "$1" "$2" "$3" "$1"; }
tasks() { printf '{"tasks": [%s]}' "$1" > "$GATEWRIGHT_OUT/phases/1.2-plan.json"; file phases/1.2-plan.md Summary Tasks 'Dependency Graph'; }
judge() { printf '%s\n' "$2" > "$GATEWRIGHT_OUT/$1"; printf '%s\n' "$2"; }
judged() { case $GATEWRIGHT_STEP in 1.3*) echo phases/1.3-plan-review.json;; 2.3*) echo phases/2.3-impl-review.json;; *) echo phases/3.3-test-review.json;; esac; }
content() { judge "$(judged)" '{"status": "approved", "issues": [], "summary": "fine"}'; }
objects() { judge "$(judged)" "{\"status\": \"needs_revision\", \"issues\": [{\"severity\": \"${1:-HIGH}\", \"location\": \"src/a.txt:1\", \"issue\": \"${2:-it is wrong}\", \"suggestion\": \"mend it\"}], \"summary\": \"not yet\"}"; }
final() { judge phases/4.2-final-review.json "{\"status\": \"$1\", \"overallQuality\": \"high\", \"issues\": [$2], \"metrics\": {\"tasksCompleted\": 1, \"filesModified\": 1, \"linesChanged\": 1, \"testsPassed\": true}, \"summary\": \"seen\", \"readyForCommit\": ${3:-true}}"; }
analysis() { printf '{"located": "%s", "summary": "It is in the %s.", "failures": [{"location": "src/a.txt:1", "cause": "c", "fix": "f"}]}' "$1" "$1" > "$GATEWRIGHT_OUT/phases/3.2-analysis.json"; brief DONE phases/3.2-analysis.json "In the $1."; }
did() { printf '{"taskId": "%s", "status": "completed", "summary": "Did %s.", "filesModified": ["src/%s.txt"]}\n' "$item" "$item" "$item"; }
standard() {
  case $GATEWRIGHT_STEP in
    0-areas) areas phases/0-areas.json; brief DONE phases/0-areas.json;;
    */explore) file "phases/0-explore/$item.md" Findings;;
    0-explore) file phases/0-explore.md Summary Findings 'Relevant Files' 'Open Questions';;
    1.1-brainstorm) areas phases/1.2-areas.json; file phases/1.1-brainstorm.md Options Decisions Risks;;
    */plan) file "phases/1.2-plan/$item.md" Tasks;;
    1.2-plan|1.3-bug-fixer) tasks "$(task one '' easy)";;
    1.3-plan-review|2.3-impl-review|3.3-test-review) content;;
    2.1-waves/*) echo "$item $GATEWRIGHT_RUN $GATEWRIGHT_ATTEMPT" > "src/$item.txt"; did;;
    2.2-simplify) file phases/2.2-simplify.md Simplified 'Left Alone';;
    3.2-analysis) analysis source;;
    4.1-docs) file phases/4.1-docs.md Updated;;
    4.2-final-review) final approved;;
    *) ok;;
  esac
}
"#;

/// Every phase in order.
pub const PHASES: [(&str, &str); 13] = [
    ("0", "EXPLORE"),
    ("1.1", "PLAN"),
    ("1.2", "PLAN"),
    ("1.3", "PLAN"),
    ("2.1", "IMPLEMENT"),
    ("2.2", "IMPLEMENT"),
    ("2.3", "IMPLEMENT"),
    ("3.1", "TEST"),
    ("3.2", "TEST"),
    ("3.3", "TEST"),
    ("4.1", "FINAL"),
    ("4.2", "FINAL"),
    ("4.3", "FINAL"),
];

pub struct Schedule {
    pub scratch: Scratch,
    pub run: String,
}

impl Schedule {
    pub fn project(cases: &str) -> Scratch {
        let scratch = Scratch::new();
        scratch.script(&format!("{SCRIPT}\ncase $GATEWRIGHT_STEP in\n{cases}\n*) standard;;\nesac\n"));
        let script = scratch.root().parent().unwrap().join("agent.sh");
        scratch.write(
            ".gatewright/config.yaml",
            &format!(
                "agent: mine\nagents:\n  mine:\n    command: [sh, \"{}\", \"{{model}}\"]\n",
                script.display()
            ),
        );
        scratch
    }

    /// A run with these flags, driven until it rests.
    #[track_caller]
    pub fn start(scratch: Scratch, flags: &[&str], code: i32) -> Schedule {
        let mut arguments = vec!["run", "staged-schedule", "End other sessions", "--agent", "mine"];
        for setting in ["lint=", "test=true", "backoff=1ms"] {
            arguments.extend(["--set", setting]);
        }
        arguments.extend(flags);
        let run = scratch.gatewright(&arguments).exits(code).id();
        Schedule { scratch, run }
    }

    #[track_caller]
    pub fn runs(flags: &[&str], cases: &str, code: i32) -> Schedule {
        Schedule::start(Schedule::project(cases), flags, code)
    }

    /// `state.json` as it is now.
    #[track_caller]
    pub fn state(&self) -> Value {
        let text = self.scratch.published(&self.run, "state.json").unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// `state.json` as an attempt found it.
    #[track_caller]
    pub fn seen(&self, step: &str, attempt: u32) -> Value {
        let name = format!("seen/{}.{attempt}.json", step.replace('/', "_"));
        let text = std::fs::read_to_string(self.scratch.home().join(name));
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    /// A JSON file of `phases/`.
    #[track_caller]
    pub fn phase_file(&self, name: &str) -> Value {
        let text = self.scratch.published(&self.run, &format!("phases/{name}")).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The model with which a step was launched.
    pub fn model(&self, step: &str) -> String {
        let text = std::fs::read_to_string(self.scratch.home().join("models")).unwrap();
        let line = text.lines().find(|line| line.split(' ').next() == Some(step));
        line.and_then(|line| line.split_once(' ')).map(|(_, model)| model.to_owned()).unwrap_or_default()
    }

    /// The inputs that a prompt names.
    pub fn inputs(&self, step: &str, attempt: u32) -> String {
        let prompt = self.scratch.prompt(step, attempt);
        let inputs = prompt.split("## Input Files").nth(1).unwrap_or_default();
        inputs.split("\n## ").next().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn answer(&self, decision: &str, words: &str, code: i32) {
        self.scratch.gatewright(&["answer", &self.run, decision, words]).exits(code);
    }
}

#[test]
fn s4_01_five_stages_and_thirteen_phases_in_their_order() {
    let schedule = Schedule::runs(&[], "", 0);
    let state = schedule.state();
    let entries: Vec<(String, String)> = state["schedule"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (entry["phase"].as_str().unwrap().to_owned(), entry["stage"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected: Vec<(String, String)> =
        PHASES.iter().map(|(phase, stage)| ((*phase).to_owned(), (*stage).to_owned())).collect();
    assert_eq!(entries, expected);
    // What really ran has the same order.
    let mut phases: Vec<String> =
        schedule.scratch.called().iter().map(|step| step.split('-').next().unwrap().to_owned()).collect();
    phases.dedup();
    assert_eq!(phases, ["0", "1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.3", "4.1", "4.2"]);
    let stages: Vec<&String> = state["stages"].as_object().unwrap().keys().collect();
    assert_eq!(stages, ["EXPLORE", "PLAN", "IMPLEMENT", "TEST", "FINAL"]);
    for (phase, stage) in PHASES {
        assert_eq!(state["stages"][stage]["phases"][phase]["status"], "completed", "{phase}: {state:#}");
    }
    assert_eq!(state["status"], "completed");
}

#[test]
fn s4_02_s4_03_the_position_moves_with_every_phase_and_outputs_are_recorded() {
    let schedule = Schedule::runs(&[], "", 0);
    for (step, phase, stage) in [
        ("0-areas", "0", "EXPLORE"),
        ("1.1-brainstorm", "1.1", "PLAN"),
        ("1.2-plan", "1.2", "PLAN"),
        ("2.2-simplify", "2.2", "IMPLEMENT"),
        ("3.3-test-review", "3.3", "TEST"),
        ("4.2-final-review", "4.2", "FINAL"),
    ] {
        let seen = schedule.seen(step, 1);
        assert_eq!((&seen["currentPhase"], &seen["currentStage"]), (&json!(phase), &json!(stage)), "{step}");
    }
    let seen = schedule.seen("2.2-simplify", 1);
    assert_eq!(seen["stages"]["IMPLEMENT"]["phases"]["2.1"]["status"], "completed");
    assert_eq!(seen["stages"]["IMPLEMENT"]["phases"]["2.3"]["status"], "pending");
    assert_eq!(seen["files"]["2.1-tasks.json"], ".agents/tmp/phases/2.1-tasks.json");
    assert!(seen["files"]["2.2-simplify.md"].is_null(), "not before it is done: {seen:#}");
}

#[test]
fn s4_18_summaries_lie_between_the_stages_and_the_next_one_reads_only_what_it_needs() {
    let schedule =
        Schedule::runs(&["--set", "steps.2.2-simplify.retry.attempts_max=1"], "2.2-simplify) exit 1;;", 10);
    let seen = schedule.seen("1.1-brainstorm", 1);
    assert_eq!(seen["compaction"]["history"][0]["stage"], "EXPLORE");
    let file = seen["compaction"]["history"][0]["file"].as_str().unwrap();
    assert_eq!(file, ".agents/tmp/summaries/EXPLORE.md");
    let summary = schedule.scratch.published(&schedule.run, "summaries/EXPLORE.md").unwrap();
    assert!(
        summary.contains("Wrote phases/0-explore.md.") && summary.contains("phases/0-explore.md"),
        "{summary}"
    );
    assert!(schedule.inputs("1.1-brainstorm", 1).contains("summaries/EXPLORE.md"));
    // Implementation hears of the plan, and nothing of the exploration.
    let inputs = schedule.inputs("2.1-waves/one/easy", 1);
    assert!(inputs.contains("1.2-plan.md") && inputs.contains("summaries/PLAN.md"), "{inputs}");
    assert!(!inputs.contains("0-explore") && !inputs.contains("1.1-brainstorm"), "{inputs}");
    assert!(schedule.scratch.published(&schedule.run, "summaries/1.1-brainstorm.md").is_none());
    // Between phases too, where that is wanted; and not at all, where it is not.
    let phases = Schedule::runs(&["--set", "compactionBetweenPhases=true"], "1.2-plan) brief ERROR;;", 11);
    assert!(phases.scratch.published(&phases.run, "summaries/0-areas.md").is_some());
    for (step, file) in [
        ("1.1-brainstorm", "summaries/0-explore.md"),
        ("1.2-planners/store/plan", "summaries/1.1-brainstorm.md"),
        ("1.2-plan", "summaries/1.2-planners.md"),
    ] {
        assert!(phases.inputs(step, 1).contains(file), "{step}: {}", phases.inputs(step, 1));
    }
    let compaction = phases.state()["compaction"].clone();
    let rows = compaction["history"].as_array().unwrap();
    let row = rows.iter().find(|row| row["phase"] == "1.1").unwrap_or_else(|| panic!("{compaction:#}"));
    assert_eq!(
        (&row["stage"], &row["file"]),
        (&json!("PLAN"), &json!(".agents/tmp/summaries/1.1-brainstorm.md"))
    );
    assert!(rows.iter().any(|row| row["stage"] == "EXPLORE" && row.get("phase").is_none()), "{compaction:#}");
    assert!(compaction["lastCompactedAt"].as_str().unwrap() >= row["at"].as_str().unwrap(), "{compaction:#}");
    let none = Schedule::runs(
        &["--set", "compactionBetweenStages=false", "--set", "steps.1.1-brainstorm.retry.attempts_max=1"],
        "1.1-brainstorm) exit 1;;",
        10,
    );
    assert!(none.scratch.published(&none.run, "summaries/EXPLORE.md").is_none());
    assert_eq!(none.state()["compaction"]["history"], json!([]));
}
