//! All profiles of a run, each a tree of its own, to one frozen workflow.

use std::collections::BTreeMap;

use gatewright_core::{
    ids::{PoolId, ProfileId, StageId, StepId},
    plan::{
        Budget, Condition, Gate, Graph, Hardness, Kind, Must, Obligation, PLAN_VERSION, Plan, Step, limits,
    },
};

use super::{
    build::{Builder, Built, Shared},
    disabled,
    elsewhere::Elsewhere,
    from_setting, gate, import_source, placeholder, projection_source, setting,
    unit::Unit,
    unknown,
};
use crate::{
    config::{budget_of, no_such_agent},
    definition::{check_shape::check_shape, keys::WORKFLOW, overrides, read::Word, shape::Shape},
    diagnostic::{Report, codes, suggestion},
    frozen::{FROZEN_VERSION, Frozen, Isolation, OnTrespass, Projection, StepText},
    lint,
    load::{LoadOptions, MadeOf, Sources},
    yaml::tree::{Node, Span, parse_tree},
};

/// Which profiles are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profiles {
    /// The one the run starts in and those it can escalate to.
    Reachable,
    All,
}

/// The profile of a workflow that names none: the definition as it stands.
pub const DEFAULT_PROFILE: &str = "default";
const DIR: &str = ".gatewright/runs/{{ run.id }}";
const RUN_ID: &str = "{{ workflow }}-{{ slug }}-{{ seconds }}";
const DECISION_PREFIX: &str = "D-";
/// What no role may touch, whatever else is protected (decision 28).
const PROTECT: &[&str] = &[".env*", ".git/config", ".git/hooks/**", ".git/info/**", ".gatewright/**"];

/// Resolves the profiles and proves what lint proves. The result counts only without errors.
pub fn resolve(
    tree: &Node,
    label: &str,
    text: &str,
    sources: &dyn Sources,
    options: &LoadOptions<'_>,
    profiles: Profiles,
    report: &mut Report,
) -> Option<Frozen> {
    let mut shared = Shared::default();
    shared.read(label, text);
    check_agent(options, report);
    let changes = changes(tree, options, report);
    let elsewhere = Elsewhere::read(tree, sources, report);
    let start = start(tree, options, report);
    check_targets(tree, report);
    let mut queue = vec![start.clone()];
    if profiles == Profiles::All {
        queue.extend(
            tree.get("profiles")
                .map(Node::entries)
                .unwrap_or_default()
                .iter()
                .map(|(key, _)| Word { text: key.text.clone(), span: key.span }),
        );
    }
    let mut graphs = BTreeMap::new();
    let mut texts = BTreeMap::new();
    let mut first: Option<(Node, Built)> = None;
    let mut trees: BTreeMap<ProfileId, Node> = BTreeMap::new();
    while !queue.is_empty() {
        let profile = queue.remove(0);
        let id = ProfileId::new(&profile.text);
        if graphs.contains_key(&id) {
            continue;
        }
        let Some(tree) = profiled(tree, &profile, &changes, options, &elsewhere, report) else { continue };
        let mut built = build(&tree, label, sources, options, &profile.text, &mut shared, report);
        for (reason, target) in escalations(&tree, &profile) {
            built.graph.escalations.insert(reason, ProfileId::new(&target.text));
            queue.push(target);
        }
        lint::check_graph(&built, &tree, &shared, report);
        lint::check_registry(&built, &tree, sources, &mut shared, report);
        texts.insert(id.clone(), spoken(&built.texts));
        graphs.insert(id.clone(), built.graph.clone());
        if first.is_some() {
            trees.insert(id, tree);
        } else {
            first = Some((tree, built));
        }
    }
    let (tree, built) = first?;
    let nested = shared.settings.clone();
    setting::settings(&tree, options, &elsewhere, &mut shared, report);
    let others = other_settings(&trees, &nested, options, &elsewhere, &shared.settings);
    // What seems unused beside an error may be what the error is about.
    let all = profiles == Profiles::All || tree.get("profiles").is_none();
    if all && !report.has_errors() {
        lint::check_unused(&tree, &shared, report);
    }
    let mut plan = plan(&tree, options, &start, graphs);
    for (id, tree) in &trees {
        let budget = budget(tree, options);
        if budget != plan.budget {
            plan.budgets.insert(id.clone(), budget);
        }
    }
    let projections = projection_source::projections(&tree, sources, &built, &mut shared, report);
    let prompt = shared_prompt(&tree, sources, &mut shared, report);
    let mut frozen = frozen(&tree, options, plan, texts, projections, shared);
    frozen.prompt = prompt;
    frozen.announce.clone_from(&built.announce);
    frozen.imports.clone_from(&built.imports);
    frozen.profile_settings = others;
    Some(frozen)
}

