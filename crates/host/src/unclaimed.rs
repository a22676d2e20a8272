//! What is in a tree after an attempt although its agent does not speak of it, while agents without a sandbox were
//! at work elsewhere: who did it cannot be told without watching every process. So it is named with everybody who
//! may have done it, kept as a patch, and does not count (J-48).

use gatewright_attempts::AttemptDir;
use gatewright_core::{
    fact::{AttemptReport, Intrusion, IntrusionKind},
    ids::StepId,
};

use crate::{
    claims::Claims,
    run_context::RunContext,
    scope::{Evidence, listed, pictures},
};

/// Everything that is known when an attempt is over.
pub struct Ended<'a> {
    pub context: &'a RunContext,
    pub dir: &'a AttemptDir,
    pub evidence: &'a Evidence,
    /// Who worked elsewhere meanwhile and could reach this tree.
    pub suspects: Vec<StepId>,
    /// Step and attempt as one file name.
    pub label: String,
}

impl Ended<'_> {
    /// Adds to the report what nobody says he did.
    pub fn tell(&self, claims: &Claims<'_>, report: &mut AttemptReport) {
        let silent = claims.not_spoken_of(report.reply.as_ref());
        self.evidence.keep_unclaimed(self.context, self.dir, &silent);
        let outside = self.evidence.left_outside();
        let mut paths: Vec<&str> =
            silent.iter().map(String::as_str).chain(outside.iter().map(String::as_str)).collect();
        paths.sort_unstable();
        paths.dedup();
        if paths.is_empty() || self.suspects.is_empty() || report.reply.is_none() {
            return;
        }
        let what = self.sentence(&paths);
        report.found.push(Intrusion {
            kind: IntrusionKind::Watched,
            what: what.clone(),
            by: self.suspects.clone(),
        });
        if outside.is_empty() {
            report.contradictions.push(what);
        } else {
            report.trespasses.push(what);
        }
    }

    fn sentence(&self, paths: &[&str]) -> String {
        let names: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
        let suspects: Vec<String> = self.suspects.iter().map(|step| format!("`{step}`")).collect();
        let folder = &self.evidence.folder;
        format!(
            "{} in {}: changed by somebody else, or not claimed; at work elsewhere without a sandbox meanwhile: {}{}",
            listed(&names),
            folder.display(),
            listed(&suspects),
            self.patch(paths)
        )
    }

    fn patch(&self, paths: &[&str]) -> String {
        let Some(before) = &self.evidence.before else { return String::new() };
        let folder = &self.evidence.folder;
        let pictures = pictures(self.context, folder);
        let path = self.context.paths.patch(&format!("unclaimed-{}", self.label));
        let kept = pictures
            .patch(before.since(), &self.evidence.after.picture, paths)
            .map_err(|error| error.to_string())
            .and_then(|bytes| {
                let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
                made.and_then(|()| std::fs::write(&path, bytes)).map_err(|error| error.to_string())
            });
        match kept {
            Ok(()) => {
                format!("; `git -C {} apply -R {}` takes it back", folder.display(), path.display())
            }
            Err(problem) => format!("; no patch of it could be kept: {problem}"),
        }
    }
}
