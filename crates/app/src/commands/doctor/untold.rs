//! What agents cannot be told of the permissions of the roles they play.

use std::{collections::BTreeSet, path::Path};

use gatewright_agents::{Adapter, Policy, untold_of_definition};
use gatewright_attempts::sandbox_support;
use gatewright_core::plan::{Budget, Kind, Plan, Step};
use gatewright_host::perform::turn;
use gatewright_workflow::{
    config::Config,
    frozen::{Agent, Frozen, Role, Sandbox, policy},
    load::{LoadOptions, load},
};

use super::{Finding, Level};
use crate::definitions::{find, of_project};

/// One sentence for each limit of a role that its agent knows no means for.
pub fn untold(frozen: &Frozen) -> Vec<String> {
    let steps = frozen.plan.graphs.iter().flat_map(|(profile, graph)| {
        let text =
            |id| frozen.steps.get(profile).and_then(|texts| texts.get(id)).cloned().unwrap_or_default();
        graph.steps.iter().map(move |(id, step)| (text(id), step))
    });
    let limits = budgets(&frozen.plan);
    let mut said = BTreeSet::new();
    for (text, (role, name)) in
        steps.flat_map(|(text, step)| players(step).into_iter().map(move |player| (text.clone(), player)))
    {
        let (Some(known), Some(agent)) = (frozen.roles.get(role.as_str()), frozen.agents.get(name.as_str()))
        else {
            continue;
        };
        for sentence in untold_of_definition(&known.extra) {
            said.insert(format!("role `{role}`: {sentence}"));
        }
        let policy = policy(&text, Some(known));
        let sentences = match agent.adapter(&name) {
            Some(adapter) => adapter.cannot(&policy),
            None => unsaid_to_command(&name, agent, known, &policy),
        };
        let wanted = text.model.as_deref().or(known.model.as_deref());
        let models = model(&name, agent, wanted).into_iter().chain(other_models(&name, agent, known));
        let models = models.chain(agent.adapter(&name).into_iter().flat_map(|one| uncounted(&limits, one)));
        said.extend(
            sentences
                .into_iter()
                .chain(models)
                .map(|sentence| format!("role `{role}` by `{name}`: {sentence}")),
        );
    }
    said.into_iter().collect()
}

/// Every budget that something of the plan has.
fn budgets(plan: &Plan) -> Vec<&Budget> {
    let of_steps =
        plan.graphs.values().flat_map(|graph| graph.steps.values()).filter_map(|step| match &step.kind {
            Kind::SubRun { budget, .. } => Some(&**budget),
            Kind::Agent { .. }
            | Kind::Review(_)
            | Kind::Check { .. }
            | Kind::Decision(_)
            | Kind::FanOut(_)
            | Kind::Merge { .. }
            | Kind::Finish { .. } => None,
        });
    of_steps.chain([&plan.budget]).chain(plan.budgets.values()).collect()
}

/// What of the budgets cannot be kept with an agent that does not tell in time what it spends.
fn uncounted(budgets: &[&Budget], adapter: &dyn Adapter) -> Vec<String> {
    let can = adapter.capabilities();
    let tokens = budgets.iter().any(|budget| budget.tokens.is_some());
    let usd = budgets.iter().any(|budget| budget.micro_usd.is_some());
    let mut said = Vec::new();
    if !can.spending && ((tokens && can.tokens) || (usd && can.cost)) {
        said.push(
            "it tells what it spends when its turn is over: a budget ends no turn of it, only what would follow"
                .to_owned(),
        );
    }
    if usd && !can.cost {
        said.push("it does not tell what it costs: `usd` of a budget does not count it".to_owned());
    }
    said
}

/// What a plain command is not told.
fn unsaid_to_command(name: &str, agent: &Agent, role: &Role, policy: &Policy) -> Vec<String> {
    let limits = [
        ("may_run", policy.may_run.is_some()),
        ("disallowedTools", !policy.disallowed_tools.is_empty()),
        ("permissionMode", policy.permission_mode.is_some()),
        ("sandbox_mode", policy.sandbox_mode.is_some()),
        ("effort", policy.effort.is_some()),
        ("maxTurns", policy.max_turns.is_some()),
    ];
    let unsaid = |(limit, _): (&str, bool)| {
        format!("a plain command is not told of `{limit}`; only `agents.{name}.sandbox` limits it")
    };
    let mut said: Vec<String> = limits.into_iter().filter(|(_, set)| *set).map(unsaid).collect();
    if role.network == Some(false) && name != REHEARSAL {
        said.push(if agent.sandbox == Sandbox::Off {
            format!("`network: false` is not kept: `agents.{name}.sandbox` is off")
        } else if sandbox_support().network() {
            "`network: false` is kept by the sandbox: no TCP connection at all, not even to the provider of a model"
                .to_owned()
        } else {
            "`network: false` is not kept: this kernel cannot refuse connections".to_owned()
        });
    }
    said
}

