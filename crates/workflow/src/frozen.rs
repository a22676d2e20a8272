//! A workflow ready to run: the plan for the core, and beside it everything a host needs to carry
//! the plan out (prompts, contracts, commands, projections), keyed by the same ids.
//!
//! It is written once, with its digest, when a run starts, and never read from the definition
//! again (J-45). Every type here is part of a file format: change it by adding.

use std::collections::BTreeMap;

use gatewright_agents::{Adapter, Declared, Policy, acp_named, adapter_named, policy_of};
use gatewright_core::{
    event::FailureClass,
    ids::{AgentId, CheckId, PoolId, ProfileId, RoleId, StageId, StepId},
    plan::{Kind, Plan},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    contract::Contract,
    globs::{Bare, Globs},
    load::MadeOf,
    reply::{ReplyFormat, WordMap},
};

/// Version of the frozen workflow on disk.
pub const FROZEN_VERSION: u32 = 1;

/// The longest attempt where neither step nor agent names one.
pub const ATTEMPT_TIMEOUT_MS: u64 = 2 * 3600 * 1000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Frozen {
    pub version: u32,
    pub workflow: String,
    #[serde(default)]
    pub description: String,
    /// Template of the run directory, relative to the repository.
    pub dir: String,
    /// What runs publish is committed by people: the folder of the run directories gets no `.gitignore`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dir_committed: bool,
    /// Whoever sees the end of a run at a terminal is asked whether to keep its files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offers_clean: bool,
    /// Folders of the run directory that are there before anything is in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// How run ids are made; a template over `workflow`, `slug`, `seconds`, `date`.
    pub run_id: String,
    pub plan: Plan,
    pub roles: BTreeMap<RoleId, Role>,
    pub checks: BTreeMap<CheckId, Check>,
    /// What the steps of each profile say and read, by template id. A step that says nothing is not there.
    pub steps: BTreeMap<ProfileId, BTreeMap<StepId, StepText>>,
    pub projections: Vec<Projection>,
    pub words: WordMap,
    /// Values of `--set key=value`, over the definition's defaults.
    pub settings: BTreeMap<String, Value>,
    /// Settings of profiles that have others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub profile_settings: BTreeMap<ProfileId, BTreeMap<String, Value>>,
    /// What whoever starts a run at a terminal is asked, by setting.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, Asked>,
    /// Agents as configured when the run started.
    pub agents: BTreeMap<AgentId, Agent>,
    /// What holds for every agent and check that says nothing else.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Globs of files that no role may touch, ignored by git or not.
    #[serde(default)]
    pub protect: Vec<String>,
    /// Globs of files that are left out of every commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_committed: Vec<String>,
    /// Template that every role is told after its own text.
    #[serde(default)]
    pub prompt: String,
    /// Files of the repository that are looked for, by name.
    #[serde(default)]
    pub detect: BTreeMap<String, Vec<String>>,
    /// What becomes of changes outside a role's scope.
    #[serde(default)]
    pub on_trespass: OnTrespass,
    /// The run works in a worktree of its own, and so does everything that it does not put elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub isolated: bool,
    /// Template of the name under which people find the branch of such a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Template of the place of its worktree, relative to the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Globs of ignored files that a new worktree gets a copy of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seed: Vec<String>,
    /// What opens a pull request; a shell line or a command with arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_request: Vec<String>,
    /// Pools that count for all runs of this user on this machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine_pools: BTreeMap<PoolId, u32>,
    /// What people are told when a stage is through: templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub announce: BTreeMap<StageId, String>,
    /// How folders made under the same conventions, without this engine, are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<Import>,
    /// Where each text came from, for `why` and for `resume --adopt`: file name and its digest.
    pub sources: BTreeMap<String, String>,
    /// Tells whether it would be made the same today. Runs of before do not know.
    #[serde(default)]
    pub made_of: MadeOf,
}

impl Frozen {
    /// The settings that hold in a profile.
    pub fn settings_of(&self, profile: &ProfileId) -> &BTreeMap<String, Value> {
        self.profile_settings.get(profile).unwrap_or(&self.settings)
    }

    /// Which steps the engine commits for: agents whose work is in a worktree, unless the definition says
    /// otherwise. The members of a panel judge and leave nothing behind.
    pub fn settle_commits(&mut self) {
        for (profile, graph) in &mut self.plan.graphs {
            let texts = self.steps.get(profile);
            let panels: Vec<StepId> = graph
                .steps
                .iter()
                .filter(|(_, step)| matches!(step.kind, Kind::Review(_)))
                .map(|(id, _)| id.clone())
                .collect();
            for (id, step) in &mut graph.steps {
                let member = panels.iter().any(|panel| {
                    id.as_str().strip_prefix(panel.as_str()).is_some_and(|rest| rest.starts_with('/'))
                });
                let text = texts.and_then(|texts| texts.get(id));
                let apart = text.is_some_and(|text| text.isolation == Isolation::Worktree);
                let wish = text.and_then(|text| text.commit);
                let works = matches!(step.kind, Kind::Agent { .. }) && !member;
                step.commit = works && wish.unwrap_or(self.isolated || apart);
            }
        }
    }

