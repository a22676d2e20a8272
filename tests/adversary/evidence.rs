//! Attacks on evidence: artifacts that are something else, gates that are answered by the one who waits.

use crate::stage::{Sandbox, Stage, case, reads};

/// `code` must write report.md; `ship` comes after.
const REPORT: &str = "steps: [ { id: code, role: coder, retry: { attempts_max: 1 }, writes: { report.md: any } }, { id: ship, role: coder } ]";

/// With and without the sandbox the artifact is refused, and the words say why.
#[track_caller]
fn is_refused(script: &str, words: &str) {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage =
            Stage::new(sandbox, REPORT, &case("code", &format!("{script}\nbrief DONE report.md; exit 0")));
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0, "{sandbox:?}");
        assert_eq!(stage.scratch.count("ship"), 0);
        let said = format!("{}{}", ran.err, stage.scratch.gatewright(&["why", &run, "code"]).out);
        assert!(said.contains(words), "{sandbox:?}: {words:?} is not in {said}");
        assert!(!stage.scratch.published(&run, "report.md").unwrap_or_default().contains("mine"));
    }
}

#[test]
fn an_ordinary_report_opens_the_way() {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::new(sandbox, REPORT, &case("code", "put report.md; brief DONE report.md; exit 0"));
        let (_, ran) = stage.play();
        ran.exits(0);
        assert_eq!(stage.scratch.count("ship"), 1, "{sandbox:?}: the control of all below");
    }
}

#[test]
fn a_link_is_no_artifact() {
    is_refused("ln -s $HOME/.ssh/authorized_keys $GATEWRIGHT_OUT/report.md", "link");
}

#[test]
fn a_folder_is_no_artifact() {
    is_refused("mkdir $GATEWRIGHT_OUT/report.md", "is not a file");
}

#[test]
fn a_pipe_is_no_artifact() {
    is_refused("mkfifo $GATEWRIGHT_OUT/report.md", "is not a file");
}

#[test]
fn an_artifact_without_end_is_refused() {
    is_refused("truncate -s 10G $GATEWRIGHT_OUT/report.md", "too large");
}

#[test]
fn nothing_written_is_no_artifact() {
    is_refused("true", "report.md");
}

#[test]
fn a_list_that_explodes_is_refused() {
    let workflow = "
steps:
  - { id: code, role: coder, retry: { attempts_max: 1 }, writes: { tasks.yaml: any } }
  - { id: build, for_each: tasks.yaml, steps: [ { id: ship, role: coder } ] }
";
    let bomb = "{ echo 'a: &a [x,x,x,x,x,x,x,x,x]'; last=a; for name in b c d e f g h i j; do echo \"$name: &$name [*$last,*$last,*$last,*$last,*$last,*$last,*$last,*$last,*$last]\"; last=$name; done; echo 'tasks: *j'; } > $GATEWRIGHT_OUT/tasks.yaml";
    let many = "{ echo 'tasks:'; seq 1 100001 | sed 's/.*/- { id: T& }/'; } > $GATEWRIGHT_OUT/tasks.yaml";
    for (script, sandbox) in
        [(bomb, Sandbox::On), (bomb, Sandbox::Off), (many, Sandbox::On), (many, Sandbox::Off)]
    {
        let stage =
            Stage::new(sandbox, workflow, &case("code", &format!("{script}\nbrief DONE tasks.yaml; exit 0")));
        let (run, ran) = stage.play();
        assert_ne!(ran.code, 0);
        assert_eq!(stage.scratch.count("build/T1/ship"), 0);
        let said = format!("{}{}", ran.err, stage.scratch.gatewright(&["why", &run]).out);
        assert!(said.contains("tasks.yaml") || said.contains("build"), "{said}");
    }
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

/// However the agent tries to answer for the person, the question stays open until the person answers it.
#[track_caller]
fn waits_for_a_person(script: &str, words: &str) {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let program = env!("CARGO_BIN_EXE_gatewright");
        let script = script.replace("@PROGRAM@", program);
        let stage = Stage::new(
            sandbox,
            GATED,
            &case("code", &format!("put report.md; sleep 0.5; {script}\nbrief DONE report.md; exit 0")),
        );
        let (run, ran) = stage.play();
        stage.is_named(&run, &ran, words);
        assert_eq!(stage.scratch.state(&run), "waiting", "{sandbox:?}");
        assert_eq!(stage.scratch.count("ship"), 0, "{sandbox:?}");
        // The control: the same words of a person open it.
        stage.scratch.gatewright(&["approve", &run]);
        stage.scratch.gatewright(&["resume", &run]);
        assert_eq!(stage.scratch.count("ship"), 1, "{sandbox:?}");
        stage.bystander_is_unharmed();
    }
}