/// What steps say that say something.
fn spoken(texts: &BTreeMap<StepId, StepText>) -> BTreeMap<StepId, StepText> {
    let silent = StepText::default();
    texts.iter().filter(|(_, text)| **text != silent).map(|(id, text)| (id.clone(), text.clone())).collect()
}

/// Settings of the profiles to which the run can escalate, where they differ. What is wrong with them is
/// reported for the profile in which the run starts.
fn other_settings(
    trees: &BTreeMap<ProfileId, Node>,
    nested: &BTreeMap<String, serde_json::Value>,
    options: &LoadOptions<'_>,
    elsewhere: &Elsewhere,
    start: &BTreeMap<String, serde_json::Value>,
) -> BTreeMap<ProfileId, BTreeMap<String, serde_json::Value>> {
    let settings = |tree: &Node| {
        let mut shared = Shared { settings: nested.clone(), ..Shared::default() };
        setting::settings(tree, options, elsewhere, &mut shared, &mut Report::default());
        shared.settings
    };
    let all = trees.iter().map(|(id, tree)| (id.clone(), settings(tree)));
    all.filter(|(_, settings)| settings != start).collect()
}

/// Overrides that hold in every profile: the configuration's, then those of flags.
fn changes(tree: &Node, options: &LoadOptions<'_>, report: &mut Report) -> Vec<Node> {
    let name = tree.string_or_empty("workflow");
    let mut changes = Vec::new();
    for layer in &options.config.layers {
        let source = report.texts.add(&layer.label, &layer.text);
        // What is wrong with the file itself is the configuration's to report.
        let Ok(config) = parse_tree(&layer.text, source) else { continue };
        let own = config.get("workflows").and_then(|workflows| workflows.get(&name)).cloned();
        changes.extend(own.map(setting::without_settings));
    }
    changes.extend(setting::overrides(tree, options, report));
    changes
}

fn check_agent(options: &LoadOptions<'_>, report: &mut Report) {
    let Some(name) = options.agent.as_ref().filter(|name| !options.config.knows_agent(name)) else { return };
    let span = flag("--agent", name, report);
    let instead = options.config.instead_of_agent(name);
    report.error(codes::UNKNOWN_AGENT, span, no_such_agent(name), instead);
}

/// The place of a flag's value, so that a mistake in it is shown like one in a file.
fn flag(name: &str, value: &str, report: &mut Report) -> Span {
    let source = report.texts.add(name, value);
    Span { source, line: 1, column: 1, length: value.chars().count(), start: 0, end: 0 }
}

/// Targets of profiles that this run never enters are checked too.
fn check_targets(tree: &Node, report: &mut Report) {
    for (name, _) in tree.get("profiles").map(Node::entries).unwrap_or_default() {
        let profile = Word { text: name.text.clone(), span: name.span };
        for (_, target) in escalations(tree, &profile) {
            find(tree, &target, report);
        }
    }
}

/// The profile the run starts in; the definition as it stands if the wanted one is not there, so
/// that what else is wrong is found too.
fn start(tree: &Node, options: &LoadOptions<'_>, report: &mut Report) -> Word {
    let flagged = options.profile.clone().map(|text| Word { span: flag("--profile", &text, report), text });
    let wanted = flagged
        .or_else(|| tree.word("profile"))
        .unwrap_or(Word { text: DEFAULT_PROFILE.to_owned(), span: tree.span });
    if wanted.text == DEFAULT_PROFILE || find(tree, &wanted, report).is_some() {
        return wanted;
    }
    Word { text: DEFAULT_PROFILE.to_owned(), span: wanted.span }
}

