//! What a failed command says and the code it exits with: one place for both.

use std::{error::Error, fmt::Display};

/// Exit codes that scripts rely on.
pub mod exit {
    pub const DONE: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const USAGE: u8 = 2;
    pub const INVALID: u8 = 3;
    pub const REFUSED: u8 = 4;
    pub const WAITING: u8 = 10;
    pub const BLOCKED: u8 = 11;
    pub const PAUSED: u8 = 12;
    pub const RUNNING: u8 = 13;
    pub const INTERNAL: u8 = 70;
}

/// The exit code of a run's state.
pub fn code_of_state(state: &str) -> u8 {
    match state {
        "done" => exit::DONE,
        "failed" | "abandoned" => exit::FAILED,
        "waiting" => exit::WAITING,
        "blocked" => exit::BLOCKED,
        "paused" | "interrupted" => exit::PAUSED,
        "running" => exit::RUNNING,
        _ => exit::INTERNAL,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Usage,
    Invalid,
    Refused,
    Failed,
    Internal,
}

/// An error on its way to the user: what, why, and what to type next.
#[derive(Debug)]
pub struct CommandError {
    pub kind: Kind,
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<String>,
}

impl CommandError {
    pub fn new(kind: Kind, message: impl Display) -> Self {
        CommandError { kind, message: message.to_string(), causes: Vec::new(), hints: Vec::new() }
    }

    pub fn usage(message: impl Display) -> Self {
        CommandError::new(Kind::Usage, message)
    }

    pub fn invalid(message: impl Display) -> Self {
        CommandError::new(Kind::Invalid, message)
    }

    pub fn refused(message: impl Display) -> Self {
        CommandError::new(Kind::Refused, message)
    }

    pub fn failed(message: impl Display) -> Self {
        CommandError::new(Kind::Failed, message)
    }

    pub fn from_error(kind: Kind, error: &dyn Error) -> Self {
        let mut shown = CommandError::new(kind, error);
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if shown.causes.last() != Some(&text) && shown.message != text {
                shown.causes.push(text);
            }
            source = cause.source();
        }
        shown
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    pub fn code(&self) -> u8 {
        match self.kind {
            Kind::Usage => exit::USAGE,
            Kind::Invalid => exit::INVALID,
            Kind::Refused => exit::REFUSED,
            Kind::Failed => exit::FAILED,
            Kind::Internal => exit::INTERNAL,
        }
    }

    /// On stderr: the error, its causes, then hints after a blank line.
    pub fn print(&self) {
        eprintln!("error: {}", self.message);
        for cause in &self.causes {
            eprintln!("  because: {cause}");
        }
        if !self.hints.is_empty() {
            eprintln!();
        }
        for hint in &self.hints {
            eprintln!("hint: {hint}");
        }
    }
}

macro_rules! internal {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                CommandError::from_error(Kind::Internal, &error)
            }
        })*
    };
}

impl From<gatewright_host::run_loop::EngineError> for CommandError {
    fn from(error: gatewright_host::run_loop::EngineError) -> Self {
        use gatewright_host::{publish::PublishError, run_loop::EngineError};
        match &error {
            EngineError::Publish(PublishError::Projection { .. }) => {
                CommandError::from_error(Kind::Invalid, &error)
                    .hint("mend the projection in the workflow, then: gatewright resume RUN --adopt")
            }
            _ => CommandError::from_error(Kind::Internal, &error),
        }
    }
}

impl From<gatewright_host::launch::LaunchError> for CommandError {
    fn from(error: gatewright_host::launch::LaunchError) -> Self {
        use gatewright_host::launch::LaunchError;
        let kind = match &error {
            LaunchError::Meanwhile { run, .. } => {
                return CommandError::from_error(Kind::Refused, &error).hint(format!(
                    "when that ends it is put back, and what is there now is kept; if no engine drives it: gatewright resume {run}"
                ));
            }
            LaunchError::Template { .. } | LaunchError::Dir { .. } | LaunchError::Led { .. } => Kind::Invalid,
            LaunchError::Io { .. }
            | LaunchError::Meta(_)
            | LaunchError::Key(_)
            | LaunchError::Freeze { .. }
            | LaunchError::NoFreeId { .. } => Kind::Internal,
        };
        CommandError::from_error(kind, &error)
    }
}

internal!(
    gatewright_host::user_key::KeyError,
    gatewright_host::project::ProjectError,
    gatewright_host::run_meta::MetaError,
    gatewright_host::inbox::InboxError,
    gatewright_host::journal::JournalError,
    std::io::Error,
    serde_json::Error,
);

impl From<gatewright_host::store::StoreError> for CommandError {
    fn from(error: gatewright_host::store::StoreError) -> Self {
        use gatewright_host::store::StoreError;
        match &error {
            StoreError::NoRuns => CommandError::from_error(Kind::Usage, &error)
                .hint("start one: gatewright run quick \"what to do\""),
            StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => {
                CommandError::from_error(Kind::Usage, &error)
                    .hint("gatewright list shows all runs; `latest` is the last one")
            }
            StoreError::Broken(run) => CommandError::from_error(Kind::Internal, &error).hint(&run.remedy),
            StoreError::List { .. }
            | StoreError::Meta(_)
            | StoreError::Journal(_)
            | StoreError::Engine(_) => CommandError::from_error(Kind::Internal, &error)
                .hint("gatewright doctor says what is wrong with runs"),
        }
    }
}
