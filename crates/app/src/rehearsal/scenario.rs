//! A scenario file: who does what, what people answer and order, how it must end.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    ids::StepId,
    plan::{Graph, Kind},
};
use gatewright_workflow::{
    definition::{check_shape::check_shape, shape::Shape},
    diagnostic::{Diagnostic, Report, codes, suggestion},
    frozen::Frozen,
    yaml::tree::{Key, Node, NodeValue, parse_tree},
};

use super::{
    behaviour::{self, Behaviour},
    keys::{ANSWER, SCENARIO},
};

/// A whole script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    pub description: String,
    pub request: Option<String>,
    pub profile: Option<String>,
    pub settings: BTreeMap<String, String>,
    pub files: BTreeMap<String, String>,
    pub timeout_ms: Option<u64>,
    pub checks: BTreeMap<String, CheckScript>,
    /// What the command for pull requests comes to, if there is one.
    pub pull_request: Option<bool>,
    pub answers: BTreeMap<String, Vec<ScriptedAnswer>>,
    pub agents: BTreeMap<String, Vec<Behaviour>>,
    pub orders: Vec<ScriptedOrder>,
    pub expect: Expect,
}

/// What a check does instead of its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckScript {
    /// By execution; the last repeats. `true` = it succeeds.
    Played(Vec<bool>),
    /// The command itself.
    Run,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedAnswer {
    pub answer: String,
    pub comment: Option<String>,
    pub route: Option<String>,
    pub confirmed: bool,
    /// Put off instead of answered.
    pub cancel: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedOrder {
    pub after: String,
    pub what: Ordered,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ordered {
    Restart {
        stage: String,
    },
    Skip {
        step: String,
    },
    Stop {
        then_resume: bool,
    },
    Abort,
    Kill,
    /// Not by the run: a person goes on with their own work meanwhile.
    Commit {
        files: BTreeMap<String, String>,
    },
}

/// What is compared; `None` = not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    pub state: Option<String>,
    pub order: Option<Vec<AnyOrder>>,
    pub attempts: BTreeMap<String, u64>,
    pub rounds: BTreeMap<String, u64>,
    pub steps: BTreeMap<String, String>,
    pub files: Vec<String>,
    pub decisions: BTreeMap<String, String>,
    pub blocked_by: Option<String>,
    pub events: Vec<String>,
}

/// One step, or several in any order.
pub type AnyOrder = Vec<String>;

/// A scenario with its text, for messages about what it names.
#[derive(Debug)]
pub struct Script {
    pub scenario: Scenario,
    label: String,
    text: String,
    tree: Node,
}

/// Reads a scenario or says everything that is wrong with it.
pub fn parse(label: &str, text: &str) -> Result<Script, Vec<Diagnostic>> {
    let mut report = Report::default();
    let source = report.texts.add(label, text);
    let tree = match parse_tree(text, source) {
        Ok(tree) => tree,
        Err(problems) => {
            for problem in problems {
                report.error(codes::SYNTAX, problem.span, problem.message, "");
            }
            return Err(report.into_sorted());
        }
    };
    check_shape(&tree, &Shape::Object(&SCENARIO), "the scenario", &mut report);
    let scenario = read(&tree, &mut report);
    if report.has_errors() {
        return Err(report.into_sorted());
    }
    Ok(Script { scenario, label: label.to_owned(), text: text.to_owned(), tree })
}

fn read(tree: &Node, report: &mut Report) -> Scenario {
    let texts = |key: &str| -> BTreeMap<String, String> {
        let entries = tree.get(key).map(Node::entries).unwrap_or_default();
        entries.iter().filter_map(|(key, value)| Some((key.text.clone(), plain_text(value)?))).collect()
    };
    Scenario {
        description: tree.string_or_empty("description"),
        request: tree.string("request"),
        profile: tree.string("profile"),
        settings: texts("settings"),
        files: files(tree, "files", report),
        timeout_ms: tree.milliseconds("timeout"),
        checks: entries(tree, "checks").map(|(key, node)| (key.text.clone(), check_script(node))).collect(),
        pull_request: tree.string("pull_request").map(|word| word == "ok"),
        answers: entries(tree, "answers")
            .map(|(key, node)| (key.text.clone(), answers(node, report)))
            .collect(),
        agents: entries(tree, "agents")
            .map(|(key, node)| (key.text.clone(), behaviour::read_all(node, report)))
            .collect(),
        orders: elements(tree, "orders").filter_map(|node| order(node, report)).collect(),
        expect: tree.get("expect").map(expect).unwrap_or_default(),
    }
}

fn entries<'t>(tree: &'t Node, key: &str) -> impl Iterator<Item = &'t (Key, Node)> {
    tree.get(key).map(Node::entries).unwrap_or_default().iter()
}

