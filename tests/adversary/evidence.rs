//! Attacks on evidence: artifacts that are something else, gates that are answered by the one who waits.

use crate::{
    proof::Proof,
    stage::{BOTH, Sandbox, Stage, case, reads},
    support::wait_for,
};

/// `code` must write report.md; `ship` comes after.
const REPORT: &str = "steps: [ { id: code, role: coder, retry: { attempts_max: 1 }, writes: { report.md: any } }, { id: ship, role: coder } ]";

/// With and without the sandbox the artifact is refused, and the words say why.
#[track_caller]
fn is_refused(proof: &Proof, script: &str) {
    for sandbox in BOTH {
        let stage = reported(sandbox, REPORT, script);
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}");
        assert_eq!(stage.scratch.count("ship"), 0);
        proof.told(sandbox, &format!("{}{}", ran.err, stage.scratch.gatewright(&["why", &run, "code"]).out));
        assert!(!stage.scratch.published(&run, "report.md").unwrap_or_default().contains("mine"));
    }
}

fn reported(sandbox: Sandbox, workflow: &str, script: &str) -> Stage {
    Stage::new(sandbox, workflow, &case("code", &format!("{script}\nbrief DONE report.md; exit 0")))
}

#[test]
fn a_link_is_no_artifact() {
    let proof = Proof::of("a_link_is_no_artifact");
    let script = "ln -s $HOME/.ssh/authorized_keys $GATEWRIGHT_OUT/report.md";
    is_refused(&proof, script);
    let control = reported(Sandbox::On, REPORT, script).without("plain-files");
    let (run, ran) = control.play();
    let published = control.scratch.published(&run, "report.md").unwrap_or_default();
    proof.damage(published == "mine\n" && control.scratch.count("ship") == 1, &ran.err);
}

#[test]
fn a_folder_is_no_artifact() {
    let proof = Proof::of("a_folder_is_no_artifact");
    let script = "mkdir $GATEWRIGHT_OUT/report.md";
    is_refused(&proof, script);
    // An engine that takes it for the report stumbles over it, and so does everyone who goes on with the run.
    let control = reported(Sandbox::On, REPORT, script).without("plain-files,claims");
    let (run, ran) = control.play();
    let accepted = reads(&control.state_of(&run).join("journal.jsonl")).contains("step.attempt.accepted");
    let around = format!("{}\n{}", ran.out, ran.err);
    proof.damage(accepted || control.scratch.step_state(&run, "code") == "passed", &around);
}

#[test]
fn a_pipe_is_no_artifact() {
    let proof = Proof::of("a_pipe_is_no_artifact");
    let script = "mkfifo $GATEWRIGHT_OUT/report.md";
    is_refused(&proof, script);
    // An engine that reads whatever has the name waits for ever.
    let control = reported(Sandbox::On, REPORT, script);
    let mut command = control.scratch.command(&["run", "w", "Add a greeting"]);
    command.env("GATEWRIGHT_WITHOUT", "plain-files");
    let engine = control.scratch.start_with(command, None);
    let run = engine.id();
    let pipe = control.state_of(&run).join("attempts/code/1/out/report.md");
    // A pipe can be opened for writing at once only if somebody is about to read.
    use std::os::unix::fs::OpenOptionsExt;
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let writer = wait_for("somebody who waits for the pipe", || {
        std::fs::OpenOptions::new().write(true).custom_flags(nonblocking).open(&pipe).ok()
    });
    proof.damage(control.scratch.state(&run) == "running", "the engine waits");
    engine.kill();
    drop(writer);
}

#[test]
fn an_artifact_without_end_is_refused() {
    let proof = Proof::of("an_artifact_without_end_is_refused");
    let script = |size: &str| format!("truncate -s {size} $GATEWRIGHT_OUT/report.md");
    is_refused(&proof, &script("10G"));
    // Less than that is enough to fill memories and disks, and is refused too.
    is_refused(&proof, &script("64M"));
    let control = reported(Sandbox::On, REPORT, &script("64M")).without("input-limits");
    let (run, ran) = control.play();
    let published = control.scratch.published(&run, "report.md").unwrap_or_default().len();
    proof.damage(published == 64 << 20 && control.scratch.count("ship") == 1, &ran.err);
}

#[test]
fn nothing_written_is_no_artifact() {
    let proof = Proof::of("nothing_written_is_no_artifact");
    is_refused(&proof, "true");
    let control = reported(Sandbox::On, REPORT, "true").without("contracts,claims");
    let (_, ran) = control.play();
    proof.damage((ran.code, control.scratch.count("ship")) == (0, 1), &ran.err);
}

