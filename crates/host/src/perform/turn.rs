//! One turn of an agent: its command line, its environment, its conversation. The same for the first
//! turn of an attempt and for those that mend it.

use std::{
    collections::BTreeMap,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use gatewright_agents::{Adapter, Conversation, Desk, Launch, Order, Policy, ReplySchema, Stop};
use gatewright_attempts::{
    LaunchSpec, Network, StopSignal, allowed_environment, private_tmp_path, sandbox_support,
};
use gatewright_core::{
    event::{Cause, FailureClass},
    fact::InputProblem,
    ids::StepId,
    plan::Kind,
    state::{State, StepState},
};
use gatewright_workflow::frozen::{Agent, PromptVia, Role, Sandbox};

use crate::{perform::sandbox, project::file_name, run_context::RunContext, voice::Voice};

/// Prompts longer than this are not passed as an argument.
const ARGUMENT_BYTES_MAX: usize = 100_000;
/// Fix rounds that go on with the same conversation, if the configuration does not say.
const RESUME_ROUNDS: u32 = 2;

/// Which model the attempt asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// The one that step or role want; none: as the agent has it.
    pub wanted: Option<String>,
    /// The one of this attempt: that, or one to fall back to.
    pub asked: Option<String>,
    /// Those that are left to fall back to.
    pub rest: Vec<String>,
}

impl Models {
    /// `fallen_back`: what an earlier attempt left to ask for.
    pub fn new(wanted: Option<String>, list: Vec<String>, fallen_back: Option<&str>) -> Models {
        match fallen_back.and_then(|model| list.iter().position(|other| other == model)) {
            Some(place) => {
                Models { wanted, asked: Some(list[place].clone()), rest: list[place + 1..].to_vec() }
            }
            None => Models { asked: wanted.clone(), wanted, rest: list },
        }
    }
}

/// Everything about a turn but its prompt and its conversation.
#[derive(Clone)]
pub struct Turn {
    pub agent_name: String,
    pub agent: Agent,
    pub voice: Voice,
    pub policy: Policy,
    /// Its role is to be kept off the network, by the sandbox where nothing else can.
    pub off_network: bool,
    pub role: String,
    pub step: StepId,
    pub models: Models,
    /// What its last message has to be like, if that can be said as a schema.
    pub reply_schema: Option<ReplySchema>,
    /// The word of its step or role for the model it wants.
    pub tier: Option<String>,
    pub workdir: PathBuf,
    pub run_dir: PathBuf,
    pub out: PathBuf,
    /// A directory of this step and agent that outlives attempts.
    pub home: PathBuf,
    pub micro_usd_max: Option<u64>,
    /// What the engine tells every agent about itself.
    pub markers: BTreeMap<String, String>,
    pub timeout_ms: u64,
    pub idle_timeout_ms: u64,
    /// Once more so long, if it still speaks when its time is up.
    pub extension_ms: Option<u64>,
}

fn unusable(message: String) -> InputProblem {
    InputProblem::Unusable { message }
}

