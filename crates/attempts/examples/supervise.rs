//! The processes around an agent, for the tests of this crate: `supervise DIR` is what the product's hidden
//! subcommand is, `start SPEC DIR` is an engine that starts an attempt and is gone. It decides nothing.

use std::path::Path;

use gatewright_attempts::{AttemptDir, LaunchSpec, SupervisorCommand, start_or_attach, supervise};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["supervise", dir] => Ok(supervise(Path::new(dir))?),
        ["start", spec, dir] => {
            let spec: LaunchSpec = serde_json::from_slice(&std::fs::read(spec)?)?;
            let program = std::env::current_exe()?;
            let supervisor = SupervisorCommand { program, args: vec!["supervise".to_owned()] };
            println!("{:?}", start_or_attach(&AttemptDir::create(dir)?, &spec, &supervisor)?);
            Ok(())
        }
        _ => Err("usage: supervise DIR | start SPEC DIR".into()),
    }
}