const LISTED: &str = "
roles: { coder: { prompt: Build it. }, maker: { prompt: \"All of it: {{ item.all | default('') }}\" } }
steps:
  - { id: code, role: coder, retry: { attempts_max: 1 }, writes: { tasks.yaml: any } }
  - { id: build, for_each: tasks.yaml, items_max: 100000, steps: [ { id: ship, role: maker } ] }
";

fn listing(sandbox: Sandbox, items_max: u32, script: &str) -> Stage {
    let workflow = LISTED.replace("100000", &items_max.to_string());
    Stage::new(sandbox, &workflow, &case("code", &format!("{script}\nbrief DONE tasks.yaml; exit 0")))
}

/// A list that is small as text: every level holds the one before nine times.
fn bomb(levels: &str) -> String {
    format!(
        "{{ echo 'a: &a [x,x,x,x,x,x,x,x,x]'; last=a; for name in {levels}; do echo \"$name: &$name [*$last,*$last,*$last,*$last,*$last,*$last,*$last,*$last,*$last]\"; last=$name; done; echo 'tasks:'; echo '- id: T1'; echo \"  all: *$last\"; }} > $GATEWRIGHT_OUT/tasks.yaml"
    )
}

fn many(count: u32) -> String {
    format!("{{ echo 'tasks:'; seq 1 {count} | sed 's/.*/- {{ id: T& }}/'; }} > $GATEWRIGHT_OUT/tasks.yaml")
}

/// With and without the sandbox nobody is set to work on it, and the words say why.
#[track_caller]
fn is_no_list(proof: &Proof, items_max: u32, script: &str) {
    for sandbox in BOTH {
        let stage = listing(sandbox, items_max, script);
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0);
        assert_eq!(stage.scratch.count("build/T1/ship"), 0);
        proof.told(sandbox, &stage.says(&run, &ran));
    }
}

#[test]
fn a_list_that_explodes_is_refused() {
    let proof = Proof::of("a_list_that_explodes_is_refused");
    is_no_list(&proof, 100_000, &bomb("b c d e f g h i j"));
    // Five levels less are ten thousand times less, and too much.
    is_no_list(&proof, 100_000, &bomb("b c d e f"));
    let control = listing(Sandbox::On, 100_000, &bomb("b c d e f")).without("input-limits");
    let (run, ran) = control.play();
    let text = reads(&control.state_of(&run).join("attempts/code/1/out/tasks.yaml")).len();
    let lists = control.state_of(&run).join("lists");
    let read = std::process::Command::new("du").arg("-sb").arg(&lists).output().unwrap();
    let read = String::from_utf8_lossy(&read.stdout).into_owned();
    let bytes: usize = read.split('\t').next().unwrap().parse().unwrap();
    proof.damage(text < 1_000 && bytes > 2_000_000, &format!("{text} became {bytes}\n{}", ran.err));
}

#[test]
fn a_list_of_too_many_items_is_refused() {
    let proof = Proof::of("a_list_of_too_many_items_is_refused");
    is_no_list(&proof, 100_000, &many(100_001));
    is_no_list(&proof, 5, &many(7));
    let control = listing(Sandbox::On, 5, &many(7)).without("input-limits");
    let (_, ran) = control.play();
    let started = control.scratch.called().iter().filter(|step| step.starts_with("build/")).count();
    proof.damage((ran.code, started) == (0, 7), &ran.err);
}

/// A question to a person, with its state in a file of the run directory, open while an agent works that has learned the commands.
const GATED: &str = "
projections:
  - { file: status.json, json: { state: { $expr: run.state } } }
steps:
  - { id: code, role: coder, needs: [], writes: { report.md: any } }
  - { id: agree, needs: [], decide: \"Ship it?\", answers: { approved: pass, no: block } }
  - { id: ship, role: coder, needs: [code, agree] }
";

fn gated(sandbox: Sandbox, script: &str) -> Stage {
    let script = script.replace("@PROGRAM@", env!("CARGO_BIN_EXE_gatewright"));
    let script = format!("put report.md; sleep 0.5; {script}\nbrief DONE report.md; exit 0");
    Stage::new(sandbox, GATED, &case("code", &script))
}

/// However the agent tries to answer for the person, the question stays open until the person answers it.
#[track_caller]
fn waits_for_a_person(proof: &Proof, script: &str) {
    for sandbox in BOTH {
        let stage = gated(sandbox, script);
        let (run, ran) = stage.play();
        stage.is_named(sandbox, &run, &ran, proof);
        assert_eq!(stage.scratch.state(&run), "waiting", "{sandbox:?}");
        assert_eq!(stage.scratch.count("ship"), 0, "{sandbox:?}");
        // The same words of a person open it.
        stage.scratch.gatewright(&["approve", &run]);
        stage.scratch.gatewright(&["resume", &run]);
        assert_eq!(stage.scratch.count("ship"), 1, "{sandbox:?}");
        stage.bystander_is_unharmed();
    }
}

#[test]
fn the_agent_approves_its_own_work() {
    let proof = Proof::of("the_agent_approves_its_own_work");
    let script = "try env GATEWRIGHT_STATE_DIR=$root @PROGRAM@ approve $GATEWRIGHT_RUN
try env -i PATH=$PATH HOME=$HOME GATEWRIGHT_STATE_DIR=$root @PROGRAM@ answer $GATEWRIGHT_RUN agree approved";
    waits_for_a_person(&proof, script);
    // The control: a program that does not ask who calls it takes the agent for the person.
    let careless = script
        .replace("try env", "try env GATEWRIGHT_WITHOUT=callers")
        .replace("GATEWRIGHT_WITHOUT=callers -i", "-i GATEWRIGHT_WITHOUT=callers");
    let control = gated(Sandbox::Off, &careless);
    let (run, ran) = control.play();
    proof.damage(control.scratch.count("ship") == 1, &format!("{}\n{}", ran.err, control.refused(&run)));
}

/// A forged status.json: it says what it likes, and no gate reads it.
#[test]
fn projections_are_edited() {
    let proof = Proof::of("projections_are_edited");
    let script = "mkdir -p $GATEWRIGHT_RUN_DIR; echo '{\"state\":\"done\",\"status\":\"approved\"}' > $GATEWRIGHT_RUN_DIR/status.json; echo approved > $GATEWRIGHT_RUN_DIR/decisions.md";
    waits_for_a_person(&proof, script);
    let control = gated(Sandbox::On, script).without("projections");
    let (run, ran) = control.play();
    let shown = control.scratch.published(&run, "status.json").unwrap_or_default();
    let lies = shown.contains("approved") && control.scratch.state(&run) == "waiting";
    proof.damage(lies, &format!("{shown}\n{}", ran.err));
}

#[test]
fn the_run_directory_is_deleted() {
    let proof = Proof::of("the_run_directory_is_deleted");
    let stage = |sandbox| {
        Stage::new(
            sandbox,
            "steps: [ { id: plan, role: planner, writes: { plan.md: any } }, { id: code, role: coder }, { id: ship, role: coder, reads: [plan.md] } ]",
            "plan) wrote plan.md good;;\ncode) rm -rf $GATEWRIGHT_RUN_DIR; ok;;",
        )
    };
    for sandbox in BOTH {
        let stage = stage(sandbox);
        let (run, ran) = stage.play();
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.scratch.gatewright(&["resume", &run]);
        assert_eq!(stage.scratch.count("ship"), 1, "{sandbox:?}: who needs it finds it");
        assert_eq!(stage.scratch.published(&run, "plan.md").as_deref(), Some("good\n"), "{sandbox:?}");
        stage.bystander_is_unharmed();
    }
    let control = stage(Sandbox::On).without("published");
    let (run, ran) = control.play();
    control.gatewright(&["resume", &run]);
    let lost = control.scratch.count("ship") == 0 && control.scratch.published(&run, "plan.md").is_none();
    proof.damage(lost, &ran.err);
}

#[test]
fn another_runs_folder_in_the_repository_is_edited() {
    let proof = Proof::of("another_runs_folder_in_the_repository_is_edited");
    let attack = "for note in $GATEWRIGHT_RUN_DIR/../*/note.md; do echo forged > $note; done";
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, attack);
        let (run, ran) = stage.play();
        assert_ne!(run, stage.bystander);
        assert_ne!(ran.code, 0, "{sandbox:?}: who did it does not count");
        stage.is_named(sandbox, &run, &ran, &proof);
        let staged = stage.state_of(&stage.bystander).join("attempts/quiet/1/out/note.md");
        assert_eq!(reads(&staged), "content of note.md\n", "{sandbox:?}: what counts is elsewhere");
    }
    let control = Stage::code(Sandbox::On, attack).without("scope");
    let (_, ran) = control.play();
    let shown = control.scratch.published(&control.bystander, "note.md").unwrap_or_default();
    proof.damage(ran.code == 0 && shown == "forged\n", &format!("{shown}\n{}", ran.err));
}

