//! GW114: names in templates that no run can know.
//!
//! What a template may name is data here: the document of the run, with the steps, settings and
//! files of this plan. A name is only reported when it is there in no state of the run; whatever a
//! template itself binds, or asks about (`is defined`, `default`), is its own business.

use std::collections::BTreeSet;

use gatewright_core::{ids::StepId, plan::Kind};

use crate::{
    definition::{
        file_name::{matches, pattern},
        text_check::{self, TEMPLATES},
    },
    diagnostic::{Report, codes, suggestion},
    resolve::{Built, Shared},
    template::{TemplateProblem, UsedPath},
    yaml::tree::{Node, SourceId, Span},
};

/// What may follow a name.
#[derive(Clone, Copy, Debug)]
enum Names {
    /// Anything.
    Any,
    /// A text, a number or none: nothing.
    Plain,
    List,
    Fields(&'static [(&'static str, Names)]),
    Steps,
    Settings,
    Artifacts,
    FanOuts,
    /// An element of a fan-out's list; none outside.
    Item,
}

use Names::{Any, Artifacts, FanOuts, Fields, Item, List, Plain, Settings, Steps};

const RUN: &[(&str, Names)] = &[
    ("id", Plain),
    ("dir", Plain),
    ("dir_absolute", Plain),
    ("root", Plain),
    ("workflow", Plain),
    ("profile", Plain),
    ("request", Plain),
    ("state", Plain),
    ("started_at", Plain),
    ("updated_at", Plain),
    ("ended_at", Plain),
    ("reason", Plain),
    ("branch", Plain),
    ("commit", Plain),
    ("looked_at", Plain),
    ("changed_files", List),
    ("pull_request", Plain),
    ("worktree", Plain),
    ("own_branch", Plain),
    ("continues", Plain),
    ("before", List),
    ("imported", Any),
];

/// The fields of a step in the document.
pub const STEP_FIELDS: &[&str] = &[
    "id",
    "name",
    "kind",
    "stage",
    "role",
    "agent",
    "state",
    "dormant",
    "round",
    "rounds",
    "visit",
    "attempts",
    "attempts_max",
    "rounds_max",
    "timeout_ms",
    "item",
    "parent",
    "summary",
    "word",
    "base",
    "model",
    "hints",
    "notes",
    "message",
    "checks",
    "why",
    "verdict",
    "findings",
    "verdicts",
    "history",
    "commit",
    "failure",
    "started_at",
    "ended_at",
];

const COST: &[(&str, Names)] = &[
    ("usd", Plain),
    ("unpriced_attempts", Plain),
    ("tokens", Plain),
    ("launches", Plain),
    ("wall_ms", Plain),
    ("limits", Fields(&[("usd", Plain), ("tokens", Plain), ("launches", Plain), ("wall_ms", Plain)])),
];

/// The document of a run: what every template sees.
const DOCUMENT: &[(&str, Names)] = &[
    ("request", Plain),
    ("slug", Plain),
    ("workflow", Plain),
    ("profile", Plain),
    ("settings", Settings),
    ("run", Fields(RUN)),
    ("detected", Any),
    ("steps", Steps),
    ("step_list", List),
    ("stages", List),
    ("decisions", List),
    ("waivers", List),
    ("artifacts", Artifacts),
    ("fan_outs", FanOuts),
    ("edges", List),
    ("cost", Fields(COST)),
    ("blocked_by", Fields(&[("reason", Plain), ("message", Plain)])),
];

/// What templates about one step see besides.
const OF_STEP: &[(&str, Names)] = &[
    ("step", Any),
    ("item", Item),
    ("round", Plain),
    ("attempt", Plain),
    (
        "cause",
        Fields(&[
            ("why", Plain),
            ("review", Plain),
            ("findings", List),
            ("decision", Plain),
            ("comment", Plain),
            ("from", Plain),
            ("reason", Plain),
            ("step", Plain),
            ("stage", Plain),
            ("changed", List),
        ]),
    ),
    ("findings", List),
    ("answers", List),
    ("inputs", List),
    ("resumed", Fields(&[("hints", List), ("committed", List), ("uncommitted", List)])),
];

