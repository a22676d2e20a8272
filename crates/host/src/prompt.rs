//! What an agent is told: who it is, its task, what to read, what to mend, where to write, how to
//! reply. The sections and their order are the same for every method (S0-09, S0-62).

use gatewright_attempts::Defence;
use gatewright_core::{
    event::{Cause, FailureClass},
    ids::StepId,
    plan::{Kind, Plan, Review},
    state::{Failure, Phase, State, StepState},
    verdict::Finding,
};
use gatewright_workflow::{
    frozen::{Frozen, StepText},
    reply::{Ladder, ReplyFormat},
    template::{TemplateProblem, Templates},
};
use serde_json::Value;

/// A file an agent reads or writes, with the place it is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub name: String,
    pub path: String,
}

/// Everything that goes into one prompt.
#[derive(Debug)]
pub struct PromptParts<'a> {
    pub frozen: &'a Frozen,
    pub state: &'a State,
    pub step: &'a StepId,
    pub text: &'a StepText,
    pub context: &'a Value,
    pub run_dir: &'a str,
    pub out_dir: &'a str,
    pub inputs: &'a [Place],
    pub outputs: &'a [Place],
    /// Its agent may write no file: it gives them in its last message.
    pub by_message: bool,
    /// It has tools to hand in its work.
    pub by_tool: bool,
}

/// Renders the prompt of one attempt.
pub fn render(templates: &Templates, parts: &PromptParts<'_>) -> Result<String, TemplateProblem> {
    let Some(own) = parts.state.steps.get(parts.step) else { return Ok(String::new()) };
    let definition = parts.state.definition(&parts.frozen.plan, parts.step);
    let role = definition.and_then(|definition| definition.role());
    let mut text = String::new();
    if let Some(role) = role.and_then(|id| parts.frozen.roles.get(id)) {
        text.push_str(templates.render("role", &role.prompt, parts.context)?.trim());
        text.push_str("\n\n");
    }
    let shared = templates.render("prompt", &parts.frozen.prompt, parts.context)?;
    if !shared.trim().is_empty() {
        text.push_str(shared.trim());
        text.push_str("\n\n");
    }
    text.push_str(&workflow_directory(parts));
    let task = templates.render("prompt", &parts.text.prompt, parts.context)?;
    section(&mut text, "Task", &task_text(task.trim(), parts));
    let review = review_of(parts);
    let reviewing = review.is_some();
    section(&mut text, "Iteration", &iteration(parts.state, own, reviewing));
    section(&mut text, "Input Files", &input_files(parts));
    section(&mut text, "Focus On", &focus(parts, own));
    section(&mut text, "Known Issues", &if reviewing { known_issues(parts, own) } else { String::new() });
    section(&mut text, "Answers", &answers(own));
    section(
        &mut text,
        "Previous Attempt",
        &previous(own, definition.map_or(0, |definition| definition.retry.attempts_max)),
    );
    section(&mut text, "Output", &output(parts, review));
    // What agents said is in it by now: it is text, and nobody's template.
    if Defence::PlainWords.is_off() { templates.render("prompt", &text, parts.context) } else { Ok(text) }
}

/// The review that this step is a reviewer of.
fn review_of<'a>(parts: &PromptParts<'a>) -> Option<&'a Review> {
    let plan = &parts.frozen.plan;
    let review = |step: &StepId| match &parts.state.definition(plan, step)?.kind {
        Kind::Review(review) => Some(&**review),
        _ => None,
    };
    review(parts.step).or_else(|| review(&parts.state.panel_of(plan, parts.step)?))
}

fn section(text: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        text.push_str(&format!("\n## {title}\n{}\n", body.trim_end()));
    }
}

fn workflow_directory(parts: &PromptParts<'_>) -> String {
    let dir = parts.run_dir;
    format!(
        "## Workflow Directory\nWORKFLOW_DIR: {dir}\n\nAll file operations of this run use this directory:\n- Read from: {dir}/\n- Write to: {}/ (published in {dir}/ when accepted)\n- Loop files: {dir}/loop-iterations/\n",
        parts.out_dir
    )
}

fn task_text(task: &str, parts: &PromptParts<'_>) -> String {
    let request = parts.context.get("request").and_then(Value::as_str).unwrap_or(&parts.state.request);
    if task.is_empty() {
        return request.to_owned();
    }
    if request.is_empty() || task.contains(request) {
        task.to_owned()
    } else {
        format!("{task}\n\nThe request: {request}")
    }
}