/// The overrides of a profile; reported if there is none of this name.
pub fn find<'t>(tree: &'t Node, wanted: &Word, report: &mut Report) -> Option<&'t Node> {
    let profiles = tree.get("profiles").map(Node::entries).unwrap_or_default();
    let found = profiles.iter().find(|(key, _)| key.text == wanted.text).map(|(_, node)| node);
    if found.is_none() {
        report.error(
            codes::UNKNOWN_PROFILE,
            wanted.span,
            format!("there is no profile `{}`", wanted.text),
            suggestion(&wanted.text, profiles.iter().map(|(key, _)| key.text.as_str())),
        );
    }
    found
}

/// The tree of one profile. `default` is the definition as it stands unless a profile has that name.
fn profiled(
    tree: &Node,
    profile: &Word,
    changes: &[Node],
    options: &LoadOptions<'_>,
    elsewhere: &Elsewhere,
    report: &mut Report,
) -> Option<Node> {
    let named = tree.get("profiles").and_then(|profiles| profiles.get(&profile.text)).is_some();
    let mut merged = tree.clone();
    if named || profile.text != DEFAULT_PROFILE {
        let over = find(tree, profile, report)?;
        overrides::apply(&mut merged, over, report);
    }
    for change in changes {
        overrides::apply(&mut merged, change, report);
    }
    // What is wrong with the settings themselves is reported where they are frozen.
    let mut known = Shared::default();
    setting::settings(&merged, options, elsewhere, &mut known, &mut Report::default());
    from_setting::fill(&mut merged, &known.settings, report);
    check_shape(&merged, &Shape::Object(&WORKFLOW), "the workflow", report);
    placeholder::fill(&mut merged, "", report);
    Some(merged)
}

fn escalations(tree: &Node, profile: &Word) -> Vec<(String, Word)> {
    let over = tree.get("profiles").and_then(|profiles| profiles.get(&profile.text));
    let Some(escalate) = over.and_then(|over| over.get("escalate_to")) else { return Vec::new() };
    if let Some(word) = Word::of(escalate) {
        return vec![("complexity".to_owned(), word)];
    }
    escalate
        .entries()
        .iter()
        .filter_map(|(reason, target)| Some((reason.text.clone(), Word::of(target)?)))
        .collect()
}

fn build(
    tree: &Node,
    label: &str,
    sources: &dyn Sources,
    options: &LoadOptions<'_>,
    profile: &str,
    shared: &mut Shared,
    report: &mut Report,
) -> Built {
    let mut builder = Builder {
        report,
        shared,
        options,
        built: Built::default(),
        writers_wanted: Vec::new(),
        chain: vec![label.to_owned()],
        beside: Vec::new(),
        sub_runs: 0,
    };
    let parallel_max =
        tree.limit("parallel_max").or(options.config.parallel_max).unwrap_or(limits::PARALLEL_MAX);
    builder.built.graph.pools.insert(PoolId::new("run"), parallel_max);
    for (pool, depth) in pools(tree) {
        builder.pool(pool, depth);
    }
    let unit = Unit::new(&mut builder, tree, label, sources, "", &format!("{profile}/"), None);
    let stages = unit.resolve(&mut builder);
    builder.built.graph.stages = stages;
    obligations(&mut builder, &unit);
    import_source::imports(&mut builder, &unit);
    builder.built.announce = announced(tree);
    gate::link_writers(&mut builder);
    disabled::relink(&mut builder);
    builder.built.graph.index();
    builder.built
}

/// What is said when a stage is through.
fn announced(tree: &Node) -> BTreeMap<StageId, String> {
    let stages = tree.get("stages").map(Node::elements).unwrap_or_default();
    stages
        .iter()
        .filter_map(|stage| Some((StageId::new(stage.string("id")?), stage.string("announce")?)))
        .collect()
}

pub fn pools(tree: &Node) -> Vec<(String, u32)> {
    let pools = tree.get("pools").map(Node::entries).unwrap_or_default();
    pools
        .iter()
        .filter_map(|(key, value)| {
            let depth = tree.get("pools")?.limit(&key.text).or_else(|| value.limit("depth"))?;
            Some((key.text.clone(), depth))
        })
        .collect()
}

