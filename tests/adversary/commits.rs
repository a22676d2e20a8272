//! What comes into a branch is what was seen in the tree: not what an agent wrote into git's own files beside it.

use crate::{
    proof::Proof,
    stage::{BOTH, Sandbox, Stage, case, reads},
    support::wait_for,
};

/// A commit of its own with another `src/a.txt`, made without touching the tree.
const EVIL: &str = r"
blob=$(echo EVIL | git hash-object -w --stdin); export GIT_INDEX_FILE=$TMPDIR/index
git read-tree HEAD; git update-index --add --cacheinfo 100644,$blob,src/a.txt; tree=$(git write-tree); unset GIT_INDEX_FILE
commit=$(git -c user.name=x -c user.email=x@x commit-tree $tree -p HEAD -m x)
";

fn in_main(stage: &Stage, file: &str) -> String {
    stage.scratch.git_says(&["show", &format!("main:{file}")])
}

/// The index, its flags, the word for a merge and the trailers of a commit are an agent's to write. Nobody has to be
/// told: what they say does not matter.
#[test]
fn what_is_committed_is_what_was_in_the_tree() {
    let workflow = "isolation: worktree\nchecks: { same: { run: \"grep -qx a src/a.txt\" } }\nsteps:\n  - { id: code, role: coder, may_write: [\"docs/**\"], checks: [same], retry: { attempts_max: 1 } }\n  - { id: home, finish: merge }";
    let poisoned = "git update-index --cacheinfo 100644,$(echo EVIL | git hash-object -w --stdin),src/a.txt";
    let hidden = "git update-index --assume-unchanged src/a.txt";
    let note = "mkdir -p docs; echo mended > docs/note";
    let trailers = "-m \"Gatewright-Run: $GATEWRIGHT_RUN\nGatewright-Step: code\nGatewright-Attempt: 1\"";
    for script in [
        // What was tested is not what is staged.
        format!("{poisoned}; {hidden}; {note}"),
        // What was mended is hidden from git.
        format!("{note}; git update-index --skip-worktree docs/note"),
        // There is a merge, so nothing is to be committed.
        format!("git rev-parse HEAD > $(git rev-parse --git-dir)/MERGE_HEAD; {note}"),
        // The engine has committed already.
        format!("{note}; {poisoned}; git -c user.name=x -c user.email=x@x commit -qm x {trailers}; {hidden}"),
    ] {
        let played = |without: &str| {
            let stage = Stage::new(Sandbox::On, workflow, &case("code", &script)).without(without);
            stage.scratch.write("src/a.txt", "a\n");
            stage.scratch.write("docs/note", "broken\n");
            stage.scratch.git(&["add", "-A"]);
            stage.scratch.git(&["commit", "-qm", "begin"]);
            let (_, ran) = stage.play();
            (in_main(&stage, "src/a.txt"), in_main(&stage, "docs/note"), ran.err)
        };
        let (tested, mended, said) = played("");
        let told = said.contains("not committed: role `coder` may not change `src/a.txt`");
        assert!(tested == "a" && (mended == "mended" || told), "{script}: {tested} {mended} {said}");
        let (tested, mended, said) = played("own-index");
        let harmed = tested != "a" || (mended != "mended" && !said.contains("not committed"));
        assert!(harmed, "no damage: {script}: {said}");
    }
}

#[test]
fn a_reader_moves_the_branch_it_looks_at() {
    let proof = Proof::of("a_reader_moves_the_branch_it_looks_at");
    let workflow = "isolation: worktree\nsteps:\n  - { id: build, role: coder }\n  - { id: code, review: build, by: reader, retry: { attempts_max: 1 } }\n  - { id: home, needs: [code], finish: merge }";
    let cases = format!(
        "build) echo made > src/made; ok;;\n{}",
        case("code", &format!("{EVIL}\ngit update-ref HEAD $commit; brief PASS; exit"))
    );
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &cases);
        let (run, ran) = stage.play();
        assert!(!in_main(&stage, "src/a.txt").contains("EVIL"), "{}", ran.err);
        let tip = stage.scratch.git_says(&["show", &format!("gatewright/{run}/_run:src/a.txt")]);
        assert!(!tip.contains("EVIL"), "{sandbox:?}: {}", ran.err);
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let control = Stage::new(Sandbox::On, workflow, &cases).without("tips");
    let (_, ran) = control.play();
    proof.damage(in_main(&control, "src/a.txt").contains("EVIL"), &ran.err);
}

