//! A copy of the core below the target folder, in a workspace of its own: written woven, built once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    list::Mutant,
    sites::{self, Site, Sites},
    weave::{self, Blame, Woven},
};

/// The test program with the lives of runs.
pub const SIMULATION: &str = "simulation";

pub struct Copy {
    /// The copy's own workspace.
    tree: PathBuf,
    /// What the core is made of: its text and its places for mutants.
    files: BTreeMap<String, (String, Sites)>,
}

/// Which mutants are in the build, and why the others are not.
#[derive(Default)]
pub struct Fate {
    /// Not valid Rust, as cargo-mutants would find too.
    pub unviable: BTreeSet<usize>,
    /// Valid perhaps, but not behind a switch: to be built on their own.
    pub alone: BTreeSet<usize>,
}

impl Fate {
    fn is_woven(&self, number: usize) -> bool {
        !self.unviable.contains(&number) && !self.alone.contains(&number)
    }
}

impl Copy {
    pub fn new(root: &Path, at: &Path) -> io::Result<Copy> {
        let tree = at.join("tree");
        let core = tree.join("crates/core");
        if core.exists() {
            fs::remove_dir_all(&core)?;
        }
        copy_folder(&root.join("crates/core"), &core)?;
        // The rules against IO are the core's; the switch reads the environment.
        let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
        let kept = manifest.lines().filter(|line| !line.starts_with("default-members"));
        let kept =
            kept.map(|line| if line.starts_with("members") { "members = [\"crates/core\"]" } else { line });
        let manifest: String = kept.map(|line| format!("{line}\n")).collect();
        write(&tree.join("Cargo.toml"), &manifest)?;
        if !tree.join("Cargo.lock").exists() {
            fs::copy(root.join("Cargo.lock"), tree.join("Cargo.lock"))?;
        }
        let mut files = BTreeMap::new();
        for path in sources(&core.join("src"))? {
            let name = path.strip_prefix(&tree).map_err(io::Error::other)?.to_string_lossy().into_owned();
            let text = fs::read_to_string(&path)?;
            let sites = sites::of(&text).map_err(|error| io::Error::other(format!("{name}: {error}")))?;
            files.insert(name, (text, sites));
        }
        Ok(Copy { tree, files })
    }

    /// What the places of the mutants say about them already.
    pub fn look(&self, mutants: &[Mutant]) -> io::Result<Fate> {
        let mut fate = Fate::default();
        for mutant in mutants {
            let sites = self.files.get(&mutant.file).map(|(_, sites)| sites);
            let site = sites.and_then(|sites| weave::site(sites, mutant)).ok_or_else(|| {
                io::Error::other(format!("{}: there is nothing to change at this place", mutant.name))
            })?;
            match site {
                Site::Alone => _ = fate.alone.insert(mutant.number),
                Site::Impossible => _ = fate.unviable.insert(mutant.number),
                Site::Body { .. }
                | Site::Operator { .. }
                | Site::Prefix { .. }
                | Site::Pattern { .. }
                | Site::Guard { .. }
                | Site::Field { .. } => {}
            }
        }
        Ok(fate)
    }

    /// Weaves everything in, leaves out what the compiler refuses, until it builds.
    pub fn weave(&self, mutants: &[Mutant]) -> io::Result<Fate> {
        let mut fate = self.look(mutants)?;
        loop {
            let woven = self.write(mutants, &fate)?;
            let errors = self.check()?;
            if errors.is_empty() {
                return Ok(fate);
            }
            let before = (fate.unviable.len(), fate.alone.len());
            for error in &errors {
                blame(error, &woven, &mut fate);
            }
            if before == (fate.unviable.len(), fate.alone.len()) {
                let said: Vec<&str> = errors.iter().map(|error| error.text.as_str()).collect();
                return Err(io::Error::other(format!("the woven core does not build:\n{}", said.join("\n"))));
            }
        }
    }

    /// The core with all mutants that can be woven in.
    fn write(&self, mutants: &[Mutant], fate: &Fate) -> io::Result<BTreeMap<String, Woven>> {
        let mut written = BTreeMap::new();
        for (name, (text, sites)) in &self.files {
            let own: Vec<&Mutant> = mutants
                .iter()
                .filter(|mutant| mutant.file == *name && fate.is_woven(mutant.number))
                .collect();
            let mut woven = weave::weave(text, sites, &own);
            if name.ends_with("/lib.rs") {
                woven.text.push_str("\npub mod mutant_switch;\n");
            }
            write(&self.tree.join(name), &woven.text)?;
            written.insert(name.clone(), woven);
        }
        write(&self.tree.join("crates/core/src/mutant_switch.rs"), &weave::switch(mutants.len()))?;
        Ok(written)
    }

