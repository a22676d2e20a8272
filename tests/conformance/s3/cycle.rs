//! A full cycle with scripted agents: everybody does well unless a test says otherwise.

use serde_json::Value;

use crate::support::{Ran, Scratch};

/// Replies and files in the words of the method. A test's own cases come before `standard`.
const SCRIPT: &str = r#"
[ -d "$HOME/seen" ] || mkdir -p "$HOME/seen"
cp "$GATEWRIGHT_RUN_DIR/pipeline_state.json" "$HOME/seen/$tag.$GATEWRIGHT_ATTEMPT.state.json" 2>/dev/null
cp "$GATEWRIGHT_RUN_DIR/progress/plan.json" "$HOME/seen/$tag.$GATEWRIGHT_ATTEMPT.plan.json" 2>/dev/null
say() { printf '> %s\n>\n> **Output**: %s\n> **Status**: %s\n> **Blocking issues**: %s\n' "${2:-It is done.}" "${3:-none}" "$1" "${4:-none}"; }
fine() { say complete "$1"; }
out() { mkdir -p "$(dirname "$GATEWRIGHT_OUT/$1")"; cat > "$GATEWRIGHT_OUT/$1"; }
note() { echo "$1" | out "$1"; }
meta() { printf '"metadata":{"agent":"%s","version":"1.0","status":"draft"}' "$GATEWRIGHT_ROLE"; }
spec() { note spec.md; note research.md; note decisions.md; printf '{%s,"feature_type":"backend"%s,"requirements":[{"id":"FR-001","description":"it holds"}]}' "$(meta)" "$1" | out spec_output.json; }
expert() { note domain_analysis.md; printf '{%s,"terms":[{"term":"a","meaning":"b"}]}' "$(meta)" | out domain_output.json; }
model() { note domain_model.md; printf '{%s,"entities":[{"name":"A"}]}' "$(meta)" | out domain_model.json; }
design() { note design.md; echo '{"color":{"a":"red"}}' | out design_system.tokens.json; printf '{%s,"options":[{"id":"option-1","title":"one","trade_off":"x"},{"id":"option-2","title":"two","trade_off":"y"}],"components":[{"name":"c"}]}' "$(meta)" | out design_output.json; }
stream() { printf '{"id":"%s","name":"Stream %s","agent":"%s","requirements":["FR-00%s"],"depends_on":[%s]}' "$1" "$1" "$2" "${1#WS-}" "$3"; }
plan() { note plan.md; if [ -f "$HOME/plan" ]; then . "$HOME/plan"; else printf '{%s,"requirements":[{"id":"FR-001","description":"d"}],"work_streams":[%s],"parallelism_groups":[{"group":1,"streams":["WS-1"]}]}' "$(meta)" "$(stream WS-1 software_engineer_backend)"; fi | out plan_output.json; }
schema() { note schema_design.md; }
api() { note api_design.md; echo 'openapi: 3.1.0' | out api_spec.yaml; printf '{%s,"resources":[{"name":"r","endpoints":[]}]}' "$(meta)" | out api_design_output.json; }
se() { printf '{%s,"files_changed":[{"path":"src/%s.txt","action":"created"}],"requirements_implemented":[{"id":"FR-001","status":"implemented"}]%s}' "$(meta)" "$GATEWRIGHT_ITEM" "$2" | out "$1"; }
work() { mkdir -p src; echo "$GATEWRIGHT_STEP $GATEWRIGHT_ATTEMPT" > "src/${GATEWRIGHT_ITEM:-all}${1}.txt"; }
pass() { echo '{"approved": true, "issues": [], "summary": "Fine."}'; }
finds() { printf '{"approved": false, "issues": [{"severity":"%s","location":"src/a.txt:1","description":"%s","suggestion":"mend it"%s}], "summary": "Found something."}\n' "$1" "$2" "$3"; }
ask() { printf '[Context]: Which store?\n\nOptions:\nA) Table — plain\nB) File — small\nC) Cache — quick\nD) Queue — late\nE) Log — certain\n\nRecommendation: A because it is there.\n\n**[Awaiting your decision]**\n'; }
standard() {
  case $GATEWRIGHT_STEP in
    tpm) spec; fine;;
    domain_expert) expert; fine;;
    domain_modeller) model; fine;;
    designer) design; fine;;
    impl_planner) plan; fine;;
    database_designer) schema; fine;;
    api_designer) api; fine;;
    streams/*/backend) work; se "$GATEWRIGHT_ITEM/se_multi_output.json"; fine;;
    streams/*/frontend) work; se "$GATEWRIGHT_ITEM/se_frontend_output.json"; fine;;
    streams/*/observability) work -dashboard; fine;;
    streams/*/schema) mkdir -p db/migrations; echo "create $GATEWRIGHT_ITEM" > "db/migrations/$GATEWRIGHT_ITEM.sql"; fine;;
    streams/*/api) mkdir -p docs; echo 'openapi: 3.1.0' > docs/openapi.yaml; fine;;
    streams/*/test) mkdir -p tests; echo t > "tests/$GATEWRIGHT_ITEM.test.txt"; fine;;
    backend) work backend; se se_multi_output.json; fine;;
    frontend) work frontend; se se_frontend_output.json; fine;;
    test) mkdir -p tests; echo t > tests/a.test.txt; fine;;
    review|meta_review|content_review) pass;;
    freshness) echo '{"scope":"library","findings":[{"artifact":"agents/a.md","severity":"must","problem":"old"}]}' | out freshness.json; fine;;
    consistency) echo '{"scope":"library","findings":[{"artifact":"agents/b.md","severity":"should","problem":"two ways"}]}' | out consistency.json; fine;;
    sort) echo '{"artifacts":[{"id":"a","path":"agents/a.md","findings":["old"]},{"id":"b","path":"agents/b.md","findings":["two ways"]}]}' | out fixes.json; fine;;
    *) fine;;
  esac
}
"#;

