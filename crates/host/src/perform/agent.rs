//! Agents: the prompt is made, the inputs are resolved, the supervisor is started or found again,
//! and what the attempt left is examined when it has ended.

use std::{collections::BTreeMap, path::Path, sync::mpsc::Sender, time::Duration};

use gatewright_attempts::{
    AttemptDir, LaunchSpec, allowed_environment, private_tmp_path, record_is_genuine, request_stop,
    start_or_attach, wait_for_exit,
};
use gatewright_core::{
    effect::Effect,
    event::Cause,
    fact::{AttemptReport, InputProblem, ProcessEnd},
    ids::{ArtifactName, DecisionId, StepId},
    input::Input,
    plan::Kind,
    state::{DecisionState, DecisionStatus, State},
};
use gatewright_workflow::frozen::{Agent, PromptVia, StepText};
use serde_json::{Value, json};

use crate::{
    collect::{Expectation, Output, collect},
    document::relative_dir,
    inputs,
    mask::Masks,
    perform::{Arrival, check, facts, in_thread, sandbox},
    prompt::{self, Place, PromptParts},
    run_context::RunContext,
    scope::{self, Watch},
};

/// Used when neither step nor agent names a timeout; nothing runs for ever.
const TIMEOUT_MS: u64 = 2 * 3600 * 1000;
/// A silent agent is given this long.
const IDLE_TIMEOUT_MS: u64 = 20 * 60 * 1000;
/// Prompts longer than this are not passed as an argument.
const ARGUMENT_BYTES_MAX: usize = 100_000;

/// Starts, attaches to, or collects an attempt.
pub fn run(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let definition = state.definition(&context.frozen.plan, step);
    match definition.map(|definition| &definition.kind) {
        Some(Kind::Check { check }) => {
            let timeout_ms = context.text(state, step).timeout_ms;
            check::step(context, step, attempt, check, timeout_ms, effect, results);
        }
        Some(Kind::Merge { .. }) => {
            let message =
                "merging is not available in this version: merge by hand, then `gatewright skip` this step"
                    .to_owned();
            not_started(step, attempt, InputProblem::Unusable { message }, effect, results);
        }
        Some(
            Kind::Agent { .. } | Kind::Review(_) | Kind::Decision(_) | Kind::FanOut(_) | Kind::SubRun { .. },
        )
        | None => match prepare(context, state, step, attempt) {
            Ok(job) => launch(context, step, attempt, job, effect, results),
            Err(problem) => not_started(step, attempt, problem, effect, results),
        },
    }
}

/// Ends an attempt that is no longer wanted, and reports its end.
pub fn stop(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    if let Some(Kind::Check { check }) =
        state.definition(&context.frozen.plan, step).map(|definition| &definition.kind)
    {
        check::cancel(context, step, attempt, check);
    }
    let (path, step) = (context.paths.attempt(step.as_str(), attempt), step.clone());
    in_thread(effect, results, move || {
        if let Ok(dir) = AttemptDir::open(&path) {
            // An attempt that cannot be asked has ended or never began; either way it is over.
            let _ = request_stop(&dir);
            let _ = wait_for_exit(&dir, &|| false, Duration::from_millis(500));
        }
        Input::AttemptEnded { step, attempt, report: AttemptReport::new(ProcessEnd::Stopped) }
    });
}

fn not_started(
    step: &StepId,
    attempt: u32,
    problem: InputProblem,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let report = AttemptReport::new(ProcessEnd::NotStarted { problem });
    let input = Input::AttemptEnded { step: step.clone(), attempt, report };
    let _ = results.send(Arrival { effect: Some(effect.clone()), input });
}

struct Job {
    dir: AttemptDir,
    spec: LaunchSpec,
    expectation: Expectation,
    watch: Watch,
}

fn launch(
    context: &RunContext,
    step: &StepId,
    attempt: u32,
    job: Job,
    effect: &Effect,
    results: &Sender<Arrival>,
) {
    let (context, step) = (context.clone(), step.clone());
    in_thread(effect, results, move || {
        let report = Masks::of_launch(&job.spec.env).mask_record(run_attempt(&context, &job));
        Input::AttemptEnded { step, attempt, report }
    });
}

