//! Mistakes with a name, in any crate of the engine: the simulation must notice each.
//!
//! A mistake is a text file: what is broken, the file, and the text before and after. Its text before must be there
//! exactly once, so that a mistake never goes stale in silence. All of them are in one build: the function around each
//! stands there twice, and a switch says which of the two is carried out.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{sites, weave};

/// Lives per mistake: enough for each of them, few enough for all of them.
const RUNS: &str = "4000";
/// Tests that share the lives of the core's simulation.
const PARTS: u32 = 8;

struct Mistake {
    name: String,
    what: String,
    file: String,
    before: String,
    after: String,
}

/// Whether all of them are noticed.
pub fn run(root: &Path, target: &Path, names: &[String]) -> io::Result<bool> {
    let all = read_all(&root.join("crates/mutants/named"))?;
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|mistake| mistake.name == **name)) {
        return Err(io::Error::other(format!("crates/mutants/named/{unknown}.txt does not exist")));
    }
    let tree = target.join("mutants/named");
    copy_tree(root, &tree, woven_files(root, &all)?)?;
    let of_core = Simulation { tree: &tree, target, words: &OF_CORE, program: OnceCell::new() };
    let of_run_loop = Simulation { tree: &tree, target, words: &OF_RUN_LOOP, program: OnceCell::new() };
    let (mut tried, mut survivors) = (0, 0);
    // The core's own simulation is quicker; what it cannot see is left to the other.
    let is_in_core = |mistake: &Mistake| mistake.file.starts_with("crates/core/");
    let mut order: Vec<(usize, &Mistake)> = all.iter().enumerate().collect();
    order.sort_by_key(|(_, mistake)| !is_in_core(mistake));
    for (number, mistake) in order {
        if !names.is_empty() && !names.contains(&mistake.name) {
            continue;
        }
        let mut found = if is_in_core(mistake) { of_core.notices(number)? } else { None };
        if found.is_none() {
            found = of_run_loop.notices(number)?;
        }
        tried += 1;
        survivors += u32::from(found.is_none());
        let said = found.map_or("SURVIVED".to_owned(), |found| format!("caught by {found}"));
        println!("{:28} {}\n{:28} {said}", mistake.name, mistake.what, "");
    }
    println!("{tried} mistakes, {survivors} survived");
    Ok(survivors == 0)
}

const OF_CORE: [&str; 6] = ["test", "--no-run", "-p", "gatewright-core", "--test", "simulation"];
const OF_RUN_LOOP: [&str; 5] = ["build", "-p", "gatewright-simulation", "--bin", "gatewright-simulation"];

/// A simulation with all mistakes in it, built when it is needed first.
struct Simulation<'a> {
    tree: &'a Path,
    target: &'a Path,
    words: &'a [&'a str],
    program: OnceCell<PathBuf>,
}

impl Simulation<'_> {
    fn program(&self) -> io::Result<&Path> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let program = self.build()?;
        if let Some(found) = said_by(&program, None)? {
            return Err(io::Error::other(format!("the simulation fails without a mistake: {found}")));
        }
        Ok(self.program.get_or_init(|| program))
    }

    fn build(&self) -> io::Result<PathBuf> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(self.words).args(["--quiet", "--locked", "--message-format=json-render-diagnostics"]);
        cargo.args(["--config", "profile.dev.package.gatewright-core.opt-level=1"]);
        // What is not ours is built there already.
        cargo.current_dir(self.tree).env("CARGO_TARGET_DIR", self.target);
        let output = cargo.output()?;
        let messages = output.stdout.split(|byte| *byte == b'\n');
        let mut messages = messages.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
        let program = messages.find_map(|message| message["executable"].as_str().map(PathBuf::from));
        match program {
            Some(program) if output.status.success() => Ok(program),
            Some(_) | None => Err(io::Error::other(format!("it does not build:\n{}", text_of(&output)))),
        }
    }

    fn notices(&self, mistake: usize) -> io::Result<Option<String>> {
        said_by(self.program()?, Some(mistake))
    }
}

