//! Tries mutants: which tests reach each of them, and whether one of these fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Lives of the core's simulation for a mutant, against twenty thousand in the suite.
const SIM_RUNS: &str = "800";
/// A mutant that never ends gets this beside ten times what the tests take without it: time of a processor, so that
/// nothing is taken for endless because the machine is busy.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same for all tests of a program, of which nobody knows how long they take.
const PATIENCE_WITH_ALL: Duration = Duration::from_mins(2);
/// Whoever uses no processor and does not end either.
const STUCK: Duration = Duration::from_mins(20);
/// A mutant that collects without end is refused more memory than this.
const MEMORY_MAX_KB: &str = "4000000";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    Caught,
    /// The tests did not end, which they do without it.
    TimedOut,
    Survived,
    /// It survived, and no test even comes to its place.
    Unreached,
    Unviable,
}

impl Outcome {
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Caught => "caught",
            Outcome::TimedOut => "timed out",
            Outcome::Survived => "survived",
            Outcome::Unreached => "never reached",
            Outcome::Unviable => "unviable",
        }
    }

    pub fn survived(self) -> bool {
        matches!(self, Outcome::Survived | Outcome::Unreached)
    }
}

/// One test program with its tests, and for each the mutants it reaches.
struct Program {
    path: PathBuf,
    tests: Vec<Test>,
}

struct Test {
    name: String,
    reaches: BTreeSet<usize>,
    takes: Duration,
}

/// The core's tests, as they are built now.
pub struct Tests {
    programs: Vec<Program>,
    package: PathBuf,
}

impl Tests {
    /// Runs each test alone, without a mutant: all must pass.
    pub fn explore(programs: Vec<PathBuf>, package: PathBuf, jobs: usize) -> io::Result<Tests> {
        let scratch = package.with_file_name("reached");
        fs::create_dir_all(&scratch)?;
        let mut tests = Tests { programs: Vec::new(), package };
        for path in programs {
            let output = Command::new(&path).args(["--list", "--format", "terse"]).output()?;
            let listed = String::from_utf8_lossy(&output.stdout).into_owned();
            let names: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
            let found = in_parallel(jobs, &names, |place, name| {
                let reached = scratch.join(place.to_string());
                let begun = Instant::now();
                let process =
                    tests.start(&path, &[name], Switch::Reached(&reached), Duration::from_mins(10))?;
                if wait(process)? != Outcome::Survived {
                    return Err(io::Error::other(format!("the test `{name}` fails without a mutant")));
                }
                let takes = begun.elapsed();
                // A test that reaches nothing writes no list.
                let text = fs::read_to_string(&reached).unwrap_or_default();
                _ = fs::remove_file(&reached);
                let reaches = text.lines().filter_map(|line| line.parse().ok()).collect();
                Ok(Test { name: (*name).to_owned(), reaches, takes })
            })?;
            tests.programs.push(Program { path, tests: found });
        }
        tests.programs.sort_by_key(|program| program.tests.iter().map(|test| test.takes).sum::<Duration>());
        Ok(tests)
    }

    pub fn count(&self) -> usize {
        self.programs.iter().map(|program| program.tests.len()).sum()
    }

    /// Tries one mutant that is woven in. Most are caught by whoever reaches them: one test is tried before the others,
    /// the one that reaches least first.
    pub fn attempt(&self, number: usize) -> io::Result<Outcome> {
        let mut reached = false;
        for program in &self.programs {
            let mut own: Vec<&Test> =
                program.tests.iter().filter(|test| test.reaches.contains(&number)).collect();
            own.sort_by_key(|test| test.reaches.len());
            let (mut left, mut many) = (own.as_slice(), 1);
            while !left.is_empty() {
                reached = true;
                let (now, later) = left.split_at(many.min(left.len()));
                let names: Vec<&str> = now.iter().map(|test| test.name.as_str()).collect();
                let time = PATIENCE + 10 * now.iter().map(|test| test.takes).sum::<Duration>();
                let outcome = wait(self.start(&program.path, &names, Switch::On(number), time)?)?;
                if outcome != Outcome::Survived {
                    return Ok(outcome);
                }
                (left, many) = (later, 2 * many);
            }
        }
        Ok(if reached { Outcome::Survived } else { Outcome::Unreached })
    }

