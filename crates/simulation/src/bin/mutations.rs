//! Breaks a copy of the engine in one place at a time and shows that the simulation notices.
//!
//! `cargo run -p gatewright-simulation --bin mutations [NAME…]`. A mutation is a text file: what is
//! broken, the file, and the text before and after. Its text before must be there exactly once, so
//! that a mutation never goes stale in silence.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// Lives per mutation: enough for each of them, few enough for all of them.
const RUNS: &str = "4000";

struct Mutation {
    name: String,
    what: String,
    file: PathBuf,
    before: String,
    after: String,
}

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(survivors) => {
            println!("{survivors} survived");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(names: &[String]) -> io::Result<u32> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let copy = root.join(".cache/mutations/tree");
    copy_tree(&root, &copy)?;
    let mutations = read_all(&root.join("crates/simulation/mutations"), names)?;
    for kind in [Simulation::Core, Simulation::RunLoop] {
        if let Some(found) = notices(&copy, kind)? {
            return Err(io::Error::other(format!("the simulation fails without a mutation: {found}")));
        }
    }
    let mut survivors = 0;
    for mutation in &mutations {
        let path = copy.join(&mutation.file);
        let text = fs::read_to_string(&path)?;
        if text.matches(&mutation.before).count() != 1 {
            let name = &mutation.name;
            return Err(io::Error::other(format!(
                "{name}: its text is not there exactly once: {}",
                path.display()
            )));
        }
        fs::write(&path, text.replacen(&mutation.before, &mutation.after, 1))?;
        // The core's own simulation is quicker to build; what it cannot see is left to the other.
        let of_core = mutation.file.starts_with("crates/core");
        let mut found = if of_core { notices(&copy, Simulation::Core)? } else { None };
        if found.is_none() {
            found = notices(&copy, Simulation::RunLoop)?;
        }
        fs::write(&path, text)?;
        survivors += u32::from(found.is_none());
        let said = found.map_or("SURVIVED".to_owned(), |found| format!("caught by {found}"));
        println!("{:28} {}\n{:28} {said}", mutation.name, mutation.what, "");
    }
    println!("{} mutations, {survivors} survived", mutations.len());
    Ok(survivors)
}

#[derive(Clone, Copy)]
enum Simulation {
    Core,
    RunLoop,
}

/// What the simulation says about the copy as it is; nothing = it notices nothing.
fn notices(copy: &Path, simulation: Simulation) -> io::Result<Option<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", copy.with_file_name("target")).env("SIM_RUNS", RUNS);
    match simulation {
        Simulation::Core => cargo.args(["test", "-q", "-p", "gatewright-core", "--test", "simulation"]),
        Simulation::RunLoop => {
            cargo.args(["run", "-q", "-p", "gatewright-simulation", "--bin", "gatewright-simulation"]);
            cargo.args(["--", "--runs", RUNS])
        }
    };
    let output = cargo.output()?;
    if output.status.success() {
        return Ok(None);
    }
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let names_a_seed = |line: &&str| line.contains("SIM_SEED=") || line.starts_with("seed ");
    match text.lines().find(names_a_seed) {
        Some(line) => Ok(Some(line.trim().chars().take(160).collect())),
        None => Err(io::Error::other(format!("it does not build, or no seed is named:\n{text}"))),
    }
}

fn read_all(folder: &Path, names: &[String]) -> io::Result<Vec<Mutation>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let all = paths.iter().map(|path| read(path)).collect::<io::Result<Vec<_>>>()?;
    Ok(all.into_iter().filter(|mutation| names.is_empty() || names.contains(&mutation.name)).collect())
}

fn read(path: &Path) -> io::Result<Mutation> {
    let text = fs::read_to_string(path)?;
    let bad = || io::Error::other(format!("{}: is no mutation", path.display()));
    let (head, rest) = text.split_once("\n<<<<\n").ok_or_else(bad)?;
    let (what, file) = head.split_once('\n').ok_or_else(bad)?;
    let (before, rest) = rest.split_once("\n====\n").ok_or_else(bad)?;
    let after = rest.split_once("\n>>>>").ok_or_else(bad)?.0;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = |text: &str| text.to_owned();
    Ok(Mutation { name, what: text(what), file: file.into(), before: text(before), after: text(after) })
}

/// The files that git knows; those that are equal already keep their times, so that cargo builds little.
fn copy_tree(root: &Path, copy: &Path) -> io::Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (root.join(name), copy.join(name));
        let Ok(bytes) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, bytes)?;
    }
    Ok(())
}