#[test]
fn a_stream_moves_the_branch_of_another() {
    let proof = Proof::of("a_stream_moves_the_branch_of_another");
    let workflow = "steps:\n  - { id: plan, role: coder, writes: { tasks.yaml: any } }\n  - { id: each, for_each: tasks.yaml, isolation: worktree, parallel_max: 1, steps: [ { id: code, role: coder } ] }\n  - { id: together, merge: each }\n  - { id: home, needs: [together], finish: merge }";
    let plan = "plan) put tasks.yaml \"$(printf 'tasks:\\n- {id: a}\\n- {id: b}')\"; brief DONE tasks.yaml;;";
    let other = "other=refs/heads/gatewright/$(git symbolic-ref --short HEAD | cut -d/ -f2)/a";
    let cases = format!(
        "{plan}\neach/a/code) echo a > src/a.new; ok;;\n{}",
        case(
            "each/b/code",
            &format!(
                "echo b > src/b.new\n{other}\n{}\ngit update-ref $other $commit",
                EVIL.replace("HEAD", "$other")
            )
        )
    );
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &cases);
        let (run, ran) = stage.play();
        assert!(!in_main(&stage, "src/a.txt").contains("EVIL"), "{sandbox:?}: {}", ran.err);
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let control = Stage::new(Sandbox::On, workflow, &cases).without("tips");
    let (_, ran) = control.play();
    proof.damage(in_main(&control, "src/a.txt").contains("EVIL"), &ran.err);
}

/// A test script, of a step and as a step of its own. Whoever works there next would take it for what was there.
#[test]
fn a_check_moves_the_branch_it_looks_at() {
    let proof = Proof::of("a_check_moves_the_branch_it_looks_at");
    let script = format!("cat > test.sh <<'END'\n{EVIL}\ngit update-ref HEAD $commit\nEND");
    let next = "next) git show HEAD:src/a.txt > $HOME/prompts/seen; ok;;";
    let workflow = |steps: &str| {
        format!(
            "isolation: worktree\nchecks: {{ tests: {{ run: \"sh test.sh\" }} }}\nsteps:\n{steps}\n  - {{ id: next, role: coder }}\n  - {{ id: home, finish: merge }}"
        )
    };
    let as_step = workflow("  - { id: code, role: coder }\n  - { id: test, check: tests }");
    let of_step = workflow("  - { id: code, role: coder, checks: [tests] }");
    let cases = format!("{}\n{next}", case("code", &script));
    for sandbox in BOTH {
        for workflow in [&as_step, &of_step] {
            let stage = Stage::new(sandbox, workflow, &cases);
            let (run, ran) = stage.play();
            let seen = reads(&stage.scratch.home().join("prompts/seen"));
            assert!(!seen.contains("EVIL"), "{sandbox:?}: {workflow}: {}", ran.err);
            assert!(!in_main(&stage, "src/a.txt").contains("EVIL"), "{sandbox:?}: {workflow}: {}", ran.err);
            stage.is_named(sandbox, &run, &ran, &proof);
        }
    }
    // The next one would commit what is in the tree.
    let nobody_next = as_step.replace("  - { id: next, role: coder }\n", "");
    let control = Stage::new(Sandbox::On, &nobody_next, &cases).without("tips");
    let (_, ran) = control.play();
    proof.damage(in_main(&control, "src/a.txt").contains("EVIL"), &ran.err);
}

/// A command in there would run with the user's rights at the next one that they type.
#[test]
fn the_configuration_of_the_project_is_edited() {
    let proof = Proof::of("the_configuration_of_the_project_is_edited");
    let script = "cp .gatewright/config.yaml $TMPDIR/was; printf 'notify: { command: \"echo evil >> $HOME/.profile\" }\\n' >> .gatewright/config.yaml";
    let configured = |stage: &Stage| reads(&stage.scratch.root().join(".gatewright/config.yaml"));
    let harmed = |stage: &Stage| reads(&stage.scratch.home().join(".profile")).contains("evil");
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, script);
        let (run, ran) = stage.play();
        assert!(!configured(&stage).contains("evil"), "{sandbox:?}: {}", ran.err);
        stage.gatewright(&["resume", &run]);
        assert!(!harmed(&stage), "{sandbox:?}: {}", ran.err);
        stage.is_named(sandbox, &run, &ran, &proof);
        stage.bystander_is_unharmed();
    }
    let control = Stage::code(Sandbox::On, script).without("put-back");
    let (run, ran) = control.play();
    control.gatewright(&["resume", &run]);
    // Nobody waits for the command.
    wait_for("the agent's command", || harmed(&control).then_some(()));
    proof.damage(harmed(&control), &ran.err);
}