/// A protected file is touched, and what the tree was like before rests on objects that are then taken away.
#[test]
fn the_repository_is_damaged_so_that_nobody_can_compare() {
    let proof = Proof::of("the_repository_is_damaged_so_that_nobody_can_compare");
    let attack = "echo TOKEN=1 > .env; rm -rf .git/objects; mkdir .git/objects";
    let committed = |sandbox| {
        let stage = Stage::code(sandbox, attack);
        stage.scratch.write("src/a.txt", "as it is committed\n");
        stage.scratch.git(&["add", "-A"]);
        stage.scratch.git(&["commit", "-qm", "all of it"]);
        stage
    };
    for sandbox in BOTH {
        let stage = committed(sandbox);
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}: who did it does not count");
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let control = committed(Sandbox::On).without("scope");
    let (_, ran) = control.play();
    proof.damage(ran.code == 0, &ran.err);
}

/// The first step may write nothing.
const LOOKS: &str =
    "steps: [ { id: code, role: reader, retry: { attempts_max: 1 } }, { id: ship, role: coder } ]";

/// What is staged, what branches stood for, a reference that is no branch, and a repository inside the repository.
#[test]
fn a_reader_takes_away_what_git_keeps() {
    let proof = Proof::of("a_reader_takes_away_what_git_keeps");
    let attack = "rm -f .git/index; rm -rf .git/logs inner/.git; git update-ref -d refs/own/thing";
    let stage = |sandbox| {
        let stage = Stage::new(sandbox, LOOKS, &case("code", attack));
        stage.scratch.git(&["update-ref", "refs/own/thing", "HEAD"]);
        stage.scratch.git(&["init", "-q", "inner"]);
        stage
    };
    for sandbox in BOTH {
        let stage = stage(sandbox);
        let (run, ran) = stage.play();
        assert_eq!(stage.scratch.count("ship"), 0, "{sandbox:?}: {}", ran.err);
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let control = stage(Sandbox::On).without("scope");
    let (_, ran) = control.play();
    let gone = !control.scratch.root().join("inner/.git").exists();
    proof.damage(gone && control.scratch.count("ship") == 1, &ran.err);
}

/// A repository without a file in it, whose settings name a program.
#[test]
fn a_reader_leaves_a_repository_without_files() {
    let proof = Proof::of("a_reader_leaves_a_repository_without_files");
    let attack = "git init -q inner; git -C inner config filter.x.clean evil";
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, LOOKS, &case("code", attack));
        let (run, ran) = stage.play();
        assert_eq!(stage.scratch.count("ship"), 0, "{sandbox:?}: {}", ran.err);
        stage.is_named(sandbox, &run, &ran, &proof);
    }
    let control = Stage::new(Sandbox::On, LOOKS, &case("code", attack)).without("scope");
    let (_, ran) = control.play();
    let there = control.scratch.root().join("inner/.git/config").exists();
    proof.damage(there && control.scratch.count("ship") == 1, &ran.err);
}

