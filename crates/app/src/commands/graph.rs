//! `gatewright graph`: a workflow, or a run as it stands, as Mermaid, Graphviz or SVG.

use gatewright_workflow::load::LoadOptions;

use crate::{
    cli::{GraphArgs, GraphFormat},
    command_error::{CommandError, exit},
    definitions::{Session, find},
    render::{
        picture::{Picture, dot, mermaid, picture, svg},
        text::put,
    },
};

pub fn graph(args: &GraphArgs) -> Result<u8, CommandError> {
    let session = Session::open()?;
    let picture = drawn(&session, args)?;
    let text = match args.format {
        GraphFormat::Mermaid => mermaid::render(&picture),
        GraphFormat::Dot => dot::render(&picture),
        GraphFormat::Svg => svg::render(&picture),
    };
    put(text.as_bytes())?;
    Ok(exit::DONE)
}

/// A run by its full id or `latest`, else a workflow, else a run by the beginning of its id.
fn drawn(session: &Session, args: &GraphArgs) -> Result<Picture, CommandError> {
    let store = session.store();
    let exact = args.what == "latest" || store.ids()?.contains(&args.what);
    let workflow = find(&session.project.root, &args.what);
    if !exact && workflow.is_ok() {
        let options = LoadOptions { profile: args.profile.clone(), ..LoadOptions::new(&session.config) };
        let frozen = session.load(&args.what, &options)?;
        let profile = &frozen.plan.profile;
        let title = if frozen.plan.graphs.len() > 1 {
            format!("{} ({profile})", frozen.workflow)
        } else {
            frozen.workflow.clone()
        };
        return Ok(picture(&title, frozen.plan.graph(profile), None));
    }
    let id = match (store.find(&args.what), workflow) {
        (Ok(id), _) => id,
        // Neither: the words about workflows help more, unless the beginning of an id was meant.
        (Err(error @ gatewright_host::store::StoreError::Ambiguous { .. }), _) => return Err(error.into()),
        (Err(_), Err(error)) => {
            let message =
                format!("there is no workflow and no run `{}`", crate::render::text::one_line(&args.what));
            return Err(CommandError { message, kind: crate::command_error::Kind::Usage, ..error }
                .hint("gatewright list shows all runs"));
        }
        (Err(error), Ok(_)) => return Err(error.into()),
    };
    let snapshot = store.snapshot(&id, None)?;
    let title = format!("{id}: {}", snapshot.state_word());
    Ok(picture(&title, snapshot.state.graph(&snapshot.frozen.plan), Some(&snapshot.state)))
}
