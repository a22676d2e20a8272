//! `decisions`, `answer`, `approve`, `reject`: what people are asked, and what they say.

use gatewright_core::{
    ids::{DecisionId, RoleId},
    input::Input,
    plan::AnswerEffect,
    state::{DecisionState, DecisionStatus},
};
use gatewright_host::{clock::Clock, document, store::Snapshot};
use gatewright_workflow::yaml::parse_yaml_value;
use serde_json::{Value, json};

use crate::{
    callers,
    cli::{AnswerArgs, ApproveArgs, DecisionsArgs, RejectArgs},
    command_error::{CommandError, exit},
    commands::status::with_times,
    definitions::Session,
    drive::{self, Delivered},
};

pub fn decisions(args: &DecisionsArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let store = session.store();
    let ids = match &args.run {
        Some(run) => vec![store.find(run)?],
        None => store
            .list()?
            .into_iter()
            .filter(|run| !run.summary.waiting_for.is_empty())
            .map(|run| run.meta.id)
            .collect(),
    };
    let mut found = Vec::new();
    for id in ids {
        let snapshot = store.snapshot(&id, None)?;
        let open =
            snapshot.state.decisions.values().filter(|decision| {
                args.run.is_some() && args.json || decision.status == DecisionStatus::Pending
            });
        for decision in open {
            let mut value = with_times(document::decision(decision));
            if let Value::Object(object) = &mut value {
                object.insert("run".to_owned(), json!(id));
            }
            found.push(value);
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json!({"schema_version": 1, "decisions": found}))?);
        return Ok(exit::DONE);
    }
    if found.is_empty() {
        println!("nothing waits for you");
    }
    for value in &found {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let words: Vec<&str> = value
            .get("answers")
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        println!("{}  {}\n    {}", text("run"), text("id"), text("question"));
        let words = if words.is_empty() { "\"your answer\"".to_owned() } else { words.join("|") };
        println!("    gatewright answer {} {} {words}", text("run"), text("id"));
    }
    Ok(exit::DONE)
}

pub fn answer(args: &AnswerArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    let orders = orders(&session, &id, args)?;
    deliver_all(&session, &id, &orders)
}

fn orders(session: &Session, id: &str, args: &AnswerArgs) -> Result<Vec<Input>, CommandError> {
    let snapshot = session.store().snapshot(id, None)?;
    if let Some(file) = &args.file {
        let text = std::fs::read_to_string(file)
            .map_err(|error| CommandError::usage(format!("{}: {error}", file.display())))?;
        let value = parse_yaml_value(&text).map_err(|problem| {
            CommandError::usage(format!("{}:{}: {}", file.display(), problem.line, problem.message))
        })?;
        let Value::Object(answers) = value else {
            return Err(CommandError::usage(format!(
                "{}: is not a mapping of decisions to answers",
                file.display()
            )));
        };
        let orders: Vec<Input> = answers
            .iter()
            .map(|(decision, value)| {
                let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Ok(Input::Answer(with(&find(&snapshot, decision)?, &words, None, None, args.yes)))
            })
            .collect::<Result<_, CommandError>>()?;
        try_out(session, &snapshot, &orders)?;
        return Ok(orders);
    }
    let decision = args
        .decision
        .as_deref()
        .ok_or_else(|| CommandError::usage("which decision?").hint(format!("gatewright decisions {id}")))?;
    let decision = find(&snapshot, decision)?;
    if let Some(reason) = &args.cancel {
        return Ok(vec![Input::CancelDecision { decision, reason: reason.clone() }]);
    }
    let value = args.value.as_deref().ok_or_else(|| {
        CommandError::usage("what is the answer?").hint(format!("gatewright decisions {id}"))
    })?;
    Ok(vec![Input::Answer(with(&decision, value, args.comment.clone(), args.route.clone(), args.yes))])
}

/// A batch is given as a whole or not at all: what would be refused is refused before the first one.
fn try_out(session: &Session, snapshot: &Snapshot, orders: &[Input]) -> Result<(), CommandError> {
    let mut state = snapshot.state.clone();
    for order in orders {
        gatewright_core::advance(&snapshot.frozen.plan, &mut state, order, session.clock.now())
            .map_err(CommandError::refused)?;
    }
    Ok(())
}

fn with(
    decision: &DecisionId,
    value: &str,
    comment: Option<String>,
    route: Option<String>,
    confirmed: bool,
) -> gatewright_core::input::Answer {
    let mut answer = drive::answer(decision, value, "cli");
    answer.comment = comment;
    answer.route = route.map(RoleId::from);
    answer.confirmed = confirmed;
    answer
}

