//! `gatewright rehearse` with the real program, engine and agents' processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene up has failed")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

const SHIP: &str = include_str!("../../workflow/src/load/sample.yaml");
const PLANNER: &str = "---\ndescription: Plans.\nmay_write: []\n---\nPlan it: {{ request }}\n";
const PLAN: &str = r#"
markdown:
  header: { Status: [DONE], Agent: any, Timestamp: iso8601, "Input Files": any }
  sections:
    Summary: { bullets: [1, 5] }
    Requirements: { ids: "REQ-{n}", min: 1 }
    Implementation Plan: { sections: { Test Steps: { items_min: 1 }, Implementation Steps: { items_min: 1 } } }
    Affected Files: {}
    Handoff Notes: {}
"#;

/// A project with the sample workflow of the interface, and others.
struct Project {
    temp: tempfile::TempDir,
}

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

/// The program under a name of its own: a build beside the test must not pull it from under a run.
fn program(temp: &Path) -> PathBuf {
    let path = temp.join("gatewright");
    let built = env!("CARGO_BIN_EXE_gatewright");
    if !path.exists() && std::fs::hard_link(built, &path).is_err() {
        std::fs::copy(built, &path).unwrap();
    }
    path
}

impl Project {
    fn new(workflows: &[(&str, &str)]) -> Project {
        let project = Project { temp: tempfile::tempdir().unwrap() };
        project.write(".gatewright/workflows/ship.yaml", SHIP);
        project.write(".gatewright/workflows/roles/planner.md", PLANNER);
        project.write(".gatewright/workflows/reports/plan.yaml", PLAN);
        for (name, text) in workflows {
            project.write(&format!(".gatewright/workflows/{name}.yaml"), text);
        }
        project
    }

