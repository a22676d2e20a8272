//! `gatewright rehearse`: a user's test of a definition, with scripted agents, checks and people.

use std::path::PathBuf;

use gatewright_workflow::diagnostic::render_all;
use serde_json::{Value, json};

use crate::{
    cli::RehearseArgs,
    command_error::{CommandError, exit},
    definitions::Session,
    rehearsal::{
        explore,
        outcome::{Difference, Outcome},
        performance,
        scenario::{self, Scenario},
    },
    terminal::{Style, paint},
};

pub fn rehearse(args: &RehearseArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    if let Some(depth) = args.explore {
        if !args.scenario.is_empty() {
            return Err(CommandError::usage("--explore tries all combinations; it takes no --scenario"));
        }
        return try_all(&session, args, depth);
    }
    let mut results = Vec::new();
    if args.scenario.is_empty() {
        results.push(play(&session, args, None)?);
    }
    for path in &args.scenario {
        results.push(play(&session, args, Some(path))?);
        if !args.json
            && let Some(result) = results.last()
        {
            result.print();
        }
    }
    let failed = results.iter().filter(|result| !result.differences.is_empty()).count();
    if args.json {
        let scenarios: Vec<Value> = results.iter().map(Rehearsed::to_json).collect();
        let document =
            json!({"schema_version": 1, "workflow": args.workflow, "failed": failed, "scenarios": scenarios});
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        if args.scenario.is_empty() {
            results.iter().for_each(Rehearsed::print);
        }
        println!("{} rehearsed, {failed} not as expected", results.len());
    }
    Ok(if failed == 0 { exit::DONE } else { exit::FAILED })
}

/// One scenario and how it went.
struct Rehearsed {
    name: String,
    outcome: Outcome,
    differences: Vec<Difference>,
}

fn play(session: &Session, args: &RehearseArgs, path: Option<&PathBuf>) -> Result<Rehearsed, CommandError> {
    let Some(path) = path else {
        let scenario = Scenario::default();
        let frozen = performance::load(session, &args.workflow, args.profile.as_deref(), &scenario)?;
        let outcome = Outcome::of(&performance::play(session, &args.workflow, frozen, &scenario, None)?);
        let differences = outcome.differences(&scenario.expect);
        return Ok(Rehearsed { name: "everything passes".to_owned(), outcome, differences });
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        CommandError::usage(format!("{name}: cannot be read: {error}")).hint("a scenario is a YAML file")
    })?;
    let script = scenario::parse(&name, &text).map_err(|problems| refused(&name, &problems))?;
    let scenario = &script.scenario;
    let frozen = performance::load(session, &args.workflow, args.profile.as_deref(), scenario)?;
    let unknown = script.check_names(&frozen);
    if !unknown.is_empty() {
        return Err(refused(&name, &unknown));
    }
    let agents_read = performance::absolute(path)?;
    let played = performance::play(session, &args.workflow, frozen, scenario, Some(&agents_read))?;
    let outcome = Outcome::of(&played);
    let differences = outcome.differences(&scenario.expect);
    Ok(Rehearsed { name, outcome, differences })
}

fn refused(name: &str, problems: &[gatewright_workflow::diagnostic::Diagnostic]) -> CommandError {
    eprint!("{}", render_all(problems));
    CommandError::invalid(format!("{name}: {} error(s)", problems.len()))
}

impl Rehearsed {
    fn print(&self) {
        if self.differences.is_empty() {
            println!(
                "{}  {}: {}, {} steps begun",
                paint(Style::Green, "ok"),
                self.name,
                self.outcome.state,
                self.outcome.order.len()
            );
            return;
        }
        println!("{}  {}", paint(Style::Red, "FAILED"), self.name);
        for difference in &self.differences {
            print!("{}", difference.lines());
        }
    }

    fn to_json(&self) -> Value {
        let mut value = self.outcome.to_json();
        if let Value::Object(object) = &mut value {
            object.insert("name".to_owned(), json!(self.name));
            object.insert("ok".to_owned(), json!(self.differences.is_empty()));
            object
                .insert("differences".to_owned(), self.differences.iter().map(Difference::to_json).collect());
        }
        value
    }
}

fn try_all(session: &Session, args: &RehearseArgs, depth: u32) -> Result<u8, CommandError> {
    let frozen = performance::load(session, &args.workflow, args.profile.as_deref(), &Scenario::default())?;
    let explored = explore::explore(&frozen.plan, depth, explore::STATES_MAX);
    if args.json {
        let document = explore::report::to_json(&frozen, depth, &explored);
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        print!("{}", explore::report::to_text(&frozen, depth, &explored));
    }
    Ok(if explored.violations.is_empty() { exit::DONE } else { exit::FAILED })
}
