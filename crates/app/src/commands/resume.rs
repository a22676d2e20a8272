//! `gatewright resume`: go on after anything. Resume is the normal loop.

use std::collections::BTreeMap;

use gatewright_core::input::{Input, Raise};
use gatewright_host::{launch::store_plan, run_meta::RunMeta, store::outside_word};

use crate::{
    callers,
    cli::ResumeArgs,
    command_error::{CommandError, code_of_state},
    commands::run,
    definitions::{Definition, Session},
    drive::{self, Delivered, Engine},
};

pub fn resume(args: &ResumeArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    let raise = raise(&args.raise)?;
    let substitutes = substitutes(&args.substitute)?;
    let order = Input::Resume { raise, substitutes };
    // Whoever gets the lock has read the journal already: it is not read twice.
    let Some(mut engine) = drive::open(&session, &id)? else {
        return to_the_other(&session, &id, args, &order);
    };
    if engine.state.is_over() {
        let word = outside_word(&engine.state, false);
        // Looking must work on a read-only disk too.
        let _ = engine.tidy();
        eprintln!("{id} is over: {word}");
        return Ok(code_of_state(word));
    }
    check_substitutes(&engine.context.meta, &order)?;
    adopt_or_note(&session, &mut engine, args.adopt)?;
    if let Err(rejected) = engine.human(&order)? {
        return Err(CommandError::refused(rejected));
    }
    if args.detach || engine.context.meta.detached {
        drop(engine);
        return drive::start_in_background(&session, &id);
    }
    drive::drive(&session, &mut engine)
}

/// Another engine drives the run: it can be told to raise a limit or to use another file, and nothing else.
fn to_the_other(session: &Session, id: &str, args: &ResumeArgs, order: &Input) -> Result<u8, CommandError> {
    let nothing = Input::Resume { raise: Raise::default(), substitutes: BTreeMap::new() };
    if args.adopt || *order == nothing {
        return Err(CommandError::refused(format!("another engine drives {id}"))
            .hint(format!("follow it: gatewright logs -f {id}"))
            .hint(format!("or stop it first: gatewright stop {id}")));
    }
    check_substitutes(&session.store().snapshot(id, None)?.meta, order)?;
    match drive::deliver(session, id, order)? {
        Delivered::ByEngine => Ok(0),
        Delivered::Here(engine) => drive::go_on(session, engine),
    }
}

fn check_substitutes(meta: &RunMeta, order: &Input) -> Result<(), CommandError> {
    let Input::Resume { substitutes, .. } = order else { return Ok(()) };
    for other in substitutes.values() {
        let path =
            other.strip_prefix("./").map_or_else(|| meta.run_dir.join(other), |rest| meta.root.join(rest));
        if !path.exists() {
            return Err(CommandError::usage(format!("`--use`: {} does not exist", path.display()))
                .hint("a file of the run directory, or with ./ in front one of the repository"));
        }
    }
    Ok(())
}

/// A definition that was edited meanwhile changes nothing unless a person says so (J-45).
fn adopt_or_note(session: &Session, engine: &mut Engine, adopt: bool) -> Result<(), CommandError> {
    let with = engine.context.meta.started_with.clone();
    let fresh = if adopt {
        run::load(session, &with)?
    } else {
        let Ok(definition) = session.find(&with.workflow) else { return Ok(()) };
        let options = gatewright_workflow::load::LoadOptions {
            profile: with.profile,
            settings: with.settings,
            agent: with.agent,
            config: &session.config,
        };
        let Definition { label, text, files } = definition;
        if engine.context.frozen.made_of.is_unchanged(&label, &text, &files, &options) {
            return Ok(());
        }
        let Some(frozen) = gatewright_workflow::load::load(&label, &text, &files, &options).frozen else {
            return Ok(());
        };
        frozen
    };
    let mut fresh = fresh;
    if engine.context.meta.isolated {
        fresh.isolate();
    }
    if adopt {
        run::complete_agents(&session.project.root, &mut fresh, None)?;
    }
    // Agents are completed at the start; what a person could have edited is the rest.
    let same = fresh.sources == engine.context.frozen.sources
        && fresh.settings == engine.context.frozen.settings
        && fresh.profile_settings == engine.context.frozen.profile_settings;
    if same {
        return Ok(());
    }
    if !adopt {
        eprintln!(
            "note: the definition or configuration changed since the start; this run keeps its own (resume --adopt takes the new one)"
        );
        return Ok(());
    }
    let digest = store_plan(session.disk.as_ref(), &engine.context.paths, &fresh)?;
    engine.adopt(fresh, &digest)?.map_err(CommandError::refused)?;
    eprintln!("adopted the definition as it is now ({})", &digest[..12]);
    Ok(())
}

fn raise(pairs: &[String]) -> Result<Raise, CommandError> {
    let mut raise = Raise::default();
    for pair in pairs {
        let bad = || {
            CommandError::usage(format!("`--raise {pair}` is not understood"))
                .hint("usd=30, tokens=2000000, wall=6h, launches=50, quota_wait=48h")
        };
        let (kind, limit) = pair.split_once('=').ok_or_else(bad)?;
        match kind.trim() {
            "usd" => {
                raise.micro_usd = Some(
                    limit
                        .trim()
                        .parse::<f64>()
                        .ok()
                        .filter(|usd| usd.is_finite() && *usd >= 0.0)
                        .map(|usd| (usd * 1e6) as u64)
                        .ok_or_else(bad)?,
                );
            }
            "tokens" => raise.tokens = Some(limit.trim().parse().map_err(|_| bad())?),
            "launches" => raise.launches = Some(limit.trim().parse().map_err(|_| bad())?),
            "wall" => raise.wall_ms = Some(milliseconds(limit.trim()).ok_or_else(bad)?),
            "quota_wait" => raise.quota_wait_ms = Some(milliseconds(limit.trim()).ok_or_else(bad)?),
            _ => return Err(bad()),
        }
    }
    Ok(raise)
}

fn milliseconds(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let value: u64 = digits.parse().ok()?;
    let factor = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    value.checked_mul(factor)
}

fn substitutes(pairs: &[String]) -> Result<BTreeMap<String, String>, CommandError> {
    pairs
        .iter()
        .map(|pair| {
            let (file, other) = pair.split_once('=').ok_or_else(|| {
                CommandError::usage(format!("`--use {pair}` is not FILE=OTHER"))
                    .hint("for example: --use plan.md=plan-of-yesterday.md")
            })?;
            Ok((file.to_owned(), other.to_owned()))
        })
        .collect()
}
