//! Roles and checks of one workflow file, and which agent plays a role.

use std::collections::BTreeMap;

use gatewright_core::{
    event::FailureClass,
    ids::{AgentId, CheckId, PoolId, RoleId, StepId},
};

use super::{build::Builder, unit::Unit};
use crate::{
    config::{DEFAULT_AGENT, no_such_agent},
    definition::{file_name::glob_problem, read::Word},
    diagnostic::{codes, suggestion},
    frozen::{Check, CheckClass, Role},
    lint::known::{Language, Origin, PlacedText},
    role_file::{RoleFile, is_foreign, parse_role_file},
    yaml::tree::{Key, Node, NodeValue, Span},
};

/// A check that names no timeout.
const CHECK_TIMEOUT_MS: u64 = 30 * 60_000;

/// A role as the steps of its file know it.
#[derive(Clone, Debug)]
pub struct UnitRole {
    pub id: RoleId,
    pub agent: Option<Word>,
    pub parallel_max: Option<u32>,
}

pub fn role(builder: &mut Builder<'_>, unit: &Unit<'_>, name: &Key, node: &Node) -> UnitRole {
    let from = Word::of(node).or_else(|| node.word("from"));
    let (file, said) = from.as_ref().and_then(|from| role_file(builder, unit, from)).unzip();
    let file = file.unwrap_or_default();
    let file = match from.as_ref().filter(|from| !is_foreign(&from.text)) {
        Some(from) => with_own_definition(builder, unit, &name.text, from, file),
        None => file,
    };
    let mut texts: Vec<PlacedText> = said.into_iter().collect();
    let what = format!("`prompt` of role `{}`", name.text);
    texts.extend(node.get("prompt").and_then(|node| PlacedText::template(node, what)));
    let mut prompt = file.prompt;
    let own = node.string_or_empty("prompt");
    if !prompt.is_empty() && !own.is_empty() {
        prompt.push_str("\n\n");
    }
    prompt.push_str(&own);
    let mut extra = file.extra;
    for (key, value) in node.get("extra").map(Node::entries).unwrap_or_default() {
        extra.insert(key.text.clone(), value.to_json());
    }
    let role = Role {
        prompt,
        description: node.string("description").unwrap_or(file.description),
        // An empty one is none: a setting that nobody set.
        model: node.string("model").filter(|model| !model.is_empty()).or(file.model),
        may_write: if node.get("may_write").is_some() {
            Some(node.strings("may_write"))
        } else {
            file.may_write
        },
        may_run: if node.get("may_run").is_some() { Some(node.strings("may_run")) } else { file.may_run },
        network: node.flag("network").or(file.network),
        extra,
    };
    let agent = node.word("agent").or_else(|| {
        let span = from.as_ref().map_or(node.span, |from| from.span);
        file.agent.map(|text| Word { text, span })
    });
    let parallel_max = node.limit("parallel_max").or(file.parallel_max);
    let id = builder.shared.add_role(&name.text, &unit.role_prefix, role, name.span);
    builder.shared.role_texts.insert(id.clone(), texts);
    UnitRole { id, agent, parallel_max }
}

/// Where a project keeps its own definition of a role, in the formats of other programs.
const OWN_DEFINITIONS: [(&str, &str); 3] =
    [(".claude/agents/", ".md"), (".github/agents/", ".agent.md"), (".codex/agents/", ".toml")];

/// `.github/agents/04-coder.md`, `04-coder-agent.md` or `01-SpecAgent.agent.md`: a list of roles with their places in it.
fn numbered(unit: &Unit<'_>, name: &str) -> Option<String> {
    const FOLDER: &str = ".github/agents/";
    let squeezed = |text: &str| -> String {
        let text: String =
            text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        text.strip_suffix("agent").filter(|rest| !rest.is_empty()).unwrap_or(&text).to_owned()
    };
    let is_meant = |file: &&String| {
        let stem = file.strip_suffix(".agent.md").or_else(|| file.strip_suffix(".md"));
        let role =
            stem.map(|stem| stem.trim_start_matches(|c: char| c.is_ascii_digit() || "-_. ".contains(c)));
        role.is_some_and(|role| squeezed(role) == squeezed(name))
    };
    let files = unit.sources.list(FOLDER.trim_end_matches('/'));
    let file = files.iter().find(is_meant)?;
    Some(format!("{FOLDER}{file}")).filter(|path| unit.sources.read(path).is_some())
}