#[test]
fn the_agent_approves_its_own_work() {
    waits_for_a_person(
        "try env GATEWRIGHT_STATE_DIR=$root @PROGRAM@ approve $GATEWRIGHT_RUN
try env -i PATH=$PATH HOME=$HOME GATEWRIGHT_STATE_DIR=$root @PROGRAM@ answer $GATEWRIGHT_RUN agree approved",
        "gatewright approve",
    );
}

#[test]
fn projections_are_edited() {
    waits_for_a_person(
        "mkdir -p $GATEWRIGHT_RUN_DIR; echo '{\"state\":\"done\",\"status\":\"approved\"}' > $GATEWRIGHT_RUN_DIR/status.json; echo approved > $GATEWRIGHT_RUN_DIR/decisions.md",
        "status.json in the run directory was changed by somebody else",
    );
}

#[test]
fn the_run_directory_is_deleted() {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::new(
            sandbox,
            "steps: [ { id: plan, role: planner, writes: { plan.md: any } }, { id: code, role: coder }, { id: ship, role: coder, reads: [plan.md] } ]",
            "plan) wrote plan.md good;;\ncode) rm -rf $GATEWRIGHT_RUN_DIR; ok;;",
        );
        let (run, ran) = stage.play();
        stage.is_named(&run, &ran, "plan.md");
        stage.scratch.gatewright(&["resume", &run]);
        assert_eq!(
            reads(&stage.state_of(&run).join("attempts/plan/1/out/plan.md")),
            "good\n",
            "{sandbox:?}: what counts is elsewhere"
        );
        stage.bystander_is_unharmed();
    }
}

#[test]
fn another_runs_folder_in_the_repository_is_edited() {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::code(
            sandbox,
            "for note in $GATEWRIGHT_RUN_DIR/../*/note.md; do echo forged > $note; done",
        );
        let (run, ran) = stage.play();
        assert_ne!(run, stage.bystander);
        stage.is_named(&run, &ran, "note.md");
        let staged = stage.state_of(&stage.bystander).join("attempts/quiet/1/out/note.md");
        assert_eq!(reads(&staged), "content of note.md\n", "{sandbox:?}: what counts is elsewhere");
    }
}

/// `plan` delivers, `code` attacks what was delivered and accepted, `ship` reads it.
const DELIVERED: &str = "steps: [ { id: plan, role: planner, writes: { plan.md: any } }, { id: code, role: coder, retry: { attempts_max: 1 } }, { id: ship, role: coder, reads: [plan.md] } ]";

#[test]
fn an_artifact_of_another_step_is_edited_where_it_was_published() {
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let attack = case("code", "echo mine > $GATEWRIGHT_RUN_DIR/plan.md");
        let stage = Stage::new(sandbox, DELIVERED, &format!("plan) wrote plan.md good;;\n{attack}"));
        let (run, ran) = stage.play();
        stage.is_named(&run, &ran, "plan.md");
        assert_ne!(ran.code, 0, "{sandbox:?}: who did it does not count");
        assert_eq!(stage.scratch.count("ship"), 0, "{sandbox:?}: nobody read it");
    }
}

#[test]
fn a_report_is_replaced_after_it_was_accepted() {
    let attack = case("code", "try sh -c 'echo mine > $0/attempts/plan/1/out/plan.md' $run");
    for sandbox in [Sandbox::On, Sandbox::Off] {
        let stage = Stage::new(sandbox, DELIVERED, &format!("plan) wrote plan.md good;;\n{attack}"));
        let (run, ran) = stage.play();
        let staged = reads(&stage.state_of(&run).join("attempts/plan/1/out/plan.md"));
        assert_eq!(staged.contains("mine"), sandbox == Sandbox::Off, "{sandbox:?}: {}", stage.refused(&run));
        if sandbox == Sandbox::Off {
            stage.is_named(&run, &ran, "attempts/plan/1/out/plan.md (modified)");
        }
        assert_eq!(stage.scratch.count("ship"), usize::from(sandbox == Sandbox::On), "{sandbox:?}");
        assert!(
            !stage.scratch.published(&run, "plan.md").unwrap_or_default().contains("mine"),
            "{sandbox:?}"
        );
    }
}