impl Turn {
    /// The order for the supervisor.
    pub fn spec(
        &self,
        context: &RunContext,
        prompt: &str,
        prompt_file: &Path,
        conversation: &Conversation,
    ) -> Result<LaunchSpec, InputProblem> {
        let launch = match &self.voice {
            Voice::Adapter(adapter) => {
                let text = |path: &Path| path.to_string_lossy().into_owned();
                let home = context.environment.iter().find(|(name, _)| name == "HOME");
                let desk = Desk {
                    program: text(&context.supervisor.program),
                    args: vec!["mcp".to_owned(), "--out".to_owned(), text(&self.out)],
                };
                let contained = self.agent.sandbox != Sandbox::Off && sandbox_support().files();
                let policy = Policy { contained, ..self.policy.clone() };
                let order = Order {
                    role: &self.role,
                    step: self.step.as_str(),
                    command: &self.agent.command,
                    args: &self.agent.args,
                    prompt,
                    prompt_file: &text(prompt_file),
                    workdir: &text(&self.workdir),
                    out: &text(&self.out),
                    run_dir: &text(&self.run_dir),
                    home: &text(&self.home),
                    user_home: home.map_or("", |(_, value)| value),
                    model: self.models.asked.as_deref(),
                    fallbacks: &self.models.rest,
                    conversation,
                    policy: &policy,
                    micro_usd_max: self.micro_usd_max,
                    reply_schema: self.reply_schema.as_ref(),
                    extras: self.has_extras(context, *adapter),
                    desk: Some(&desk),
                };
                adapter.launch(&order)
            }
            Voice::Declared(_) => self.declared(prompt, prompt_file, conversation)?,
        };
        self.make_files(&launch)?;
        let pass: Vec<String> =
            launch.pass.iter().map(|name| (*name).to_owned()).chain(self.agent.env.iter().cloned()).collect();
        let mut env = allowed_environment(&pass, context.environment.iter().cloned());
        env.extend(launch.env);
        env.extend(self.agent.set.clone());
        env.extend(self.markers.clone());
        let attempt_dir = self.out.parent().unwrap_or(&self.out);
        let private_tmp = private_tmp_path(attempt_dir);
        if !self.agent.set.contains_key("TMPDIR") {
            env.insert("TMPDIR".to_owned(), private_tmp.to_string_lossy().into_owned());
        }
        let known_as =
            self.agent.adapter(&self.agent_name).map_or(self.agent_name.as_str(), |adapter| adapter.name());
        let place = sandbox::Place {
            evidence: None,
            workdir: &self.workdir,
            attempt: Some(attempt_dir),
            private_tmp: &private_tmp,
            agents: vec![(known_as, &env)],
        };
        let mut limits = sandbox::spec(context, &self.agent.sandbox, &place);
        // An agent with an adapter has a model to talk to; nobody knows that of a plain command.
        if let (Some(limits), Voice::Declared(_), true) = (&mut limits, &self.voice, self.off_network) {
            limits.network = Network::Off;
        }
        if let (Some(limits), Voice::Adapter(_)) = (&mut limits, &self.voice) {
            if launch.hold_read_only {
                let workdir = self.workdir.canonicalize().unwrap_or_else(|_| self.workdir.clone());
                limits.write.retain(|place| !workdir.starts_with(place));
                limits.write.extend(sandbox::settled(context, &self.run_dir));
            }
            limits.write.extend(sandbox::settled(context, &self.home));
        }
        let mut spec = LaunchSpec::new(launch.argv, self.workdir.clone(), env);
        spec.sandbox = limits;
        spec.private_tmp = Some(private_tmp);
        spec.stdin = launch.prompt_on_stdin.then(|| prompt_file.to_owned());
        spec.timeout_ms = Some(self.timeout_ms);
        spec.idle_timeout_ms = Some(self.idle_timeout_ms);
        spec.extension_ms = self.extension_ms;
        spec.stop = match &self.voice {
            Voice::Adapter(adapter) if adapter.stop() == Stop::Interrupt => StopSignal::Interrupt,
            Voice::Adapter(_) | Voice::Declared(_) => StopSignal::Terminate,
        };
        spec.processes_max = self.agent.processes_max.or(spec.processes_max);
        spec.label = format!("gw {}", self.step);
        Ok(spec)
    }

    /// What the agent has got for itself is there, wherever the user has its folders.
    fn has_extras(&self, context: &RunContext, adapter: &dyn Adapter) -> bool {
        let inherited =
            |name: &str| context.environment.iter().find(|(other, _)| other == name).map(|(_, value)| value);
        let value = |name: &str| self.agent.set.get(name).or_else(|| inherited(name)).cloned();
        let home = inherited("HOME").map(PathBuf::from);
        let file = adapter.extras().zip(home);
        file.is_some_and(|(file, home)| adapter.places().find(file, &home, &self.workdir, &value).exists())
    }

    fn make_files(&self, launch: &Launch) -> Result<(), InputProblem> {
        if matches!(self.voice, Voice::Declared(_)) {
            return Ok(());
        }
        let failed = |path: &Path, error: std::io::Error| unusable(format!("{}: {error}", path.display()));
        std::fs::create_dir_all(&self.home).map_err(|error| failed(&self.home, error))?;
        for file in &launch.files {
            let path = Path::new(&file.path);
            std::fs::write(path, &file.text).map_err(|error| failed(path, error))?;
            if file.text.starts_with("#!") {
                let mode = std::fs::Permissions::from_mode(0o700);
                std::fs::set_permissions(path, mode).map_err(|error| failed(path, error))?;
            }
        }
        Ok(())
    }

    /// The command of the configuration, with its placeholders filled in.
    fn declared(
        &self,
        prompt: &str,
        prompt_file: &Path,
        conversation: &Conversation,
    ) -> Result<Launch, InputProblem> {
        let agent = &self.agent;
        let file = prompt_file.to_string_lossy();
        let flags = agent.declared.session.clone().unwrap_or_default();
        let (flags, session) = match conversation {
            Conversation::New { session } => (flags.start, session),
            Conversation::Resumed { session } => (flags.resume, session),
        };
        let fill = |part: &String| {
            let part = part
                .replace("{role}", &self.role)
                .replace("{model}", self.models.asked.as_deref().unwrap_or(""))
                .replace("{step}", self.step.as_str())
                .replace("{session}", session)
                .replace("{prompt_file}", &file);
            part.replace("{prompt}", prompt)
        };
        let all = || agent.command.iter().chain(&flags).chain(&agent.args);
        let mut argv: Vec<String> = all().map(fill).collect();
        match agent.prompt {
            PromptVia::Stdin => {}
            PromptVia::Argument => {
                if prompt.len() > ARGUMENT_BYTES_MAX {
                    return Err(unusable(format!(
                        "the prompt of `{}` has {} bytes, too many for an argument: set `prompt: stdin` or `prompt: file`",
                        self.step,
                        prompt.len()
                    )));
                }
                if !all().any(|part| part.contains("{prompt}")) {
                    argv.push(prompt.to_owned());
                }
            }
            PromptVia::File => {
                if !all().any(|part| part.contains("{prompt_file}")) {
                    argv.push(file.into_owned());
                }
            }
        }
        Ok(Launch { argv, prompt_on_stdin: agent.prompt == PromptVia::Stdin, ..Launch::default() })
    }
}

