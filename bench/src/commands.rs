//! Commands that people and scripts call often, beside the least that the machine can do instead.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::project::{self, Project};

const FINISHED_RUNS: usize = 500;
/// A step of a check leaves three records.
const STEPS_OF_A_LONG_RUN: usize = 3_400;

/// `--version` and `hook session-start` against `/bin/true`, `list` against reading as many small files, `resume` against parsing the journal.
pub fn table(program: &Path, repeats: usize) -> io::Result<()> {
    println!("\n| command | beside | ratio | target |\n|---|---|---|---|");
    let repeats = repeats * 10;
    let version = best(repeats, || quietly(Command::new(program).arg("--version")))?;
    let nothing = best(repeats, || quietly(&mut Command::new("/bin/true")))?;
    line("`--version`", "`/bin/true`", version, nothing, 2);
    hook(program, repeats, nothing)?;

    let project = Project::new("list", &project::trivial(1))?;
    for _ in 0..FINISHED_RUNS {
        project.expect_done(program, &["run", "./bench.yaml", "x"])?;
    }
    let files = small_files(project.dir())?;
    let reading = best(repeats / 3, || quietly(Command::new("/bin/cat").args(&files)))?;
    for command in ["status", "list"] {
        let took = best(repeats / 3, || project.quietly(program, &[command, "--json"]))?;
        line(
            &format!("`{command}` with {FINISHED_RUNS} finished runs"),
            &format!("`/bin/cat` of {FINISHED_RUNS} small files"),
            took,
            reading,
            3,
        );
    }
    project.remove()?;
    resume(program, repeats)
}

/// What an agent waits for whenever one of its sessions begins; nearly always there is no run to tell it of.
fn hook(program: &Path, repeats: usize, nothing: Duration) -> io::Result<()> {
    let project = Project::new("hook", &project::trivial(1))?;
    let took = best(repeats, || project.quietly(program, &["hook", "session-start"]))?;
    line("`hook session-start` without a run", "`/bin/true`", took, nothing, 5);
    project.expect_done(program, &["run", "./bench.yaml", "x"])?;
    let took = best(repeats, || project.quietly(program, &["hook", "session-start"]))?;
    line("`hook session-start` after a run", "`/bin/true`", took, nothing, 5);
    project.remove()
}

fn line(what: &str, beside: &str, ours: Duration, least: Duration, target: u32) {
    println!("| {what} | {beside} | {:.2} | {target} |", ours.as_secs_f64() / least.as_secs_f64());
}

/// A run of ten thousand records that a person stopped by a question is opened and rests again.
fn resume(program: &Path, repeats: usize) -> io::Result<()> {
    let mut text = project::trivial(STEPS_OF_A_LONG_RUN);
    let last = STEPS_OF_A_LONG_RUN - 1;
    text.push_str(&format!(
        "  - {{ id: ask, decide: \"Go on?\", answers: {{ yes: pass, no: block }}, needs: [s{last}] }}\n"
    ));
    let project = Project::new("resume", &text)?;
    project.run(program, &["run", "./bench.yaml", "x"])?;
    let journal = find(&project.state(), "journal.jsonl")?;
    let records = fs::read_to_string(&journal)?.lines().count();
    let parsing = best(repeats / 3, || {
        let begin = Instant::now();
        let text = fs::read_to_string(&journal)?;
        let parsed =
            text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count();
        assert_eq!(parsed, records, "a record is no JSON");
        Ok(begin.elapsed())
    })?;
    let resumed = best(repeats / 3, || project.quietly(program, &["resume", "latest"]))?;
    line(
        &format!("`resume` of a run of {records} records"),
        "reading and parsing its journal",
        resumed,
        parsing,
        5,
    );
    project.remove()
}

fn best(repeats: usize, mut measure: impl FnMut() -> io::Result<Duration>) -> io::Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..repeats.max(1) {
        best = best.min(measure()?);
    }
    Ok(best)
}

fn quietly(command: &mut Command) -> io::Result<Duration> {
    let begin = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok(begin.elapsed())
}

fn small_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = dir.join("small");
    fs::create_dir_all(&folder)?;
    (0..FINISHED_RUNS)
        .map(|number| {
            let path = folder.join(format!("{number}.json"));
            fs::write(&path, format!("{{\"number\":{number},\"text\":\"{:<900}\"}}", ""))?;
            Ok(path)
        })
        .collect()
}

/// The first file of that name below a folder.
pub fn find(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|own| own == name) {
                return Ok(path);
            }
        }
    }
    Err(io::Error::other(format!("there is no {name}")))
}
