//! `gatewright rehearse`: a user's test of a definition, with scripted agents, checks and people.

use std::path::PathBuf;

use gatewright_workflow::diagnostic::render_all;
use serde_json::{Value, json};

use crate::{
    cli::RehearseArgs,
    command_error::{CommandError, exit},
    definitions::Session,
    rehearsal::{
        coverage::{self, Coverage},
        explore,
        launches::{self, House, Launches},
        outcome::{Difference, Outcome},
        performance::{self, Played},
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
        if !args.as_agents.is_empty() {
            return Err(CommandError::usage("--explore has no attempts; it takes no --as"));
        }
        return try_all(&session, args, depth);
    }
    let mut results = Vec::new();
    let mut coverage = if args.coverage {
        Some(Coverage::of(&performance::load_all(&session, &args.workflow)?.plan))
    } else {
        None
    };
    if args.scenario.is_empty() {
        results.push(play(&session, args, None, coverage.as_mut())?);
    }
    for path in files(&args.scenario)? {
        results.push(play(&session, args, Some(&path), coverage.as_mut())?);
        if !args.json
            && let Some(result) = results.last()
        {
            result.print();
        }
    }
    let failed = results.iter().filter(|result| !result.differences.is_empty()).count();
    if args.json {
        let scenarios: Vec<Value> = results.iter().map(Rehearsed::to_json).collect();
        let mut document =
            json!({"schema_version": 1, "workflow": args.workflow, "failed": failed, "scenarios": scenarios});
        if let (Some(coverage), Value::Object(object)) = (&coverage, &mut document) {
            object.insert("coverage".to_owned(), coverage::to_json(coverage));
        }
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        if args.scenario.is_empty() {
            results.iter().for_each(Rehearsed::print);
        }
        println!("{} rehearsed, {failed} not as expected", results.len());
        if let Some(coverage) = &coverage {
            print!("\n{}", coverage::table(coverage));
        }
    }
    Ok(if failed == 0 { exit::DONE } else { exit::FAILED })
}

/// The scenarios that were named; of a folder those that lie in it, by name.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    for path in named {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let entries: Vec<PathBuf> =
            std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        let is_scenario = |file: &PathBuf| file.extension().is_some_and(|end| end == "yaml" || end == "yml");
        let mut inside: Vec<PathBuf> = entries.into_iter().filter(is_scenario).collect();
        if inside.is_empty() {
            return Err(CommandError::usage(format!("{}: no scenario is in it", path.display()))
                .hint("a scenario is a file that ends in .yaml"));
        }
        inside.sort();
        found.append(&mut inside);
    }
    Ok(found)
}

/// One scenario and how it went.
struct Rehearsed {
    name: String,
    outcome: Outcome,
    differences: Vec<Difference>,
    launches: Launches,
}

fn play(
    session: &Session,
    args: &RehearseArgs,
    path: Option<&PathBuf>,
    coverage: Option<&mut Coverage>,
) -> Result<Rehearsed, CommandError> {
    let Some(path) = path else {
        let scenario = Scenario::default();
        let frozen = performance::load(session, &args.workflow, args.profile.as_deref(), &scenario)?;
        let houses = houses(session, args, &scenario)?;
        let played = performance::play(session, &args.workflow, frozen, &scenario, None, &houses)?;
        if let Some(coverage) = coverage {
            played.walk(coverage);
        }
        return Ok(Rehearsed::new("everything passes".to_owned(), played, &scenario));
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
    let houses = houses(session, args, scenario)?;
    let played = performance::play(session, &args.workflow, frozen, scenario, Some(&agents_read), &houses)?;
    if let Some(coverage) = coverage {
        played.walk(coverage);
    }
    Ok(Rehearsed::new(name, played, scenario))
}

fn houses(session: &Session, args: &RehearseArgs, scenario: &Scenario) -> Result<Vec<House>, CommandError> {
    launches::houses(session, &args.workflow, args.profile.as_deref(), scenario, &args.as_agents)
}

fn refused(name: &str, problems: &[gatewright_workflow::diagnostic::Diagnostic]) -> CommandError {
    eprint!("{}", render_all(problems));
    CommandError::invalid(format!("{name}: {} error(s)", problems.len()))
}

impl Rehearsed {
    fn new(name: String, played: Played, scenario: &Scenario) -> Rehearsed {
        let outcome = Outcome::of(&played);
        let mut differences = outcome.differences(&scenario.expect);
        differences.extend(played.launches.problems.iter().map(|(what, why)| Difference {
            what: format!("launch of {what}"),
            expected: "it can be made".to_owned(),
            found: why.clone(),
        }));
        Rehearsed { name, outcome, differences, launches: played.launches }
    }

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
            object.extend(self.launches.to_json());
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
