//! What a write scope costs: the picture of a large tree beside `git status` of the same tree.

use std::{
    fs, io,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use gatewright_host::scope::picture::Pictures;

const FOLDERS: usize = 500;
const FILES_PER_FOLDER: usize = 100;
const REPEATS: usize = 5;
/// What a picture may cost, as a multiple of `git status`: nothing changed, and a hundred files.
const TARGETS: [f64; 2] = [2.5, 4.0];

/// Prints one table: nothing changed, and a hundred files changed. A target that is missed is an error.
pub fn table() -> io::Result<()> {
    let dir = crate::project::scratch("pictures")?;
    let measured = measure(&dir);
    fs::remove_dir_all(&dir)?;
    let (first, rows) = measured?;
    println!(
        "\n| tree of {} files | git status ms | picture ms | ratio | target |",
        FOLDERS * FILES_PER_FOLDER
    );
    println!("|---|---|---|---|---|");
    let mut missed = Vec::new();
    for ((what, floor, ours), target) in rows.into_iter().zip(TARGETS) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let ratio = ms(ours) / ms(floor);
        let is_missed = ratio > target;
        let mark = if is_missed { " (missed)" } else { "" };
        println!("| {what} | {:.0} | {:.0} | {ratio:.2} | {target:.1}{mark} |", ms(floor), ms(ours));
        missed.extend(is_missed.then(|| format!("{what}: {ratio:.2}, at most {target:.1}")));
    }
    println!("\nthe first picture of a folder: {:.0} ms; every attempt takes two", first.as_secs_f64() * 1e3);
    if missed.is_empty() { Ok(()) } else { Err(io::Error::other(missed.join("; "))) }
}

type Row = (&'static str, Duration, Duration);

fn measure(dir: &Path) -> io::Result<(Duration, Vec<Row>)> {
    let tree = dir.join("tree");
    for folder in 0..FOLDERS {
        let folder_path = tree.join(format!("folder{folder}"));
        fs::create_dir_all(&folder_path)?;
        for file in 0..FILES_PER_FOLDER {
            fs::write(folder_path.join(format!("file{file}.txt")), format!("{folder} {file}\n").repeat(20))?;
        }
    }
    git(&tree, &["init", "-q"])?;
    git(&tree, &["add", "-A"])?;
    git(&tree, &["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-q", "-m", "b"])?;
    let pictures = Pictures::of(&tree, &dir.join("store"), &[]);
    let take = || pictures.take().map_err(io::Error::other);
    let started = Instant::now();
    let mut before = take()?;
    let first = started.elapsed();
    let mut rows = Vec::new();
    for (what, changed) in [("nothing changed", 0), ("100 files changed", 100)] {
        let (mut floor, mut ours) = (Duration::MAX, Duration::MAX);
        for round in 0..REPEATS {
            for file in 0..changed {
                fs::write(tree.join(format!("folder{file}/file0.txt")), format!("{round} {file} {what}\n"))?;
            }
            let started = Instant::now();
            git(&tree, &["status", "--porcelain", "--untracked-files=all"])?;
            floor = floor.min(started.elapsed());
            let started = Instant::now();
            let after = take()?;
            pictures.differences(&before, &after).map_err(io::Error::other)?;
            ours = ours.min(started.elapsed());
            before = after;
        }
        rows.push((what, floor, ours));
    }
    Ok((first, rows))
}

fn git(folder: &Path, arguments: &[&str]) -> io::Result<()> {
    let output = Command::new("git").args(arguments).current_dir(folder).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}