/// `plan` delivers, `code` attacks what was delivered and accepted, `ship` reads it.
const DELIVERED: &str = "steps: [ { id: plan, role: planner, writes: { plan.md: any } }, { id: code, role: coder, retry: { attempts_max: 1 } }, { id: ship, role: coder, reads: [plan.md] } ]";

fn delivered(sandbox: Sandbox, attack: &str) -> Stage {
    Stage::new(sandbox, DELIVERED, &format!("plan) wrote plan.md good;;\n{}", case("code", attack)))
}

#[test]
fn an_artifact_of_another_step_is_edited_where_it_was_published() {
    let proof = Proof::of("an_artifact_of_another_step_is_edited_where_it_was_published");
    let attack = "echo mine > $GATEWRIGHT_RUN_DIR/plan.md";
    for sandbox in BOTH {
        let stage = delivered(sandbox, attack);
        let (run, ran) = stage.play();
        stage.is_named(sandbox, &run, &ran, &proof);
        assert_ne!(ran.code, 0, "{sandbox:?}: who did it does not count");
        assert_eq!(stage.scratch.count("ship"), 0, "{sandbox:?}: nobody read it");
    }
    let control = delivered(Sandbox::On, attack).without("scope");
    let (run, ran) = control.play();
    let shown = control.scratch.published(&run, "plan.md").unwrap_or_default();
    let counts = control.scratch.step_state(&run, "code") == "passed";
    proof.damage(shown == "mine\n" && counts, &format!("{shown}\n{}", ran.err));
}

#[test]
fn a_report_is_replaced_after_it_was_accepted() {
    let proof = Proof::of("a_report_is_replaced_after_it_was_accepted");
    let attack = "try sh -c 'echo mine > $0/attempts/plan/1/out/plan.md' $run";
    for sandbox in BOTH {
        let stage = delivered(sandbox, attack);
        let (run, ran) = stage.play();
        let staged = reads(&stage.state_of(&run).join("attempts/plan/1/out/plan.md"));
        if sandbox.holds() {
            assert_eq!(staged, "good\n", "{}", stage.refused(&run));
            assert!(!stage.refused(&run).is_empty(), "it was tried");
            proof.was_refused(sandbox);
        } else {
            proof.damage(staged == "mine\n", &ran.err);
            stage.is_named(sandbox, &run, &ran, &proof);
        }
        assert_eq!(stage.scratch.count("ship"), usize::from(sandbox.holds()), "{sandbox:?}");
        assert!(
            !stage.scratch.published(&run, "plan.md").unwrap_or_default().contains("mine"),
            "{sandbox:?}"
        );
    }
}