fn run_attempt(context: &RunContext, job: &Job) -> AttemptReport {
    let failed = |error: &dyn std::fmt::Display| {
        AttemptReport::new(ProcessEnd::StartFailed { message: error.to_string() })
    };
    if let Err(error) = crate::fault::point("spawn") {
        return failed(&error);
    }
    // The tree is kept as it is before the process starts, and compared when it is gone.
    let entered = match scope::enter(context, &job.dir, &job.spec.cwd, &job.watch) {
        Ok(Some(entered)) => entered,
        Ok(None) => return AttemptReport::new(ProcessEnd::Stopped),
        Err(message) => return failed(&message),
    };
    if let Err(error) = start_or_attach(&job.dir, &job.spec, &context.supervisor) {
        entered.give_up();
        return failed(&error);
    }
    match wait_for_exit(&job.dir, &|| false, Duration::from_secs(1)) {
        Ok(Some(record)) => {
            let genuine = record_is_genuine(&job.dir).unwrap_or(false);
            let evidence = entered.leave(context, &job.dir, &job.watch);
            let mut report = collect(context, &job.dir, &record, &job.expectation, &evidence);
            if !genuine {
                let message = "the record of its end was not written by its supervisor";
                report.trespasses.push(message.to_owned());
            }
            report
        }
        Ok(None) => AttemptReport::new(ProcessEnd::Interrupted),
        Err(error) => failed(&error),
    }
}

fn watch(context: &RunContext, state: &State, step: &StepId, attempt: u32, outputs: &[Output]) -> Watch {
    let definition = state.definition(&context.frozen.plan, step);
    let role = definition.and_then(|definition| definition.role()).cloned();
    let declared = role.as_ref().and_then(|role| context.frozen.roles.get(role));
    Watch {
        step: step.clone(),
        attempt,
        role: role.map(|role| role.to_string()).unwrap_or_default(),
        may_write: declared.and_then(|role| role.may_write.clone()),
        protect: context.frozen.protect.clone(),
        on_trespass: context.frozen.on_trespass,
        outputs: outputs.iter().map(|output| output.name.clone()).collect(),
    }
}

/// Everything up to the launch. The same call after a crash prepares the same attempt.
fn prepare(context: &RunContext, state: &State, step: &StepId, attempt: u32) -> Result<Job, InputProblem> {
    let unusable = |message: String| InputProblem::Unusable { message };
    let text = context.text(state, step);
    let mut document = context.step_document(state, step);
    let path = context.paths.attempt(step.as_str(), attempt);
    // What was found at the first launch counts: an attempt that lives is attached to as it is.
    let launched = AttemptDir::open(&path).ok().and_then(|dir| dir.launch_spec().ok().flatten()).is_some();
    if !launched && let Some((decision, changed)) = stale_decision(context, state, step) {
        return Err(InputProblem::Stale { decision, changed });
    }
    let outputs = rendered_outputs(context, state, step, &text, &document)?;
    let resolved = match inputs::resolve(context, state, step, &text.reads, &document) {
        Ok(resolved) => resolved,
        Err(_) if launched => inputs::Resolved::default(),
        Err(problem) => return Err(problem),
    };
    let dir = AttemptDir::create(&path).map_err(|error| unusable(format!("{error}")))?;
    let expectation = expectation(context, state, step, &text, &outputs, resolved.hashes);
    let out = dir.out_dir();
    if let Value::Object(object) = &mut document {
        let paths: Vec<&str> = resolved.places.iter().map(|place| place.path.as_str()).collect();
        object.insert("inputs".to_owned(), json!(paths));
    }
    let places: Vec<Place> = outputs
        .iter()
        .map(|output| Place {
            name: output.name.clone(),
            path: out.join(&output.name).to_string_lossy().into_owned(),
        })
        .collect();
    let parts = PromptParts {
        frozen: &context.frozen,
        state,
        step,
        text: &text,
        context: &document,
        run_dir: &relative_dir(&context.meta),
        out_dir: &out.to_string_lossy(),
        inputs: &resolved.places,
        outputs: &places,
    };
    let prompt =
        prompt::render(&context.templates, &parts).map_err(|problem| unusable(problem.to_string()))?;
    let prompt_file = dir.path.join("prompt.md");
    if !launched {
        let write = |path: &Path, text: String| {
            std::fs::write(path, text).map_err(|error| unusable(format!("{}: {error}", path.display())))
        };
        write(&prompt_file, prompt.clone())?;
        write(&dir.path.join("outputs.json"), promised(context, state, step, &text, &expectation))?;
        for folder in outputs.iter().filter_map(|output| out.join(&output.name).parent().map(Path::to_owned))
        {
            std::fs::create_dir_all(&folder)
                .map_err(|error| unusable(format!("{}: {error}", folder.display())))?;
        }
    }
    let spec = spec(context, state, step, attempt, &text, &prompt, &prompt_file, &out)?;
    let watch = watch(context, state, step, attempt, &outputs);
    Ok(Job { dir, spec, expectation, watch })
}

