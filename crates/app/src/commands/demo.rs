//! `gatewright demo`: a whole run in a scratch repository, told scene by scene. Every command is
//! the real program as a child process; every promise is checked against the journal.

mod theatre;

use std::time::Duration;

use gatewright_core::event::{BlockReason, Event};

use self::theatre::Theatre;
use crate::{
    cli::DemoArgs,
    command_error::{CommandError, exit},
    render::markdown,
    terminal,
};

const REQUEST: &str = "Greet people by name";

pub fn demo(args: &DemoArgs) -> Result<u8, CommandError> {
    let mut theatre = Theatre::open(args.keep, pause(args))?;
    let played = scenes(&mut theatre);
    let left = theatre.close();
    played?;
    if left > 0 {
        return Err(CommandError::failed(format!("the demo left {left} process(es) behind")));
    }
    Ok(exit::DONE)
}

/// A person reads along; a pipe does not.
fn pause(args: &DemoArgs) -> Duration {
    use std::io::IsTerminal;
    if args.fast || !std::io::stdout().is_terminal() { Duration::ZERO } else { Duration::from_millis(2_500) }
}

fn scenes(theatre: &mut Theatre) -> Result<(), CommandError> {
    the_repository(theatre)?;
    a_decision(theatre)?;
    a_second_plan(theatre)?;
    a_crash(theatre)?;
    a_resume(theatre)?;
    a_gate(theatre)?;
    the_end(theatre)?;
    farewell(theatre);
    Ok(())
}

fn the_repository(theatre: &mut Theatre) -> Result<(), CommandError> {
    theatre.scene("A repository, a request, and what must happen before it counts");
    theatre.say("greet.sh always says \"Hello, world!\", so its test fails:");
    theatre.shell("sh tests/greet_test.sh", 1)?;
    theatre.say("The workflow says what has to happen before a change counts as done. This is all of it:");
    theatre.show_file(".gatewright/workflows/ship.yaml")?;
    theatre.say("Agents are rehearsed here: real processes with a script. No network, no key.");
    Ok(())
}

fn a_decision(theatre: &mut Theatre) -> Result<(), CommandError> {
    theatre.scene("The run starts, and stops where you have to decide");
    theatre.engine(&["run", "ship", REQUEST], exit::WAITING)?;
    theatre.say("Nobody was there to ask, so the question was written down and the program ended (exit 10).");
    theatre.say("No agent gets past it. Why is nobody building?");
    theatre.read(&["why", "latest", "code"], exit::DONE)?;
    theatre.say("A half-hearted yes is no yes:");
    theatre.read(&["answer", "latest", "approve-plan", "approved: if it stays short"], exit::REFUSED)?;
    Ok(())
}

fn a_second_plan(theatre: &mut Theatre) -> Result<(), CommandError> {
    theatre.scene("You ask for changes");
    theatre.engine(&["reject", "latest", "one page is enough"], exit::WAITING)?;
    let snapshot = theatre.snapshot()?;
    let planned = snapshot.state.steps.get("plan").map_or(0, |own| own.attempts);
    theatre.promise(planned == 2, "the plan was written again, with your comment in its prompt")?;
    Ok(())
}

fn a_crash(theatre: &mut Theatre) -> Result<(), CommandError> {
    theatre.scene("You approve; two agents work side by side; the engine is killed");
    theatre.start(&["approve", "latest"])?;
    theatre.wait_until("both agents to start and the quick one to finish", |snapshot, living| {
        let passed = snapshot.state.steps.get("docs").is_some_and(|own| own.phase.is_satisfied());
        passed && living == 1
    })?;
    theatre.kill()?;
    theatre.say("The engine is gone, without a word. Its agent is not:");
    theatre.promise(theatre.living() == 1, "the builder is still at work")?;
    theatre.read(&["status", "latest"], exit::PAUSED)?;
    Ok(())
}

fn a_resume(theatre: &mut Theatre) -> Result<(), CommandError> {
    theatre.scene("Resume picks the living agent up, and the work goes on");
    theatre.engine(&["resume", "latest"], exit::BLOCKED)?;
    let starts = theatre.count(
        |event| matches!(event, Event::AttemptStarted { step, attempt: 1, .. } if step.as_str() == "code"),
    )?;
    let interrupted = theatre.count(
        |event| matches!(event, Event::RetryScheduled { class, .. } if class.word() == "interrupted"),
    )?;
    theatre.promise(
        starts == 1 && interrupted == 0,
        "the builder was attached to, not started again: nothing was paid twice",
    )?;
    let rounds =
        theatre.snapshot()?.state.steps.get("review").map_or(0, |own| gatewright_host::document::rounds(own));
    theatre.promise(
        rounds == 2,
        "the reviewer's finding went back to the builder, the test ran again, then the review",
    )?;
    let tests = theatre.count(|event| matches!(event, Event::AttemptEnded { step, report, .. } if step.as_str() == "prove" && report.check.as_ref().is_some_and(|fact| fact.ok)))?;
    theatre.promise(tests == 2, "the test was run by the engine itself, once per version")?;
    Ok(())
}

fn a_gate(theatre: &mut Theatre) -> Result<(), CommandError> {
    theatre.scene("A gate that holds");
    theatre.say("The review passed, with a note. The release wants a review without one:");
    theatre.read(&["why", "latest", "release"], exit::DONE)?;
    let held = theatre.count(|event| matches!(event, Event::StepBlocked { step, reason: BlockReason::Gate, .. } if step.as_str() == "release"))?;
    theatre.promise(held == 1, "the release did not start")?;
    Ok(())
}

fn the_end(theatre: &mut Theatre) -> Result<(), CommandError> {
    theatre.scene("You have the note seen to; the gate opens");
    theatre.engine(
        &["restart", "latest", "--stage", "build", "--reason", "mention it in the docs"],
        exit::DONE,
    )?;
    theatre.say("The report of the whole run, kept up to date from the journal:");
    let report = theatre.run_file("report.md")?;
    theatre.print_indented(&markdown::render(&report, terminal::width().min(100)));
    theatre.say("And the program does what was asked:");
    theatre.shell("sh tests/greet_test.sh", 0)?;
    theatre.shell("sh greet.sh; sh greet.sh Ada; git status --short", 0)?;
    Ok(())
}

fn farewell(theatre: &mut Theatre) {
    theatre.scene("That was all");
    theatre.say("In a project of yours:");
    theatre.say("  gatewright init --method quick           a workflow to start from");
    theatre.say("  gatewright run quick \"what to do\"        the same with your agent");
    theatre.say("  gatewright rehearse quick --explore      every way it can go, without any agent");
}