const RUN_ID: &[(&str, Names)] = &[
    ("workflow", Plain),
    ("profile", Plain),
    ("request", Plain),
    ("slug", Plain),
    ("settings", Settings),
    ("number", Plain),
    ("seconds", Plain),
    ("now", Plain),
];

const DIR: &[(&str, Names)] = &[
    ("branch", Plain),
    ("run", Fields(&[("id", Plain)])),
    ("workflow", Plain),
    ("profile", Plain),
    ("slug", Plain),
    ("settings", Settings),
    ("number", Plain),
    ("seconds", Plain),
    ("now", Plain),
];

/// Whether lint knows this name of the document: `run.id`, `steps`, `cost.limits.usd`. For those who
/// make the document.
pub fn is_known(path: &[&str]) -> bool {
    let mut names: Vec<(&str, Names)> = DOCUMENT.iter().chain(OF_STEP).copied().collect();
    for part in path {
        match names.iter().find(|(name, _)| name == part) {
            Some((_, Fields(fields))) => names = fields.to_vec(),
            Some(_) => return true,
            None => return false,
        }
    }
    true
}

/// Which document a template is rendered over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View<'v> {
    RunId,
    Dir,
    /// A projection; with `each` it has an `item`.
    Projection {
        each: bool,
    },
    /// The run as a step sees it, without the step's own names.
    Run,
    /// The steps that use the text.
    Step(&'v [&'v StepId]),
}

/// Text or expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Template,
    Expression,
}

/// A text and where it stands.
#[derive(Clone, Debug)]
pub struct PlacedText {
    pub text: String,
    pub language: Language,
    pub origin: Origin,
    /// As it is called in messages.
    pub what: String,
}

#[derive(Clone, Debug)]
pub enum Origin {
    /// A value of a definition.
    Value(Node),
    /// A file, from the line after this one on.
    File { source: SourceId, line: usize },
}

impl PlacedText {
    pub fn template(node: &Node, what: impl Into<String>) -> Option<PlacedText> {
        Self::of(node, Language::Template, what)
    }

    pub fn expression(node: &Node, what: impl Into<String>) -> Option<PlacedText> {
        Self::of(node, Language::Expression, what)
    }

    fn of(node: &Node, language: Language, what: impl Into<String>) -> Option<PlacedText> {
        let text = node.text()?.to_owned();
        Some(PlacedText { text, language, origin: Origin::Value(node.clone()), what: what.into() })
    }

    fn span(&self, used: &UsedPath, report: &Report) -> Span {
        match &self.origin {
            Origin::File { source, line } => Span {
                source: *source,
                line: line + used.line,
                column: used.column,
                length: used.length,
                start: 0,
                end: 0,
            },
            Origin::Value(node) => {
                let problem = TemplateProblem {
                    name: String::new(),
                    line: used.line,
                    column: Some(used.column),
                    message: String::new(),
                    hint: None,
                };
                let span = text_check::place(node, &self.text, &problem, report);
                if span == node.span { span } else { Span { length: used.length, ..span } }
            }
        }
    }
}

/// Everything of one plan that a template can name.
#[derive(Clone, Debug, Default)]
pub struct Known {
    steps: BTreeSet<String>,
    fan_outs: BTreeSet<String>,
    settings: BTreeSet<String>,
    /// Declared names, `*` for what a template in one puts there.
    artifacts: BTreeSet<String>,
    /// A mistake hides steps and files.
    open: bool,
}

