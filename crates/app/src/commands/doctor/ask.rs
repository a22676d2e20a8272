//! Asks a program about itself: a version, a page of help. Bounded in time and size, and nothing of it is left.

use std::{
    io::Read,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// Some take seconds to start on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(10);
const BYTES_MAX: u64 = 256 * 1024;

/// What it printed on stdout and then on stderr; nothing if it failed or took too long.
pub fn ask(path: &Path, arguments: &[&str]) -> Option<String> {
    let until = Instant::now() + PATIENCE;
    let mut child = Command::new(path)
        .args(arguments)
        // It would start itself once more, and be late.
        .env("GEMINI_CLI_NO_RELAUNCH", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .ok()?;
    let printed = [child.stdout.take().map(listen), child.stderr.take().map(listen)];
    let ended = wait(&mut child, until);
    let left = |until: Instant| until.saturating_duration_since(Instant::now());
    let texts: Vec<String> =
        printed.into_iter().flatten().filter_map(|text| text.recv_timeout(left(until)).ok()).collect();
    end_group(&mut child);
    ended.filter(|well| *well).map(|_| texts.join("\n"))
}

/// The reader of a pipe that somebody else may still hold is left behind, not waited for.
fn listen(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = (&mut pipe).take(BYTES_MAX).read_to_end(&mut text);
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    receiver
}

/// Whether it ended well; nothing if it did not end.
fn wait(child: &mut Child, until: Instant) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) | Err(_) => return None,
        }
    }
}

fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

/// Every `--flag` of a page of help, once.
pub fn flags_in(help: &str) -> Vec<String> {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let words = help.split(|c: char| !part_of_word(c));
    let is_flag = |word: &&str| {
        word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let mut flags: Vec<String> =
        words.filter(is_flag).map(|word| word.trim_end_matches('-').to_owned()).collect();
    flags.sort();
    flags.dedup();
    flags
}

/// The numbers of a version, wherever they stand in its words.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let words = version.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let dotted = words
        .filter(|word| word.contains('.'))
        .map(|word| word.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>());
    dotted.flatten().next()
}

/// Whether a version is certainly older than another one.
pub fn is_before(version: &str, other: &str) -> bool {
    numbers(version).zip(numbers(other)).is_some_and(|(version, other)| version < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_in_pages_of_any_shape() {
        let help = "  -m, --model <model>   Model\n      --add-dir=DIR  [--no-color]\n--- not one\n  --allowedTools, --allowed-tools <tools...>\n`--model`";
        assert_eq!(
            flags_in(help),
            ["--add-dir", "--allowed-tools", "--allowedTools", "--model", "--no-color"]
        );
    }

    #[test]
    fn versions_are_compared_by_numbers() {
        assert!(is_before("pi 0.73.1", "0.87"));
        assert!(is_before("v0.9.0", "0.87.1"));
        assert!(!is_before("2.1.325 (Claude Code)", "2.1.325"));
        assert!(!is_before("no number", "1.0"));
    }

    #[test]
    fn a_program_that_hangs_fails_or_has_children_is_not_waited_for() {
        let sh = Path::new("/bin/sh");
        assert_eq!(ask(sh, &["-c", "echo out; echo err >&2"]).as_deref(), Some("out\n\nerr\n"));
        assert_eq!(ask(sh, &["-c", "echo out; exit 1"]), None);
        assert_eq!(ask(Path::new("/no/such/program"), &[]), None);
    }
}