    fn start(&self, program: &Path, names: &[&str], switch: Switch, time: Duration) -> io::Result<Child> {
        start(program, &self.package, names, switch, time)
    }
}

/// Tries what is built now, with all tests: a mutant without a switch.
pub fn attempt_alone(programs: &[PathBuf], package: &Path) -> io::Result<Outcome> {
    for program in programs {
        let outcome = wait(start(program, package, &[], Switch::None, PATIENCE_WITH_ALL)?)?;
        if outcome != Outcome::Survived {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Survived)
}

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

enum Switch<'a> {
    None,
    On(usize),
    Reached(&'a Path),
}

fn start(
    program: &Path,
    package: &Path,
    names: &[&str],
    switch: Switch,
    time: Duration,
) -> io::Result<Child> {
    let mut command = Command::new("sh");
    let limits = format!("ulimit -v {MEMORY_MAX_KB}; ulimit -t {}", time.as_secs() + 1);
    command.args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")]).arg(program);
    command.args(["--exact", "--test-threads", "1"]).args(names).current_dir(package);
    command.env("SIM_RUNS", SIM_RUNS).env("CARGO_MANIFEST_DIR", package).env_remove("UPDATE");
    // The same cases for every mutant: what is caught today is caught tomorrow.
    command.env("PROPTEST_RNG_SEED", "1").env("PROPTEST_FAILURE_PERSISTENCE", "off");
    match switch {
        Switch::None => {}
        Switch::On(number) => _ = command.env("GATEWRIGHT_MUTANT", number.to_string()),
        Switch::Reached(path) => _ = command.env("GATEWRIGHT_MUTANTS_REACHED", path),
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn wait(mut process: Child) -> io::Result<Outcome> {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = process.try_wait()? {
            return Ok(match status.signal() {
                // What the kernel sends when the time of a processor is used up.
                Some(SIGXCPU | SIGKILL) => Outcome::TimedOut,
                _ if status.success() => Outcome::Survived,
                _ => Outcome::Caught,
            });
        }
        if begun.elapsed() > STUCK {
            process.kill()?;
            process.wait()?;
            return Ok(Outcome::TimedOut);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// One after the other, several at once; the results in the order of the work.
pub fn in_parallel<W: Sync, R: Send>(
    jobs: usize,
    work: &[W],
    one: impl Fn(usize, &W) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, io::Result<R>>> = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = work.get(place) else { return };
                    let result = one(place, item);
                    done.lock().unwrap_or_else(|poison| poison.into_inner()).insert(place, result);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(|poison| poison.into_inner()).into_values().collect()
}

/// Notes what came of mutants, by their keys; `all` forgets what was noted before.
pub fn keep(path: &Path, now: impl Iterator<Item = (String, &'static str)>, all: bool) -> io::Result<()> {
    let before = if all { String::new() } else { fs::read_to_string(path).unwrap_or_default() };
    let mut kept: BTreeMap<&str, &str> =
        before.lines().filter_map(|line| line.split_once('\t')).map(|(word, key)| (key, word)).collect();
    let now: Vec<(String, &str)> = now.collect();
    kept.extend(now.iter().map(|(key, word)| (key.as_str(), *word)));
    fs::write(path, kept.iter().map(|(key, word)| format!("{word}\t{key}\n")).collect::<String>())
}

/// The keys of those that survived the last time.
pub fn last_survivors(path: &Path) -> io::Result<BTreeSet<String>> {
    let text = fs::read_to_string(path)?;
    let survived = [Outcome::Survived.word(), Outcome::Unreached.word()];
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    Ok(lines.filter(|(word, _)| survived.contains(word)).map(|(_, key)| key.to_owned()).collect())
}