/// A project that knows the role already has the first word: who it is and with which model. What the method
/// needs of it, its report, its reply and what it may touch, stays.
fn with_own_definition(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    name: &str,
    from: &Word,
    file: RoleFile,
) -> RoleFile {
    // The names of some programs know no underscores.
    let spellings = [name.to_owned(), name.replace('_', "-")];
    let mut paths = OWN_DEFINITIONS
        .iter()
        .flat_map(|(folder, end)| spellings.iter().map(move |name| format!("{folder}{name}{end}")));
    let path = paths.find(|path| unit.sources.read(path).is_some()).or_else(|| numbered(unit, name));
    let Some(path) = path else { return file };
    let Some((own, _)) = role_file(builder, unit, &Word { text: path, span: from.span }) else { return file };
    let mut extra = file.extra;
    extra.extend(own.extra);
    RoleFile {
        prompt: format!("{}\n\n{}", own.prompt, file.prompt),
        description: if own.description.is_empty() { file.description } else { own.description },
        agent: own.agent.or(file.agent),
        model: own.model.or(file.model),
        may_write: file.may_write.or(own.may_write),
        may_run: file.may_run.or(own.may_run),
        network: file.network.or(own.network),
        extra,
        ..file
    }
}

fn role_file(builder: &mut Builder<'_>, unit: &Unit<'_>, from: &Word) -> Option<(RoleFile, PlacedText)> {
    let Some(text) = unit.sources.read(&from.text) else {
        let folder = super::contract_source::folder_of(&from.text);
        let files: Vec<String> = unit
            .sources
            .list(folder)
            .iter()
            .map(|file| format!("{folder}{}", file.rsplit('/').next().unwrap_or(file)))
            .collect();
        builder.report.error(
            codes::BAD_ROLE_FILE,
            from.span,
            format!("there is no role file `{}`", from.text),
            suggestion(&from.text, files.iter().map(String::as_str)),
        );
        return None;
    };
    builder.shared.read(&unit.label_of(&from.text), &text);
    match parse_role_file(&from.text, &text) {
        Ok(role) => {
            for glob in role.may_write.iter().flatten() {
                if let Some(problem) = glob_problem(glob) {
                    let message = format!("`{}`: the glob `{glob}` of `may_write` {problem}", from.text);
                    builder.report.error(codes::BAD_ROLE_FILE, from.span, message, "");
                }
            }
            let said = check_prompt(builder, unit, from, &text, &role.prompt);
            Some((role, said))
        }
        Err(problem) => {
            builder.report.error(codes::BAD_ROLE_FILE, from.span, format!("`{}`: {problem}", from.text), "");
            None
        }
    }
}

/// The body of a role file is a template with places of its own.
fn check_prompt(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    from: &Word,
    text: &str,
    prompt: &str,
) -> PlacedText {
    let first = prompt.lines().next().unwrap_or_default();
    let offset = text.lines().position(|line| line.trim() == first.trim()).unwrap_or(0);
    let source = builder.report.texts.add(unit.label_of(&from.text), text);
    for problem in crate::definition::text_check::TEMPLATES.check(&from.text, prompt) {
        let span = Span {
            source,
            line: problem.line + offset,
            column: problem.column.unwrap_or(1),
            length: 1,
            start: 0,
            end: 0,
        };
        builder.report.error(codes::TEMPLATE, span, problem.message, problem.hint.unwrap_or_default());
    }
    PlacedText {
        text: prompt.to_owned(),
        language: Language::Template,
        origin: Origin::File { source, line: offset },
        what: format!("the role file `{}`", from.text),
    }
}

/// A check that needs more tries than this has no result.
const RERUNS_MAX: u32 = 10;

pub fn check(builder: &mut Builder<'_>, unit: &Unit<'_>, name: &Key, node: &Node) -> CheckId {
    let env = node.get("env").map(Node::entries).unwrap_or_default();
    let check = Check {
        run: node.text().map(str::to_owned).unwrap_or_else(|| node.string_or_empty("run")),
        cwd: node.string("cwd"),
        env: env
            .iter()
            .map(|(key, value)| (key.text.clone(), value.text().unwrap_or_default().to_owned()))
            .collect(),
        timeout_ms: node.milliseconds("timeout").unwrap_or(CHECK_TIMEOUT_MS),
        class: if node.string("class").as_deref() == Some("build") {
            CheckClass::Build
        } else {
            CheckClass::Test
        },
        classes: classes(node),
        junit: node.string("junit"),
        counts: node.string("counts"),
        reruns: node.limit("reruns").unwrap_or(0).min(RERUNS_MAX),
        processes_max: node.limit("processes_max"),
        tests_min: node.whole("tests_min"),
        skipped_max: node.whole("skipped_max"),
        expect_failure: node.is_on("expect_failure"),
        when: match node.get("when").map(|when| &when.value) {
            Some(NodeValue::Bool(value)) => Some(value.to_string()),
            Some(_) => node.string("when"),
            None => None,
        },
    };
    let what = format!("check `{}`", name.text);
    let line = PlacedText::template(node.get("run").unwrap_or(node), what.clone());
    let when = node.get("when").and_then(|node| PlacedText::expression(node, what));
    let id = builder.shared.add_check(&name.text, &unit.role_prefix, check, name.span);
    builder.shared.check_texts.insert(id.clone(), line.into_iter().chain(when).collect());
    id
}