    fn root(&self) -> PathBuf {
        self.temp.path().join("project")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn gatewright(&self, arguments: &[&str]) -> Said {
        let scratch = self.temp.path().join("scratch");
        let home = self.temp.path().join("home");
        std::fs::create_dir_all(&scratch).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        let output = Command::new(program(self.temp.path()))
            .args(arguments)
            .current_dir(self.root())
            .env("HOME", &home)
            .env("TMPDIR", &scratch)
            .env("GATEWRIGHT_STATE_DIR", self.temp.path().join("state"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .output()
            .unwrap();
        let left: Vec<_> = std::fs::read_dir(&scratch).unwrap().flatten().map(|entry| entry.path()).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "nothing is left in the scratch folder");
        assert!(!self.temp.path().join("state").exists(), "the user's runs are not touched");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    fn rehearse(&self, workflow: &str, scenario: &str) -> Said {
        let path = self.write("scenario.yaml", scenario);
        self.gatewright(&["rehearse", workflow, "--scenario", &path.display().to_string()])
    }

    /// The scenario ends as it says itself.
    #[track_caller]
    fn plays(&self, workflow: &str, scenario: &str) -> Said {
        let said = self.rehearse(workflow, scenario);
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        said
    }
}

const SAMPLE: &str = r#"
request: Add a greeting
answers: { approve-plan: [changes-requested: "shorter", approved] }
agents:
  reviewer: [ { findings: [ { severity: high, problem: "no test" } ] }, pass ]      # first round, second round
  coder:    [ crash, done ]                                                         # first attempt dies
expect:
  state: done
  order: [plan, approve-plan, plan, approve-plan, code, review, code, review]
"#;

#[test]
fn the_sample_of_the_interface_plays_as_written() {
    let project = Project::new(&[]);
    project.plays("ship", SAMPLE);
}

#[test]
fn without_a_scenario_everything_passes() {
    let project = Project::new(&[]);
    let said = project.gatewright(&["rehearse", "ship", "--json"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["schema_version"], 1);
    assert_eq!(
        document["scenarios"][0]["order"],
        serde_json::json!(["plan", "approve-plan", "code", "review"])
    );
    assert_eq!(document["scenarios"][0]["decisions"]["approve-plan"], "approved");
}

#[test]
fn what_is_not_as_expected_is_shown_and_fails() {
    let project = Project::new(&[]);
    let said = project.rehearse("ship", &SAMPLE.replace("code, review, code, review]", "code, review]"));
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("place 7: expected the end, found `code`"), "{}", said.out);
    let said = project
        .rehearse("ship", "agents: { coder: { blocked: no compiler } }\nanswers: { approve-plan: approved }");
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("blocked (code: no compiler)"), "the reason is told: {}", said.out);
    let said = project.rehearse("ship", "answers: { approve-plan: maybe }\nexpect: { state: waiting }");
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("`maybe` is no answer"), "{}", said.out);
}

#[test]
fn mistakes_in_a_scenario_are_named_with_their_line() {
    let project = Project::new(&[]);
    let said = project.rehearse("ship", "request: x\nagnets: { coder: done }\n");
    assert_eq!(said.code, Some(3));
    assert!(said.err.contains("scenario.yaml:2:1") && said.err.contains("`agents`"), "{}", said.err);
    let said = project.rehearse("ship", "agents: { codr: done }\n");
    assert_eq!(said.code, Some(3));
    assert!(
        said.err.contains("scenario.yaml:1:") && said.err.contains("did you mean `code`"),
        "{}",
        said.err
    );
}

/// Nothing satisfies the schema: `again` would be answered for ever.
#[test]
fn a_question_that_is_put_again_and_again_gets_another_answer_in_the_end() {
    let project = Project::new(&[(
        "stuck",
        "workflow: stuck\nroles: { coder: { prompt: do } }\nsteps:\n  - { id: code, role: coder, writes: { a.json: never }, retry: { attempts_max: 1, on_exhausted: [ask] } }\n",
    )]);
    project.write(".gatewright/workflows/never.yaml", "json: never.json\n");
    project.write(".gatewright/workflows/never.json", "{ \"not\": {} }\n");
    let said = project.gatewright(&["rehearse", "stuck", "--json"]);
    let document: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    let tries = document["scenarios"][0]["attempts"]["code"].as_u64();
    assert!(tries.is_some_and(|tries| (2..20).contains(&tries)), "{document:#}");
}

#[test]
fn broken_attempts_are_never_a_success() {
    let project = Project::new(&[]);
    let approved = "answers: { approve-plan: approved }\n";
    for (behaviour, reason) in [
        ("malformed", "attempts_exhausted"),
        ("wrong_status", "attempts_exhausted"),
        ("{ crash: 3 }", "attempts_exhausted"),
        ("error", "agent_error"),
        ("{ blocked: no network }", "agent_blocked"),
    ] {
        project.plays("ship", &format!("{approved}agents: {{ coder: {behaviour} }}\nexpect: {{ state: blocked, blocked_by: {reason}, steps: {{ review: pending }} }}"));
    }
    for behaviour in ["missing_file", "stale_file"] {
        // The planner declares plan.md; the second time an old one is there.
        project.plays("ship", &format!("agents: {{ planner: [ done, {behaviour} ] }}\nanswers: {{ approve-plan: changes-requested }}\nexpect: {{ state: blocked, steps: {{ plan: blocked }} }}"));
    }
    // The coder may write `src/**` and `tests/**`.
    project.plays("ship", &format!("{approved}agents: {{ coder: {{ edits_outside: README.md }} }}\nexpect: {{ state: blocked, steps: {{ code: blocked, review: pending }} }}"));
    project.plays("ship", &format!("{approved}timeout: 1s\nagents: {{ coder: hang }}\nexpect: {{ state: blocked, attempts: {{ code: 2 }} }}"));
}

#[test]
fn slow_loud_and_curious_agents_get_there() {
    let project = Project::new(&[]);
    project.plays(
        "ship",
        r#"
agents:
  plan: [ { asks: [ "Which language?", { question: "How long?", options: [short, long] } ] }, done ]
  code: [ { slow: 100ms, huge_output: 3MB, edits: { src/a.rs: "fn a() {}" } }, done ]
  review: [ { quota: 3s }, pass ]
checks: { tests: [fail, ok] }
answers: { D-1: French, D-2: short, approve-plan: approved }
expect:
  state: done
  order: [plan, approve-plan, code, review]
  attempts: { plan: 2, code: 2, review: 2 }
  decisions: { D-1: French, D-2: short }
  files: [plan.md]
  events: [decision.opened, decision.answered, step.check.ended, step.retry.scheduled, quota.waiting, run.ended]
"#,
    );
}

#[test]
fn orders_are_given_at_their_moment() {
    let project = Project::new(&[]);
    let approved = "answers: { approve-plan: [approved, approved] }\n";
    for (order, expect) in [
        (
            "{ after: code, restart: design }",
            "order: [plan, approve-plan, code, review, plan, approve-plan, code, review]",
        ),
        ("{ after: approve-plan, skip: code }", "steps: { code: skipped, review: passed }"),
        ("{ after: plan, kill: true }", "attempts: { plan: 1, code: 1 }"),
        ("{ after: approve-plan, kill: true }", "attempts: { plan: 1, code: 1 }"),
        (
            "{ after: plan, stop: true, resume: true }",
            "events: [run.stop.requested, run.paused, run.resumed, run.ended]",
        ),
    ] {
        project.plays("ship", &format!("{approved}orders: [ {order} ]\nexpect: {{ state: done, {expect} }}"));
    }
    project.plays("ship", &format!("{approved}orders: [ {{ after: plan, stop: true }} ]\nexpect: {{ state: paused, attempts: {{ plan: 1, code: 0 }} }}"));
    project.plays(
        "ship",
        &format!("{approved}orders: [ {{ after: plan, abort: true }} ]\nexpect: {{ state: abandoned }}"),
    );
}

const FAN: &str = r#"
workflow: fan
roles: { planner: { prompt: Plan. }, coder: { prompt: Code. }, reviewer: { prompt: Look. } }
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - id: tasks
    for_each: tasks.yaml
    parallel_max: 1
    steps:
      - { id: code, role: coder, writes: { "{{ item.id }}.md": any } }
      - { id: review, review: code, by: reviewer }
  - { id: end, role: coder }
"#;

#[test]
fn fan_outs_have_items_and_their_steps_have_scripts() {
    let project = Project::new(&[("fan", FAN)]);
    project.plays(
        "fan",
        r#"
agents:
  tasks/item-2/code: [ crash, done ]
  "tasks/*/review": [ { findings: [ "too short" ] }, pass ]
expect:
  state: done
  files: [tasks.yaml, item-1.md, item-2.md]
  attempts: { tasks/item-1/code: 2, tasks/item-2/code: 3, tasks/item-2/review: 2 }
"#,
    );
}

/// All scenario files of the built-in methods, with the workflow's name: a folder of `tests/` is called
/// after the workflow whose scenarios it holds.
fn scenarios_of_methods() -> Vec<(String, PathBuf)> {
    let methods = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../methods").canonicalize().unwrap();
    let mut found = Vec::new();
    for method in std::fs::read_dir(&methods).unwrap().flatten() {
        let name = method.file_name().to_string_lossy().into_owned();
        let tests = method.path().join("tests");
        found.extend(yaml_files(&tests).into_iter().map(|path| (name.clone(), path)));
        for folder in std::fs::read_dir(&tests).into_iter().flatten().flatten() {
            let workflow = format!("{name}/{}", folder.file_name().to_string_lossy());
            found.extend(yaml_files(&folder.path()).into_iter().map(|path| (workflow.clone(), path)));
        }
    }
    found.sort();
    found
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect()
}

/// The methods whose scenarios have a test below, so that they run beside each other.
const METHODS: [&str; 6] =
    ["gated-session", "phase-review", "quick", "report-chain", "staged-schedule", "stream-dag"];

/// Every scenario of one method comes out as it says.
#[track_caller]
fn every_scenario_holds(method: &str) {
    const AT_ONCE: usize = 2;
    assert!(METHODS.contains(&method), "{method} is not in the list");
    let own = |name: &str| name.split('/').next() == Some(method);
    let scenarios: Vec<_> = scenarios_of_methods().into_iter().filter(|(name, _)| own(name)).collect();
    assert!(!scenarios.is_empty(), "{method} has no scenarios");
    std::thread::scope(|scope| {
        for worker in 0..AT_ONCE {
            let mine: Vec<_> = scenarios.iter().skip(worker).step_by(AT_ONCE).cloned().collect();
            scope.spawn(move || {
                let project = Project::new(&[]);
                for (workflow, path) in mine {
                    let path = path.display().to_string();
                    let said = project.gatewright(&["rehearse", &workflow, "--scenario", &path]);
                    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
                }
            });
        }
    });
}

#[test]
fn no_method_is_left_out() {
    let all = scenarios_of_methods();
    let mut named: Vec<&str> = all.iter().filter_map(|(name, _)| name.split('/').next()).collect();
    named.dedup();
    assert_eq!(named, METHODS, "each method has scenarios and a test that plays them");
}

#[test]
fn every_scenario_of_gated_session_holds() {
    every_scenario_holds("gated-session");
}

#[test]
fn every_scenario_of_phase_review_holds() {
    every_scenario_holds("phase-review");
}

#[test]
fn every_scenario_of_quick_holds() {
    every_scenario_holds("quick");
}

#[test]
fn every_scenario_of_report_chain_holds() {
    every_scenario_holds("report-chain");
}

#[test]
fn every_scenario_of_staged_schedule_holds() {
    every_scenario_holds("staged-schedule");
}

#[test]
fn every_scenario_of_stream_dag_holds() {
    every_scenario_holds("stream-dag");
}

#[test]
fn exploring_takes_every_way_of_the_sample() {
    let project = Project::new(&[("fan", FAN)]);
    for workflow in ["ship", "quick", "fan"] {
        let said = project.gatewright(&["rehearse", workflow, "--explore", "3", "--json"]);
        assert_eq!(said.code, Some(0), "{workflow}: {}{}", said.out, said.err);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(document["violations"], serde_json::json!([]));
        assert!(document["paths"].as_u64().unwrap() > 50, "{}", said.out);
        let never: Vec<&Value> = document["coverage"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|way| way["taken"] == false && way["kind"] == "edge")
            .collect();
        assert_eq!(never, Vec::<&Value>::new(), "{workflow}: every edge is taken");
    }
    let said = project.gatewright(&["rehearse", "ship", "--explore"]);
    assert!(
        said.out.contains("exhaustion") && said.out.contains("no path passes a closed gate"),
        "{}",
        said.out
    );
}
