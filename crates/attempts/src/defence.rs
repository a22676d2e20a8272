//! Defences that a test can take away, to see that an attack is stopped by them and not by accident.
//! Must not know what they are: those who have one ask here.
//!
//! Only the cargo feature `fault-injection` makes it possible; without it every defence is there, always.

/// What can be taken away, by the name that `GATEWRIGHT_WITHOUT` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defence {
    /// The kernel's sandbox, as where there is none.
    Landlock,
    /// Limits on what a process prints.
    OutputLimits,
    /// What an agent leaves behind is ended.
    Sweep,
    /// An artifact is a plain file inside its folder.
    PlainFiles,
    /// An echo of the prompt, a code block and a quotation are no reply, and the last reply counts.
    CarefulReading,
    /// What a reply claims is held against what is there.
    Claims,
    /// Agents' processes give no orders.
    Callers,
    /// Projections that somebody changed are written anew.
    Projections,
    /// What changed outside of an attempt's scope fails it.
    Scope,
    /// What an agent says counts, not how its process ended.
    Replies,
    /// Agents' words are text, never templates.
    PlainWords,
    /// Control characters are shown, not obeyed.
    CleanOutput,
    /// Secrets are masked.
    Masks,
    /// Limits on artifacts, on YAML and on the number of items.
    InputLimits,
    /// An artifact that is not there is none.
    Contracts,
    /// Published files are made anew from the state directory.
    Published,
    /// Records of a journal carry the user's seal.
    Seals,
    /// Whether a run is over is read from its journal.
    Journals,
    /// The engine's git runs no hooks and no monitor.
    QuietGit,
    /// A commit is looked at before it counts.
    Commits,
    /// What is committed is what is in the tree: the index is the engine's own, and so is the word for a merge.
    OwnIndex,
    /// A branch of a run stands where the engine left it.
    Tips,
    /// What tells the engine what to do is put back.
    PutBack,
    /// A worktree has to lead back to its repository, and links in places of agents lead to no grant.
    Links,
    /// Nobody reads the environment of engine and supervisors.
    Privacy,
    /// Limits on the number of processes.
    ProcessLimits,
}

#[cfg(not(feature = "fault-injection"))]
impl Defence {
    /// It is there.
    #[inline]
    pub const fn is_off(self) -> bool {
        false
    }
}

#[cfg(feature = "fault-injection")]
pub(crate) const VARIABLE: &str = "GATEWRIGHT_WITHOUT";

#[cfg(feature = "fault-injection")]
impl Defence {
    const ALL: [(&str, Defence); 26] = [
        ("landlock", Defence::Landlock),
        ("output-limits", Defence::OutputLimits),
        ("sweep", Defence::Sweep),
        ("plain-files", Defence::PlainFiles),
        ("careful-reading", Defence::CarefulReading),
        ("claims", Defence::Claims),
        ("callers", Defence::Callers),
        ("projections", Defence::Projections),
        ("scope", Defence::Scope),
        ("replies", Defence::Replies),
        ("plain-words", Defence::PlainWords),
        ("clean-output", Defence::CleanOutput),
        ("masks", Defence::Masks),
        ("input-limits", Defence::InputLimits),
        ("contracts", Defence::Contracts),
        ("published", Defence::Published),
        ("seals", Defence::Seals),
        ("journals", Defence::Journals),
        ("quiet-git", Defence::QuietGit),
        ("commits", Defence::Commits),
        ("own-index", Defence::OwnIndex),
        ("tips", Defence::Tips),
        ("put-back", Defence::PutBack),
        ("links", Defence::Links),
        ("privacy", Defence::Privacy),
        ("process-limits", Defence::ProcessLimits),
    ];

    /// Whether `GATEWRIGHT_WITHOUT`, names with commas between them, takes it away. A mistyped name would let a
    /// control pass for the wrong reason, so it ends the process.
    pub fn is_off(self) -> bool {
        static OFF: std::sync::LazyLock<Vec<Defence>> = std::sync::LazyLock::new(|| {
            let names = std::env::var(VARIABLE).unwrap_or_default();
            named(&names).unwrap_or_else(|name| {
                eprintln!("{VARIABLE}: there is no defence `{name}`");
                std::process::exit(70)
            })
        });
        OFF.contains(&self)
    }
}

#[cfg(feature = "fault-injection")]
fn named(names: &str) -> Result<Vec<Defence>, &str> {
    let find = |name| Defence::ALL.iter().find(|(other, _)| *other == name).map(|(_, one)| *one).ok_or(name);
    names.split(',').filter(|name| !name.is_empty()).map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_away_unless_it_is_named() {
        assert!(!Defence::Landlock.is_off() && !Defence::Callers.is_off());
    }

    #[cfg(feature = "fault-injection")]
    #[test]
    fn defences_have_names_and_others_are_refused() {
        assert_eq!(named(""), Ok(vec![]));
        assert_eq!(named("sweep,callers"), Ok(vec![Defence::Sweep, Defence::Callers]));
        assert_eq!(named("sweep,cats"), Err("cats"));
        for (name, defence) in Defence::ALL {
            assert_eq!(named(name), Ok(vec![defence]));
        }
    }
}
