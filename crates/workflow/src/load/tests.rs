//! Whole workflow files in, plans or diagnostics out.

use gatewright_core::{
    ids::{ProfileId, StepId},
    plan::{AnswerEffect, Condition, Exhaustion, Graph, Hardness, Kind, limits},
    verdict::Severity,
};

use super::*;
use crate::{
    frozen::{Isolation, is_frozen_as},
    yaml::tree::parse_tree,
};

const SAMPLE: &str = include_str!("sample.yaml");

const PLAN_CONTRACT: &str = r#"
markdown:
  header: { Status: [DONE], Agent: any, Timestamp: iso8601, "Input Files": any }
  sections:
    Summary: { bullets: [1, 5] }
    Requirements: { ids: "REQ-{n}", min: 1 }
    Implementation Plan: { sections: { Test Steps: { items_min: 1 }, Implementation Steps: { items_min: 1 } } }
    Affected Files: {}
    Handoff Notes: {}
"#;

fn sources() -> MapSources {
    MapSources::default()
        .with("roles/planner.md", "---\ndescription: Plans.\nmay_write: []\n---\nPlan it: {{ request }}\n")
        .with("reports/plan.yaml", PLAN_CONTRACT)
}

fn load_with(text: &str, change: impl FnOnce(&mut LoadOptions<'_>)) -> Loaded {
    let config = Config::default();
    let mut options = LoadOptions::new(&config);
    change(&mut options);
    load("flow.yaml", text, &sources(), &options)
}

#[track_caller]
fn loads(text: &str) -> Frozen {
    let loaded = load_with(text, |_| ());
    let shown = crate::diagnostic::render_all(&loaded.diagnostics);
    loaded.frozen.unwrap_or_else(|| panic!("{shown}"))
}

fn graph(frozen: &Frozen) -> &Graph {
    frozen.plan.graph(&frozen.plan.profile)
}

fn needs(graph: &Graph, id: &str) -> Vec<String> {
    graph.steps[id].needs.iter().map(|edge| edge.from.to_string()).collect()
}

#[test]
fn j_45_the_sample_of_the_interface_loads_as_written() {
    let frozen = loads(SAMPLE);
    assert_eq!(frozen.workflow, "ship");
    assert_eq!(frozen.dir, ".workflow/{{ run.id }}");
    assert_eq!(frozen.plan.profile, ProfileId::new("default"));
    let graph = graph(&frozen);
    let stages: Vec<(&str, Vec<&str>)> = graph
        .stages
        .iter()
        .map(|stage| (stage.id.as_str(), stage.steps.iter().map(StepId::as_str).collect()))
        .collect();
    assert_eq!(stages, vec![("design", vec!["plan", "approve-plan"]), ("build", vec!["code", "review"])]);
    assert_eq!(needs(graph, "plan"), Vec::<String>::new());
    assert_eq!(needs(graph, "approve-plan"), ["plan"]);
    assert_eq!(needs(graph, "code"), ["approve-plan"]);
    assert_eq!(needs(graph, "review"), ["code"]);
    assert_eq!(graph.dependents["plan"], vec![StepId::new("approve-plan")]);

    let Kind::Decision(question) = &graph.steps["approve-plan"].kind else { panic!("a decision") };
    assert_eq!(question.answers[0].effect, AnswerEffect::Pass);
    assert!(question.answers[0].synonyms.contains(&"go ahead".to_owned()));
    assert!(!question.answers[0].synonyms.iter().any(|word| word.starts_with("ok")));
    assert_eq!(
        question.answers[1].effect,
        AnswerEffect::Redo { steps: vec!["plan".into()], routes: BTreeMap::new() }
    );

    let code = &graph.steps["code"];
    assert_eq!(code.kind, Kind::Agent { role: "coder".into(), agent: "claude".into() });
    assert_eq!(code.retry.attempts_max, 2);
    assert_eq!(code.checks, vec!["tests".into()]);

    let Kind::Review(review) = &graph.steps["review"].kind else { panic!("a review") };
    assert_eq!(review.of, vec![StepId::new("code")]);
    assert_eq!(review.reviewers[0].step, StepId::new("review"));
    assert_eq!(review.block_at, Severity::Medium);
    assert_eq!(review.rounds_max, 3);
    assert_eq!(review.fix[0].steps, vec![StepId::new("code")]);
    let Exhaustion::Ask { answers } = &review.on_exhausted[0] else { panic!("asks") };
    assert_eq!(answers.iter().map(|a| a.word.as_str()).collect::<Vec<_>>(), ["accept", "again", "abort"]);

    let texts = &frozen.steps[&frozen.plan.profile];
    assert_eq!(texts["plan"].writes[0].name, "plan.md");
    assert_eq!(texts["code"].reads[0].name, "plan.md");
    assert_eq!(frozen.roles["planner"].prompt, "Plan it: {{ request }}");
    assert_eq!(frozen.roles["reviewer"].may_write, Some(vec![]));
    assert_eq!(frozen.checks["tests"].tests_min, Some(1));
    assert!(frozen.agents.contains_key("codex") && frozen.agents.contains_key("claude"));
    assert!(
        frozen.sources.contains_key("roles/planner.md") && frozen.sources.contains_key("reports/plan.yaml")
    );
}

#[test]
fn j_45_a_frozen_workflow_reads_back_with_the_same_digest() {
    let frozen = loads(SAMPLE);
    let text = serde_json::to_string(&frozen).unwrap();
    let again: Frozen = serde_json::from_str(&text).unwrap();
    assert_eq!(frozen.digest().unwrap(), again.digest().unwrap());
    assert_eq!(frozen.digest().unwrap().len(), 64);
    let other = loads(&SAMPLE.replace("rounds_max: 3", "rounds_max: 2"));
    assert_ne!(frozen.digest().unwrap(), other.digest().unwrap());
    let (bytes, digest) = frozen.stored().unwrap();
    assert!(is_frozen_as(&bytes, &digest).unwrap());
    assert!(!is_frozen_as(&other.stored().unwrap().0, &digest).unwrap());
    let sorted: std::collections::BTreeMap<String, serde_json::Value> =
        serde_json::from_slice(&bytes).unwrap();
    let rearranged = serde_json::to_vec(&sorted).unwrap();
    assert!(!is_frozen_as(&rearranged, &digest).unwrap(), "the same keys in another order are other bytes");
}

/// Runs of before have plans that are named by their canonical form.
#[test]
fn j_45_a_workflow_frozen_by_an_earlier_version_is_known_by_its_sorted_form() {
    let stored = br#"{"b":[1,{"d":null,"c":"x"}],"a":true}"#;
    let sorted = blake3::hash(br#"{"a":true,"b":[1,{"c":"x","d":null}]}"#).to_hex().to_string();
    assert!(is_frozen_as(stored, &sorted).unwrap());
    assert!(!is_frozen_as(br#"{"b":[1,{"d":null,"c":"y"}],"a":true}"#, &sorted).unwrap());
}

const ROLES: &str =
    "roles: { coder: { prompt: Build it. }, reviewer: { prompt: Look. }, fixer: { prompt: Fix. } }";

fn flow(rest: &str) -> String {
    format!("workflow: flow\n{ROLES}\n{rest}")
}

#[track_caller]
fn codes_of(text: &str) -> Vec<&'static str> {
    load_with(text, |_| ())
        .diagnostics
        .iter()
        .filter(|found| found.is_error())
        .map(|found| found.code.0)
        .collect()
}

const STAGES: &str = "
stages:
  - id: plan
    steps: [ { id: plan, role: coder, writes: { plan.md: any } } ]
  - id: implement
    steps: [ { id: code, role: coder, writes: { code.md: any } }, { id: review, review: code, by: reviewer } ]
  - id: test
    steps:
      - { id: test, role: coder, reads: [plan.md], writes: { results.json: any } }
      - { id: analyse, role: coder }
  - id: final
    gates: [ { artifact: results.json }, { artifact: code.md }, { verdict: review } ]
    steps:
      - { id: docs, role: coder, reads: [results.json] }
      - id: last
        review: docs
        by: reviewer
        on_exhausted: [ { restart_stage: test }, ask ]
profiles:
  lean: { stages: { test: { enabled: false } } }
  bare: { steps: { analyse: { enabled: false }, plan: { retry: { attempts_max: 1 } } }, escalate_to: lean }
";

#[test]
fn s4_29_disabled_stage_relinks_gates() {
    let text = flow(STAGES);
    let full = loads(&text);
    assert_eq!(needs(graph(&full), "docs"), ["analyse"]);
    assert_eq!(graph(&full).steps["docs"].gates.len(), 3);

    let lean = load_with(&text, |options| options.profile = Some("lean".to_owned())).frozen.unwrap();
    let graph = graph(&lean);
    assert_eq!(lean.plan.profile, ProfileId::new("lean"));
    assert!(graph.stages[2].disabled.is_some());
    assert!(graph.steps.contains_key("test") && graph.steps.contains_key("analyse"));
    // IMPLEMENT → FINAL; the gate over what TEST would have written is gone, the others stay.
    assert_eq!(needs(graph, "docs"), ["review"]);
    let gates: Vec<&Condition> = graph.steps["docs"].gates.iter().map(|gate| &gate.condition).collect();
    assert_eq!(gates[0], &Condition::Artifact { step: "code".into(), name: "code.md".into() });
    assert_eq!(gates.len(), 2);
    assert!(lean.steps[&lean.plan.profile]["docs"].reads[0].optional);
    // A restart of the disabled stage goes to the enabled one before it (S4-12).
    let Kind::Review(review) = &graph.steps["last"].kind else { panic!("a review") };
    assert_eq!(review.on_exhausted[0], Exhaustion::RestartStage { stage: "implement".into() });
}

#[test]
fn s4_28_a_disabled_step_is_skipped_and_linked_past() {
    let bare = load_with(&flow(STAGES), |options| options.profile = Some("bare".to_owned())).frozen.unwrap();
    let graph = graph(&bare);
    assert_eq!(needs(graph, "docs"), ["test"]);
    assert_eq!(graph.steps["analyse"].gates[0].hardness, Hardness::Skip);
    assert_eq!(graph.steps["plan"].retry.attempts_max, 1);
    assert_eq!(graph.escalations["complexity"], ProfileId::new("lean"));
    let profiles: Vec<&str> = bare.plan.graphs.keys().map(ProfileId::as_str).collect();
    assert_eq!(profiles, ["bare", "lean"]);
    assert_eq!(bare.steps.len(), 2);
}

#[test]
fn flags_and_configuration_override_the_definition() {
    let layer = crate::config::ConfigText {
        label: "config.yaml".to_owned(),
        text: "workflows: { flow: { stages: { test: { enabled: false } } } }\nagents: { mine: { command: [x], parallel_max: 1 } }".to_owned(),
    };
    let (config, wrong) = Config::parse(&[layer]);
    assert_eq!(wrong, vec![]);
    let mut options = LoadOptions::new(&config);
    options.agent = Some("mine".to_owned());
    options.settings.insert("steps.last.rounds_max".to_owned(), "7".to_owned());
    options.settings.insert("language".to_owned(), "8".to_owned());
    options.settings.insert("depth".to_owned(), "9".to_owned());
    let text = flow(STAGES) + "settings: { language: en, depth: 1 }\n";
    let loaded = load("flow.yaml", &text, &sources(), &options);
    let frozen =
        loaded.frozen.unwrap_or_else(|| panic!("{}", crate::diagnostic::render_all(&loaded.diagnostics)));
    let graph = graph(&frozen);
    assert!(graph.stages[2].disabled.is_some());
    let Kind::Review(review) = &graph.steps["last"].kind else { panic!("a review") };
    assert_eq!(review.rounds_max, 7);
    assert_eq!(review.reviewers[0].agent, "mine".into());
    assert_eq!(graph.pools["agent:mine"], 1);
    assert_eq!(frozen.settings["language"], serde_json::json!("8"));
    assert_eq!(frozen.settings["depth"], serde_json::json!(9));

    options.settings.insert("steps.last.rounds_max".to_owned(), "0".to_owned());
    let loaded = load("flow.yaml", &text, &sources(), &options);
    assert_eq!(loaded.diagnostics[0].file, "--set");
}

#[test]
fn s0_53_a_panel_and_its_fix_are_steps_of_their_own() {
    let frozen = loads(&flow(
        "
steps:
  - { id: code, role: coder, writes: { code.md: any } }
  - id: judge
    review: code
    by: [ reviewer, { role: reviewer, id: security, writes: { security.md: any }, prompt: Secure? } ]
    prompt: Judge it.
    reads: [code.md]
    rereview: failed
    final_pass: true
    fix: { tests: code, default: { role: fixer, writes: { 'loop-iterations/fix-{{ round }}.md': any } } }
",
    ));
    let graph = graph(&frozen);
    let Kind::Review(review) = &graph.steps["judge"].kind else { panic!("a review") };
    let reviewers: Vec<&str> = review.reviewers.iter().map(|reviewer| reviewer.step.as_str()).collect();
    assert_eq!(reviewers, ["judge/reviewer", "judge/security"]);
    assert!(graph.steps["judge"].pools.is_empty());
    // The fix stands beside the review, so that resetting the review does not take it away.
    assert!(graph.steps["judge-fix"].dormant);
    assert_eq!(graph.stages[0].steps.last(), Some(&StepId::new("judge-fix")));
    assert_eq!(review.fix[0].route.as_deref(), Some("tests"));
    assert_eq!((review.fix[1].route.as_deref(), review.fix[1].steps[0].as_str()), (None, "judge-fix"));
    let texts = &frozen.steps[&frozen.plan.profile];
    assert_eq!(texts["judge/security"].prompt, "Judge it.\n\nSecure?");
    assert_eq!(texts["judge/security"].reads[0].name, "code.md");
    assert_eq!(graph.stages[0].steps.len(), 3);
}

#[test]
fn a_fan_out_has_templates_and_its_planner() {
    let frozen = loads(&flow(
        "
steps:
  - { id: plan, role: coder, writes: { tasks.yaml: any } }
  - id: tasks
    for_each: tasks.yaml
    items: plan.tasks
    parallel_max: 3
    isolation: worktree
    steps:
      - { id: code, role: coder, writes: { '{{ item.id }}.md': any } }
      - { id: review, review: code, by: reviewer, on_exhausted: [complete_with_notes] }
  - { id: merge, merge: tasks }
",
    ));
    let graph = graph(&frozen);
    let Kind::FanOut(fan_out) = &graph.steps["tasks"].kind else { panic!("a fan-out") };
    assert_eq!(fan_out.body, vec![StepId::new("tasks/*/code"), StepId::new("tasks/*/review")]);
    assert_eq!(fan_out.planned_by, Some("plan".into()));
    assert_eq!(fan_out.items_max, limits::ITEMS_MAX);
    assert_eq!(needs(graph, "tasks/*/review"), ["tasks/*/code"]);
    assert_eq!(graph.steps["tasks/*/code"].name, "code");
    let text = &frozen.steps[&frozen.plan.profile]["tasks"];
    let list = text.list.as_ref().unwrap();
    assert_eq!((list.pointer.as_str(), list.key.as_str()), ("/plan/tasks", "id"));
    assert_eq!(frozen.steps[&frozen.plan.profile]["tasks/*/code"].isolation, Isolation::Worktree);
    assert_eq!(
        graph.steps["merge"].kind,
        Kind::Merge { of: "tasks".into(), repair: graph.steps["merge"].rounds().cloned().map(Box::new) }
    );
    assert!(graph.steps["tasks/*/code"].commit && frozen.isolated, "what is merged was committed");
}

#[test]
fn a_sub_run_is_inlined_below_its_step() {
    let inner = "
workflow: inner
roles: { coder: { prompt: Another coder. }, tester: { prompt: Test. } }
words: { outcomes: { READY: done } }
stages:
  - id: a
    steps: [ { id: code, role: coder, writes: { inner.md: any } } ]
  - id: b
    steps:
      - { id: test, role: tester }
      - { id: ask, decide: Good?, answers: { yes: pass, no: { restart: a } } }
";
    let text = flow(
        "
steps:
  - { id: code, role: coder }
  - { id: sub, run: inner, request: 'Do {{ request }}', budget: { usd: 1 } }
  - { id: end, role: coder, reads: [inner.md] }
",
    );
    let sources = MapSources::default().with_workflow("inner", inner, MapSources::default());
    let config = Config::default();
    let loaded = load("flow.yaml", &text, &sources, &LoadOptions::new(&config));
    let frozen =
        loaded.frozen.unwrap_or_else(|| panic!("{}", crate::diagnostic::render_all(&loaded.diagnostics)));
    let graph = graph(&frozen);
    let Kind::SubRun { body, budget } = &graph.steps["sub"].kind else { panic!("a sub-run") };
    assert_eq!(body.iter().map(StepId::as_str).collect::<Vec<_>>(), ["sub/code", "sub/test", "sub/ask"]);
    assert_eq!(budget.micro_usd, Some(1_000_000));
    assert_eq!(needs(graph, "sub/test"), ["sub/code"]);
    assert_eq!(graph.steps["sub/code"].role().unwrap().as_str(), "sub/coder");
    assert_eq!(graph.steps["sub/test"].role().unwrap().as_str(), "tester");
    assert_eq!(graph.steps["sub/code"].stage.as_str(), "main");
    let Kind::Decision(question) = &graph.steps["sub/ask"].kind else { panic!("a decision") };
    assert_eq!(
        question.answers[1].effect,
        AnswerEffect::Redo { steps: vec!["sub/code".into()], routes: BTreeMap::new() }
    );
    let texts = &frozen.steps[&frozen.plan.profile];
    assert!(texts["sub/code"].words.as_ref().unwrap().outcomes.contains_key("ready"));
    assert!(texts["end"].words.is_none());
}

#[test]
fn j_28_all_errors_of_a_file_are_reported_at_once() {
    let text = flow(
        "
steps:
  - { id: code, rol: coder }
  - { id: code, role: nobody, timeout: 5 }
  - { id: review, review: cod, by: reviewer, rounds_max: 0, block_at: hihg }
  - { id: ask, decide: 1, answers: { x: pas } }
profile: nothing
",
    );
    let found = load_with(&text, |_| ());
    assert!(found.frozen.is_none());
    let all: Vec<(usize, &str)> = found.diagnostics.iter().map(|found| (found.line, found.code.0)).collect();
    for wanted in [
        (5, "GW003"),
        (6, "GW009"),
        (6, "GW102"),
        (6, "GW005"),
        (7, "GW101"),
        (7, "GW203"),
        (7, "GW005"),
        (8, "GW005"),
        (9, "GW106"),
    ] {
        assert!(all.contains(&wanted), "{wanted:?} is not in {all:?}");
    }
    assert!(all.is_sorted_by_key(|(line, _)| line), "sorted by place");
}

#[test]
fn needs_replace_the_step_before_and_dormant_steps_are_no_part_of_the_chain() {
    let frozen = loads(&flow(
        "
steps:
  - { id: a, role: coder }
  - { id: b, role: coder, needs: [] }
  - { id: repair, role: fixer, dormant: true }
  - { id: c, role: coder, needs: [a, b] }
  - { id: review, review: c, by: reviewer, fix: repair, rerun: listed }
",
    ));
    let graph = graph(&frozen);
    assert_eq!(needs(graph, "b"), Vec::<String>::new());
    assert_eq!(needs(graph, "c"), ["a", "b"]);
    assert_eq!(needs(graph, "review"), ["c"]);
    assert_eq!(needs(graph, "repair"), Vec::<String>::new());
}

#[test]
fn s4_11_gates_sit_on_any_step_and_decisions_guard_their_path() {
    assert_eq!(
        codes_of(&flow(
            "
steps:
  - { id: plan, role: coder, writes: { plan.md: any } }
  - { id: approve, decide: Good?, show: [plan.md], answers: { approved: pass, no: { redo: plan } } }
  - { id: code, role: coder, needs: [plan] }
"
        )),
        ["GW204"]
    );
    // Two branches that a last step joins are no way around.
    assert!(
        codes_of(&flow(
            "
steps:
  - { id: code, role: coder }
  - { id: review, review: code, by: reviewer }
  - { id: docs, role: coder, needs: [code] }
  - { id: end, role: coder, needs: [review, docs] }
"
        ))
        .is_empty()
    );
}

#[test]
fn a_step_refers_to_steps_of_its_own_list_only() {
    let text = "
steps:
  - { id: plan, role: coder, writes: { tasks.json: any } }
  - id: tasks
    for_each: tasks.json
    steps:
      - { id: code, role: coder, gates: [ { artifact: tasks.json } ] }
      - { id: ask, decide: Good?, answers: { yes: pass, no: { redo: plan } } }
  - { id: end, role: coder, gates: [ { check: tests, of: tasks/code } ] }
checks: { tests: make }
";
    assert_eq!(codes_of(&flow(text)), ["GW205", "GW101", "GW101"]);
}

#[test]
fn items_of_a_fan_out_write_files_of_their_own() {
    let text = |name: &str| {
        flow(&format!(
            "
steps:
  - {{ id: plan, role: coder, writes: {{ tasks.json: any }} }}
  - {{ id: tasks, for_each: tasks.json, steps: [ {{ id: code, role: coder, writes: {{ '{name}': any }} }} ] }}
"
        ))
    };
    assert_eq!(codes_of(&text("notes.md")), ["GW206"]);
    assert!(codes_of(&text("{{ item.id }}.md")).is_empty());
}

#[test]
fn a_long_definition_is_proved_quickly() {
    let mut text = flow("steps:\n");
    for step in 0..3_000 {
        let reads = if step == 0 { String::new() } else { format!("reads: [{}.md], ", step - 1) };
        text.push_str(&format!("  - {{ id: s{step}, role: coder, {reads}writes: {{ {step}.md: any }} }}\n"));
    }
    let started = std::time::Instant::now();
    let frozen = loads(&text);
    assert_eq!(graph(&frozen).steps.len(), 3_000);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_flag_with_a_mistake_is_shown_like_a_file() {
    let found = load_with(&flow("steps: [ { id: a, role: coder } ]"), |options| {
        options.agent = Some("cluade".to_owned());
        options.profile = Some("fast".to_owned());
    });
    let shown = crate::diagnostic::render_all(&found.diagnostics);
    assert!(shown.contains("--> --agent:1:1") && shown.contains("did you mean `claude`?"), "{shown}");
    assert!(shown.contains("--> --profile:1:1"), "{shown}");
}

#[test]
fn projections_are_read_and_checked() {
    let frozen = loads(&flow(
        "
steps: [ { id: a, role: coder } ]
projections:
  - { file: status.json, json: { id: { $expr: run.id } } }
  - { file: 'notes-{{ item }}.md', markdown: '# {{ run.id }}', each: '[1, 2]', when: true }
",
    ));
    assert_eq!(frozen.projections.len(), 2);
    assert_eq!(frozen.projections[1].when.as_deref(), Some("true"));
    let wrong = "
steps: [ { id: a, role: coder } ]
projections:
  - { file: ../status.json, json: {} }
  - { file: x.json, json: { id: { $expr: 'run.id +' } } }
  - { file: y.json, json: {}, text: x }
";
    assert_eq!(codes_of(&flow(wrong)), ["GW115", "GW010", "GW005"]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    /// The sample with pieces cut out, doubled or moved: whatever it becomes, it loads or says why.
    #[test]
    fn no_definition_panics(cuts in proptest::collection::vec((0usize..1800, 0usize..40, 0usize..1800), 1..5)) {
        let mut text: Vec<char> = SAMPLE.chars().collect();
        for (from, length, to) in cuts {
            let from = from.min(text.len());
            let piece: Vec<char> = text[from..(from + length).min(text.len())].to_vec();
            if to % 2 == 0 {
                text.drain(from..from + piece.len());
            }
            let to = to.min(text.len());
            text.splice(to..to, piece);
        }
        let text: String = text.into_iter().collect();
        let loaded = load_with(&text, |_| ());
        proptest::prop_assert_eq!(loaded.frozen.is_none(), loaded.diagnostics.iter().any(Diagnostic::is_error));
        let _ = crate::diagnostic::render_all(&loaded.diagnostics);
    }

    /// Keys of the language in any arrangement.
    #[test]
    fn no_tree_of_known_keys_panics(words in proptest::collection::vec(0usize..60, 1..60)) {
        let vocabulary = ["steps: ", "stages: ", "id: ", "role: ", "review: ", "by: ", "[", "]", "{", "}", ", ",
            "a", "b", "coder", "fix: ", "needs: ", "for_each: ", "run: ", "decide: ", "answers: ", "redo: ", "pass",
            "writes: ", "reads: ", "gates: ", "artifact: ", "when: ", "profiles: ", "enabled: ", "false", "true",
            "roles: ", "checks: ", "check: ", "merge: ", "retry: ", "on_exhausted: ", "ask", "restart_stage: ",
            "dormant: ", "x.md", "any", "0", "1", "'", "\n", "\n  ", "\n- ", "workflow: ", "flow", "profile: ",
            "escalate_to: ", "obligations: ", "step: ", "name: ", "else_run: ", "projections: ", "file: ", "json: ",
            "*"];
        let text: String = words.into_iter().map(|at| vocabulary[at % vocabulary.len()]).collect();
        let _ = load_with(&text, |options| options.settings = BTreeMap::from([("steps.a.role".to_owned(), text.clone())]));
    }
}

/// One file that uses nearly every key of the language.
const STAGED: &str = include_str!("staged.yaml");

#[test]
fn a_whole_method_loads_without_a_single_finding() {
    let config = Config::default();
    let found = lint("staged.yaml", STAGED, &sources(), &LoadOptions::new(&config));
    assert!(found.is_empty(), "{}", crate::diagnostic::render_all(&found));
    let frozen = loads(STAGED);
    assert_eq!(frozen.plan.profile, ProfileId::new("quick"));
    assert_eq!(frozen.plan.graphs.len(), 2);
    assert_eq!(frozen.plan.budget.micro_usd, Some(20_500_000));
    assert_eq!(frozen.plan.decision_prefix, "UD-");
    let quick = graph(&frozen);
    assert_eq!(needs(quick, "brainstorm"), Vec::<String>::new());
    assert!(quick.steps["brainstorm"].gates.is_empty());
    assert_eq!(needs(quick, "docs"), ["impl-review"]);
    let full = frozen.plan.graph(&ProfileId::new("full"));
    assert_eq!(full.pools["run"], 8);
    assert_eq!(full.pools["role:coder"], 2);
    assert_eq!(needs(full, "docs"), ["analyse"]);
    assert_eq!(full.steps["tasks/*/code"].retry.backoff_ms, vec![5_000, 60_000]);
    let validator = jsonschema::validator_for(&crate::schema::workflow_schema()).unwrap();
    let tree = parse_tree(STAGED, crate::yaml::tree::SourceId(0)).unwrap().to_json();
    let errors: Vec<String> = validator.iter_errors(&tree).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn limits_and_choices_come_from_settings() {
    let text = "workflow: w
settings: { repairs: 3, severity: low, wide: true }
roles: { coder: { prompt: Build. }, judge: { prompt: Judge. } }
steps:
  - { id: code, role: coder }
  - { id: look, review: code, by: judge, block_at: $severity, rounds_max: $repairs + 1, data: { model: $repairs } }
  - { id: more, role: coder, enabled: $wide }
profiles: { brisk: { settings: { repairs: 0 } } }
";
    let review = |frozen: &Frozen| match &graph(frozen).steps["look"].kind {
        Kind::Review(review) => (review.rounds_max, review.block_at),
        other => panic!("{other:?}"),
    };
    assert_eq!(review(&loads(text)), (4, Severity::Low));
    let set = |pairs: &[(&str, &str)], profile: Option<&str>| {
        load_with(text, |options| {
            options.profile = profile.map(str::to_owned);
            options
                .settings
                .extend(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        })
    };
    let told = set(&[("severity", "high"), ("repairs", "1")], None).frozen.unwrap();
    assert_eq!(review(&told), (2, Severity::High));
    assert_eq!(review(&set(&[], Some("brisk")).frozen.unwrap()), (1, Severity::Low));
    // What no setting is, and what is no such limit, is an error as if it had been written there.
    for (key, value) in [("severity", "awful"), ("repairs", "-1"), ("wide", "perhaps")] {
        assert!(set(&[(key, value)], None).frozen.is_none(), "{key}={value}");
    }
    let unknown = load_with(&text.replace("$severity", "$severty"), |_| ());
    let shown = crate::diagnostic::render_all(&unknown.diagnostics);
    assert!(unknown.frozen.is_none() && shown.contains("$severty"), "{shown}");
}

/// Whether a workflow that was made with one `sources` and `options` would be made the same with others.
fn is_unchanged(before: &MapSources, now: &MapSources, change: impl FnOnce(&mut LoadOptions<'_>)) -> bool {
    let config = Config::default();
    let text = flow("steps: [{ id: code, role: coder }, { id: sub, run: inner }]\n");
    let mut options = LoadOptions::new(&config);
    let loaded = load("flow.yaml", &text, before, &options);
    let shown = crate::diagnostic::render_all(&loaded.diagnostics);
    let frozen = loaded.frozen.unwrap_or_else(|| panic!("{shown}"));
    let written = serde_json::to_string(&frozen.made_of).unwrap();
    let read: MadeOf = serde_json::from_str(&written).unwrap();
    change(&mut options);
    read.is_unchanged("flow.yaml", &text, now, &options)
}

#[test]
fn j_45_what_a_workflow_was_made_of_is_known_without_making_it_again() {
    let role = |text: &str| MapSources::default().with("roles/inner.md", &format!("---\n---\n{text}\n"));
    let inner =
        "workflow: inner\nroles: { inner: { from: roles/inner.md } }\nsteps: [{ id: a, role: inner }]\n";
    let before = MapSources::default().with_workflow("inner", inner, role("Do it."));
    assert!(is_unchanged(&before, &before.clone(), |_| ()));
    let edited = MapSources::default().with_workflow("inner", inner, role("Do it well."));
    assert!(!is_unchanged(&before, &edited, |_| ()), "a role of a workflow inside");
    let longer = inner.replace("]\n", ", { id: b, role: inner, needs: [a] }]\n");
    let longer = MapSources::default().with_workflow("inner", &longer, role("Do it."));
    assert!(!is_unchanged(&before, &longer, |_| ()), "the workflow inside");
    assert!(!is_unchanged(&before, &MapSources::default(), |_| ()), "it is gone");
    let other = |options: &mut LoadOptions<'_>| options.agent = Some("rehearsal".to_owned());
    assert!(!is_unchanged(&before, &before.clone(), other), "another agent was asked for");
}

#[test]
fn a_file_that_was_looked_for_in_vain_counts_when_it_comes() {
    let inner =
        "workflow: inner\nroles: { inner: { from: roles/inner.md } }\nsteps: [{ id: a, role: inner }]\n";
    let role = MapSources::default().with("roles/inner.md", "---\n---\nDo it.\n");
    let before = MapSources::default().with_workflow("inner", inner, role.clone());
    // A project's own definition of a role is used for the role of the same name.
    let own = role.with(".claude/agents/inner.md", "---\nname: inner\ndescription: Ours.\n---\nCode.\n");
    let now = MapSources::default().with_workflow("inner", inner, own);
    assert!(!is_unchanged(&before, &now, |_| ()));
}

#[test]
fn settings_are_asked_for_with_the_values_they_may_have_and_only_where_a_profile_says_so() {
    let text = "
workflow: w
settings: { place: shared }
setting_values: { place: [worktree, shared] }
roles: { coder: { prompt: Build. } }
steps: [ { id: code, role: coder } ]
profiles: { choosy: { isolation: $place, asked: { place: Where? } } }
";
    assert!(loads(text).asked.is_empty());
    let choosy = |place: &str| {
        let place = place.to_owned();
        load_with(text, |options| {
            options.profile = Some("choosy".to_owned());
            options.settings.insert("place".to_owned(), place);
        })
        .frozen
        .unwrap()
    };
    let asked = &choosy("shared").asked["place"];
    assert_eq!((asked.question.as_str(), asked.values.join(" ")), ("Where?", "worktree shared".to_owned()));
    assert!(choosy("worktree").isolated && !choosy("shared").isolated);
    let unknown = load_with(&text.replace("asked: { place:", "asked: { plaec:"), |options| {
        options.profile = Some("choosy".to_owned());
    });
    let shown = crate::diagnostic::render_all(&unknown.diagnostics);
    assert!(unknown.frozen.is_none() && shown.contains("no setting `plaec` to ask for"), "{shown}");
}