fn elements<'t>(tree: &'t Node, key: &str) -> impl Iterator<Item = &'t Node> {
    tree.get(key).map(Node::elements).unwrap_or_default().iter()
}

/// A scalar as it would be typed after `--set key=`; data as JSON.
fn plain_text(node: &Node) -> Option<String> {
    match &node.value {
        NodeValue::Null => None,
        NodeValue::Bool(value) => Some(value.to_string()),
        NodeValue::Number { text, .. } | NodeValue::String(text) => Some(text.clone()),
        NodeValue::Sequence(_) | NodeValue::Mapping(_) => Some(node.to_json().to_string()),
    }
}

fn files(tree: &Node, key: &str, report: &mut Report) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (key, value) in entries(tree, key) {
        if key.text.starts_with('/') || key.text.split('/').any(|part| part == ".." || part == ".git") {
            let message = format!("`{}` is no file of the scratch repository", key.text);
            report.error(codes::BAD_VALUE, key.span, message, "a relative path without `..`");
        } else if let Some(text) = value.text() {
            files.insert(key.text.clone(), text.to_owned());
        }
    }
    files
}

fn check_script(node: &Node) -> CheckScript {
    let words: Vec<String> = node.as_words().into_iter().map(|word| word.text).collect();
    if words.iter().any(|word| word == "run") {
        return CheckScript::Run;
    }
    CheckScript::Played(words.iter().map(|word| word == "ok").collect())
}

fn answers(node: &Node, report: &mut Report) -> Vec<ScriptedAnswer> {
    match &node.value {
        NodeValue::Sequence(elements) => {
            elements.iter().filter_map(|element| answer(element, report)).collect()
        }
        _ => answer(node, report).into_iter().collect(),
    }
}

/// `approved`, `{changes-requested: "shorter"}`, or a mapping with `answer` or `cancel`.
fn answer(node: &Node, report: &mut Report) -> Option<ScriptedAnswer> {
    if node.get("answer").is_some() || node.get("cancel").is_some() {
        check_shape(node, &Shape::Object(&ANSWER), "the answer", report);
        return Some(ScriptedAnswer {
            answer: node.string_or_empty("answer"),
            comment: node.string("comment"),
            route: node.string("route"),
            confirmed: node.is_on("confirmed"),
            cancel: node.string("cancel"),
        });
    }
    match (&node.value, node.entries()) {
        (NodeValue::Mapping(_), [(word, comment)]) => Some(ScriptedAnswer {
            answer: word.text.clone(),
            comment: comment.text().map(str::to_owned),
            ..ScriptedAnswer::default()
        }),
        (NodeValue::String(_) | NodeValue::Number { .. } | NodeValue::Bool(_), _) => {
            Some(ScriptedAnswer { answer: plain_text(node)?, ..ScriptedAnswer::default() })
        }
        _ => {
            let message = "an answer is a word, or a word with a comment";
            report.error(
                codes::BAD_VALUE,
                node.span,
                message,
                "`approved`, or `changes-requested: \"shorter\"`",
            );
            None
        }
    }
}

fn order(node: &Node, report: &mut Report) -> Option<ScriptedOrder> {
    let restart = node.string("restart").map(|stage| Ordered::Restart { stage });
    let skip = node.string("skip").map(|step| Ordered::Skip { step });
    let stop = node.is_on("stop").then_some(Ordered::Stop { then_resume: node.is_on("resume") });
    let abort = node.is_on("abort").then_some(Ordered::Abort);
    let kill = node.is_on("kill").then_some(Ordered::Kill);
    let commit = node.get("commits").map(|_| Ordered::Commit { files: files(node, "commits", report) });
    let mut found: Vec<Ordered> = [restart, skip, stop, abort, kill, commit].into_iter().flatten().collect();
    if found.len() != 1 {
        let message = format!("an order is one thing, here are {}", found.len());
        report.error(
            codes::BAD_VALUE,
            node.span,
            message,
            "one of restart, skip, stop, abort, kill, commits",
        );
        return None;
    }
    let reason = node.string("reason").unwrap_or_else(|| "rehearsed".to_owned());
    Some(ScriptedOrder { after: node.string("after")?, what: found.pop()?, reason })
}

