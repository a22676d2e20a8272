//! `gatewright rehearse` with the real program, engine and agents' processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene up has failed")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
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

/// Nothing of a rehearsal leaves the scratch repository: the user's command for pull requests is not called.
#[test]
fn a_rehearsal_opens_no_pull_request() {
    let project = Project::new(&[]);
    let called = project.root().join("called");
    project.write(
        ".gatewright/config.yaml",
        &format!("pull_request: {{ command: \"touch {}\" }}\n", called.display()),
    );
    project.write(
        ".gatewright/workflows/ends.yaml",
        "workflow: ends\nisolation: worktree\nroles: { coder: { prompt: Build. } }\nsteps:\n  - { id: code, role: coder }\n  - { id: end, finish: pull_request }\n",
    );
    project.plays("ends", "pull_request: ok\nexpect: { state: done, steps: { end: passed } }");
    project.plays("ends", "pull_request: fail\nexpect: { state: blocked }");
    project.plays("ends", "expect: { state: blocked }");
    assert!(!called.exists());
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

/// The ways of a workflow, by kind and name, and whether some scenario took them.
type Ways = BTreeMap<(String, String), bool>;

/// Every scenario of one method comes out as it says, and together they walk what a method has to show: the happy path of
/// each profile, each loop, each gate, each exhaustion, each restart.
#[track_caller]
fn every_scenario_holds(method: &str) {
    const AT_ONCE: usize = 2;
    assert!(METHODS.contains(&method), "{method} is not in the list");
    let own = |name: &str| name.split('/').next() == Some(method);
    let scenarios: Vec<_> = scenarios_of_methods().into_iter().filter(|(name, _)| own(name)).collect();
    assert!(!scenarios.is_empty(), "{method} has no scenarios");
    let walked: Mutex<BTreeMap<String, Ways>> = Mutex::default();
    std::thread::scope(|scope| {
        for worker in 0..AT_ONCE {
            let mine: Vec<_> = scenarios.iter().skip(worker).step_by(AT_ONCE).cloned().collect();
            let walked = &walked;
            scope.spawn(move || {
                let project = Project::new(&[]);
                for (workflow, path) in mine {
                    let path = path.display().to_string();
                    let said = project.gatewright(&[
                        "rehearse",
                        &workflow,
                        "--scenario",
                        &path,
                        "--coverage",
                        "--json",
                    ]);
                    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
                    let document: Value = serde_json::from_str(&said.out).unwrap();
                    let mut walked = walked.lock().unwrap();
                    let ways = walked.entry(workflow).or_default();
                    for way in document["coverage"].as_array().unwrap() {
                        let text = |key: &str| way[key].as_str().unwrap().to_owned();
                        *ways.entry((text("kind"), text("name"))).or_insert(false) |= way["taken"] == true;
                    }
                }
            });
        }
    });
    let walked = walked.into_inner().unwrap();
    let mut missing: Vec<String> = workflows_of(method)
        .into_iter()
        .filter(|workflow| !walked.contains_key(workflow))
        .map(|workflow| format!("{workflow}: it has no scenario"))
        .collect();
    for (workflow, ways) in &walked {
        missing.extend(unwalked(ways).into_iter().map(|way| format!("{workflow}: {way}")));
    }
    assert_eq!(missing, Vec::<String>::new(), "no scenario of {method} walks these");
}

/// What a scenario has to walk and none does.
fn unwalked(ways: &Ways) -> Vec<String> {
    let mut missing = Vec::new();
    let mut groups: BTreeMap<String, bool> = BTreeMap::new();
    for ((kind, name), taken) in ways {
        let (step, what) = name.split_once(": ").unwrap_or((name, ""));
        match kind.as_str() {
            // That attempts are used up and nobody is asked is the engine's own rule, of every step.
            "exhaustion" if what == "attempts → block" => {}
            "profile" | "loop" | "exhaustion" | "restart" | "escalation" | "obligation" => {
                missing.extend((!taken).then(|| format!("{kind} {name}")));
            }
            // A condition goes both ways. Before a hard gate that stays closed a step only waits: nothing is recorded of that.
            "gate" if what.ends_with(" holds") || what.starts_with("when ") => {
                missing.extend((!taken).then(|| format!("{kind} {name}")));
            }
            // A question is asked and answered; which of its answers leads where is told by their effects.
            "answer" if !step.contains(" after ") => {
                *groups.entry(format!("question {step}")).or_default() |= taken;
            }
            "gate" | "answer" | "edge" | "referral" => {}
            other => panic!("a new kind of way: {other}"),
        }
    }
    missing.extend(groups.into_iter().filter(|(_, taken)| !taken).map(|(name, _)| name));
    missing
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
fn what_no_scenario_walks_is_named() {
    let project = Project::new(&[]);
    project.write("tests/happy.yaml", "answers: { approve-plan: approved }\nexpect: { state: done }\n");
    let ways = |project: &Project| {
        let said = project.gatewright(&["rehearse", "ship", "--scenario", "tests", "--coverage", "--json"]);
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        let way = |one: &Value| {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            ((text("kind"), text("name")), one["taken"] == true)
        };
        document["coverage"].as_array().unwrap().iter().map(way).collect::<Ways>()
    };
    let taken = |ways: &Ways, kind: &str, name: &str| {
        let known = ways.get(&(kind.to_owned(), name.to_owned()));
        *known.unwrap_or_else(|| panic!("{kind} {name} is not known: {ways:#?}"))
    };
    let names = [
        ("profile", "default"),
        ("answer", "approve-plan: approved"),
        ("loop", "review → code"),
        ("exhaustion", "review: rounds → ask"),
        ("restart", "design"),
    ];
    let of = |ways: &Ways| names.map(|(kind, name)| taken(ways, kind, name));
    let first = ways(&project);
    assert_eq!(of(&first), [true, true, false, false, false]);
    assert!(unwalked(&first).contains(&"loop review → code".to_owned()), "{:?}", unwalked(&first));
    project.write(
        "tests/loop.yaml",
        "answers: { approve-plan: [approved, approved] }\nagents: { reviewer: [ { findings: [ { severity: high, problem: x } ] }, pass ] }\norders: [ { after: code, restart: design } ]\n",
    );
    project.write(
        "tests/never.yaml",
        "answers: { approve-plan: approved }\nagents: { reviewer: { findings: [ { severity: high, problem: x } ] } }\nexpect: { state: waiting }\n",
    );
    assert_eq!(of(&ways(&project)), [true; 5]);
    // For people a table; a folder without scenarios is a mistake.
    let said = project.gatewright(&["rehearse", "ship", "--scenario", "tests/happy.yaml", "--coverage"]);
    assert!(said.out.contains("review → code") && said.out.contains("never taken"), "{}", said.out);
    std::fs::create_dir(project.root().join("empty")).unwrap();
    let said = project.gatewright(&["rehearse", "ship", "--scenario", "empty"]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.err);
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

/// The agents that a configuration can name: each with an adapter, those that speak ACP once more, any other that does, and
/// a plain command.
const HOUSES: [&str; 13] = [
    "claude",
    "codex",
    "gemini",
    "opencode",
    "qwen",
    "pi",
    "claude-acp",
    "codex-acp",
    "gemini-acp",
    "opencode-acp",
    "qwen-acp",
    "other",
    "mine",
];

/// Every role of every workflow of a method, by every agent: what it would be started with can be made, and its prompt
/// says how to hand in the work in a way that this agent has. The roles' turns come by rehearsal.
#[track_caller]
fn every_role_can_be_launched(method: &str) {
    let project = Project::new(&[]);
    let acp = ["claude", "codex", "gemini", "opencode", "qwen"]
        .map(|house| format!("  {house}-acp: {{ adapter: {house}, protocol: acp }}\n"))
        .concat();
    let others = "  other: { command: [x, --acp], protocol: acp }\n  mine: { command: [x] }\n";
    project.write(".gatewright/config.yaml", &format!("agents:\n{acp}{others}"));
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../methods").join(method).join("tests");
    for workflow in workflows_of(method) {
        let mut left = launches(&project, &workflow, None);
        for (_, scenario) in SELDOM.iter().filter(|(name, _)| *name == workflow) {
            let folder = workflow.split_once('/').map_or(tests.clone(), |(_, own)| tests.join(own));
            let more = launches(&project, &workflow, Some(&folder.join(format!("{scenario}.yaml"))));
            left.retain(|role| more.contains(role));
        }
        assert_eq!(
            left,
            Vec::<String>::new(),
            "{workflow}: nobody has played these: name a scenario in SELDOM"
        );
    }
}

/// Scenarios in which somebody has a turn who has none when everything passes.
const SELDOM: [(&str, &str); 9] = [
    ("staged-schedule", "merge-conflict"),
    ("staged-schedule", "red-in-a-test"),
    ("staged-schedule", "hard-task"),
    ("stream-dag", "review-ui"),
    ("stream-dag", "observability-exhausted"),
    ("stream-dag/quick-fix", "fullstack"),
    ("stream-dag/review-only", "route"),
    ("stream-dag/review-only", "route-frontend"),
    ("stream-dag/review-only", "interactive"),
];

/// The workflows of a method by the names that `rehearse` takes.
fn workflows_of(method: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../methods").join(method).join("workflows");
    let names = yaml_files(&folder).into_iter().map(|path| path.file_stem().unwrap().to_owned());
    let mut all: Vec<String> = names.map(|name| format!("{method}/{}", name.display())).collect();
    all.sort();
    all.insert(0, method.to_owned());
    all
}

/// Plays a workflow and looks at what every agent would have been started with. The roles whose turn did not come.
#[track_caller]
fn launches(project: &Project, workflow: &str, scenario: Option<&PathBuf>) -> Vec<String> {
    let mut arguments = vec!["rehearse", workflow, "--json"];
    arguments.extend(HOUSES.iter().flat_map(|house| ["--as", house]));
    let path = scenario.map(|path| path.display().to_string());
    arguments.extend(path.iter().flat_map(|path| ["--scenario", path]));
    let said = project.gatewright(&arguments);
    assert_eq!(said.code, Some(0), "{workflow} {path:?}: {}\n{}", said.err, differences(&said.out));
    let document: Value = serde_json::from_str(&said.out).unwrap();
    let played = &document["scenarios"][0];
    let launches = played["launches"].as_array().unwrap();
    // A scenario may end before anybody begins.
    assert!(launches.len().is_multiple_of(HOUSES.len()), "{workflow}: {}", launches.len());
    for launch in launches {
        can_hand_in(launch);
    }
    let unplayed = played["unplayed"].as_array().unwrap();
    unplayed.iter().map(|role| role.as_str().unwrap().to_owned()).collect()
}

fn differences(out: &str) -> String {
    let document: Value = serde_json::from_str(out).unwrap_or_default();
    format!("{:#}", document["scenarios"][0]["differences"])
}

/// Command line, environment and prompt fit each other.
fn can_hand_in(launch: &Value) {
    let text = |key: &str| launch[key].as_str().unwrap().to_owned();
    let (agent, out, prompt) = (text("agent"), text("out"), text("prompt"));
    let place = format!("{} by {agent}: {}", text("role"), text("step"));
    let house = agent.trim_end_matches("-acp");
    let acp = agent.ends_with("-acp") || agent == "other";
    let argv: Vec<&str> =
        launch["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let has = |words: &[&str]| argv.windows(words.len()).any(|window| window == words);
    let environment = &launch["environment"];
    for (name, value) in
        [("GATEWRIGHT_OUT", &out), ("GATEWRIGHT_ROLE", &text("role")), ("GATEWRIGHT_STEP", &text("step"))]
    {
        assert_eq!(environment[name], **value, "{place}: {name}");
    }
    assert!(environment["PATH"].is_string() && environment["TMPDIR"].is_string(), "{place}: {environment:#}");
    assert!(!argv[0].is_empty() && !argv[1..].contains(&""), "{place}: {argv:?}");

    let output = prompt.rsplit_once("\n## Output\n").unwrap_or_else(|| panic!("{place}: {prompt}")).1;
    assert!(prompt.contains("\n## Task\n"), "{place}: {prompt}");
    assert!(output.contains("End your output with this reply"), "{place}: {output}");
    // Who can write no file gives it in the last message; whoever is asked to write one is let.
    let writes = match house {
        "claude" if !acp => argv.iter().any(|word| word.contains(&out)),
        "opencode" if !acp => environment["OPENCODE_CONFIG_CONTENT"].to_string().contains(&out),
        "gemini" | "qwen" if !acp => !has(&["--approval-mode", "default"]),
        // Inside our sandbox it is held by that.
        "codex" if !acp => {
            let held = |list: &Vec<Value>| {
                !list.iter().any(|place| Path::new(&text("folder")).starts_with(place.as_str().unwrap()))
            };
            !has(&["-s", "read-only"]) && !launch["writable"].as_array().is_some_and(held)
        }
        "pi" => !has(&["--tools", "read,grep,find,ls"]),
        "mine" => true,
        _ => !has(&["--read-only"]),
    };
    let outputs = launch["outputs"].as_array().unwrap();
    for name in outputs.iter().map(|name| name.as_str().unwrap()) {
        let by_file = output.contains(&format!("- Write `{name}` in full to: {out}/{name}"));
        let by_message = output.contains(&format!("You cannot write files. Give `{name}`"))
            && output.contains(&format!("<<<FILE {name}"));
        assert_eq!((by_file, by_message), (writes, !writes), "{place}: {name}: {argv:?}\n{output}");
    }
    // By tools where it has them.
    let has_tools = !["pi", "mine"].contains(&house);
    assert_eq!(output.contains("`submit_report`"), has_tools && !outputs.is_empty(), "{place}: {output}");
    let told = |text: &str| text.contains("mcp") && text.contains(&out);
    let on_line = argv.iter().any(|word| told(word)) || has(&["--out", &out]);
    let in_settings = told(&environment["OPENCODE_CONFIG_CONTENT"].to_string())
        || environment["GEMINI_CLI_SYSTEM_SETTINGS_PATH"].is_string();
    assert_eq!(on_line || in_settings, has_tools, "{place}: how does it find our tools? {argv:?}");
}

#[test]
fn every_role_of_gated_session_can_be_launched_by_every_agent() {
    every_role_can_be_launched("gated-session");
}

#[test]
fn every_role_of_phase_review_can_be_launched_by_every_agent() {
    every_role_can_be_launched("phase-review");
}

#[test]
fn every_role_of_quick_can_be_launched_by_every_agent() {
    every_role_can_be_launched("quick");
}

#[test]
fn every_role_of_report_chain_can_be_launched_by_every_agent() {
    every_role_can_be_launched("report-chain");
}

#[test]
fn every_role_of_staged_schedule_can_be_launched_by_every_agent() {
    every_role_can_be_launched("staged-schedule");
}

#[test]
fn every_role_of_stream_dag_can_be_launched_by_every_agent() {
    every_role_can_be_launched("stream-dag");
}
