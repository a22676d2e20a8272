//! The way in: the text of a workflow to a frozen one, or everything that is wrong with it.
//!
//! Pure over bytes. What stands beside the file (roles, contracts, schemas, other workflows) comes
//! through [`Sources`]; the caller decides where it lives and what may be read.

mod made_of;

use std::collections::BTreeMap;

use made_of::Remembering;

use crate::{
    config::Config,
    definition::{check_shape::check_shape, keys::WORKFLOW, shape::Shape},
    diagnostic::{Diagnostic, Report, codes},
    frozen::Frozen,
    resolve,
    yaml::tree::{Node, read_tree},
};

pub use made_of::MadeOf;

/// What a workflow file can refer to. Paths are relative to the folder of the file, as written.
///
/// `.claude/…`, `.github/…`, `.codex/…` and paths that start with `./` are meant from the root of
/// the repository by people who write them; an implementation looks there when there is no such
/// file beside the workflow.
pub trait Sources {
    fn read(&self, path: &str) -> Option<String>;
    /// Names of the files in a folder; only for suggestions.
    fn list(&self, dir: &str) -> Vec<String>;
    /// Another workflow, for a sub-run: label for messages, text, its own surroundings.
    fn workflow(&self, name: &str) -> Option<(String, String, Box<dyn Sources>)>;
}

/// Sources that are texts in memory: embedded methods, tests.
#[derive(Clone, Debug, Default)]
pub struct MapSources {
    /// By path.
    pub files: BTreeMap<String, String>,
    /// By name: the text and what stands beside it.
    pub workflows: BTreeMap<String, (String, MapSources)>,
}

impl MapSources {
    pub fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    pub fn with_workflow(mut self, name: &str, text: &str, beside: MapSources) -> Self {
        self.workflows.insert(name.to_owned(), (text.to_owned(), beside));
        self
    }
}

impl Sources for MapSources {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path.strip_prefix("./").unwrap_or(path)).cloned()
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let dir = dir.trim_end_matches('/');
        let inside = |path: &&String| path.rsplit_once('/').map_or("", |(folder, _)| folder) == dir;
        self.files
            .keys()
            .filter(inside)
            .map(|path| path.rsplit('/').next().unwrap_or(path).to_owned())
            .collect()
    }

    /// A sub-run may name what its parent knows.
    fn workflow(&self, name: &str) -> Option<(String, String, Box<dyn Sources>)> {
        let (text, beside) = self.workflows.get(name)?;
        let mut beside = beside.clone();
        for (name, known) in &self.workflows {
            beside.workflows.entry(name.clone()).or_insert_with(|| known.clone());
        }
        Some((format!("{name}.yaml"), text.clone(), Box::new(beside)))
    }
}

#[derive(Clone, Debug)]
pub struct LoadOptions<'a> {
    pub profile: Option<String>,
    /// `--set key=value`: a setting, or an override such as `steps.review.rounds_max`.
    pub settings: BTreeMap<String, String>,
    /// Plays every role, whatever the roles say.
    pub agent: Option<String>,
    pub config: &'a Config,
}

impl<'a> LoadOptions<'a> {
    pub fn new(config: &'a Config) -> Self {
        LoadOptions { profile: None, settings: BTreeMap::new(), agent: None, config }
    }
}

#[derive(Debug)]
pub struct Loaded {
    /// Present when there are no errors; warnings do not fail.
    pub frozen: Option<Frozen>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Text to frozen workflow. `name` is the label of the file in messages.
pub fn load(name: &str, text: &str, sources: &dyn Sources, options: &LoadOptions<'_>) -> Loaded {
    run(name, text, sources, options, resolve::Profiles::Reachable)
}

/// The same with all profiles in its plan, also those that a run which starts as the options say never comes to.
pub fn load_all(name: &str, text: &str, sources: &dyn Sources, options: &LoadOptions<'_>) -> Loaded {
    run(name, text, sources, options, resolve::Profiles::All)
}

/// Everything that is wrong with a definition, in all of its profiles.
pub fn lint(name: &str, text: &str, sources: &dyn Sources, options: &LoadOptions<'_>) -> Vec<Diagnostic> {
    load_all(name, text, sources, options).diagnostics
}

fn run(
    name: &str,
    text: &str,
    sources: &dyn Sources,
    options: &LoadOptions<'_>,
    profiles: resolve::Profiles,
) -> Loaded {
    let mut report = Report::default();
    let sources = Remembering::new(sources);
    let frozen = parse_workflow(name, text, &mut report)
        .and_then(|tree| resolve::resolve(&tree, name, text, &sources, options, profiles, &mut report));
    let mut frozen = if report.has_errors() { None } else { frozen };
    if let Some(frozen) = &mut frozen {
        frozen.made_of = sources.made_of(name, text, options);
    }
    Loaded { frozen, diagnostics: report.into_sorted() }
}

/// The tree of a workflow file, with everything reported that is wrong with its shape.
pub(crate) fn parse_workflow(label: &str, text: &str, report: &mut Report) -> Option<Node> {
    let source = report.texts.add(label, text);
    let (tree, problems) = read_tree(text, source);
    for problem in problems {
        report.error(codes::SYNTAX, problem.span, problem.message, "");
    }
    let tree = tree?;
    // Held against its shape as it is with its own settings; the tree itself is filled with those of the run.
    let mut filled = tree.clone();
    resolve::from_setting::fill(&mut filled, &resolve::from_setting::declared(&tree), report);
    check_shape(&filled, &Shape::Object(&WORKFLOW), "the workflow", report);
    check_top(&tree, report);
    Some(tree)
}

fn check_top(tree: &Node, report: &mut Report) {
    match (tree.get("steps"), tree.get("stages")) {
        (Some(_), Some(_)) => report.error(
            codes::MISPLACED_KEY,
            tree.key_place("steps"),
            "a workflow has `steps` or `stages`, not both",
            "move the steps into a stage",
        ),
        (None, None) if !tree.entries().is_empty() => {
            report.error(codes::MISSING_KEY, tree.span, "the workflow has no `steps` and no `stages`", "");
        }
        (Some(list), None) | (None, Some(list)) if list.elements().is_empty() => {
            report.error(
                codes::BAD_VALUE,
                list.span,
                "the workflow has nothing to do: the list is empty",
                "",
            );
        }
        (Some(_) | None, Some(_) | None) => {}
    }
}

#[cfg(test)]
#[path = "load/tests.rs"]
mod tests;