/// A scratch project and the run in it.
pub struct Cycle {
    pub scratch: Scratch,
    pub run: String,
}

/// `plan_output.json` of a test: `(id, agent, depends_on)`, and the groups.
pub fn plan(streams: &[(&str, &str, &[&str])], groups: &[&[&str]]) -> String {
    let quoted =
        |names: &[&str]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",");
    let list: Vec<String> = streams
        .iter()
        .map(|(id, agent, needs)| format!("$(stream {id} {agent} '{}')", quoted(needs)))
        .collect();
    let groups: Vec<String> = groups
        .iter()
        .enumerate()
        .map(|(place, names)| format!("{{\"group\":{},\"streams\":[{}]}}", place + 1, quoted(names)))
        .collect();
    format!(
        "printf '{{%s,\"requirements\":[{{\"id\":\"FR-001\",\"description\":\"d\"}}],\"work_streams\":[%s],\"parallelism_groups\":[{}]}}' \"$(meta)\" \"{}\"",
        groups.join(","),
        list.join(",")
    )
}

impl Cycle {
    /// A project whose agents do this besides the standard; nothing runs yet.
    pub fn project(cases: &str) -> Scratch {
        let scratch = Scratch::new();
        // Commands of a workflow are not given the variables that say who commits in tests.
        scratch.git(&["config", "user.name", "Tester"]);
        scratch.git(&["config", "user.email", "tester@example.org"]);
        scratch.script(&format!("{SCRIPT}\ncase $GATEWRIGHT_STEP in\n{cases}\n*) standard;;\nesac\n"));
        scratch
    }