fn expect(node: &Node) -> Expect {
    let numbers = |key: &str| -> BTreeMap<String, u64> {
        let entries = node.get(key).map(Node::entries).unwrap_or_default();
        entries
            .iter()
            .filter_map(|(key, value)| Some((key.text.clone(), value.text()?.parse().ok()?)))
            .collect()
    };
    let texts = |key: &str| -> BTreeMap<String, String> {
        let entries = node.get(key).map(Node::entries).unwrap_or_default();
        entries.iter().filter_map(|(key, value)| Some((key.text.clone(), value.text()?.to_owned()))).collect()
    };
    let order = node.get("order").map(|list| {
        list.elements()
            .iter()
            .map(|entry| entry.as_words().into_iter().map(|word| word.text).collect())
            .collect()
    });
    Expect {
        state: node.string("state"),
        order,
        attempts: numbers("attempts"),
        rounds: numbers("rounds"),
        steps: texts("steps"),
        files: node.strings("files"),
        decisions: texts("decisions"),
        blocked_by: node.string("blocked_by"),
        events: node.strings("events"),
    }
}

impl Script {
    /// Everything the script names that the workflow does not have.
    pub fn check_names(&self, frozen: &Frozen) -> Vec<Diagnostic> {
        let mut report = Report::default();
        report.texts.add(&self.label, &self.text);
        let graph = frozen.plan.graph(&frozen.plan.profile);
        let steps: BTreeSet<&str> = graph.steps.keys().map(StepId::as_str).collect();
        let roles: BTreeSet<&str> = frozen.roles.keys().map(|role| role.as_str()).collect();
        let checks: BTreeSet<&str> = frozen.checks.keys().map(|check| check.as_str()).collect();
        for (key, _) in entries(&self.tree, "agents") {
            let known = key.text == "*"
                || roles.contains(key.text.as_str())
                || steps.iter().any(|step| names(&key.text, step));
            if !known {
                unknown(key, "role or step", roles.iter().chain(&steps).copied(), &mut report);
            }
        }
        for (key, _) in entries(&self.tree, "checks") {
            if !checks.contains(key.text.as_str()) {
                unknown(key, "check", checks.iter().copied(), &mut report);
            }
        }
        let asks = decisions(graph);
        for (key, _) in entries(&self.tree, "answers") {
            let ad_hoc = key.text.starts_with(&frozen.plan.decision_prefix);
            let known =
                ad_hoc || asks.contains(key.text.as_str()) || steps.iter().any(|step| names(&key.text, step));
            if !known {
                unknown(key, "decision or step", asks.iter().copied(), &mut report);
            }
        }
        for node in elements(&self.tree, "orders") {
            let Some(after) = node.word("after") else { continue };
            if !steps.iter().any(|step| names(&after.text, step)) {
                let key = Key { text: after.text, span: after.span };
                unknown(&key, "step", steps.iter().copied(), &mut report);
            }
        }
        report.into_sorted()
    }
}

/// Decision steps and the names under which people know them.
fn decisions(graph: &Graph) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (id, step) in &graph.steps {
        if let Kind::Decision(question) = &step.kind {
            names.insert(id.as_str());
            names.extend(question.name.as_deref());
        }
    }
    names
}

fn unknown<'a>(key: &Key, what: &str, known: impl IntoIterator<Item = &'a str>, report: &mut Report) {
    let message = format!("the workflow has no {what} `{}`", key.text);
    report.error(codes::UNKNOWN_STEP, key.span, message, suggestion(&key.text, known));
}

/// Does the key of a script mean this step? `tasks/t-1/code` and `tasks/*/code` mean one another.
pub fn names(key: &str, step: &str) -> bool {
    let (key, step): (Vec<&str>, Vec<&str>) = (key.split('/').collect(), step.split('/').collect());
    key.len() == step.len()
        && key.iter().zip(&step).all(|(key, step)| key == step || *key == "*" || *step == "*")
}