/// The decision a person means: its id, or the step that asks it.
fn find(snapshot: &Snapshot, wanted: &str) -> Result<DecisionId, CommandError> {
    let decisions = &snapshot.state.decisions;
    if decisions.contains_key(wanted) {
        return Ok(DecisionId::from(wanted));
    }
    let by_step: Vec<&DecisionState> =
        decisions.values().filter(|other| other.decision.step.as_str() == wanted).collect();
    let open: Vec<&&DecisionState> =
        by_step.iter().filter(|other| other.status == DecisionStatus::Pending).collect();
    match (open.as_slice(), by_step.as_slice()) {
        ([only], _) => Ok(only.decision.id.clone()),
        ([], [only]) => Ok(only.decision.id.clone()),
        _ => {
            let known: Vec<&str> = decisions
                .values()
                .filter(|other| other.status == DecisionStatus::Pending)
                .map(|other| other.decision.id.as_str())
                .collect();
            let open = if known.is_empty() {
                "nothing is asked at the moment".to_owned()
            } else {
                format!("open: {}", known.join(", "))
            };
            Err(CommandError::refused(format!("{} has no decision `{wanted}`", snapshot.meta.id))
                .hint(open)
                .hint(format!("the run is {}", snapshot.state_word())))
        }
    }
}

/// Gives the orders one after the other; goes on with the run if nobody else drives it.
fn deliver_all(session: &Session, id: &str, orders: &[Input]) -> Result<u8, CommandError> {
    let mut engine = None;
    for order in orders {
        match engine.take() {
            None => {
                if let Delivered::Here(taken) = drive::deliver(session, id, order)? {
                    engine = Some(taken);
                }
            }
            Some(mut taken) => {
                let taken_engine: &mut drive::Engine = &mut taken;
                if let Err(rejected) = taken_engine.human(order)? {
                    return Err(CommandError::refused(rejected));
                }
                engine = Some(taken);
            }
        }
    }
    match engine {
        Some(engine) => drive::go_on(session, engine),
        None => Ok(exit::DONE),
    }
}

pub fn approve(args: &ApproveArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    let snapshot = session.store().snapshot(&id, None)?;
    let (decision, word) = approval(&snapshot, &|effect| matches!(effect, AnswerEffect::Pass))?;
    let answer = with(&decision, &word, args.comment.clone(), None, args.yes);
    deliver_all(&session, &id, &[Input::Answer(answer)])
}

pub fn reject(args: &RejectArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    if args.what.trim().is_empty() {
        return Err(CommandError::usage("what has to change? Whoever does it again has to know")
            .hint(format!("gatewright reject {id} \"what to change\"")));
    }
    let snapshot = session.store().snapshot(&id, None)?;
    let (decision, word) = approval(&snapshot, &|effect| {
        matches!(effect, AnswerEffect::Redo { .. } | AnswerEffect::Restart { .. } | AnswerEffect::Block)
    })?;
    let answer = with(&decision, &word, Some(args.what.clone()), args.route.clone(), false);
    deliver_all(&session, &id, &[Input::Answer(answer)])
}

/// The one open approval, and its word for yes or no.
fn approval(
    snapshot: &Snapshot,
    fits: &dyn Fn(&AnswerEffect) -> bool,
) -> Result<(DecisionId, String), CommandError> {
    let passes = |other: &&DecisionState| {
        other.status == DecisionStatus::Pending
            && other.decision.answers.iter().any(|answer| matches!(answer.effect, AnswerEffect::Pass))
    };
    let open: Vec<&DecisionState> = snapshot.state.decisions.values().filter(passes).collect();
    let id = &snapshot.meta.id;
    let [only] = open.as_slice() else {
        let names: Vec<&str> = open.iter().map(|other| other.decision.id.as_str()).collect();
        let refused = CommandError::refused(if names.is_empty() {
            format!("no approval is open in {id}: it is {}", snapshot.state_word())
        } else {
            format!("several approvals are open in {id}: {}", names.join(", "))
        });
        return Err(refused.hint(format!("gatewright decisions {id}")));
    };
    let word =
        only.decision.answers.iter().find(|answer| fits(&answer.effect)).map(|answer| answer.word.clone());
    let word = word.ok_or_else(|| {
        CommandError::refused(format!("`{}` has no such answer", only.decision.id))
            .hint(format!("gatewright decisions {id}"))
    })?;
    Ok((only.decision.id.clone(), word))
}