    /// The core with one mutant and no other; whether it builds.
    pub fn write_alone(&self, mutant: &Mutant) -> io::Result<bool> {
        for (name, (text, _)) in &self.files {
            let text = if *name == mutant.file { weave::plain(text, mutant) } else { text.clone() };
            write(&self.tree.join(name), &text)?;
        }
        Ok(self.check()?.is_empty())
    }

    fn cargo(&self, verb: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.arg(verb).args(["--quiet", "--offline", "-p", "gatewright-core", "--message-format=json"]);
        cargo.current_dir(&self.tree).env("CARGO_TARGET_DIR", self.tree.with_file_name("target"));
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("RUSTFLAGS", "--cap-lints allow");
        cargo
    }

    fn check(&self) -> io::Result<Vec<CompileError>> {
        let output = self.cargo("check").arg("--lib").output()?;
        let errors: Vec<CompileError> =
            messages(&output.stdout).iter().filter_map(CompileError::read).collect();
        if errors.is_empty() && !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(errors)
    }

    /// Builds the core's tests; the programs, the simulation last.
    pub fn build_tests(&self) -> io::Result<Vec<PathBuf>> {
        let mut programs = self.build_scenarios()?;
        programs.extend(self.build_simulation()?);
        Ok(programs)
    }

    /// Only the simulation is worth the time of an optimizer.
    pub fn build_simulation(&self) -> io::Result<Vec<PathBuf>> {
        self.build(1, &[SIMULATION], &[])
    }

    /// Everything but the simulation.
    pub fn build_scenarios(&self) -> io::Result<Vec<PathBuf>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.package().join("tests"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "rs") {
                names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
            }
        }
        names.sort();
        let quick: Vec<&str> = names.iter().map(String::as_str).filter(|name| *name != SIMULATION).collect();
        self.build(0, &quick, &["--lib"])
    }

    fn build(&self, opt_level: u8, tests: &[&str], more: &[&str]) -> io::Result<Vec<PathBuf>> {
        let mut cargo = self.cargo("test");
        cargo.arg("--no-run").args(more).args(tests.iter().flat_map(|name| ["--test", name]));
        cargo.args(["--config", &format!("profile.dev.package.gatewright-core.opt-level={opt_level}")]);
        let output = cargo.output()?;
        let messages = messages(&output.stdout);
        if !output.status.success() {
            let errors = messages.iter().filter_map(CompileError::read).map(|error| error.text);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("{said}{}", errors.collect::<String>())));
        }
        let programs = messages.iter().filter(|message| message["profile"]["test"] == true);
        Ok(programs.filter_map(|message| message["executable"].as_str()).map(PathBuf::from).collect())
    }

    /// Where the core's tests expect to be started.
    pub fn package(&self) -> PathBuf {
        self.tree.join("crates/core")
    }
}

fn messages(stdout: &[u8]) -> Vec<Value> {
    stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// An error of the compiler and where it is.
struct CompileError {
    text: String,
    primary: Vec<(String, Range<usize>)>,
    others: Vec<(String, Range<usize>)>,
}

impl CompileError {
    fn read(message: &Value) -> Option<CompileError> {
        let message = &message["message"];
        if message["level"] != "error" {
            return None;
        }
        let mut error = CompileError {
            text: message["rendered"].as_str().unwrap_or_default().to_owned(),
            primary: Vec::new(),
            others: Vec::new(),
        };
        for span in message["spans"].as_array()? {
            let place = |span: &Value| {
                let (start, end) = (span["byte_start"].as_u64()?, span["byte_end"].as_u64()?);
                Some((span["file_name"].as_str()?.to_owned(), start as usize..end as usize))
            };
            // A macro of another crate is called somewhere here.
            let expansions = std::iter::successors(Some(span), |span| {
                Some(&span["expansion"]["span"]).filter(|outer| outer.is_object())
            });
            let places = expansions.filter_map(place);
            if span["is_primary"] == true {
                error.primary.extend(places);
            } else {
                error.others.extend(places);
            }
        }
        (!error.primary.is_empty()).then_some(error)
    }
}

fn blame(error: &CompileError, woven: &BTreeMap<String, Woven>, fate: &mut Fate) {
    let find = |(file, place): &(String, Range<usize>)| match woven.get(file) {
        Some(woven) => woven.blame(place),
        None => Blame::Nobody,
    };
    let primary: Vec<Blame> = error.primary.iter().map(find).collect();
    for blame in &primary {
        if let Blame::Mutant(number) = blame {
            fate.unviable.insert(*number);
            return;
        }
    }
    for blame in error.others.iter().map(find).chain(primary) {
        match blame {
            Blame::Mutant(number) => {
                fate.alone.insert(number);
                return;
            }
            Blame::Weaving(numbers) => {
                fate.alone.extend(numbers);
                return;
            }
            Blame::Nobody => {}
        }
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else if path.file_name().is_some_and(|name| name != "clippy.toml") {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

fn sources(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What is equal already keeps its time, so that cargo builds little.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}
