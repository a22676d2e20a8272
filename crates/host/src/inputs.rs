//! Inputs are resolved before a launch, by path; a missing one is named with what is near (S0-43…47).

use std::path::{Path, PathBuf};

use gatewright_core::{
    fact::InputProblem,
    ids::{ArtifactName, ContentHash, StepId},
    state::State,
};
use gatewright_workflow::{definition::file_name, frozen::Read};
use serde_json::Value;

use crate::{
    prompt::Place,
    run_context::{RunContext, hash_bytes, hash_file, is_plain_relative},
};

/// What an attempt reads: where, and what was there.
#[derive(Debug, Default)]
pub struct Resolved {
    pub places: Vec<Place>,
    pub hashes: Vec<(ArtifactName, ContentHash)>,
}

/// Finds every declared input of a step.
pub fn resolve(
    context: &RunContext,
    state: &State,
    step: &StepId,
    reads: &[Read],
    document: &Value,
) -> Result<Resolved, InputProblem> {
    let mut resolved = Resolved::default();
    for read in reads {
        let name = context
            .render("reads", &read.name, document)
            .map_err(|problem| InputProblem::Unusable { message: problem.to_string() })?;
        let substitute = state.substitutes.get(&name).cloned();
        let chosen = substitute.is_some();
        let wanted = substitute.unwrap_or_else(|| name.clone());
        let workdir = context.workdir(state, step);
        let found = find(context, &workdir, &wanted);
        let Some(path) = found.filter(|path| chosen || !is_left_over(context, state, &wanted, path)) else {
            if read.optional {
                continue;
            }
            return Err(missing(context, &workdir, &name));
        };
        let hash = match hash_file(&path) {
            Ok(hash) => hash,
            Err(_) if path.is_dir() => hash_bytes(&[]),
            Err(error) => {
                return Err(InputProblem::Unusable { message: format!("{}: {error}", path.display()) });
            }
        };
        let artifact = ArtifactName::new(&wanted);
        if let Some(known) = state.artifacts.get(&artifact)
            && known.hash != hash
            && known.step != *step
        {
            return Err(InputProblem::Changed { name: artifact, expected: known.hash.clone(), found: hash });
        }
        let shown = path.strip_prefix(&workdir).unwrap_or(&path);
        resolved.places.push(Place { name: wanted, path: shown.to_string_lossy().into_owned() });
        resolved.hashes.push((artifact, hash));
    }
    Ok(resolved)
}

/// In the run directory, or with `./` in front in the repository.
fn find(context: &RunContext, workdir: &Path, name: &str) -> Option<PathBuf> {
    let path = match name.strip_prefix("./") {
        Some(rest) => is_plain_relative(Path::new(rest)).then(|| workdir.join(rest))?,
        None => is_plain_relative(Path::new(name)).then(|| context.meta.run_dir.join(name))?,
    };
    path.exists().then_some(path)
}

/// A file of this name is made by a step of this run, which has not made it: it is what an earlier run left in the same
/// folder, and nobody reads it as if it were of this one. What a run was started from is its own.
fn is_left_over(context: &RunContext, state: &State, name: &str, path: &Path) -> bool {
    let meta = &context.meta;
    let began_with_files =
        meta.continues.is_some() || !meta.beginning.given.is_empty() || !meta.beginning.done.is_empty();
    if began_with_files || name.starts_with("./") || state.artifacts.contains_key(&ArtifactName::new(name)) {
        return false;
    }
    let texts = context.frozen.steps.get(&state.profile);
    let writes = texts.into_iter().flat_map(|texts| texts.values()).flat_map(|text| &text.writes);
    let made_here = writes
        .flat_map(|write| std::iter::once(&write.name).chain(&write.first))
        .any(|made| file_name::matches(&file_name::pattern(made), name));
    let written = std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let begun = std::time::UNIX_EPOCH + std::time::Duration::from_millis(meta.created_at_ms);
    made_here && written.is_some_and(|at| at < begun)
}

fn missing(context: &RunContext, workdir: &Path, name: &str) -> InputProblem {
    let available = match name.strip_prefix("./") {
        None => list_files(&context.meta.run_dir, 200),
        // Only beside it: a repository may be large.
        Some(rest) => {
            let folder = Path::new(rest).parent().unwrap_or(Path::new(""));
            let entries = std::fs::read_dir(workdir.join(folder)).into_iter().flatten().flatten();
            let files = entries.filter(|entry| entry.path().is_file()).take(200);
            let mut names: Vec<String> =
                files.map(|entry| format!("./{}", folder.join(entry.file_name()).display())).collect();
            names.sort();
            names
        }
    };
    let near = near_matches(name, &available);
    InputProblem::Missing { name: name.to_owned(), near, available }
}

/// Files below a folder, relative, sorted, at most so many.
pub fn list_files(dir: &Path, most: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if found.len() >= most {
                break;
            }
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(relative) = path.strip_prefix(dir) {
                found.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Abbreviations, missing iteration suffixes and typing errors.
pub fn near_matches(name: &str, available: &[String]) -> Vec<String> {
    let stem = |text: &str| {
        let file = text.rsplit('/').next().unwrap_or(text);
        file.rsplit_once('.').map_or(file, |(stem, _)| stem).to_lowercase()
    };
    let wanted = stem(name);
    let close = |other: &&String| {
        let other = stem(other);
        let shorter = wanted.len().min(other.len());
        (shorter >= 3
            && (wanted.starts_with(&other)
                || other.starts_with(&wanted)
                || wanted.contains(&other)
                || other.contains(&wanted)))
            || distance(&wanted, &other) <= 2.min(wanted.len() / 3)
    };
    available.iter().filter(close).cloned().collect()
}

fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replace = before + usize::from(a != *b);
            before = row[j + 1];
            row[j + 1] = replace.min(before + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s0_43_s0_44_abbreviations_suffixes_and_typos_are_near() {
        let available =
            ["perf.md", "loop-iterations/performance-review-2.md", "perfromance.md", "security.md"]
                .map(str::to_owned);
        assert_eq!(
            near_matches("performance.md", &available),
            ["perf.md", "loop-iterations/performance-review-2.md", "perfromance.md"]
        );
    }
}
