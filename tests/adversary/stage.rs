//! Where attacks are played: a project with a run that is over, a run that waits for a person, and a home
//! directory with something worth having. The agent knows all of its surroundings that a real one would.

use std::path::{Path, PathBuf};

use crate::{
    proof::Proof,
    support::{Ran, Scratch},
};

/// The state directory of the attacker's own run, of its attempt, and of the runs beside it.
const KNOWS: &str = r#"
run=${GATEWRIGHT_OUT%/attempts/*}; attempt=${GATEWRIGHT_OUT%/out}; runs=${run%/*}; root=${runs%/projects/*}
# What a shell cannot do is told to the report, so that a test sees which door was closed.
try() { "$@" 2>> "$GATEWRIGHT_OUT/refused" || echo "refused: $*" >> "$GATEWRIGHT_OUT/refused"; }
"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    On,
    Off,
    /// Nobody switched it off, and the kernel has none.
    Nowhere,
}

impl Sandbox {
    pub fn holds(self) -> bool {
        self == Sandbox::On
    }
}

/// With it and without it.
pub const BOTH: [Sandbox; 2] = [Sandbox::On, Sandbox::Off];

pub struct Stage {
    pub scratch: Scratch,
    /// A run that ended before the attack.
    pub bystander: String,
    /// Defences that are taken away from here on.
    pub without: String,
}

impl Stage {
    /// `workflow` is attacked by the agent's `cases`. Before, a run of `quiet` comes to its end.
    pub fn new(sandbox: Sandbox, workflow: &str, cases: &str) -> Stage {
        let scratch = Scratch::with(workflow, &format!("quiet) wrote note.md;;\n{cases}"));
        scratch.workflow("quiet", "steps: [ { id: quiet, role: coder, writes: { note.md: any } } ]");
        for folder in [".ssh", "prompts", ".config/gatewright"] {
            std::fs::create_dir_all(scratch.home().join(folder)).unwrap();
        }
        for (file, text) in [("calls", ""), (".ssh/authorized_keys", "mine\n"), (".profile", "true\n")] {
            std::fs::write(scratch.home().join(file), text).unwrap();
        }
        let words = match sandbox {
            Sandbox::On | Sandbox::Nowhere => "sandbox: { write: [\"~/prompts\", \"~/calls\"] }\n",
            Sandbox::Off => "sandbox: off\n",
        };
        std::fs::write(scratch.home().join(".config/gatewright/config.yaml"), words).unwrap();
        let bystander = scratch.gatewright(&["run", "quiet", "First"]).exits(0).id();
        let without = if sandbox == Sandbox::Nowhere { "landlock" } else { "" };
        Stage { scratch, bystander, without: without.to_owned() }
    }

    /// The same with these defences taken away.
    pub fn without(mut self, defences: &str) -> Stage {
        defences.clone_into(&mut self.without);
        self
    }

    /// The program, with the defences that are left.
    pub fn gatewright(&self, arguments: &[&str]) -> Ran {
        let mut command = self.scratch.command(arguments);
        command.env("GATEWRIGHT_WITHOUT", &self.without);
        self.scratch.start_with(command, None).ended()
    }

    /// One step `code` with this script, which ends as done, and a check or not.
    pub fn code(sandbox: Sandbox, script: &str) -> Stage {
        Stage::new(
            sandbox,
            "steps: [ { id: code, role: coder, retry: { attempts_max: 1 } } ]",
            &case("code", script),
        )
    }

    /// The run, whatever becomes of it.
    pub fn play(&self) -> (String, Ran) {
        let ran = self.gatewright(&["run", "w", "Add a greeting"]);
        (ran.id(), ran)
    }

    /// Everything that a user is told: by the run as it ends, by its events, and by `why`.
    pub fn says(&self, run: &str, ran: &Ran) -> String {
        let events = self.scratch.gatewright(&["events", run]);
        let why = self.scratch.gatewright(&["why", run]);
        format!("{}\n{}\n{}\n{}", ran.err, events.out, events.err, why.out)
    }

    /// What the agent was refused.
    pub fn refused(&self, run: &str) -> String {
        let out = self.state_of(run).join("attempts/code/1/out/refused");
        std::fs::read_to_string(out).unwrap_or_default()
    }

    /// It is told in words a user understands: by the run itself or its events, and by `doctor`.
    #[track_caller]
    pub fn is_named(&self, sandbox: Sandbox, run: &str, ran: &Ran, proof: &Proof) {
        proof.told(sandbox, &self.says(run, ran));
        proof.told_by_doctor(&self.scratch.gatewright(&["doctor"]).out);
    }

    /// The state directory of a run.
    pub fn state_of(&self, run: &str) -> PathBuf {
        let folder =
            std::fs::read_dir(self.state().join("projects")).unwrap().next().unwrap().unwrap().path();
        folder.join("runs").join(run)
    }

    pub fn state(&self) -> PathBuf {
        self.scratch.home().parent().unwrap().join("state")
    }

    /// The run that was over before the attack is as it was, journal and artifact.
    #[track_caller]
    pub fn bystander_is_unharmed(&self) {
        assert_eq!(self.scratch.state(&self.bystander), "done");
        assert_eq!(
            self.scratch.published(&self.bystander, "note.md").as_deref(),
            Some("content of note.md\n"),
            "the artifact of a run that is over"
        );
    }
}

pub fn case(step: &str, script: &str) -> String {
    format!("{step}) {KNOWS}\n{script}\nok;;")
}

/// An attack on a file: with the sandbox it changes nothing. Where there is none, because it is off or because the
/// kernel has none, it does, and is named.
#[track_caller]
pub fn on_a_file(test: &str, script: &str, harmed: impl Fn(&Stage, &str) -> bool) {
    let proof = Proof::of(test);
    is_prevented(&proof, script, &harmed);
    for sandbox in [Sandbox::Off, Sandbox::Nowhere] {
        let (control, run, ran) = does_damage(sandbox, &proof, script, &harmed);
        control.is_named(sandbox, &run, &ran, &proof);
    }
}

/// The same for an attack that leaves nothing behind that anybody could find: reading, or a file in a place that is
/// nobody's. What a user is told is that the agent was not kept from it.
#[track_caller]
pub fn unseen(test: &str, script: &str, harmed: impl Fn(&Stage, &str) -> bool) {
    let proof = Proof::of(test);
    is_prevented(&proof, script, &harmed);
    let (control, run, _) = does_damage(Sandbox::Off, &proof, script, &harmed);
    proof.told(Sandbox::Off, &control.scratch.gatewright(&["status", &run]).out);
}

#[track_caller]
fn is_prevented(proof: &Proof, script: &str, harmed: &impl Fn(&Stage, &str) -> bool) {
    let stage = Stage::code(Sandbox::On, script);
    let (run, ran) = stage.play();
    assert!(!harmed(&stage, &run), "in the sandbox: {}", stage.refused(&run));
    assert!(!stage.refused(&run).is_empty(), "the attack was tried\n{}\n{}", ran.out, ran.err);
    proof.was_refused(Sandbox::On);
    stage.bystander_is_unharmed();
}

#[track_caller]
fn does_damage(
    sandbox: Sandbox,
    proof: &Proof,
    script: &str,
    harmed: &impl Fn(&Stage, &str) -> bool,
) -> (Stage, String, Ran) {
    let control = Stage::code(sandbox, script);
    let (run, ran) = control.play();
    proof.damage(harmed(&control, &run), &format!("{sandbox:?}\n{}\n{}", ran.out, ran.err));
    (control, run, ran)
}

pub fn reads(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
