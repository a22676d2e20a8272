//! The mutants that cargo-mutants knows, by its own list.

use std::{collections::BTreeMap, fs, io, path::Path, process::Command};

use serde_json::Value;

/// One small change of the core.
pub struct Mutant {
    /// Its place in the list; what the switch in the woven core is compared with.
    pub number: usize,
    /// Relative to the root of the repository.
    pub file: String,
    pub genre: Genre,
    /// From where it replaces, as cargo-mutants counts: both from 1, columns in characters.
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
    pub replacement: String,
    /// What it does in words, with its place.
    pub name: String,
    /// The same without line numbers: an explanation stays with it when lines move.
    pub key: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// All of them, in cargo-mutants' order.
pub fn read(root: &Path, package: &str) -> io::Result<Vec<Mutant>> {
    let output = Command::new("cargo")
        .args(["mutants", "--list", "--json", "-p", package])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!(
            "cargo-mutants gave no list: {said}\nhint: ./test mutants installs it"
        )));
    }
    let listed: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let mut mutants = listed.iter().enumerate().map(mutant).collect::<io::Result<Vec<_>>>()?;
    name_all(root, &mut mutants)?;
    Ok(mutants)
}

fn mutant((number, value): (usize, &Value)) -> io::Result<Mutant> {
    let unknown = || io::Error::other(format!("this version of cargo-mutants is not understood: {value}"));
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(unknown);
    let count = |value: &Value| value.as_u64().map(|count| count as usize).ok_or_else(unknown);
    let genre = match value["genre"].as_str() {
        Some("FnValue") => Genre::FnValue,
        Some("BinaryOperator") => Genre::BinaryOperator,
        Some("UnaryOperator") => Genre::UnaryOperator,
        Some("MatchArm") => Genre::MatchArm,
        Some("MatchArmGuard") => Genre::MatchArmGuard,
        Some("StructField") => Genre::StructField,
        _ => return Err(unknown()),
    };
    let span = &value["span"];
    Ok(Mutant {
        number,
        file: text(&value["file"])?,
        genre,
        line: count(&span["start"]["line"])?,
        column: count(&span["start"]["column"])?,
        end_line: count(&span["end"]["line"])?,
        end_column: count(&span["end"]["column"])?,
        replacement: text(&value["replacement"])?,
        name: text(&value["name"])?,
        key: String::new(),
    })
}

/// The change, the function and, for a change within it, the line as it is written; equal ones are counted.
fn name_all(root: &Path, mutants: &mut [Mutant]) -> io::Result<()> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for mutant in mutants {
        if !texts.contains_key(&mutant.file) {
            texts.insert(mutant.file.clone(), fs::read_to_string(root.join(&mutant.file))?);
        }
        let change = mutant.name.split_once(": ").map_or(mutant.name.as_str(), |(_, change)| change);
        let file = mutant.file.split_once("/src/").map_or(mutant.file.as_str(), |(_, file)| file);
        let mut key = format!("{file}: {change}");
        if mutant.genre != Genre::FnValue {
            let line = texts[&mutant.file].lines().nth(mutant.line - 1).unwrap_or_default().trim();
            key.push_str(&format!(" at `{line}`"));
        }
        let count = seen.entry(key.clone()).or_default();
        *count += 1;
        mutant.key = if *count == 1 { key } else { format!("{key} #{count}") };
    }
    Ok(())
}
