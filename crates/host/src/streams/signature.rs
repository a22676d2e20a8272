//! The user's signature under a commit. The commit was made where its hooks are kept from everything; the key
//! is used here, outside, where nothing of an agent is executed: the same tree, the same words, signed.

use std::{collections::BTreeMap, path::Path};

use gatewright_attempts::{CheckCommand, CheckSpec, GIT_PLACES, Git, run_check};

use crate::run_context::RunContext;

/// A person may have to type the passphrase.
const SIGN_MS: u64 = 10 * 60 * 1000;

/// Signs the last commit of a branch if the user's configuration asks for it and it is not signed yet.
pub fn sign(context: &RunContext, branch: &str, scratch: &Path) -> Result<(), String> {
    let home = Git::at(&context.meta.root);
    let wish = home.text(&["config", "--type=bool", "--get", "commit.gpgSign"]);
    if !wish.is_ok_and(|wish| wish == "true") {
        return Ok(());
    }
    let reference = format!("refs/heads/{branch}");
    let failed = |error: &dyn std::fmt::Display| format!("the commit cannot be signed: {error}");
    let old = home.text(&["rev-parse", "--verify", &reference]).map_err(|error| failed(&error))?;
    let bytes = home.bytes(&["cat-file", "commit", &old]).map_err(|error| failed(&error))?;
    let Some(commit) = Commit::parse(&bytes) else { return Err(failed(&"its record is not understood")) };
    if commit.signed {
        return Ok(());
    }
    std::fs::write(scratch, commit.message).map_err(|error| failed(&error))?;
    let signed = copy(context, &home, &commit, scratch);
    let _ = std::fs::remove_file(scratch);
    let new = signed.map_err(|error| failed(&error))?;
    home.text(&["update-ref", "-m", "signed", &reference, &new, &old])
        .map(|_| ())
        .map_err(|error| failed(&error))
}

fn copy(context: &RunContext, home: &Git, commit: &Commit<'_>, message: &Path) -> Result<String, String> {
    let file = message.to_string_lossy();
    let mut arguments = vec!["commit-tree", "-S", "-F", &file];
    for parent in &commit.parents {
        arguments.extend(["-p", parent]);
    }
    arguments.push(commit.tree);
    let mut argv = vec!["git".to_owned()];
    argv.extend(home.arguments(&arguments));
    let own = |name: &str| name.starts_with("GATEWRIGHT_") || GIT_PLACES.contains(&name);
    let mut env: BTreeMap<String, String> =
        context.environment.iter().filter(|(name, _)| !own(name)).cloned().collect();
    env.extend(commit.author.variables("AUTHOR"));
    env.extend(commit.committer.variables("COMMITTER"));
    let mut spec = CheckSpec::new(CheckCommand::Argv(argv), home.folder().to_owned(), env);
    spec.timeout_ms = Some(SIGN_MS);
    let result = run_check(&spec);
    let is_id = |line: &&str| line.len() >= 40 && line.chars().all(|c| c.is_ascii_hexdigit());
    match result.output.lines().rev().find(is_id) {
        Some(id) if result.succeeded() => Ok(id.to_owned()),
        _ => Err(result.spawn_error.unwrap_or_else(|| result.output.trim().to_owned())),
    }
}

/// A commit as git stores it.
struct Commit<'a> {
    tree: &'a str,
    parents: Vec<&'a str>,
    author: Person<'a>,
    committer: Person<'a>,
    signed: bool,
    message: &'a [u8],
}

#[derive(Default)]
struct Person<'a> {
    name: &'a str,
    email: &'a str,
    date: &'a str,
}

impl<'a> Person<'a> {
    /// `NAME <EMAIL> SECONDS ZONE`
    fn parse(text: &'a str) -> Option<Person<'a>> {
        let (name, rest) = text.split_once('<')?;
        let (email, date) = rest.rsplit_once('>')?;
        Some(Person { name: name.trim(), email, date: date.trim() })
    }

    fn variables(&self, who: &str) -> [(String, String); 3] {
        let variable = |part: &str, value: String| (format!("GIT_{who}_{part}"), value);
        [
            variable("NAME", self.name.to_owned()),
            variable("EMAIL", self.email.to_owned()),
            // Without the sign a small number would be taken for something else than seconds.
            variable("DATE", format!("@{}", self.date)),
        ]
    }
}

impl<'a> Commit<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Commit<'a>> {
        let end = bytes.windows(2).position(|two| two == b"\n\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut commit = Commit {
            tree: "",
            parents: Vec::new(),
            author: Person::default(),
            committer: Person::default(),
            signed: false,
            message: &bytes[end + 2..],
        };
        for line in head.lines() {
            match line.split_once(' ') {
                Some(("tree", id)) => commit.tree = id,
                Some(("parent", id)) => commit.parents.push(id),
                Some(("author", who)) => commit.author = Person::parse(who)?,
                Some(("committer", who)) => commit.committer = Person::parse(who)?,
                Some(("gpgsig" | "gpgsig-sha256", _)) => commit.signed = true,
                Some(_) | None => {}
            }
        }
        (!commit.tree.is_empty()).then_some(commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_as_git_stores_it() {
        let text = "tree 11\nparent 22\nparent 33\nauthor A B <a@b> 1 +0200\ncommitter C <c@d> 2 +0000\n\nsubject\n\nbody\n";
        let commit = Commit::parse(text.as_bytes()).unwrap();
        assert_eq!((commit.tree, commit.parents.as_slice()), ("11", &["22", "33"][..]));
        assert_eq!((commit.author.name, commit.author.email, commit.author.date), ("A B", "a@b", "1 +0200"));
        assert_eq!((commit.signed, commit.message), (false, &b"subject\n\nbody\n"[..]));
        let signed = text.replace("\n\nsubject", "\ngpgsig -----BEGIN\n more\n\nsubject");
        assert!(Commit::parse(signed.as_bytes()).unwrap().signed);
        assert!(Commit::parse(b"nonsense").is_none());
    }
}