/// Pools of all runs together, with their depth.
fn machine_pools(tree: &Node) -> BTreeMap<PoolId, u32> {
    let pools = tree.get("pools").map(Node::entries).unwrap_or_default();
    let shared = pools.iter().filter(|(_, value)| value.string("scope").as_deref() == Some("machine"));
    shared.filter_map(|(key, value)| Some((PoolId::new(&key.text), value.limit("depth")?))).collect()
}

/// A run with branches of its own to commit to, to merge or to bring home.
fn is_isolated(tree: &Node, plan: &Plan, texts: &BTreeMap<ProfileId, BTreeMap<StepId, StepText>>) -> bool {
    let brings = |kind: &Kind| matches!(kind, Kind::Merge { .. } | Kind::Finish { .. });
    let steps =
        || plan.graphs.values().flat_map(|graph| graph.steps.values().filter(|step| is_on(graph, step)));
    let shared = |text: &StepText| text.commit == Some(true) && text.isolation == Isolation::Shared;
    tree.string("isolation").as_deref() == Some("worktree")
        || steps().any(|step| brings(&step.kind))
        || texts.values().flat_map(|texts| texts.values()).any(shared)
}

/// Neither the step nor its stage is switched off.
fn is_on(graph: &Graph, step: &Step) -> bool {
    let off = |gate: &Gate| matches!(&gate.condition, Condition::Expression { source } if source == "false");
    let stage_is_on = graph.stage(&step.stage).is_none_or(|stage| stage.disabled.is_none());
    stage_is_on && !step.gates.iter().any(|gate| gate.hardness == Hardness::Skip && off(gate))
}

pub fn obligations(builder: &mut Builder<'_>, unit: &Unit<'_>) {
    let scope = super::names::Scope::top(&unit.prefix);
    for node in unit.tree.get("obligations").map(Node::elements).unwrap_or_default() {
        let told: Vec<&str> =
            ["role", "step", "decision"].into_iter().filter(|key| node.get(key).is_some()).collect();
        if told.len() != 1 {
            builder.report.error(
                codes::BAD_VALUE,
                node.span,
                format!("an obligation asks for one thing, this one for {}", told.len()),
                "one of `role`, `step`, `decision`",
            );
            continue;
        }
        let must = if let Some(role) = node.word("role") {
            let role = unit.role_named(builder, &role).id;
            Some(Must::Role { role })
        } else if let Some(step) = node.word("step") {
            unit.names.find(&scope, &step, builder.report).map(|step| Must::Step { step })
        } else {
            node.word("decision")
                .and_then(|word| unit.names.find(&scope, &word, builder.report))
                .map(|step| Must::Decision { step })
        };
        let else_run = node.word("else_run").and_then(|word| unknown::called(builder, unit, &scope, &word));
        if let Some(must) = must {
            let name = format!("{}{}", unit.prefix, node.string_or_empty("name"));
            builder.built.graph.obligations.push(Obligation { name, must, else_run });
        }
    }
}

fn plan(
    tree: &Node,
    options: &LoadOptions<'_>,
    start: &Word,
    graphs: BTreeMap<ProfileId, gatewright_core::plan::Graph>,
) -> Plan {
    let decisions = tree.get("decisions");
    Plan {
        version: PLAN_VERSION,
        workflow: tree.string_or_empty("workflow"),
        profile: ProfileId::new(&start.text),
        graphs,
        budget: budget(tree, options),
        budgets: BTreeMap::new(),
        decision_prefix: decisions
            .and_then(|node| node.string("prefix"))
            .unwrap_or_else(|| DECISION_PREFIX.to_owned()),
        reasks_max: decisions.and_then(|node| node.limit("reasks_max")).unwrap_or(limits::REASKS_MAX),
    }
}

fn budget(tree: &Node, options: &LoadOptions<'_>) -> Budget {
    let told = tree.get("budget");
    told.map_or_else(|| options.config.budget.clone(), |node| budget_of(node, &options.config.budget))
}