    /// As it is stored, and blake3 over these bytes, in hex: whoever reads it hashes the file and parses it once.
    pub fn stored(&self) -> Result<(Vec<u8>, String), serde_json::Error> {
        let bytes = serde_json::to_vec(self)?;
        let digest = blake3::hash(&bytes).to_hex().to_string();
        Ok((bytes, digest))
    }

    /// The name under which it is stored.
    pub fn digest(&self) -> Result<String, serde_json::Error> {
        Ok(self.stored()?.1)
    }
}

/// Whether these bytes, stored by this or another version of the program, are the workflow of this digest.
/// Earlier versions named it by its canonical JSON (keys sorted at every level).
pub fn is_frozen_as(stored: &[u8], digest: &str) -> Result<bool, serde_json::Error> {
    if blake3::hash(stored).to_hex().as_str() == digest {
        return Ok(true);
    }
    Ok(digest_of(&serde_json::from_slice(stored)?) == digest)
}

fn digest_of(stored: &Value) -> String {
    let mut text = String::new();
    write_canonical(stored, &mut text);
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// serde_json keeps keys sorted only while no crate of the build switches `preserve_order` on.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(element, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// A setting that is a person's to choose when a run starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub question: String,
    /// What it may be; none: anything.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A kind of folder that a run can go on with although no run made it. Templates and expressions see
/// `folder` (its name), `data` (what is in the marker), `files`, `content` (of JSON and YAML files, by name),
/// `stages`, `steps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// A folder that has this file is of this kind.
    pub marker: String,
    pub contract: Contract,
    /// Other files, by glob, where they are there.
    #[serde(default)]
    pub files: BTreeMap<String, Contract>,
    #[serde(default)]
    pub when: Option<String>,
    pub request: String,
    #[serde(default)]
    pub profile: Option<String>,
    /// What whoever imports it is told.
    #[serde(default)]
    pub note: Option<String>,
    #[serde(default)]
    pub over: Option<String>,
    /// Stages and steps that are done: an expression, or a skeleton of a list. Null: nobody keeps a list.
    #[serde(default)]
    pub done: Value,
    /// Steps of items that are done: a skeleton, by item (`STEP/KEY`) a list of names.
    #[serde(default)]
    pub items: Value,
    /// Steps that are commands and whose files are evidence all the same: a person wrote them, or what they
    /// were made from is gone. Every other command is run.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// How many reviews were held already, by step: a skeleton over what is known.
    #[serde(default)]
    pub rounds: Value,
    /// How often stages were started again: a skeleton over what is known.
    #[serde(default)]
    pub restarts: Value,
    /// Steps that somebody left out on purpose: the same.
    #[serde(default)]
    pub skipped: Value,
    /// What files of such folders must be like instead of what their step would have to write.
    #[serde(default)]
    pub accept: BTreeMap<String, Contract>,
    /// How many repairs were made, by review: where there are fewer than reviews, the last report is what the run goes on
    /// with.
    #[serde(default)]
    pub fixes: Value,
    /// What people answered, by decision step: skeletons of a word, or of `answer`, `comment`, `route`, `at`.
    #[serde(default)]
    pub answers: BTreeMap<String, Value>,
    /// Expression: how many ad-hoc decisions have their numbers already.
    #[serde(default)]
    pub numbered: Option<String>,
    /// What templates of the run see as `run.imported`: a skeleton over what is known.
    #[serde(default)]
    pub keep: Value,
    /// Files that such folders do not have: skeletons over what is known, by a template of the name. One that cannot
    /// be filled is not supplied.
    #[serde(default)]
    pub supply: BTreeMap<String, Value>,
}

impl Import {
    /// What a file of such a folder must be like, if the import says so: its own conventions, not those of a run.
    pub fn contract_of(&self, name: &str) -> Option<&Contract> {
        let fits = |glob: &String| Globs::new(&[glob], Bare::InRoot).contains(name);
        let by_glob = self.files.iter().find(|(glob, _)| fits(glob));
        self.accept.get(name).or(by_glob.map(|(_, contract)| contract))
    }
}