    /// Starts a workflow of the method; it has to rest with this exit code.
    #[track_caller]
    pub fn of(scratch: Scratch, workflow: &str, more: &[&str], code: i32) -> Cycle {
        let mut words = vec!["run", workflow, "Remember me", "--set", "build=true", "--set", "test=true"];
        if workflow.ends_with("review-only") || workflow.ends_with("build") || workflow.contains("audit") {
            words.truncate(3);
        } else if workflow.ends_with("-design") {
            words.truncate(5);
        } else if workflow.ends_with("test-only") {
            words.drain(3..5);
        }
        words.extend(more);
        let run = scratch.gatewright(&words).exits(code).id();
        Cycle { scratch, run }
    }

    #[track_caller]
    pub fn starts(cases: &str, more: &[&str], code: i32) -> Cycle {
        Cycle::of(Cycle::project(cases), "stream-dag", more, code)
    }

    /// A backend cycle that waits for G3; `plan` as [`plan`] makes it, or empty.
    #[track_caller]
    pub fn planned(plan: &str, cases: &str, more: &[&str]) -> Cycle {
        let scratch = Cycle::project(cases);
        if !plan.is_empty() {
            std::fs::write(scratch.home().join("plan"), plan).unwrap();
        }
        let cycle = Cycle::of(scratch, "stream-dag", more, 10);
        cycle.answer("G1", "approved", 10);
        cycle
    }

    /// A backend cycle whose planner insists on a plan that cannot be worked off.
    #[track_caller]
    pub fn refused(plan: &str) -> Cycle {
        let scratch = Cycle::project("");
        std::fs::write(scratch.home().join("plan"), plan).unwrap();
        let cycle = Cycle::of(scratch, "stream-dag", &[], 10);
        cycle.answer("G1", "approved", 10);
        // The same plan twice: nobody tries a third time, a person is asked (S3-12, J-27).
        let asked = cycle.scratch.decision(&cycle.run, "D-1");
        assert_eq!(
            (&asked["about"], &asked["step"]),
            (&"exhausted".into(), &"impl_planner".into()),
            "{asked}"
        );
        cycle
    }

    /// A backend cycle that was told to implement, driven until it rests.
    #[track_caller]
    pub fn built(plan: &str, cases: &str, code: i32) -> Cycle {
        let cycle = Cycle::planned(plan, cases, &[]);
        cycle.answer("G3", "go ahead", code);
        cycle
    }

    #[track_caller]
    pub fn answer(&self, decision: &str, words: &str, code: i32) -> Ran {
        self.scratch.gatewright(&["answer", &self.run, decision, words]).exits(code)
    }

    /// A JSON file of the run directory.
    #[track_caller]
    pub fn json(&self, name: &str) -> Value {
        let text = self.scratch.published(&self.run, name).unwrap_or_else(|| panic!("there is no {name}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
    }

    /// A file as an attempt found it: `state` or `plan`.
    #[track_caller]
    pub fn seen(&self, step: &str, what: &str) -> Value {
        let name = format!("seen/{}.1.{what}.json", step.replace('/', "_"));
        let text = std::fs::read_to_string(self.scratch.home().join(&name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        serde_json::from_str(&text).unwrap()
    }

    /// Input files of a prompt, without the run directory.
    #[track_caller]
    pub fn inputs(&self, step: &str) -> Vec<String> {
        let prompt = self.scratch.prompt(step, 1);
        let list = prompt.split("## Input Files\n").nth(1).unwrap_or_default();
        let list = list.split("\n\n").next().unwrap_or_default();
        list.lines()
            .filter_map(|line| line.rsplit("/remember-me/").next())
            .map(|name| name.trim_start_matches("- ").to_owned())
            .collect()
    }

    /// `validate` with these words.
    #[track_caller]
    pub fn validate(&self, words: &[&str]) -> Ran {
        let mut all = vec!["validate"];
        all.extend(words);
        self.scratch.gatewright(&all)
    }

    #[track_caller]
    pub fn place(&self, step: &str) -> usize {
        let called = self.scratch.called();
        called.iter().position(|one| one == step).unwrap_or_else(|| panic!("{step} in {called:?}"))
    }
}
