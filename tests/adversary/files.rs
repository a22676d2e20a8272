//! Attacks on files that are not the agent's.

use crate::{
    proof::Proof,
    stage::{BOTH, Sandbox, Stage, on_a_file, reads, unseen},
};

#[test]
fn a_line_is_forged_in_its_own_journal() {
    // An event that nobody decided, in the form of the last one.
    on_a_file(
        "a_line_is_forged_in_its_own_journal",
        "try sh -c 'tail -n 1 $0/journal.jsonl | tee -a $0/journal.jsonl >/dev/null && echo \"{forged}\" >> $0/journal.jsonl' $run",
        |stage, run| reads(&stage.state_of(run).join("journal.jsonl")).contains("{forged}"),
    );
}

#[test]
fn its_own_journal_is_truncated() {
    on_a_file("its_own_journal_is_truncated", "try truncate -s 10 $run/journal.jsonl", |stage, run| {
        let text = reads(&stage.state_of(run).join("journal.jsonl"));
        !text.lines().next().unwrap_or_default().contains("run.started")
    });
}

#[test]
fn its_own_journal_is_cut_behind_a_record() {
    let script = "head -n 2 $run/journal.jsonl > $TMPDIR/cut; try cp $TMPDIR/cut $run/journal.jsonl";
    on_a_file("its_own_journal_is_cut_behind_a_record", script, |stage, run| {
        let journal = stage.state_of(run).join("journal.jsonl");
        // Nobody goes on with what is left as if nothing had been.
        stage.gatewright(&["resume", run]);
        reads(&journal).lines().count() == 2
    });
}

#[test]
fn its_own_journal_is_deleted() {
    on_a_file("its_own_journal_is_deleted", "try rm $run/journal.jsonl", |stage, run| {
        !stage.state_of(run).join("journal.jsonl").exists()
    });
}

#[test]
fn a_finished_run_is_deleted() {
    on_a_file(
        "a_finished_run_is_deleted",
        "try find $runs -name 'journal.jsonl' -newermt 2000-01-01 -not -path \"$run/*\" -delete",
        |stage, _| !stage.state_of(&stage.bystander).join("journal.jsonl").exists(),
    );
}

#[test]
fn an_order_is_put_into_the_inbox() {
    // What becomes of it is the inbox's matter; here it is whether it gets there.
    let script = "try mkdir -p $run/inbox; try sh -c 'echo {} > $0/inbox/00-forged.json' $run; sleep 1";
    on_a_file("an_order_is_put_into_the_inbox", script, |stage, run| stage.refused(run).is_empty());
}

#[test]
fn its_own_exit_record_is_forged() {
    let script = r#"try sh -c 'echo "{\"version\":1,\"ended\":{\"how\":\"exited\",\"code\":0},\"started_at_ms\":1,\"ended_at_ms\":2,\"duration_ms\":7777,\"stdout_bytes\":0,\"stderr_bytes\":0,\"dropped_bytes\":0,\"left_behind\":[]}" > $0/exit.json' $attempt"#;
    on_a_file("its_own_exit_record_is_forged", script, |stage, run| {
        // Beside the one that its supervisor wrote, which counts.
        reads(&stage.state_of(run).join("attempts/code/1/exit.forged.json")).contains("7777")
    });
}

#[test]
fn its_own_order_is_rewritten() {
    on_a_file(
        "its_own_order_is_rewritten",
        "try sh -c 'echo forged > $0/launch.json' $attempt; try sh -c 'echo forged > $0/prompt.md' $attempt",
        |stage, run| reads(&stage.state_of(run).join("attempts/code/1/prompt.md")).contains("forged"),
    );
}

#[test]
fn the_frozen_workflow_is_edited() {
    on_a_file(
        "the_frozen_workflow_is_edited",
        "try sh -c 'for plan in $0/plans/*; do echo >> $plan; done' $run",
        |stage, run| {
            let folder = std::fs::read_dir(stage.state_of(run).join("plans")).unwrap();
            folder.map(|plan| reads(&plan.unwrap().path())).any(|text| text.ends_with('\n'))
        },
    );
}

#[test]
fn an_artifact_of_a_finished_run_is_replaced_where_it_was_staged() {
    on_a_file(
        "an_artifact_of_a_finished_run_is_replaced_where_it_was_staged",
        "try sh -c 'for note in $0/*/attempts/quiet/1/out/note.md; do echo forged > $note; done' $runs",
        |stage, _| {
            reads(&stage.state_of(&stage.bystander).join("attempts/quiet/1/out/note.md")).contains("forged")
        },
    );
}