impl Known {
    pub fn new(built: &Built, tree: &Node, shared: &Shared) -> Known {
        let declared = tree.get("settings").map(Node::entries).unwrap_or_default();
        let settings = declared.iter().map(|(key, _)| &key.text).chain(shared.settings.keys());
        let fan_out = |id: &&StepId| matches!(built.graph.steps[*id].kind, Kind::FanOut(_));
        let writes = built.texts.values().flat_map(|text| &text.writes);
        let names = writes.flat_map(|write| std::iter::once(&write.name).chain(&write.first));
        Known {
            steps: built.graph.steps.keys().map(|id| id.to_string()).collect(),
            fan_outs: built.graph.steps.keys().filter(fan_out).map(|id| id.to_string()).collect(),
            settings: settings.cloned().collect(),
            artifacts: names.map(|name| pattern(name)).collect(),
            open: built.unknown.writers || built.graph.steps.keys().any(|id| id.as_str().contains("line ")),
        }
    }

    /// Reports what a text names and no run knows. `locals` are bound around the text.
    pub fn check(
        &self,
        text: &PlacedText,
        view: View<'_>,
        locals: &[String],
        built: &Built,
        report: &mut Report,
    ) {
        // What does not parse was reported.
        let used = match text.language {
            Language::Template => TEMPLATES.used_paths_of_text(&text.text),
            Language::Expression => TEMPLATES.used_paths(&text.text),
        };
        for used in used.unwrap_or_default() {
            if used.guarded || locals.contains(&used.path[0]) {
                continue;
            }
            // A text that several steps or workflows share chooses by these what it says.
            let chosen =
                ["workflow", "profile", "step", "run"].iter().any(|name| used.conditions.contains(*name));
            let of_plan =
                matches!(used.path[0].as_str(), "settings" | "steps" | "artifacts" | "item" | "fan_outs")
                    || used.path.starts_with(&["step".to_owned(), "data".to_owned()]);
            let asked = used.path[0] == "item" && used.conditions.contains("item");
            if (chosen && of_plan) || asked {
                continue;
            }
            if let Some((message, remedy)) = self.wrong(&used.path, view, built) {
                let span = text.span(&used, report);
                report.error(codes::UNKNOWN_NAME, span, format!("{}: {message}", text.what), remedy);
            }
        }
    }