/// The number of the fix is that of the review it follows, whoever mends (S0-33).
fn iteration(state: &State, own: &StepState, reviewing: bool) -> String {
    match (own.cause.as_deref(), own.round) {
        (_, 1) if reviewing => String::new(),
        (_, round) if reviewing => format!("This is review iteration {round}."),
        (Some(Cause::Fix { review, .. }), round) => {
            let next = state.steps.get(review).map_or(round, |review| review.round);
            format!("This is fix iteration {}.", next.saturating_sub(1))
        }
        _ => String::new(),
    }
}

fn input_files(parts: &PromptParts<'_>) -> String {
    parts.inputs.iter().fold(String::new(), |text, place| text + &format!("- {}\n", place.path))
}

/// What a reviewer, a person or a later step wants changed.
fn focus(parts: &PromptParts<'_>, own: &StepState) -> String {
    match own.cause.as_deref().or_else(|| restarted_around(parts.state, own)) {
        Some(Cause::Fix { review, .. }) => {
            let list =
                demands(&parts.frozen.plan, parts.state, parts.step).iter().map(finding).collect::<String>();
            format!("`{review}` demands changes. Address ONLY these BLOCKING findings:\n{list}")
        }
        Some(Cause::Changes { decision, comment }) => {
            format!(
                "A person asked for changes at `{decision}`: {}",
                comment.as_deref().unwrap_or("no details were given")
            )
        }
        Some(Cause::ReferredBack { from, reason }) => format!("`{from}` referred the work back: {reason}"),
        Some(Cause::BadList { reason }) => {
            format!("What you wrote cannot be used: {reason}. Write it again without this fault.")
        }
        Some(Cause::Restart { stage, reason }) => format!("Stage `{stage}` is run again: {reason}"),
        Some(Cause::Stale { changed }) => {
            format!(
                "These files changed: {}",
                changed.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
            )
        }
        Some(Cause::Upstream { .. } | Cause::ListAdopted { .. } | Cause::Resumed) | None => String::new(),
    }
}

/// Why a group around a step runs again: an item of a fan-out is new then, and has no cause of its own.
fn restarted_around<'a>(state: &'a State, own: &StepState) -> Option<&'a Cause> {
    let mut owner = own.owner.as_ref();
    while let Some(group) = owner.and_then(|id| state.steps.get(id)) {
        if let Some(cause @ (Cause::Restart { .. } | Cause::Changes { .. } | Cause::ReferredBack { .. })) =
            group.cause.as_deref()
        {
            return Some(cause);
        }
        owner = group.owner.as_ref();
    }
    None
}

/// What steps before a reviewer left open: it must know where others stopped at their limit (J-21).
fn known_issues(parts: &PromptParts<'_>, own: &StepState) -> String {
    let plan = &parts.frozen.plan;
    let before = parts.state.graph(plan).upstream(&own.template);
    let passed = before.iter().map(|template| parts.state.sibling(plan, own, template)).filter_map(|id| {
        let step = parts.state.steps.get(&id)?;
        matches!(&step.phase, Phase::Passed { notes } if !notes.is_empty()).then_some((id, step))
    });
    passed.fold(String::new(), |text, (id, step)| text + &left_open(&id, step) + &inside(parts.state, &id))
}

/// What was let pass inside a group, such as an item of a fan-out: the group only says where.
fn inside(state: &State, group: &StepId) -> String {
    let prefix = format!("{group}/");
    let below = state.steps.range(StepId::new(&prefix)..);
    below
        .take_while(|(id, _)| id.as_str().starts_with(&prefix))
        .filter(|(_, step)| matches!(&step.phase, Phase::Passed { notes } if !notes.is_empty()))
        .take(NOTED_MAX)
        .fold(String::new(), |text, (id, step)| text + &left_open(id, step))
}

/// Steps inside a group of which a reviewer is told what they left open.
const NOTED_MAX: usize = 100;

fn left_open(id: &StepId, step: &StepState) -> String {
    let Phase::Passed { notes } = &step.phase else { return String::new() };
    let mut text = format!("`{id}` passed with notes: {}\n", notes.join("; ").replace('\n', " "));
    let open = step
        .review
        .iter()
        .flat_map(|looped| looped.verdicts.values())
        .flat_map(|judgement| &judgement.findings);
    text.extend(open.map(finding));
    text
}