/// What drives agents over ACP of which nothing else is known.
const OTHER_ACP: &str = "acp";
/// It plays every role without a model.
const REHEARSAL: &str = "rehearsal";

/// What becomes of the model that a step or its role names, where that is not simply told.
fn model(name: &str, agent: &Agent, wanted: Option<&str>) -> Option<String> {
    let adapter = agent.adapter(name);
    let has_place = agent.command.iter().chain(&agent.args).any(|part| part.contains("{model}"));
    let by_place = adapter.is_none_or(|adapter| adapter.name() == OTHER_ACP);
    // What a template gives is known when the step begins.
    if name == REHEARSAL || wanted.is_some_and(|wanted| wanted.contains("{{")) {
        return None;
    }
    let Some(wanted) = wanted.map(str::trim) else {
        let empty = by_place && has_place && !agent.models.contains_key("default");
        return empty.then(|| {
            format!(
                "`{{model}}` of its command is empty: no model is named; set `agents.{name}.models.default`"
            )
        });
    };
    if turn::model(name, agent, Some(wanted)).is_none() && wanted != "default" {
        return Some(format!("`model: {wanted}` means nothing to it; set `agents.{name}.models.{wanted}`"));
    }
    match adapter {
        None if !has_place => {
            Some(format!("`model: {wanted}` is not told to it: its command has no `{{model}}`"))
        }
        Some(acp) if acp.name() == OTHER_ACP && !has_place => Some(format!(
            "`model: {wanted}` is told to it only if its session has an option for that; `{{model}}` in its command always is"
        )),
        Some(other) => (CLAUDES_MODELS.contains(&wanted)
            && other.name() != "claude"
            && !agent.models.contains_key(wanted))
        .then(|| format!("`model: {wanted}` is Claude's word for it; set `agents.{name}.models.{wanted}`")),
        None => None,
    }
}

/// Tiers among the models to fall back to, or for a fresh start, that mean nothing to an agent.
fn other_models(name: &str, agent: &Agent, role: &Role) -> Vec<String> {
    let of_role = role.extra.get("fallback").and_then(|list| list.as_array());
    let fallback: Vec<&str> = match of_role {
        Some(list) => list.iter().filter_map(|model| model.as_str()).collect(),
        None => agent.fallback.iter().map(String::as_str).collect(),
    };
    let fresh = agent.models.get("fresh").map(String::as_str);
    let named = fallback.into_iter().map(|model| ("fallback", model));
    named
        .chain(fresh.map(|model| ("models.fresh", model)))
        .filter(|(_, tier)| {
            ["strong", "fast"].contains(tier) && turn::model(name, agent, Some(tier)).is_none()
        })
        .map(|(key, tier)| {
            format!("`{tier}` of `{key}` means nothing to it; set `agents.{name}.models.{tier}`")
        })
        .collect()
}

/// Short names of models in definitions of Claude Code.
const CLAUDES_MODELS: [&str; 4] = ["haiku", "sonnet", "opus", "fable"];

fn players(step: &Step) -> Vec<(String, String)> {
    match &step.kind {
        Kind::Agent { role, agent, .. } => vec![(role.to_string(), agent.to_string())],
        Kind::Review(review) => {
            let pair = |one: &gatewright_core::plan::Reviewer| (one.role.to_string(), one.agent.to_string());
            review.reviewers.iter().map(pair).collect()
        }
        Kind::Check { .. }
        | Kind::Decision(_)
        | Kind::FanOut(_)
        | Kind::Merge { .. }
        | Kind::Finish { .. }
        | Kind::SubRun { .. } => Vec::new(),
    }
}

