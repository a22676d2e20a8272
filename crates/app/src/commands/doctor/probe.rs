//! `gatewright doctor --probe AGENT`: runs an agent once, as a step would be run, in an empty folder.

use std::{path::PathBuf, sync::Arc};

use gatewright_host::{
    launch::{NewRun, create},
    perform::LocalPerformer,
    project::Project,
    run_loop::RunLoop,
    run_meta::StartedWith,
    store::RunStore,
};
use gatewright_workflow::load::{LoadOptions, Sources, load};

use crate::{
    command_error::{CommandError, exit},
    commands::run::complete_agents,
    definitions::Session,
    render::text::one_line,
};

/// One step, one word.
const WORKFLOW: &str = "workflow: probe\nbudget: { quota_wait: 1s }\nroles: { probe: { may_write: [], prompt: \"You are asked whether you can be reached.\" } }\nsteps:\n  - { id: probe, role: probe, reply: brief, timeout: 3m, prompt: \"Reply at once. Read nothing, write nothing.\", retry: { attempts_max: 1 } }\n";

/// No files belong to the workflow.
struct Nothing;

impl Sources for Nothing {
    fn read(&self, _path: &str) -> Option<String> {
        None
    }

    fn list(&self, _dir: &str) -> Vec<String> {
        Vec::new()
    }

    fn workflow(&self, _name: &str) -> Option<(String, String, Box<dyn Sources>)> {
        None
    }
}

pub fn probe(agent: &str) -> Result<u8, CommandError> {
    let session = Session::open()?;
    if !session.config.knows_agent(agent) {
        return Err(
            CommandError::usage(format!("there is no agent `{agent}`")).hint("gatewright doctor lists them")
        );
    }
    let options = LoadOptions { agent: Some(agent.to_owned()), ..LoadOptions::new(&session.config) };
    let loaded = load("probe", WORKFLOW, &Nothing, &options);
    let mut frozen = loaded.frozen.ok_or_else(|| CommandError::invalid("the probe cannot be loaded"))?;
    complete_agents(&session.project.root, &mut frozen, None)?;
    let place = Place::new(agent)?;
    let repository = place.path.join("repository");
    // The mark of a project: nothing above it is taken for one.
    std::fs::create_dir_all(repository.join(".gatewright"))?;
    let project = Project::at(&repository, &place.path.join("state"));
    let request = "Reply with the word reachable as your summary.";
    let new = NewRun::new(&project, frozen, request, StartedWith::default());
    let context = create(session.disk.clone(), session.clock.clone(), new)?;
    let id = context.meta.id.clone();
    let key = context.journal_key();
    let opened = RunLoop::open(context, LocalPerformer::default(), key)?;
    let mut engine = opened.engine;
    let (_sender, orders) = std::sync::mpsc::channel();
    engine.run(&mut crate::render::plain_lines::Silent, &orders, false)?;
    drop(engine);
    let snapshot = RunStore::new(Arc::clone(&session.disk), project).snapshot(&id, None)?;
    let report = snapshot.records.iter().rev().find_map(|record| match record.event().ok()? {
        gatewright_core::event::Event::AttemptEnded { report, .. } => Some(report),
        _ => None,
    });
    let Some(report) = report else {
        return Err(CommandError::invalid(format!("agent `{agent}` was not started")));
    };
    match (&report.trouble, &report.reply) {
        (None, Some(reply)) => {
            let model =
                report.model.as_deref().map(|model| format!(" with {}", one_line(model))).unwrap_or_default();
            println!("{agent} answers{model}: {}", one_line(&reply.summary));
            Ok(exit::DONE)
        }
        (Some(trouble), _) => {
            println!("{agent} fails ({}): {}", trouble.kind.word(), one_line(&trouble.message));
            Ok(exit::FAILED)
        }
        (None, None) => {
            println!("{agent} runs but does not reply as asked: {}", one_line(&report.tail));
            Ok(exit::FAILED)
        }
    }
}

/// A folder that goes away again.
struct Place {
    path: PathBuf,
}

impl Place {
    fn new(agent: &str) -> Result<Place, CommandError> {
        let path = std::env::temp_dir().join(format!("gatewright-probe-{agent}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Place { path: path.canonicalize()? })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
