//! What an agent says inside its attempt: a line in its own folder, never a change of state.

use std::{io::Write as _, path::PathBuf};

use gatewright_host::hints::HINTS_FILE;

use super::{Refusal, code, entry, now};
use crate::cli::ProgressUpdateArgs;

/// Whether this is the process of an attempt.
pub fn is_agents() -> bool {
    ["GATEWRIGHT_STEP", "GATEWRIGHT_OUT"].iter().all(|name| std::env::var_os(name).is_some())
}

/// Nobody speaks for another agent.
pub fn leave(args: &ProgressUpdateArgs) -> Result<String, Refusal> {
    let role = std::env::var("GATEWRIGHT_ROLE").unwrap_or_default();
    let plain = |name: &str| name.replace('-', "_").to_lowercase();
    if !role.is_empty() && plain(&role) != plain(&args.agent) {
        return Err(Refusal::new(
            code::VALIDATION,
            format!("you are `{role}`; the progress of `{}` is not yours to write", args.agent),
        ));
    }
    let folder = PathBuf::from(std::env::var_os("GATEWRIGHT_OUT").unwrap_or_default());
    let line = entry(args, &now()).to_string() + "\n";
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(HINTS_FILE))
        .and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|error| Refusal::new(code::JSON, format!("the hint could not be written: {error}")))?;
    Ok("noted".to_owned())
}