/// What becomes of changes that an attempt made outside its role's scope. It fails either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTrespass {
    /// They stay where they are, and fail every attempt of the step until they are gone: a person's own
    /// edit in the same checkout is never thrown away.
    #[default]
    Keep,
    /// What was there before is put back; what was undone is kept as a patch beside the attempt.
    Restore,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Role {
    /// Template of who the role is; the step's own prompt follows it.
    #[serde(default)]
    pub prompt: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub model: Option<String>,
    /// Globs it may change; `None` = everything, `Some([])` = nothing.
    #[serde(default)]
    pub may_write: Option<Vec<String>>,
    /// Commands it may run (`git *`); `None` = any, `Some([])` = none.
    #[serde(default)]
    pub may_run: Option<Vec<String>>,
    /// Whether it may use the network; `None` = as its agent has it.
    #[serde(default)]
    pub network: Option<bool>,
    /// Fields of an agent's own definition format that we keep for its adapter (tools, effort, …).
    #[serde(default)]
    pub extra: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Template of a shell line.
    pub run: String,
    /// Relative to the repository or worktree.
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub timeout_ms: u64,
    #[serde(default)]
    pub class: CheckClass,
    /// What its failure means, by exit code; what is not listed is `class`.
    #[serde(default)]
    pub classes: BTreeMap<i32, FailureClass>,
    #[serde(default)]
    pub junit: Option<String>,
    /// Where the output names its tests, when no known runner wrote it.
    #[serde(default)]
    pub counts: Option<String>,
    /// How often a failed command is run again. Ok after that is ok, and shown as flaky.
    #[serde(default)]
    pub reruns: u32,
    /// Processes at the same time, if not the usual number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes_max: Option<u32>,
    #[serde(default)]
    pub tests_min: Option<u64>,
    #[serde(default)]
    pub skipped_max: Option<u64>,
    /// The check succeeds when the command fails: tests that must be red first.
    #[serde(default)]
    pub expect_failure: bool,
    /// An expression: only run while it holds.
    #[serde(default)]
    pub when: Option<String>,
}

/// What the failure of a check means for the retry prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckClass {
    Build,
    #[default]
    Test,
}

/// What one step says, reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepText {
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub prompt: String,
    #[serde(default)]
    pub reads: Vec<Read>,
    #[serde(default)]
    pub writes: Vec<Write>,
    #[serde(default)]
    pub reply: Option<ReplyFormat>,
    /// What the points of its reply have to speak of; `a|b` is either.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<String>,
    /// Review: what the engine itself finds, one finding a line, beside whatever the reviewer does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finds: String,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub idle_timeout_ms: Option<u64>,
    /// Once more so long, if it still speaks when its time is up.
    #[serde(default)]
    pub extension_ms: Option<u64>,
    #[serde(default)]
    pub model: Option<String>,
    /// Fan-out: where the list is inside its artifact, what identifies an item, what it waits for.
    #[serde(default)]
    pub list: Option<ListText>,
    #[serde(default)]
    pub isolation: Isolation,
    /// It has worktrees of its own, rather than the one of what is around it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_worktree: bool,
    /// Whether the engine commits what it changed; absent = where that goes without saying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<bool>,
    /// Finish: what becomes of the run's branch, if no decision says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Finish: a decision before it asked whether to discard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed: bool,
    /// Sub-run: template of its request.
    #[serde(default)]
    pub request: Option<String>,
    /// A reviewer of a panel: the route of its findings that name none.
    #[serde(default)]
    pub route: Option<String>,
    /// Words that mean something else in this step's replies.
    #[serde(default)]
    pub words: Option<WordMap>,
    /// Globs that this step may change, instead of those of its role.
    #[serde(default)]
    pub may_write: Option<Vec<String>>,
    /// Free data of the definition, visible in its templates as `step.data`.
    #[serde(default)]
    pub data: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Read {
    /// Template of the published name.
    pub name: String,
    #[serde(default)]
    pub optional: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// Declared name: a template over `round`, `item`, …; the file name in `GATEWRIGHT_OUT`.
    pub name: String,
    /// Name of the first round if it differs from later ones (`performance.md`, then
    /// `loop-iterations/performance-review-2.md`).
    #[serde(default)]
    pub first: Option<String>,
    pub contract: Contract,
    /// The contract of the first round if it differs from that of later ones.
    #[serde(default)]
    pub first_contract: Option<Contract>,
    #[serde(default)]
    pub optional: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<Inline>,
}

/// A file that may stand in the reply instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inline {
    /// Names on the way to its text, `artifacts.design_spec_inline`.
    pub field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_max: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListText {
    /// JSON pointer (`/tasks`) of the list; empty = the document itself is the list; `?` = nobody
    /// said: the document if it is a list, else the first of [`ListText::USUAL`] that is one.
    pub pointer: String,
    pub key: String,
    #[serde(default)]
    pub needs_of: Option<String>,
}

impl ListText {
    /// Where lists usually are.
    pub const USUAL: [&str; 3] = ["/tasks", "/work_streams", "/items"];