/// `class: { 1: schema, 3: build }`. A key that is no exit code stands for none and is left out.
fn classes(node: &Node) -> BTreeMap<i32, FailureClass> {
    let entries = node.get("class").map(Node::entries).unwrap_or_default();
    let class = |word: &str| match word {
        "schema" => FailureClass::Schema,
        "reality" => FailureClass::Reality,
        "build" => FailureClass::Build,
        _ => FailureClass::Test,
    };
    entries.iter().filter_map(|(code, word)| Some((code.text.parse().ok()?, class(word.text()?)))).collect()
}

impl Unit<'_> {
    /// The role of this name; reported if there is none.
    pub fn role_named(&self, builder: &mut Builder<'_>, word: &Word) -> UnitRole {
        if let Some(role) = self.roles.get(&word.text) {
            builder.shared.used_roles.insert(role.id.clone());
            return role.clone();
        }
        builder.report.error(
            codes::UNKNOWN_ROLE,
            word.span,
            format!("there is no role `{}`", word.text),
            suggestion(&word.text, self.roles.keys().map(String::as_str)),
        );
        UnitRole { id: RoleId::new(&word.text), agent: None, parallel_max: None }
    }

    pub fn check_named(&self, builder: &mut Builder<'_>, word: &Word) -> CheckId {
        if let Some(check) = self.checks.get(&word.text) {
            builder.shared.used_checks.insert(check.clone());
            return check.clone();
        }
        builder.report.error(
            codes::UNKNOWN_CHECK,
            word.span,
            format!("there is no check `{}`", word.text),
            suggestion(&word.text, self.checks.keys().map(String::as_str)),
        );
        CheckId::new(&word.text)
    }

    /// The checks that run after a step's attempts; noted if one of them is not there.
    pub fn checks_of(&self, builder: &mut Builder<'_>, node: &Node, id: &StepId) -> Vec<CheckId> {
        let words = node.words("checks");
        if words.iter().any(|word| !self.checks.contains_key(&word.text)) {
            builder.built.unknown.checks.insert(id.clone());
        }
        words.iter().map(|word| self.check_named(builder, word)).collect()
    }

    /// Which program plays the role in this step: the flag, the step, the role, the workflow, the
    /// configuration, in this order.
    pub fn agent_of(&self, builder: &mut Builder<'_>, node: &Node, role: &UnitRole) -> AgentId {
        let config = builder.options.config;
        let named = node.word("agent").or_else(|| role.agent.clone()).or_else(|| self.tree.word("agent"));
        if let Some(word) = named.as_ref().filter(|word| !config.knows_agent(&word.text)) {
            builder.report.error(
                codes::UNKNOWN_AGENT,
                word.span,
                no_such_agent(&word.text),
                config.instead_of_agent(&word.text),
            );
        }
        let name = builder
            .options
            .agent
            .clone()
            .or(named.map(|word| word.text))
            .or_else(|| config.agent.clone())
            .unwrap_or_else(|| DEFAULT_AGENT.to_owned());
        let id = AgentId::new(&name);
        builder.shared.agents.insert(id.clone());
        id
    }

    /// The pools that every step counts against which an agent does.
    pub fn pools_of(
        &self,
        builder: &mut Builder<'_>,
        node: &Node,
        worker: Option<(&UnitRole, &AgentId)>,
    ) -> Vec<PoolId> {
        let mut pools = vec![PoolId::new("run")];
        for word in node.words("pools") {
            let declared = self.tree.get("pools").and_then(|pools| pools.get(&word.text)).is_some();
            if declared {
                pools.push(PoolId::new(&word.text));
            } else {
                let known = self.tree.get("pools").map(Node::entries).unwrap_or_default();
                builder.report.error(
                    codes::UNKNOWN_POOL,
                    word.span,
                    format!("there is no pool `{}`", word.text),
                    suggestion(&word.text, known.iter().map(|(key, _)| key.text.as_str())),
                );
            }
        }
        if let Some((role, agent)) = worker {
            if let Some(depth) = role.parallel_max {
                pools.push(builder.pool(format!("role:{}", role.id), depth));
            }
            let configured = builder.options.config.agents.get(agent.as_str());
            if let Some(depth) = configured.and_then(|agent| agent.parallel_max) {
                pools.push(builder.pool(format!("agent:{agent}"), depth));
            }
        }
        pools
    }
}