/// For the workflows of a project.
pub fn findings(root: &Path, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in of_project(root) {
        let Ok(definition) = find(root, &name) else { continue };
        let loaded = load(&definition.label, &definition.text, &definition.files, &LoadOptions::new(config));
        let sentences = loaded.frozen.as_ref().map(untold).unwrap_or_default();
        findings.extend(
            sentences
                .into_iter()
                .map(|sentence| Finding::new(Level::Note, format!("workflow `{name}`: {sentence}"), "")),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use gatewright_agents::{ADAPTERS, Conversation, Desk, Order, acp_named};
    use gatewright_workflow::config::ConfigText;

    use super::*;
    use crate::definitions::built_in;

    /// The agents that a configuration can name: each with an adapter, those that speak ACP once more, and any other that
    /// does.
    fn houses() -> Vec<(String, &'static dyn Adapter, String)> {
        let plain = ADAPTERS.iter().map(|one| (one.name().to_owned(), *one, format!("{}: {{}}", one.name())));
        let acp = ADAPTERS.iter().map(|one| one.name()).filter(|name| !acp_named(name).program().is_empty());
        let acp = acp.map(|name| {
            let own = format!("{name}-acp");
            let settings = format!("{own}: {{ adapter: {name}, protocol: acp }}");
            (own, acp_named(name), settings)
        });
        let other = ("other".to_owned(), acp_named(""), "other: { command: [x], protocol: acp }".to_owned());
        plain.chain(acp).chain([other]).collect()
    }

    /// Every role of every built-in method can be played by every agent: there is an order for it, what it may not do is
    /// told or said, and it has a way to hand in its files.
    #[test]
    fn every_role_of_every_method_can_be_ordered_from_every_agent() {
        let root = tempfile::tempdir().unwrap();
        let all = houses();
        let (mut orders, mut methods) = (0, 0);
        for name in built_in().iter().flat_map(|(method, more)| more.iter().chain([method])) {
            // Loaded for one after the other of them: what a role may do is the same whoever plays it.
            let (house, adapter, settings) = &all[methods % all.len()];
            methods += 1;
            let definition = find(root.path(), name).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let layer =
                ConfigText { label: "config.yaml".to_owned(), text: format!("agents:\n  {settings}\n") };
            let (config, problems) = Config::parse(&[layer]);
            assert!(problems.is_empty(), "{house}: {problems:?}");
            let options = LoadOptions { agent: Some(house.clone()), ..LoadOptions::new(&config) };
            let loaded = load(&definition.label, &definition.text, &definition.files, &options);
            let frozen = loaded.frozen.unwrap_or_else(|| panic!("{name}: {:?}", loaded.diagnostics));
            let said = untold(&frozen);
            for (profile, graph) in &frozen.plan.graphs {
                for (id, step) in &graph.steps {
                    let text = frozen.steps.get(profile).and_then(|texts| texts.get(id)).cloned();
                    for (role, player) in players(step) {
                        assert_eq!(&player, house, "{name}: {id}");
                        let known = &frozen.roles[role.as_str()];
                        let policy = policy(&text.clone().unwrap_or_default(), Some(known));
                        for (other, any, _) in &all {
                            can_be_ordered(*any, &policy, &format!("{name}: {role} by {other}"));
                            orders += 1;
                        }
                        for sentence in adapter.cannot(&policy) {
                            let sentence = format!("role `{role}` by `{house}`: {sentence}");
                            assert!(said.contains(&sentence), "{name}: {sentence}: {said:#?}");
                        }
                    }
                }
            }
        }
        assert!(methods >= 6 && orders > 1000, "{methods} workflows, {orders} orders");
    }

    fn order<'a>(desk: &'a Desk, conversation: &'a Conversation, command: &'a [String]) -> Order<'a> {
        static ANY: LazyLock<Policy> = LazyLock::new(Policy::default);
        Order {
            role: "role",
            step: "step",
            command,
            args: &[],
            prompt: "Do it.",
            prompt_file: "/a/prompt.md",
            workdir: "/w",
            out: "/a/out",
            run_dir: "/w/run",
            home: "/h",
            user_home: "/home/u",
            model: None,
            fallbacks: &[],
            conversation,
            policy: &ANY,
            micro_usd_max: None,
            reply_schema: None,
            extras: true,
            desk: Some(desk),
        }
    }

    fn can_be_ordered(adapter: &dyn Adapter, policy: &Policy, place: &str) {
        let session = "0b7e4b0e-0000-4000-8000-000000000000".to_owned();
        let command = if adapter.program().is_empty() { vec!["x".to_owned()] } else { Vec::new() };
        let desk = Desk { program: "/bin/gatewright".to_owned(), args: vec!["mcp".to_owned()] };
        let talks = [Conversation::New { session: session.clone() }, Conversation::Resumed { session }];
        for (contained, conversation) in [(true, &talks[0]), (false, &talks[1])] {
            let policy = Policy { contained, ..policy.clone() };
            let launch = adapter.launch(&Order { policy: &policy, ..order(&desk, conversation, &command) });
            let (program, words) = launch.argv.split_first().unwrap_or_else(|| panic!("{place}: no program"));
            assert!(!program.is_empty() && !words.iter().any(String::is_empty), "{place}: {:?}", launch.argv);
            assert!(launch.prompt_on_stdin, "{place}: how does it get its prompt?");
            assert!(
                launch.files.iter().all(|file| file.path.starts_with("/h/")),
                "{place}: {:?}",
                launch.files
            );
            // Who can write nothing is either held by our sandbox or by words of its own.
            let any = Policy { contained, ..Policy::default() };
            let free = adapter.launch(&Order { policy: &any, ..order(&desk, conversation, &command) });
            assert!(!policy.read_only || launch.hold_read_only || launch != free, "{place}: who holds it?");
        }
        for sentence in adapter.cannot(policy) {
            assert!(!sentence.trim().is_empty() && !sentence.contains('\n'), "{place}: {sentence:?}");
        }
    }
}