    fn wrong(&self, path: &[String], view: View<'_>, built: &Built) -> Option<(String, String)> {
        let item = [("item", Any)];
        let lists: [&[(&'static str, Names)]; 2] = match view {
            View::RunId => [RUN_ID, &[]],
            View::Dir => [DIR, &[]],
            View::Projection { each: true } => [DOCUMENT, &item],
            View::Projection { each: false } | View::Run => [DOCUMENT, &[]],
            View::Step(_) => [DOCUMENT, OF_STEP],
        };
        let names: Vec<(&'static str, Names)> = lists.into_iter().flatten().copied().collect();
        let Some((_, shape)) = names.iter().find(|(name, _)| *name == path[0]) else {
            let message = format!("there is no name `{}` here", path[0]);
            return Some((message, name_remedy(&path[0], names.iter().map(|(name, _)| *name))));
        };
        if path[0] == "step" {
            return self.wrong_step(&path[1..], "step", view, built);
        }
        self.wrong_below(path, 1, *shape, view, built)
    }

    /// Whether `path[at]` may follow what stands before it.
    fn wrong_below(
        &self,
        path: &[String],
        at: usize,
        shape: Names,
        view: View<'_>,
        built: &Built,
    ) -> Option<(String, String)> {
        let before = shown(&path[..at]);
        let next = path.get(at)?;
        match shape {
            Any => None,
            Plain => Some((format!("`{before}` has no fields, so there is no `{next}`"), String::new())),
            List => {
                let remedy = "go through it: `{% for x in … %}`, or `… | selectattr(…) | first`";
                Some((format!("`{before}` is a list, so there is no `{next}`"), remedy.to_owned()))
            }
            Fields(fields) => match fields.iter().find(|(name, _)| name == next) {
                Some((_, shape)) => self.wrong_below(path, at + 1, *shape, view, built),
                None => Some((
                    format!("`{before}` has no `{next}`"),
                    suggestion(next, fields.iter().map(|(name, _)| *name)),
                )),
            },
            Steps => {
                self.wrong_of_steps(next).or_else(|| self.wrong_step(&path[at + 1..], next, view, built))
            }
            Settings => (!self.settings.contains(next)).then(|| {
                let near = suggestion(next, self.settings.iter().map(String::as_str));
                let remedy = if near.is_empty() { "declare it under `settings`".to_owned() } else { near };
                (format!("there is no setting `{next}`"), remedy)
            }),
            Artifacts => self.wrong_artifact(next),
            FanOuts if matches!(view, View::Projection { .. } | View::Step(_)) => {
                (!self.open && !self.fan_outs.contains(next)).then(|| {
                    let near = suggestion(next, self.fan_outs.iter().map(String::as_str));
                    (format!("there is no fan-out `{next}`"), near)
                })
            }
            FanOuts => Some((
                "`fan_outs` is for steps and projections".to_owned(),
                "ask for it in the text of a step".to_owned(),
            )),
            Item => {
                let View::Step(steps) = view else { return None };
                let inside = |id: &&StepId| is_in_fan_out(id, built);
                (!steps.iter().any(inside)).then(|| {
                    let remedy = "only the steps inside a `for_each` have one";
                    ("`item` is none outside a fan-out".to_owned(), remedy.to_owned())
                })
            }
        }
    }

    fn wrong_of_steps(&self, id: &str) -> Option<(String, String)> {
        if self.open || self.steps.iter().any(|known| matches(known, id)) {
            return None;
        }
        let near = suggestion(id, self.steps.iter().map(String::as_str));
        let inside = self.steps.iter().find(|known| known.rsplit('/').next() == Some(id));
        let remedy = match inside {
            Some(inside) => format!("inside another step its id is `{inside}`"),
            None => near,
        };
        Some((format!("there is no step `{id}`"), remedy))
    }

    /// `path` is what follows a step: its fields, and `data` of the step that a text is about.
    #[expect(clippy::unused_self, reason = "beside its siblings, which use it")]
    fn wrong_step(
        &self,
        path: &[String],
        id: &str,
        view: View<'_>,
        built: &Built,
    ) -> Option<(String, String)> {
        let field = path.first()?;
        if field == "data" && id == "step" {
            let View::Step(steps) = view else { return None };
            let key = path.get(1)?;
            let known: BTreeSet<&str> = steps
                .iter()
                .filter_map(|id| built.texts.get(*id))
                .flat_map(|text| text.data.keys().map(String::as_str))
                .collect();
            return (!known.contains(key.as_str())).then(|| {
                let near = suggestion(key, known.iter().copied());
                let remedy =
                    if near.is_empty() { "declare it under `data` of the step".to_owned() } else { near };
                (format!("`step.data` has no `{key}`"), remedy)
            });
        }
        if STEP_FIELDS.contains(&field.as_str()) {
            return None;
        }
        Some((format!("a step has no `{field}`"), suggestion(field, STEP_FIELDS.iter().copied())))
    }

    fn wrong_artifact(&self, name: &str) -> Option<(String, String)> {
        if self.open || self.artifacts.iter().any(|known| matches(known, name)) {
            return None;
        }
        let near = suggestion(name, self.artifacts.iter().map(String::as_str));
        let remedy = if near.is_empty() { "declare it in some step's `writes`".to_owned() } else { near };
        Some((format!("no step writes `{name}`"), remedy))
    }
}

fn name_remedy<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = known.collect();
    match crate::diagnostic::nearest(name, all.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}; or ask `{name} is defined`", all.join(", ")),
    }
}

/// A path as it could be written.
fn shown(path: &[String]) -> String {
    let plain = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut text = String::new();
    for part in path {
        match (text.is_empty(), plain(part)) {
            (true, _) => text.push_str(part),
            (false, true) => {
                text.push('.');
                text.push_str(part);
            }
            (false, false) => text.push_str(&format!("[\"{part}\"]")),
        }
    }
    text
}

fn is_in_fan_out(id: &StepId, built: &Built) -> bool {
    let inside = id.as_str().contains("/*/");
    // Steps of a review below a fan-out carry the star as well; unknown steps may be anywhere.
    inside || built.unknown.kinds.contains(id)
}