/// A decision right before this step that was bound to the working tree, which has changed since.
fn stale_decision(
    context: &RunContext,
    state: &State,
    step: &StepId,
) -> Option<(DecisionId, Vec<ArtifactName>)> {
    let own = state.steps.get(step)?;
    let definition = state.definition(&context.frozen.plan, step)?;
    let tree = ArtifactName::new("tree");
    definition.needs.iter().find_map(|edge| {
        let asked = state.sibling(&context.frozen.plan, own, &edge.from);
        let bound = |other: &&DecisionState| {
            other.decision.step == asked
                && other.status == DecisionStatus::Answered
                && other.decision.bound.contains_key(&tree)
        };
        let decision = state.decisions.values().find(bound)?;
        let now = facts::shown(context, std::slice::from_ref(&tree));
        (decision.decision.bound.get(&tree) != now.get(&tree))
            .then(|| (decision.decision.id.clone(), vec![tree.clone()]))
    })
}

fn rendered_outputs(
    context: &RunContext,
    state: &State,
    step: &StepId,
    text: &StepText,
    document: &Value,
) -> Result<Vec<Output>, InputProblem> {
    let round = state.steps.get(step).map_or(1, |own| own.round);
    text.writes
        .iter()
        .map(|write| {
            let source = write.first.as_ref().filter(|_| round == 1).unwrap_or(&write.name);
            let name = context
                .render("writes", source, document)
                .map_err(|problem| InputProblem::Unusable { message: problem.to_string() })?;
            Ok(Output::new(write, name))
        })
        .collect()
}

/// `outputs.json` beside the prompt: what the attempt promises to write, with contracts, for agents
/// that are programs (the rehearsal).
fn promised(
    context: &RunContext,
    state: &State,
    step: &StepId,
    text: &StepText,
    expected: &Expectation,
) -> String {
    let plan = &context.frozen.plan;
    let list_of = |declared: &str| {
        let over = |(id, _): &(&StepId, &gatewright_core::plan::Step)| {
            context
                .frozen
                .steps
                .get(&state.profile)
                .and_then(|texts| texts.get(*id))
                .and_then(|text| text.list.clone())
        };
        let mut fans = state
            .graph(plan)
            .steps
            .iter()
            .filter(|(_, step)| matches!(&step.kind, Kind::FanOut(fan) if fan.over.as_str() == declared));
        fans.find_map(|fan| over(&fan))
    };
    let outputs: Vec<Value> = expected
        .outputs
        .iter()
        .map(|output| {
            json!({"name": output.name, "declared": output.declared, "optional": output.optional, "contract": output.contract, "list": list_of(&output.declared)})
        })
        .collect();
    let holder = state.panel_of(plan, step).unwrap_or_else(|| step.clone());
    let block_at = match state.definition(plan, &holder).map(|definition| &definition.kind) {
        Some(Kind::Review(review)) => Some(review.block_at),
        _ => None,
    };
    json!({"version": 1, "request": state.request, "reviewer": expected.reviewer, "reply": text.reply, "block_at": block_at, "outputs": outputs}).to_string()
}

fn expectation(
    context: &RunContext,
    state: &State,
    step: &StepId,
    text: &StepText,
    outputs: &[Output],
    inputs: Vec<(gatewright_core::ids::ArtifactName, gatewright_core::ids::ContentHash)>,
) -> Expectation {
    let plan = &context.frozen.plan;
    let kind = state.definition(plan, step).map(|definition| &definition.kind);
    Expectation {
        outputs: outputs.to_vec(),
        format: text.reply,
        words: text.words.clone().unwrap_or_else(|| context.frozen.words.clone()),
        reviewer: matches!(kind, Some(Kind::Review(_))) || state.panel_of(plan, step).is_some(),
        route: text.route.clone(),
        inputs,
    }
}