impl Scenario {
    /// What this attempt does: the script of the step before that of `STEP/*/SUB`, of the role, of `*`.
    pub fn behaviour(&self, step: &str, role: &str, attempt: u32) -> Behaviour {
        let exact = self.agents.get(step);
        let pattern = || {
            self.agents.iter().find(|(key, _)| key.contains('/') && names(key, step)).map(|(_, list)| list)
        };
        let list = exact.or_else(pattern).or_else(|| self.agents.get(role)).or_else(|| self.agents.get("*"));
        let place = attempt.saturating_sub(1) as usize;
        list.and_then(|list| list.get(place).or(list.last())).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rehearsal::behaviour::{Ending, Writes};

    const SAMPLE: &str = r#"
request: Add a greeting
answers: { approve-plan: [changes-requested: "shorter", approved] }
agents:
  reviewer: [ { findings: [ { severity: high, problem: "no test" } ] }, pass ]
  coder:    [ crash, done ]
expect:
  state: done
  order: [plan, approve-plan, plan, approve-plan, code, review, code, review]
"#;

    #[test]
    fn the_sample_of_the_interface_is_understood() {
        let scenario = parse("s.yaml", SAMPLE).map(|script| script.scenario).unwrap();
        let answers = &scenario.answers["approve-plan"];
        assert_eq!(
            (answers[0].answer.as_str(), answers[0].comment.as_deref()),
            ("changes-requested", Some("shorter"))
        );
        assert_eq!(answers[1].answer, "approved");
        assert_eq!(scenario.behaviour("code", "coder", 1).ending, Ending::Crash { code: 1 });
        assert_eq!(scenario.behaviour("code", "coder", 7).ending, Ending::Good, "the last repeats");
        assert!(matches!(scenario.behaviour("review", "reviewer", 1).ending, Ending::Findings(_)));
        assert_eq!(scenario.behaviour("plan", "planner", 1), Behaviour::default(), "nobody said anything");
        assert_eq!(scenario.expect.order.as_ref().map(Vec::len), Some(8));
    }

    #[test]
    fn steps_go_before_patterns_before_roles() {
        let text =
            "agents: { coder: hang, code: done, 'tasks/*/code': malformed, 'tasks/a/code': missing_file }";
        let scenario = parse("s.yaml", text).map(|script| script.scenario).unwrap();
        assert_eq!(scenario.behaviour("code", "coder", 1).ending, Ending::Good);
        assert_eq!(scenario.behaviour("tasks/b/code", "coder", 1).ending, Ending::Malformed);
        assert_eq!(scenario.behaviour("tasks/a/code", "coder", 1).writes, Writes::Nothing);
        assert_eq!(scenario.behaviour("other", "coder", 1).ending, Ending::Hang);
    }

    #[track_caller]
    fn problem(text: &str) -> String {
        gatewright_workflow::diagnostic::render_all(&parse("s.yaml", text).unwrap_err())
    }

    #[test]
    fn mistakes_have_a_place_and_the_nearest_key() {
        let shown = problem("request: x\nanswer: { a: b }\n");
        assert!(shown.contains("s.yaml:2:1") && shown.contains("`answers`"), "{shown}");
        let shown = problem("agents:\n  coder: [done, chrash]\n");
        assert!(shown.contains("s.yaml:2:") && shown.contains("`crash`"), "{shown}");
        let shown = problem("agents:\n  coder: { findigs: [x] }\n");
        assert!(shown.contains("`findings`"), "{shown}");
        let shown = problem("agents:\n  coder: { crash: 2, hang: true }\n");
        assert!(shown.contains("ends in one way"), "{shown}");
        let shown = problem("orders:\n  - { after: code }\n");
        assert!(shown.contains("s.yaml:2:"), "{shown}");
        let shown = problem("orders:\n  - { after: code, commits: { ../a: x } }\n");
        assert!(shown.contains("s.yaml:2:") && shown.contains("`../a`"), "{shown}");
    }

    #[test]
    fn behaviours_can_be_combined() {
        let text = "agents: { coder: { edits: { src/a.rs: 'fn a() {}' }, slow: 20ms, huge_output: 64KB, files: { plan.md: x } } }";
        let behaviour =
            parse("s.yaml", text).map(|script| script.scenario.behaviour("code", "coder", 1)).unwrap();
        assert_eq!((behaviour.slow_ms, behaviour.noise_bytes), (20, 64_000));
        assert_eq!(behaviour.edits["src/a.rs"], "fn a() {}");
        assert_eq!(behaviour.files["plan.md"], "x");
        assert!(problem("agents: { coder: { edits: { ../x: y } } }").contains("edits_outside"));
    }
}