#[test]
fn a_key_is_added_to_the_home_directory() {
    on_a_file(
        "a_key_is_added_to_the_home_directory",
        "try sh -c 'echo attacker >> $HOME/.ssh/authorized_keys'; try sh -c 'echo evil >> $HOME/.profile'",
        |stage, _| reads(&stage.scratch.home().join(".ssh/authorized_keys")).contains("attacker"),
    );
}

#[test]
fn the_sandbox_is_switched_off_in_the_users_configuration() {
    on_a_file(
        "the_sandbox_is_switched_off_in_the_users_configuration",
        "try sh -c 'echo \"agents: { mine: { sandbox: off } }\" >> $HOME/.config/gatewright/config.yaml'",
        |stage, _| reads(&stage.scratch.home().join(".config/gatewright/config.yaml")).contains("mine"),
    );
}

#[test]
fn files_are_moved_and_linked_out_of_their_folder() {
    on_a_file(
        "files_are_moved_and_linked_out_of_their_folder",
        "try mv $HOME/.profile $GATEWRIGHT_OUT/stolen; try ln $HOME/.ssh/authorized_keys $GATEWRIGHT_OUT/linked",
        |stage, run| {
            let out = stage.state_of(run).join("attempts/code/1/out");
            out.join("stolen").exists() || out.join("linked").exists()
        },
    );
}

#[test]
fn the_temporary_folder_of_the_machine_is_not_its_own() {
    unseen(
        "the_temporary_folder_of_the_machine_is_not_its_own",
        "try sh -c 'echo x > ${HOME%/home}/output/planted'; [ -d $TMPDIR ] && echo x > $TMPDIR/own",
        |stage, _| stage.scratch.home().parent().unwrap().join("output/planted").exists(),
    );
}

#[test]
fn the_users_secret_and_other_runs_are_read() {
    let script = "try sh -c 'cat $0/key $0/projects/*/runs/*/journal.jsonl' $root > $GATEWRIGHT_OUT/loot";
    unseen("the_users_secret_and_other_runs_are_read", script, |stage, run| {
        !reads(&stage.state_of(run).join("attempts/code/1/out/loot")).is_empty()
    });
}

#[test]
fn its_prompt_is_its_own_to_read() {
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, "cat $attempt/prompt.md > $GATEWRIGHT_OUT/seen");
        let (run, ran) = stage.play();
        ran.exits(0);
        assert!(reads(&stage.state_of(&run).join("attempts/code/1/out/seen")).contains("Build it."));
    }
}

#[test]
fn its_output_folder_is_replaced_by_a_link() {
    on_a_file(
        "its_output_folder_is_replaced_by_a_link",
        "try sh -c 'mv $0/out $0/away && ln -s $HOME $0/out' $attempt",
        |stage, run| {
            std::fs::symlink_metadata(stage.state_of(run).join("attempts/code/1/out")).unwrap().is_symlink()
        },
    );
}

#[test]
fn the_state_directory_is_renamed_away() {
    on_a_file("the_state_directory_is_renamed_away", "try mv $run/plans $run/gone", |stage, run| {
        stage.state_of(run).join("gone").exists()
    });
}

/// What the supervisor writes, with a supervisor that cannot object any more and a record of processes that says that
/// nobody is left.
#[test]
fn the_supervisor_is_killed_and_the_record_of_its_end_forged() {
    let script = r#"try sh -c 'echo "{\"version\":1,\"boot_id\":\"another\",\"session\":1,\"supervisor\":{\"pid\":1,\"start_ticks\":1},\"agent\":null,\"started_at_ms\":1}" > $0/pid.json
echo "{\"version\":1,\"ended\":{\"how\":\"exited\",\"code\":0},\"started_at_ms\":1,\"ended_at_ms\":2,\"duration_ms\":7777,\"stdout_bytes\":0,\"stderr_bytes\":0,\"dropped_bytes\":0,\"left_behind\":[]}" > $0/exit.json' $attempt; try kill -9 $PPID; sleep 1"#;
    on_a_file("the_supervisor_is_killed_and_the_record_of_its_end_forged", script, |stage, run| {
        reads(&stage.state_of(run).join("attempts/code/1/exit.forged.json")).contains("7777")
    });
}