#[expect(clippy::too_many_arguments, reason = "one call; a struct would only rename the parts")]
fn spec(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    text: &StepText,
    prompt: &str,
    prompt_file: &Path,
    out: &Path,
) -> Result<LaunchSpec, InputProblem> {
    let definition = state.definition(&context.frozen.plan, step);
    let role =
        definition.and_then(|definition| definition.role()).map(ToString::to_string).unwrap_or_default();
    let agent_id = definition.and_then(|definition| definition.agent()).cloned();
    let unusable = |message: String| InputProblem::Unusable { message };
    let agent = agent_id.as_ref().and_then(|id| context.frozen.agents.get(id));
    let agent = agent.ok_or_else(|| unusable(format!("no agent is configured for role `{role}`")))?;
    if agent.command.is_empty() {
        let name = agent_id.map(|id| id.to_string()).unwrap_or_default();
        return Err(unusable(format!(
            "agent `{name}` has no command: set `agents.{name}.command` in .gatewright/config.yaml"
        )));
    }
    let model = text
        .model
        .clone()
        .or_else(|| context.frozen.roles.get(role.as_str()).and_then(|role| role.model.clone()));
    let argv = arguments(agent, &role, model.as_deref().unwrap_or(""), prompt, prompt_file, step)?;
    let mut env = allowed_environment(&agent.env, context.environment.iter().cloned());
    env.extend(agent.set.clone());
    env.extend(markers(context, state, step, attempt, &role, out));
    let attempt_dir = out.parent().unwrap_or(out);
    let private_tmp = private_tmp_path(attempt_dir);
    if !agent.set.contains_key("TMPDIR") {
        env.insert("TMPDIR".to_owned(), private_tmp.to_string_lossy().into_owned());
    }
    let workdir = context.workdir();
    let name = agent_id.as_ref().map_or("", |id| id.as_str());
    let place = sandbox::Place {
        workdir: &workdir,
        attempt: Some(attempt_dir),
        private_tmp: &private_tmp,
        agents: vec![name],
    };
    let limits = sandbox::spec(context, &agent.sandbox, &place);
    let mut spec = LaunchSpec::new(argv, workdir, env);
    spec.sandbox = limits;
    spec.private_tmp = Some(private_tmp);
    spec.stdin = (agent.prompt == PromptVia::Stdin).then(|| prompt_file.to_owned());
    spec.timeout_ms = Some(text.timeout_ms.or(agent.timeout_ms).unwrap_or(TIMEOUT_MS));
    spec.idle_timeout_ms = Some(text.idle_timeout_ms.or(agent.idle_timeout_ms).unwrap_or(IDLE_TIMEOUT_MS));
    spec.label = format!("gw {step}");
    Ok(spec)
}

fn arguments(
    agent: &Agent,
    role: &str,
    model: &str,
    prompt: &str,
    prompt_file: &Path,
    step: &StepId,
) -> Result<Vec<String>, InputProblem> {
    let file = prompt_file.to_string_lossy();
    let mut argv: Vec<String> = agent
        .command
        .iter()
        .map(|part| {
            let part = part
                .replace("{role}", role)
                .replace("{model}", model)
                .replace("{step}", step.as_str())
                .replace("{prompt_file}", &file);
            part.replace("{prompt}", prompt)
        })
        .collect();
    match agent.prompt {
        PromptVia::Stdin => {}
        PromptVia::Argument => {
            if prompt.len() > ARGUMENT_BYTES_MAX {
                let message = format!(
                    "the prompt of `{step}` has {} bytes, too many for an argument: set `prompt: stdin` or `prompt: file`",
                    prompt.len()
                );
                return Err(InputProblem::Unusable { message });
            }
            if !agent.command.iter().any(|part| part.contains("{prompt}")) {
                argv.push(prompt.to_owned());
            }
        }
        PromptVia::File => {
            if !agent.command.iter().any(|part| part.contains("{prompt_file}")) {
                argv.push(file.into_owned());
            }
        }
    }
    Ok(argv)
}

/// What every agent's process is told about itself.
fn markers(
    context: &RunContext,
    state: &State,
    step: &StepId,
    attempt: u32,
    role: &str,
    out: &Path,
) -> BTreeMap<String, String> {
    let own = state.steps.get(step);
    let round = own.map_or(1, |own| own.round);
    // A reviewer of a panel is in the panel's round, a fixer in the round of the review that sent it.
    let sender =
        state.panel_of(&context.frozen.plan, step).or_else(|| match own.and_then(|own| own.cause.as_ref()) {
            Some(Cause::Fix { review, .. }) => Some(review.clone()),
            _ => None,
        });
    let sender_round = sender.and_then(|id| state.steps.get(&id)).map(|sender| sender.round);
    let mut env = BTreeMap::from([
        ("GATEWRIGHT_RUN".to_owned(), context.meta.id.clone()),
        ("GATEWRIGHT_RUN_DIR".to_owned(), context.meta.run_dir.to_string_lossy().into_owned()),
        ("GATEWRIGHT_STEP".to_owned(), step.to_string()),
        ("GATEWRIGHT_ROLE".to_owned(), role.to_owned()),
        (
            "GATEWRIGHT_ATTEMPT".to_owned(),
            attempt.saturating_sub(own.map_or(0, |own| own.not_started)).to_string(),
        ),
        ("GATEWRIGHT_ROUND".to_owned(), sender_round.unwrap_or(round).to_string()),
        ("GATEWRIGHT_OUT".to_owned(), out.to_string_lossy().into_owned()),
    ]);
    if let Some(item) = own.and_then(|own| own.item.clone()) {
        env.insert("GATEWRIGHT_ITEM".to_owned(), item);
    }
    env
}
