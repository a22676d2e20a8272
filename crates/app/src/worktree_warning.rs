//! Whoever works for a run that has a worktree of its own should be there. Said once a session, never
//! enforced: by the hook that a session starts with, and by a command if nobody has said it yet.

use std::path::{Path, PathBuf};

use gatewright_host::{project::RunPaths, run_meta::RunMeta};

/// What to say to somebody who is elsewhere.
pub fn warning(meta: &RunMeta) -> Option<String> {
    let tree = worktree_of(meta)?;
    let here = std::env::current_dir().ok()?;
    let same = here.canonicalize().ok()?.starts_with(tree.canonicalize().ok()?);
    (!same).then(|| format!("Warning: it works in {}, you are in {}.", tree.display(), here.display()))
}

/// The same, unless it was said in this session before; from then on it was.
pub fn once(paths: &RunPaths, meta: &RunMeta) -> Option<String> {
    let text = warning(meta)?;
    let (file, session) = (paths.dir.join("warned"), session());
    let said = std::fs::read_to_string(&file).unwrap_or_default();
    if said.lines().any(|line| line == session) {
        return None;
    }
    note(&file, &said, &session);
    Some(text)
}

/// It was said in this session.
pub fn said(paths: &RunPaths) {
    let file = paths.dir.join("warned");
    let before = std::fs::read_to_string(&file).unwrap_or_default();
    note(&file, &before, &session());
}

/// Sessions come and go; the last ones are enough to remember.
fn note(file: &Path, before: &str, session: &str) {
    const KEPT: usize = 50;
    let mut lines: Vec<&str> = before.lines().filter(|line| *line != session).collect();
    lines.push(session);
    let kept = &lines[lines.len().saturating_sub(KEPT)..];
    // Saying it twice is better than failing.
    let _ = std::fs::write(file, format!("{}\n", kept.join("\n")));
}

/// The worktree, where it is now: stored relative to the repository, which may have been moved.
fn worktree_of(meta: &RunMeta) -> Option<PathBuf> {
    let tree = meta.root.join(meta.worktree.as_ref()?);
    tree.canonicalize().ok()
}

/// The session of processes that this one belongs to; its number alone is used again one day.
fn session() -> String {
    let leader = gatewright_attempts::session_leader();
    format!("{}:{}", leader.pid, leader.start_ticks)
}