/// The list is drawn from a file beside the journal; nothing that cannot be undone rests on it.
#[test]
fn the_short_form_of_a_run_is_forged_so_that_it_looks_done() {
    let proof = Proof::of("the_short_form_of_a_run_is_forged_so_that_it_looks_done");
    let workflow = "steps: [ { id: agree, decide: \"Ship it?\", answers: { approved: pass, no: block } }, { id: code, role: coder } ]";
    let forged = |sandbox| {
        let stage = Stage::new(sandbox, workflow, "");
        let (run, _) = stage.play();
        let path = stage.state_of(&run).join("summary.json");
        let stored = reads(&path);
        let (digest, text) = stored.split_once('\n').unwrap();
        assert_eq!(digest, digest_of(&run, text), "what is forged is what is read");
        let forged = text.replace("\"state\":\"waiting\"", "\"state\":\"done\"");
        assert_ne!(forged, text);
        std::fs::write(&path, format!("{}\n{forged}", digest_of(&run, &forged))).unwrap();
        let list = stage.scratch.gatewright(&["list", "--json"]).out;
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let lies = |one: &serde_json::Value| one["id"] == run && one["state"] == "done";
        assert!(list["runs"].as_array().unwrap().iter().any(lies), "{list:#}");
        (stage, run)
    };
    for sandbox in BOTH {
        let (stage, run) = forged(sandbox);
        assert_eq!(stage.scratch.state(&run), "waiting", "status reads the journal");
        proof.told(sandbox, &stage.scratch.gatewright(&["clean", "--yes"]).err);
        assert_eq!(stage.scratch.state(&run), "waiting", "a run that is not over is not removed");
        stage.scratch.gatewright(&["approve", &run]).exits(0);
        assert_eq!(stage.scratch.count("code"), 1);
    }
    let (control, run) = forged(Sandbox::On);
    let control = control.without("journals");
    let ran = control.gatewright(&["clean", "--yes"]);
    proof.damage(!control.state_of(&run).exists(), &format!("{}\n{}", ran.out, ran.err));
}

/// Checksums can be computed by anybody: a journal in which every record fits the one before it, with one more that
/// says what the person has not said.
#[test]
fn a_journal_is_written_anew_with_an_answer_in_it() {
    use gatewright_host::{
        disk::RealDisk,
        journal::{Journal, JournalKey},
    };
    let proof = Proof::of("a_journal_is_written_anew_with_an_answer_in_it");
    let workflow = "steps: [ { id: agree, decide: \"Ship it?\", answers: { approved: pass, no: block } }, { id: code, role: coder } ]";
    let event = |line: &str| {
        let (_, rest) = line.split_once("\"type\":").unwrap();
        let (rest, _) = rest.rsplit_once(",\"sum\":").unwrap();
        format!("{{\"type\":{rest}}}")
    };
    let forged = |sandbox| {
        let stage = Stage::new(sandbox, workflow, "");
        let (run, _) = stage.play();
        let path = stage.state_of(&run).join("journal.jsonl");
        let mut events: Vec<String> = reads(&path).lines().map(event).collect();
        events.push(
            "{\"type\":\"decision.answered\",\"id\":\"agree\",\"answer\":\"approved\",\"channel\":\"cli\"}"
                .to_owned(),
        );
        std::fs::remove_file(&path).unwrap();
        let forger = Some(JournalKey::new([9; 32]));
        let mut forged = Journal::create(std::sync::Arc::new(RealDisk), &path, &run, forger).unwrap();
        forged.append(1_794_781_800_123, &events).unwrap();
        (stage, run, events.len())
    };
    for sandbox in BOTH {
        let (stage, run, records) = forged(sandbox);
        for arguments in [vec!["resume", &run], vec!["approve", &run], vec!["status", &run]] {
            let ran = stage.scratch.gatewright(&arguments);
            assert_ne!(ran.code, 0, "{arguments:?}: {}", ran.out);
            proof.told(sandbox, &ran.err);
        }
        proof.told_by_doctor(&stage.scratch.gatewright(&["doctor"]).out);
        assert_eq!(stage.scratch.count("code"), 0, "nobody went on");
        let untouched = reads(&stage.state_of(&run).join("journal.jsonl")).lines().count();
        assert_eq!(untouched, records, "nothing is repaired by guessing");
    }
    let (control, run, _) = forged(Sandbox::On);
    let control = control.without("seals");
    let ran = control.gatewright(&["resume", &run]);
    proof.damage(control.scratch.count("code") == 1, &format!("{}\n{}", ran.out, ran.err));
}

/// Whatever is not a secret of the user can be computed by anybody.
fn digest_of(run: &str, text: &str) -> String {
    gatewright_host::run_context::hash_bytes(format!("{run}{text}").as_bytes()).0
}