/// What a simulation says about a mistake, or about the engine as it is; nothing = it notices nothing.
fn said_by(program: &Path, mistake: Option<usize>) -> io::Result<Option<String>> {
    // The one is a program that takes options, the other a test that reads the environment. A test says why it failed
    // when all are through, and with a mistake one of them may never be: they run one after the other.
    if program.file_name().is_some_and(|name| name == "gatewright-simulation") {
        return said_by_one(program, &["--runs", RUNS], mistake);
    }
    for part in 1..=PARTS {
        let found = said_by_one(program, &["--exact", &format!("lives_of_a_run_{part}")], mistake)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn said_by_one(program: &Path, words: &[&str], mistake: Option<usize>) -> io::Result<Option<String>> {
    let mut command = Command::new(program);
    command.args(words).env("SIM_RUNS", RUNS).env_remove("SIM_SEED").env_remove("GATEWRIGHT_MUTANT");
    if let Some(number) = mistake {
        command.env("GATEWRIGHT_MUTANT", number.to_string());
    }
    let output = command.output()?;
    if output.status.success() {
        return Ok(None);
    }
    let text = text_of(&output);
    let names_a_seed = |line: &&str| line.contains("SIM_SEED=") || line.starts_with("seed ");
    match text.lines().find(names_a_seed) {
        Some(line) => Ok(Some(line.trim().chars().take(160).collect())),
        None => Err(io::Error::other(format!("no seed is named:\n{text}"))),
    }
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Every file that has mistakes, with all of them, and the switch.
fn woven_files(root: &Path, all: &[Mistake]) -> io::Result<BTreeMap<String, String>> {
    let mut files: BTreeMap<&str, Vec<(usize, &Mistake)>> = BTreeMap::new();
    for (number, mistake) in all.iter().enumerate() {
        files.entry(&mistake.file).or_default().push((number, mistake));
    }
    let lib = "crates/core/src/lib.rs";
    let mut texts = BTreeMap::from([
        (lib.to_owned(), fs::read_to_string(root.join(lib))? + "\npub mod mutant_switch;\n"),
        ("crates/core/src/mutant_switch.rs".to_owned(), weave::switch(all.len())),
    ]);
    for (file, own) in files {
        let text = fs::read_to_string(root.join(file))?;
        let krate = if file.starts_with("crates/core/") { "crate" } else { "gatewright_core" };
        let woven =
            woven(&text, krate, &own).map_err(|error| io::Error::other(format!("{file}: {error}")))?;
        texts.insert(file.to_owned(), woven);
    }
    Ok(texts)
}

/// Each function with a mistake has a body more, for when it is on.
fn woven(text: &str, krate: &str, mistakes: &[(usize, &Mistake)]) -> Result<String, String> {
    let bodies = sites::bodies(text).map_err(|error| error.to_string())?;
    let mut by_body: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for (number, mistake) in mistakes {
        let Mistake { name, before, after, .. } = mistake;
        if text.matches(before.as_str()).count() != 1 {
            return Err(format!("{name}: its text is not there exactly once"));
        }
        let at = text.find(before.as_str()).unwrap_or_default();
        let around = bodies.iter().filter(|body| body.start <= at && at + before.len() <= body.end);
        let body = around.min_by_key(|body| body.len()).ok_or(format!("{name}: it is in no function"))?;
        let (head, tail) = (&text[body.start..at], &text[at + before.len()..body.end]);
        let branch = format!(" if {krate}::mutant_switch::on({number}) {{ {head}{after}{tail} }} else");
        by_body.entry((body.start, body.end)).or_default().push_str(&branch);
    }
    let (mut woven, mut done) = (String::new(), 0);
    for ((start, end), branches) in by_body {
        woven.push_str(&format!("{}{branches} {{ {} }}", &text[done..start], &text[start..end]));
        done = end;
    }
    woven.push_str(&text[done..]);
    Ok(woven)
}

fn read_all(folder: &Path) -> io::Result<Vec<Mistake>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> io::Result<Mistake> {
    let text = fs::read_to_string(path)?;
    let bad = || io::Error::other(format!("{}: is no mistake", path.display()));
    let (head, rest) = text.split_once("\n<<<<\n").ok_or_else(bad)?;
    let (what, file) = head.split_once('\n').ok_or_else(bad)?;
    let (before, rest) = rest.split_once("\n====\n").ok_or_else(bad)?;
    let after = rest.split_once("\n>>>>").ok_or_else(bad)?.0;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = |text: &str| text.to_owned();
    Ok(Mistake { name, what: text(what), file: text(file), before: text(before), after: text(after) })
}

/// The files that git knows, some of them with other texts. What is equal already keeps its time, so that cargo
/// builds little.
fn copy_tree(root: &Path, copy: &Path, texts: BTreeMap<String, String>) -> io::Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()?;
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|name| !name.is_empty()) {
        // One that was deleted is listed until that is committed.
        if let Ok(bytes) = fs::read(root.join(name)) {
            files.insert(name.to_owned(), bytes);
        }
    }
    files.extend(texts.into_iter().map(|(name, text)| (name, text.into_bytes())));
    for (name, bytes) in files {
        let to = copy.join(name);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(before: &str, after: &str) -> Mistake {
        let text = |text: &str| text.to_owned();
        Mistake { name: text("m"), what: text(""), file: text(""), before: text(before), after: text(after) }
    }

    #[test]
    fn a_function_has_a_body_for_each_of_its_mistakes() {
        let (one, two) = (mistake("a < b", "a <= b"), mistake("a", "c"));
        let text = "fn f() -> bool { a < b }";
        let found = woven(text, "k", &[(0, &one), (3, &two)]).expect("both are there");
        assert_eq!(
            found,
            "fn f() -> bool { if k::mutant_switch::on(0) {  a <= b  } else \
             if k::mutant_switch::on(3) {  c < b  } else {  a < b  }}"
        );
    }

    #[test]
    fn a_mistake_whose_text_is_gone_or_there_twice_is_refused() {
        for text in ["fn f() { b }", "fn f() { a + a }", "const A: u8 = a;"] {
            assert!(woven(text, "k", &[(0, &mistake("a", "c"))]).is_err(), "{text}");
        }
    }
}
