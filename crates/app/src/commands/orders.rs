//! `stop`, `abort`, `restart`, `skip`: orders to a run, whoever drives it.

use gatewright_core::{
    ids::{GateId, StageId, StepId},
    input::Input,
};

use crate::{
    callers,
    cli::{AbortArgs, RestartArgs, RunOnly, SkipArgs},
    command_error::{CommandError, exit},
    definitions::Session,
    drive::{self, Delivered},
};

pub fn stop(args: &RunOnly) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    let snapshot = session.store().snapshot(&id, None)?;
    if snapshot.state.is_over() {
        return Err(CommandError::refused(format!("{id} is over: {}", snapshot.state_word())));
    }
    match drive::deliver(&session, &id, &Input::Stop)? {
        Delivered::ByEngine => eprintln!("{id} stops when its running attempts have finished"),
        Delivered::Here(mut engine) => {
            drive::drive(&session, &mut engine)?;
        }
    }
    Ok(exit::DONE)
}

pub fn abort(args: &AbortArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    match drive::deliver(&session, &id, &Input::Abort { reason: args.reason.clone() })? {
        Delivered::ByEngine => eprintln!("{id} is given up"),
        Delivered::Here(mut engine) => {
            drive::drive(&session, &mut engine)?;
        }
    }
    Ok(exit::DONE)
}

pub fn restart(args: &RestartArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    let order = Input::RestartStage { stage: StageId::new(&args.stage), reason: args.reason.clone() };
    go_on(&session, &id, &order)
}

pub fn skip(args: &SkipArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    callers::refuse_agents(&session)?;
    let id = session.store().find(&args.run)?;
    let (step, reason) = (StepId::new(&args.step), args.reason.clone());
    let order = match &args.gate {
        None => Input::Skip { step, reason },
        Some(gate) => Input::WaiveGate { step, gate: gate.as_ref().map(GateId::new), reason },
    };
    go_on(&session, &id, &order)
}

fn go_on(session: &Session, id: &str, order: &Input) -> Result<u8, CommandError> {
    match drive::deliver(session, id, order)? {
        Delivered::ByEngine => Ok(exit::DONE),
        Delivered::Here(engine) => drive::go_on(session, engine),
    }
}