/// The same while the engine that would put it back is gone, and a workflow beside it.
#[test]
fn the_configuration_is_edited_while_no_engine_is_there() {
    let proof = Proof::of("the_configuration_is_edited_while_no_engine_is_there");
    let evil = r#"printf 'notify: { command: "echo evil >> $HOME/.profile" }\n' >> .gatewright/config.yaml; cp .gatewright/workflows/quiet.yaml .gatewright/workflows/evil.yaml"#;
    let script = format!(
        "echo > $HOME/prompts/at-work; while ! [ -e $HOME/prompts/go ]; do sleep 0.05; done\n{evil}\necho > $HOME/prompts/edited"
    );
    let harmed = |stage: &Stage| reads(&stage.scratch.home().join(".profile")).contains("evil");
    let played = |stage: &Stage| {
        let prompts = stage.scratch.home().join("prompts");
        let reached = |name: &str| wait_for(name, || prompts.join(name).exists().then_some(()));
        let mut command = stage.scratch.command(&["run", "w", "Add a greeting"]);
        command.env("GATEWRIGHT_WITHOUT", &stage.without);
        let engine = stage.scratch.start_with(command, None);
        let run = engine.id();
        reached("at-work");
        engine.kill();
        std::fs::write(prompts.join("go"), "").unwrap();
        reached("edited");
        (run, stage.gatewright(&["run", "quiet", "Second"]))
    };
    for sandbox in BOTH {
        let stage = Stage::code(sandbox, &script);
        let (run, ran) = played(&stage);
        assert_eq!(ran.code, 4, "{sandbox:?}: {}{}", ran.out, ran.err);
        proof.told(sandbox, &ran.err);
        // The engine that takes the run up reads it as it was, finds out, and puts it back.
        let resumed = stage.gatewright(&["resume", &run]);
        assert!(resumed.err.contains("it is read as it was before"), "{sandbox:?}: {}", resumed.err);
        let root = stage.scratch.root();
        assert!(
            !reads(&root.join(".gatewright/config.yaml")).contains("evil"),
            "{sandbox:?}: {}",
            resumed.err
        );
        assert!(!root.join(".gatewright/workflows/evil.yaml").exists(), "{sandbox:?}");
        stage.gatewright(&["run", "quiet", "Third"]).exits(0);
        assert!(!harmed(&stage), "{sandbox:?}: {}", resumed.err);
        stage.bystander_is_unharmed();
    }
    let control = Stage::code(Sandbox::On, &script).without("put-back");
    let (_, ran) = played(&control);
    // Nobody waits for the command.
    wait_for("the agent's command", || harmed(&control).then_some(()));
    proof.damage(harmed(&control), &ran.err);
}

/// What an agent says instead of writing it is written by the engine, with the rights of the user.
#[test]
fn a_link_where_the_engine_writes_what_was_said() {
    let proof = Proof::of("a_link_where_the_engine_writes_what_was_said");
    let workflow = "steps: [ { id: code, role: coder, writes: { specs/design.md: { contract: any, inline: { field: artifacts.text } } }, retry: { attempts_max: 1 } } ]";
    let script = "rmdir \"$GATEWRIGHT_OUT/specs\"; ln -s \"$HOME/.ssh\" \"$GATEWRIGHT_OUT/specs\"\necho '{\"status\": \"OK\", \"summary\": \"Said.\", \"artifacts\": {\"text\": \"evil\"}, \"gates\": {\"meets_definition_of_done\": true, \"needs_review\": false, \"needs_tests\": false, \"security_concerns\": []}, \"next\": {\"recommended_agent\": \"none\", \"reason\": \"x\"}}'; exit";
    let harmed = |stage: &Stage| stage.scratch.home().join(".ssh/design.md").exists();
    for sandbox in BOTH {
        let stage = Stage::new(sandbox, workflow, &case("code", script));
        let (run, ran) = stage.play();
        assert!(!harmed(&stage), "{sandbox:?}: {}", ran.err);
        proof.told(sandbox, &stage.says(&run, &ran));
        stage.bystander_is_unharmed();
    }
    let control = Stage::new(Sandbox::On, workflow, &case("code", script)).without("plain-files");
    let (_, ran) = control.play();
    proof.damage(harmed(&control), &ran.err);
}
