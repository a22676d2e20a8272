//! `--test-files`: which files the words mean, and what of them a test runner is given. Nothing of it is read by a shell.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gatewright_workflow::globs::{Bare, Globs};

use super::{Fault, code, language::Language};

/// Nobody's own tests are in there.
const NOT_OURS: [&str; 2] = [".git", "node_modules"];
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// What is to be tested, relative to the working directory.
#[derive(Debug)]
pub struct TestFiles {
    /// As they were written.
    words: String,
    /// Patterns of packages: `./...`.
    packages: Vec<String>,
    folders: Vec<String>,
    files: Vec<String>,
}

impl TestFiles {
    /// Files, folders, globs, Go packages; a word may hold several, with spaces or commas between them. One that means nothing
    /// is a mistake: what was to be tested is not there. None if no word says anything.
    pub fn find(words: &[String]) -> Result<Option<TestFiles>, Fault> {
        let named: Vec<&str> = words.iter().flat_map(|word| split(word)).collect();
        if named.is_empty() {
            return Ok(None);
        }
        let mut found = TestFiles {
            words: named.join(" "),
            packages: Vec::new(),
            folders: Vec::new(),
            files: Vec::new(),
        };
        for word in named {
            let place = Path::new(word);
            if word.ends_with("...") {
                found.packages.push(word.to_owned());
            } else if place.is_dir() {
                found.folders.push(word.to_owned());
            } else if place.is_file() {
                found.files.push(word.to_owned());
            } else {
                let matching = matching(word);
                if matching.is_empty() {
                    return Err(Fault::new(code::TESTS, format!("--test-files: nothing is called `{word}`")));
                }
                found.files.extend(matching);
            }
        }
        found.files.sort();
        found.files.dedup();
        Ok(Some(found))
    }

    /// What the runner of this language is given; nothing where nothing is for it.
    pub fn of(&self, language: Language) -> Vec<String> {
        let own = self.files.iter().filter(|file| language.writes(file));
        let quoted = |name: &String| format!("'{}'", name.replace('\'', "'\\''"));
        if language == Language::Go {
            // Files of one package cannot be tested without the others of it.
            let folder = |file: &String| {
                let folder = Path::new(file).parent().unwrap_or(Path::new("")).display().to_string();
                if folder.is_empty() { ".".to_owned() } else { folder }
            };
            let below = self.folders.iter().map(|folder| format!("{}/...", folder.trim_end_matches('/')));
            let packages: BTreeSet<String> = below.chain(own.map(folder)).map(local).collect();
            return self.packages.iter().cloned().chain(packages).map(|name| quoted(&name)).collect();
        }
        self.folders.iter().chain(own).map(quoted).collect()
    }

    pub fn nothing_for(&self, languages: &[Language]) -> Fault {
        let names: Vec<String> =
            languages.iter().map(|language| format!("{language:?}").to_lowercase()).collect();
        let known = if names.is_empty() { "any known language".to_owned() } else { names.join(" or ") };
        Fault::new(code::TESTS, format!("--test-files: `{}` means no file of {known}", self.words))
    }
}

/// A name that is there is one name, whatever is in it.
fn split(words: &str) -> Vec<&str> {
    if Path::new(words).exists() {
        return vec![words];
    }
    words.split([' ', '\t', '\n', ',']).filter(|word| !word.is_empty()).collect()
}

/// A package of this module, which Go tells from one of its library by its beginning.
fn local(folder: String) -> String {
    if folder.starts_with(['.', '/']) { folder } else { format!("./{folder}") }
}

/// Files below the working directory that a glob means.
fn matching(glob: &str) -> Vec<String> {
    if !glob.contains(WILD) {
        return Vec::new();
    }
    let globs = Globs::new(&[glob], Bare::InRoot);
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        for entry in std::fs::read_dir(here).into_iter().flatten().flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let path = folder.join(&name);
            // Links to folders are not followed: they may lead round.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.extend((!NOT_OURS.contains(&name.as_str())).then_some(path));
            } else if globs.contains(&path.to_string_lossy()) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found
}