/// What a fixer has to mend: the findings that its route carries, not those of others.
pub fn demands(plan: &Plan, state: &State, step: &StepId) -> Vec<Finding> {
    let Some(own) = state.steps.get(step) else { return Vec::new() };
    let Some(Cause::Fix { review, findings }) = own.cause.as_deref() else { return Vec::new() };
    let Some(Kind::Review(loops)) = state.definition(plan, review).map(|definition| &definition.kind) else {
        return findings.clone();
    };
    let known = |route: &str| loops.fix.iter().any(|entry| entry.route.as_deref() == Some(route));
    let default_exists = loops.fix.iter().any(|entry| entry.route.is_none());
    let mine = |finding: &&Finding| {
        let route = finding.route.as_deref().filter(|route| known(route));
        loops.fix.iter().filter(|entry| entry.steps.contains(&own.template)).any(|entry| {
            match (route, entry.route.as_deref()) {
                (Some(wanted), Some(own)) => wanted == own,
                (None, None) => true,
                (None, Some(_)) => !default_exists,
                (Some(_), None) => false,
            }
        })
    };
    findings.iter().filter(mine).cloned().collect()
}

fn finding(finding: &Finding) -> String {
    let mut line = format!("- [{}] {}", finding.severity.word(), finding.problem.replace('\n', " "));
    if let Some(location) = &finding.location {
        line.push_str(&format!(" ({location})"));
    }
    if let Some(fix) = &finding.fix {
        line.push_str(&format!(" — suggested: {}", fix.replace('\n', " ")));
    }
    line.push('\n');
    line
}

fn answers(own: &StepState) -> String {
    own.answers.iter().fold(String::new(), |text, (asked, answer)| {
        text + &format!("- {}\n  Answer: {answer}\n", asked.question)
    })
}

fn previous(own: &StepState, attempts_max: u32) -> String {
    let Some(failure) = &own.last_failure else {
        return if own.quota_waits > 0 {
            format!("The previous attempt was ended by the provider's limit.\n{INSPECT}")
        } else {
            String::new()
        };
    };
    let what = match failure.class {
        // The machine's fault is not counted, so it has no number.
        FailureClass::Interrupted => "The previous attempt was interrupted.".to_owned(),
        class => format!(
            "RETRY {}/{attempts_max}. The previous attempt failed ({}): {}\nIf the same error recurs, reply that you are blocked.",
            own.tries,
            class.word(),
            failure.message
        ),
    };
    let output = if failure.output.is_empty() {
        String::new()
    } else {
        format!("\nWhat it printed:\n```\n{}\n```", failure.output.trim_end().replace("```", "~~~"))
    };
    let what = format!("{what}{output}");
    format!(
        "{what}\nCheck the existing state first: what is there and right, do NOT redo.\n{}",
        remedy(failure)
    )
}

/// One remedy for each class of failure.
fn remedy(failure: &Failure) -> &'static str {
    match failure.class {
        FailureClass::Crash => {
            "It broke off. Inspect the working tree first: you may not remember your last commands. Continue from where it stopped."
        }
        FailureClass::Timeout => {
            "It took too long. Inspect the working tree first: you may not remember your last commands. Do the most important part first and leave nothing running."
        }
        FailureClass::Idle => {
            "It fell silent. Inspect the working tree first: you may not remember your last commands. Do not wait for input or for a process that never ends."
        }
        FailureClass::Malformed => {
            "The work may be fine; the reply was not. End with exactly one reply in the format below."
        }
        FailureClass::Schema => "Write the output again so that it has everything its contract demands.",
        FailureClass::Reality => {
            "What you say must be what is there: name files that exist and that you changed in this attempt, commits of this branch, and change nothing that your role may not write; undo what you should not have touched."
        }
        FailureClass::Build => "The code does not build: mend that before anything else.",
        FailureClass::Test => "Tests fail: mend the cause, not the test.",
        FailureClass::Interrupted => INSPECT,
    }
}

const INSPECT: &str =
    "Inspect the working tree first: you may not remember your last commands. Continue where it ended.";