/// Which model: the step's or the role's word, which may be a tier, as this agent understands it.
pub fn model(name: &str, agent: &Agent, wanted: Option<&str>) -> Option<String> {
    let wanted = wanted.unwrap_or("default");
    let own = agent.models.get(wanted).cloned();
    own.or_else(|| match wanted {
        "default" => None,
        "strong" | "fast" => {
            agent.adapter(name).and_then(|adapter| adapter.model_of_tier(wanted)).map(str::to_owned)
        }
        other => Some(other.to_owned()),
    })
}

/// The model of a fix round whose conversation begins afresh, because those before it did not get there, if one is
/// named for that (`models.fresh`).
pub fn model_of_fresh_fix(name: &str, agent: &Agent, own: Option<&StepState>) -> Option<String> {
    let own = own.filter(|own| is_sent_back(own.cause.as_deref()) && !resumes_in_round(agent, own.round))?;
    let named = agent.models.get("fresh").filter(|_| own.round > 1)?;
    model(name, agent, Some(named))
}

fn is_sent_back(cause: Option<&Cause>) -> bool {
    match cause {
        Some(
            Cause::Fix { .. } | Cause::Changes { .. } | Cause::ReferredBack { .. } | Cause::BadList { .. },
        ) => true,
        Some(
            Cause::Upstream { .. }
            | Cause::Restart { .. }
            | Cause::ListAdopted { .. }
            | Cause::Resumed
            | Cause::Stale { .. },
        )
        | None => false,
    }
}

fn resumes_in_round(agent: &Agent, round: u32) -> bool {
    round.saturating_sub(1) <= agent.resume_rounds.unwrap_or(RESUME_ROUNDS)
}

/// Models that a role or its agent names to fall back to, tiers as this agent understands them.
pub fn fallbacks(name: &str, agent: &Agent, role: Option<&Role>) -> Vec<String> {
    let of_role = role.and_then(|role| role.extra.get("fallback")).and_then(|list| list.as_array());
    let named: Vec<&str> = match of_role {
        Some(list) => list.iter().filter_map(|model| model.as_str()).collect(),
        None => agent.fallback.iter().map(String::as_str).collect(),
    };
    named.into_iter().filter_map(|wanted| model(name, agent, Some(wanted))).collect()
}

/// The directory of a step's agent for its own data.
pub fn home(context: &RunContext, agent: &str, step: &StepId) -> PathBuf {
    context.paths.dir.join("agents").join(file_name(agent)).join(file_name(step.as_str()))
}

/// A conversation that the step has already, if this attempt should go on with it; else a new one.
pub fn conversation(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    turn: &Turn,
) -> Conversation {
    let session = session_id(context, step, attempt);
    let Some(own) = state.steps.get(step).filter(|_| turn.voice.resumes()) else {
        return Conversation::New { session };
    };
    match own.conversation.as_deref() {
        Some((known, visit))
            if known.agent == turn.agent_name
                && !known.session.is_empty()
                && *visit == own.visit
                && goes_on(context, state, step, own, turn) =>
        {
            Conversation::Resumed { session: known.session.clone() }
        }
        Some(_) | None => Conversation::New { session },
    }
}

fn goes_on(context: &RunContext, state: &State, step: &StepId, own: &StepState, turn: &Turn) -> bool {
    // What was tried in this round already tells most.
    if let Some(failure) = &own.last_failure {
        return match failure.class {
            FailureClass::Crash
            | FailureClass::Timeout
            | FailureClass::Idle
            | FailureClass::Interrupted
            | FailureClass::Build
            | FailureClass::Test => true,
            // The same conversation had its chance to mend these.
            FailureClass::Malformed | FailureClass::Schema | FailureClass::Reality => false,
        };
    }
    // The provider's limit was in the way, or a person's answer.
    if own.quota_waits > 0 || !own.answers.is_empty() {
        return true;
    }
    let plan = &context.frozen.plan;
    let reviews =
        matches!(state.definition(plan, step).map(|definition| &definition.kind), Some(Kind::Review(_)))
            || state.panel_of(plan, step).is_some();
    // A reviewer looks again with fresh eyes.
    !reviews && is_sent_back(own.cause.as_deref()) && resumes_in_round(&turn.agent, own.round)
}

/// The id of a new conversation: the same for the same attempt, however often it is prepared, and
/// nobody else's. In the form of a UUID, which is what the agents take.
pub fn session_id(context: &RunContext, step: &StepId, attempt: u32) -> String {
    let name = format!("{}\n{}\n{step}\n{attempt}", context.paths.dir.display(), context.meta.created_at_ms);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