fn frozen(
    tree: &Node,
    options: &LoadOptions<'_>,
    plan: Plan,
    steps: BTreeMap<ProfileId, BTreeMap<StepId, StepText>>,
    projections: Vec<Projection>,
    shared: Shared,
) -> Frozen {
    let mut protect: Vec<String> = PROTECT.iter().map(|glob| (*glob).to_owned()).collect();
    protect.extend(options.config.protect.iter().cloned());
    protect.extend(tree.strings("protect"));
    let mut agents: BTreeMap<_, _> = options
        .config
        .agents
        .iter()
        .map(|(name, agent)| (gatewright_core::ids::AgentId::new(name), agent.clone()))
        .collect();
    for id in &shared.agents {
        agents.entry(id.clone()).or_insert_with(|| options.config.agent_named(id.as_str()));
    }
    let on_trespass =
        match tree.string("on_trespass").or_else(|| options.config.on_trespass.clone()).as_deref() {
            Some("restore") => OnTrespass::Restore,
            Some(_) | None => OnTrespass::Keep,
        };
    let isolated = is_isolated(tree, &plan, &steps);
    let mut frozen = Frozen {
        version: FROZEN_VERSION,
        workflow: tree.string_or_empty("workflow"),
        description: tree.string_or_empty("description"),
        dir: tree.string("dir").unwrap_or_else(|| DIR.to_owned()),
        dir_committed: tree.flag("dir_ignored") == Some(false),
        offers_clean: tree.flag("offer_clean") == Some(true),
        folders: tree.strings("folders"),
        run_id: tree.string("run_id").unwrap_or_else(|| RUN_ID.to_owned()),
        plan,
        roles: shared.roles,
        checks: shared.checks,
        steps,
        projections,
        words: super::unit::words(tree.get("words"), crate::reply::WordMap::default()).unwrap_or_default(),
        settings: shared.settings,
        profile_settings: BTreeMap::new(),
        asked: setting::asked(tree),
        agents,
        sandbox: options.config.sandbox.clone(),
        protect,
        not_committed: tree.strings("not_committed"),
        prompt: String::new(),
        detect: tree
            .get("detect")
            .map(Node::entries)
            .unwrap_or_default()
            .iter()
            .map(|(name, paths)| {
                (name.text.clone(), paths.as_words().into_iter().map(|word| word.text).collect())
            })
            .collect(),
        on_trespass,
        isolated,
        branch: tree.string("branch"),
        worktree: tree.string("worktree"),
        seed: options.config.seed.clone(),
        pull_request: options.config.pull_request.clone(),
        machine_pools: machine_pools(tree),
        announce: BTreeMap::new(),
        imports: Vec::new(),
        sources: shared.sources,
        made_of: MadeOf::default(),
    };
    frozen.settle_commits();
    crate::tenure::assign(&mut frozen);
    frozen
}

/// What every role is told. A text of one line that names a file beside the workflow stands for that file.
fn shared_prompt(tree: &Node, sources: &dyn Sources, shared: &mut Shared, report: &mut Report) -> String {
    let own = tree.string_or_empty("prompt");
    let path = Some(own.trim()).filter(|text| !text.contains('\n') && is_markdown(text));
    let Some((path, text)) = path.and_then(|path| Some((path.to_owned(), sources.read(path)?))) else {
        return own;
    };
    shared.read(&path, &text);
    if let Some(problem) = too_large(&path, &text) {
        report.error(codes::TEMPLATE, tree.place("prompt"), problem, "");
        return own;
    }
    for problem in crate::definition::text_check::TEMPLATES.check(&path, &text) {
        let message = format!("`{path}`, line {}: {}", problem.line, problem.message);
        report.error(codes::TEMPLATE, tree.place("prompt"), message, problem.hint.unwrap_or_default());
    }
    text
}

/// A file that no YAML is read from has the same limit.
pub(super) fn too_large(path: &str, text: &str) -> Option<String> {
    let most = crate::yaml::tree::limits::BYTES_MAX;
    (text.len() > most).then(|| format!("`{path}` has more than {most} bytes, which are read at most"))
}

fn is_markdown(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|ending| ending == "md")
}