fn output(parts: &PromptParts<'_>, review: Option<&Review>) -> String {
    let reviewing = review.is_some();
    let mut text = String::new();
    let optional = |at: usize| parts.text.writes.get(at).is_some_and(|write| write.optional);
    for (at, place) in parts.outputs.iter().enumerate() {
        if parts.by_message {
            text.push_str(&format!(
                "- You cannot write files. Give `{0}` in full in your last message, before the reply: a line `<<<FILE {0}`, its text, a line `>>>END`\n",
                place.name
            ));
            continue;
        }
        let called_for = if optional(at) { " (only if there is cause for it)" } else { "" };
        text.push_str(&format!("- Write `{}` in full to: {}{called_for}\n", place.name, place.path));
    }
    if parts.by_tool && !parts.outputs.is_empty() {
        text.push_str("- If you have a tool `submit_report`, you may hand files in with it instead: it says what is wrong with them\n");
    }
    let file = parts.outputs.first().map_or("none", |place| place.name.as_str());
    text.push_str("- End your output with this reply and nothing after it:\n\n");
    let format = asked_format(parts.text, reviewing, parts.outputs.is_empty());
    if format == ReplyFormat::Review {
        let words = parts.text.words.as_ref().unwrap_or(&parts.frozen.words);
        text.push_str(&review_example(words.ladder.unwrap_or(Ladder::S2), review));
    } else {
        text.push_str(&reply_example(format, file, reviewing));
    }
    if !parts.text.points.is_empty() {
        let points: Vec<String> = parts.text.points.iter().map(|point| point.replace('|', " or ")).collect();
        text.push_str(&format!("\nThe points of the reply speak of: {}.\n", points.join(", ")));
    }
    text
}

/// The format that the prompt shows: the step's, or what suits who writes no file.
pub fn asked_format(text: &StepText, reviewing: bool, writes_nothing: bool) -> ReplyFormat {
    let usual = if reviewing && writes_nothing { ReplyFormat::Review } else { ReplyFormat::Brief };
    text.reply.unwrap_or(usual)
}

fn reply_example(format: ReplyFormat, file: &str, reviewing: bool) -> String {
    match format {
        ReplyFormat::Brief => {
            let status = if reviewing { "PASS | PARTIAL | FAIL | ERROR" } else { "DONE | ERROR" };
            format!("STATUS: {status}\nFILE: {file}\nSUMMARY: one sentence\nNEXT_INPUT: files the next agent should read, or none\n---\n- at most five points\n")
        }
        ReplyFormat::Review => review_example(Ladder::S2, None),
        ReplyFormat::Universal => "{\"status\": \"OK | BLOCKED | NEEDS_INFO | NEEDS_DECISION | FAIL\", \"summary\": \"…\", \"artifacts\": {}, \"gates\": {\"meets_definition_of_done\": true, \"needs_review\": true, \"needs_tests\": true, \"security_concerns\": []}, \"next\": {\"recommended_agent\": \"…\", \"recommended_task_id\": \"…\", \"reason\": \"…\"}}\n".to_owned(),
        ReplyFormat::Task => "{\"taskId\": \"…\", \"status\": \"completed | failed | needs_context\", \"summary\": \"one sentence\", \"filesModified\": [\"src/a.ts\"], \"errors\": [], \"requestedFiles\": []}\n".to_owned(),
        ReplyFormat::Completion => format!("> one-line summary\n>\n> **Output**: `{file}`\n> **Status**: complete | partial | blocked\n> **Blocking issues**: none\n"),
    }
}

/// A review in the words of its dialect. Who may mend what is said where findings have routes.
fn review_example(ladder: Ladder, review: Option<&Review>) -> String {
    let stops = review.is_some_and(|review| review.hard_stop_on_blocked);
    let (judgement, problem) = match (ladder.says_status(), stops) {
        (true, true) => ("\"status\": \"approved | blocked\"", "issue"),
        (true, false) => ("\"status\": \"approved | needs_revision\"", "issue"),
        (false, _) => ("\"approved\": true | false", "description"),
    };
    let routes: Vec<&str> =
        review.iter().flat_map(|review| &review.fix).filter_map(|entry| entry.route.as_deref()).collect();
    let route =
        if routes.is_empty() { String::new() } else { format!(", \"route\": \"{}\"", routes.join(" | ")) };
    let severities = ladder.written().join(" | ");
    format!(
        "{{{judgement}, \"issues\": [{{\"severity\": \"{severities}\", \"location\": \"file:line\", \"{problem}\": \"…\", \"suggestion\": \"…\"{route}}}], \"summary\": \"one sentence\"}}\n"
    )
}