    /// The list inside the artifact's data.
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Vec<Value>> {
        if self.pointer != "?" {
            return document.pointer(&self.pointer).and_then(Value::as_array);
        }
        document.as_array().or_else(|| Self::USUAL.iter().find_map(|at| document.pointer(at)?.as_array()))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    #[default]
    Shared,
    Worktree,
}

/// A file computed from the run's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Projection {
    /// Template of the path, relative to the run directory; absolute paths are refused.
    pub path: String,
    pub format: ProjectionFormat,
    /// JSON skeleton with `$expr`, `$if`, `$for`, `$key`, or a template text for Markdown.
    pub content: Value,
    /// One file per element of this expression's list, bound to `item`.
    #[serde(default)]
    pub each: Option<String>,
    /// Only written (and removed when it turns false) while this holds.
    #[serde(default)]
    pub when: Option<String>,
    #[serde(default)]
    pub schema: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectionFormat {
    Json,
    JsonLines,
    Yaml,
    Markdown,
    Text,
}

/// Any program by configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Arguments with the placeholders `{role}`, `{model}`, `{prompt}`, `{prompt_file}`, `{step}`.
    /// Empty: the built-in agent of this name.
    pub command: Vec<String>,
    #[serde(default)]
    pub prompt: PromptVia,
    /// Names of variables passed on, besides a small default set.
    #[serde(default)]
    pub env: Vec<String>,
    /// Variables set to fixed values.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    #[serde(default)]
    pub parallel_max: Option<u32>,
    /// Processes of one attempt at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes_max: Option<u32>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub idle_timeout_ms: Option<u64>,
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The adapter that drives it, if it is not the one of its own name.
    #[serde(default)]
    pub adapter: Option<String>,
    /// `acp`: over the Agent Client Protocol instead of the agent's headless mode.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Arguments after those of the adapter or the command.
    #[serde(default)]
    pub args: Vec<String>,
    /// What a tier (`strong`, `fast`) or a name means for this agent; `default` for roles that name none.
    #[serde(default)]
    pub models: BTreeMap<String, String>,
    /// Models to go on with when the first is not to be had.
    #[serde(default)]
    pub fallback: Vec<String>,
    /// How the output of a `command` is read and its conversations go on.
    #[serde(default)]
    pub declared: Declared,
    /// Turns within one attempt that may mend a reply or a file.
    #[serde(default)]
    pub repairs_max: Option<u32>,
    /// Fix rounds that go on with the same conversation before a fresh one begins.
    #[serde(default)]
    pub resume_rounds: Option<u32>,
}

impl Agent {
    /// The adapter that drives this agent; none for a declared command.
    pub fn adapter(&self, name: &str) -> Option<&'static dyn Adapter> {
        match &self.adapter {
            adapter if self.protocol.is_some() => Some(acp_named(adapter.as_deref().unwrap_or(name))),
            Some(adapter) => adapter_named(adapter),
            None if self.command.is_empty() => adapter_named(name),
            None => None,
        }
    }

    /// The program that has to be there.
    pub fn program(&self, name: &str) -> Option<String> {
        self.command
            .first()
            .cloned()
            .or_else(|| self.adapter(name).map(|adapter| adapter.program().to_owned()))
            .filter(|program| !program.is_empty())
    }
}

impl Role {
    /// What an agent is told that this role may do, where nothing else is said.
    pub fn policy(&self) -> Policy {
        self.policy_within(self.may_write.as_deref())
    }

    /// The same for a step that has globs of its own.
    fn policy_within(&self, may_write: Option<&[String]>) -> Policy {
        policy_of(may_write, self.may_run.as_deref(), self.network, &self.extra)
    }
}

/// Globs that a step may change: its own, else those of its role. `None`: everything. A role whose definition
/// gives it no tool to edit with changes nothing.
pub fn may_write(text: Option<&StepText>, role: Option<&Role>) -> Option<Vec<String>> {
    let own = text.and_then(|text| text.may_write.clone());
    own.or_else(|| role.and_then(|role| role.may_write.clone()))
        .or_else(|| role.is_some_and(|role| role.policy().read_only).then(Vec::new))
}

/// What an agent is told that it may do in a step.
pub fn policy(text: &StepText, role: Option<&Role>) -> Policy {
    let nobody = Role::default();
    role.unwrap_or(&nobody).policy_within(may_write(Some(text), role).as_deref())
}

/// Where an agent's process may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// The usual places and these.
    On {
        write: Vec<String>,
        /// TCP connections are possible.
        #[serde(default = "network_is_on")]
        network: bool,
    },
    /// Everywhere; the run is shown as unprotected.
    Off,
}

impl Default for Sandbox {
    fn default() -> Self {
        Sandbox::On { write: Vec::new(), network: true }
    }
}

fn network_is_on() -> bool {
    true
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptVia {
    #[default]
    Stdin,
    Argument,
    File,
}
