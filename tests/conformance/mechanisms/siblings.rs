//! J-48 where no sandbox prevents it: somebody reaches into a tree in which another agent is at work. Who did it
//! cannot be told; that it was done is told where the other one finds a change that is not his.

use crate::support::{Scratch, text};

const STREAMS: &str = r#"
roles: { planner: { prompt: "Plan it." }, coder: { prompt: "Build {{ item.id }}." MORE } }
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - id: each
    for_each: tasks.yaml
    isolation: worktree
    steps:
      - { id: build, role: coder REPLY }
"#;

const PLAN: &str = r#"plan) put tasks.yaml "$(printf 'tasks:\n- {id: a}\n- {id: c}')"; brief DONE tasks.yaml;;
completion() { printf '{"stream":"s","status":"complete","steps":[{"name":"se","status":"passed"}],"git_sha":"%s","files_modified":%s,"attempt":1,"started_at":"2026-01-01T00:00:00Z","completed_at":"2026-01-01T00:00:00Z","build_passed":true}\n' "$(git rev-parse HEAD)" "$1"; }"#;

/// a is at work when c writes into its worktree, at the first attempt only.
fn reaching(more: &str, reply: &str, says_a: &str) -> Scratch {
    let plan = PLAN.lines().next().unwrap();
    let helper = PLAN.lines().nth(1).unwrap();
    let scratch = Scratch::with(
        &STREAMS.replace("MORE", more).replace("REPLY", reply),
        &format!(
            "{plan}\n\
             */a/build) {helper}\n echo $GATEWRIGHT_ATTEMPT > src/part-a.txt; mark busy-$GATEWRIGHT_ATTEMPT; await reached; {says_a};;\n\
             */c/build) {helper}\n await busy-1; [ -e $HOME/reached ] || {{ echo gone > ../a/src/a.txt; echo c > ../a/README; }}; mark reached; \
             echo c > src/part-c.txt; completion '[\"src/part-c.txt\"]';;"
        ),
    );
    scratch.config("sandbox: off");
    scratch
}

/// What was found while these steps were at work without a sandbox.
fn noticed(scratch: &Scratch, run: &str) -> String {
    let all = scratch.events_of(run, "intrusion.noticed");
    let watched = all.iter().find(|event| event["intrusion"]["kind"] == "watched");
    let intrusion = watched.unwrap_or_else(|| panic!("nothing was noticed: {all:#?}"))["intrusion"].clone();
    assert_eq!(intrusion["by"], serde_json::json!(["each/c/build"]), "the suspect: {intrusion:#}");
    text(&intrusion["what"])
}

#[test]
fn j_48_a_file_that_somebody_put_into_a_busy_worktree_is_named_with_the_suspects_and_kept_as_a_patch() {
    let scratch = reaching("", ", reply: completion", "completion '[\"src/part-a.txt\"]'");
    let run = scratch.run(11);
    assert_eq!(scratch.step_state(&run, "each/a/build"), "blocked");
    let retried = scratch.events_of(&run, "step.retry.scheduled");
    let own = retried.iter().find(|event| event["step"] == "each/a/build").unwrap();
    let said = text(&own["message"]);
    for part in ["src/a.txt", "README", "changed by somebody else, or not claimed", "`each/c/build`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("`src/part-a.txt`"), "its own work is its own: {said}");
    assert!(noticed(&scratch, &run).contains("src/a.txt"));
    let doctor = scratch.gatewright(&["doctor"]).out;
    assert!(doctor.contains("src/a.txt") && doctor.contains("each/c/build"), "{doctor}");
    let last = text(&scratch.step(&run, "each/a/build")["message"]);
    assert!(last.contains("changed but not named: README, src/a.txt"), "the second time, too: {last}");
    // Nothing of it is on the branch of a, also after the second attempt, which kept silent as well.
    let branch = format!("gatewright/{run}/a");
    assert_eq!(scratch.git_says(&["rev-parse", &branch]), scratch.git_says(&["rev-parse", "main"]));
    // The patch takes it back.
    let folder = scratch.git_says(&["worktree", "list", "--porcelain"]);
    let folder = folder.lines().filter_map(|line| line.strip_prefix("worktree "));
    let folder = folder.into_iter().find(|path| path.ends_with("/a")).unwrap();
    let patch = scratch.state_dir(&run).join("patches/unclaimed-each%2Fa%2Fbuild-1.patch");
    scratch.git(&["-C", folder, "apply", "-R", patch.to_str().unwrap()]);
    let at = std::path::Path::new(folder);
    assert_eq!(std::fs::read_to_string(at.join("src/a.txt")).unwrap(), "a\n");
    assert!(!at.join("README").exists());
    assert!(at.join("src/part-a.txt").exists());
}

/// The next attempt may say that it was him after all, or take it away: then it counts.
#[test]
fn j_48_a_file_that_nobody_claimed_can_be_claimed_or_taken_away_by_the_next_attempt() {
    for (second, left) in [
        ("completion '[\"src/part-a.txt\", \"src/a.txt\", \"README\"]'", "gone"),
        ("git checkout -q src/a.txt; rm README; completion '[\"src/part-a.txt\"]'", "a"),
    ] {
        let says = format!(
            "if [ $GATEWRIGHT_ATTEMPT = 1 ]; then completion '[\"src/part-a.txt\"]'; else {second}; fi"
        );
        let scratch = reaching("", ", reply: completion", &says);
        let run = scratch.run(0);
        assert_eq!(scratch.count("each/a/build"), 2, "{:?}", scratch.calls());
        let branch = format!("gatewright/{run}/a");
        assert_eq!(scratch.git_says(&["show", &format!("{branch}:src/a.txt")]), left);
    }
}

/// Where the reply does not list every file, the role's scope tells.
#[test]
fn j_48_a_change_outside_the_scope_of_a_busy_stream_names_the_suspects_too() {
    let scratch = reaching(", may_write: [\"src/part-*\"]", "", "ok");
    let run = scratch.run(11);
    let retried = scratch.events_of(&run, "step.retry.scheduled");
    let own = retried.iter().find(|event| event["step"] == "each/a/build").unwrap();
    let said = text(&own["message"]);
    assert!(said.contains("README") && said.contains("`each/c/build`"), "{said}");
    let last = text(&scratch.step(&run, "each/a/build")["message"]);
    assert!(last.contains("README (since attempt 1)"), "{last}");
    assert!(noticed(&scratch, &run).contains("README"));
}

/// The control: in the sandbox there is nothing to be found, and nobody is suspected.
#[test]
fn j_48_nobody_is_suspected_whom_a_sandbox_keeps_in_his_own_tree() {
    let scratch = reaching("", ", reply: completion", "completion '[\"src/part-a.txt\"]'");
    scratch.config("");
    let run = scratch.run(0);
    assert_eq!(scratch.count("each/a/build"), 1);
    assert!(scratch.events_of(&run, "intrusion.noticed").is_empty());
}

/// From the user's checkout into a worktree in which nobody is at work.
#[test]
fn j_48_an_agent_in_the_checkout_that_reaches_into_a_worktree_is_caught_and_named() {
    let scratch = Scratch::with(
        "
roles: { planner: { prompt: p }, coder: { prompt: p } }
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any } }
  - { id: each, for_each: tasks.yaml, isolation: worktree, steps: [ { id: build, role: coder } ] }
  - { id: after, role: coder }
",
        &format!(
            "{}\n*/build) ok;;\nafter) if [ $GATEWRIGHT_ATTEMPT = 1 ]; then echo gone > $(ls -d $HOME/../state/projects/*/worktrees/$GATEWRIGHT_RUN/a)/src/a.txt; fi; ok;;",
            PLAN.lines().next().unwrap()
        ),
    );
    scratch.config("sandbox: off");
    let run = scratch.run(0);
    let retried = scratch.events_of(&run, "step.retry.scheduled");
    let said = text(&retried[0]["message"]);
    assert!(said.contains("the worktree of another stream") && said.contains("src/a.txt"), "{said}");
    assert!(scratch.gatewright(&["doctor"]).out.contains("the attempt did not count"));
}

/// Why the first attempt of a step did not count.
fn failure_of(scratch: &Scratch, run: &str, step: &str) -> String {
    let retries = scratch.events_of(run, "step.retry.scheduled");
    let own = retries.iter().find(|event| event["step"] == step);
    text(&own.unwrap_or_else(|| panic!("{step} was not tried again"))["message"])
}

/// Streams without a sandbox; the last one comes when the others have nothing to do any more.
fn idle(keys: &[&str], last: &str) -> Scratch {
    let items: Vec<String> = keys.iter().map(|key| format!("- {{id: {key}}}")).collect();
    let plan = format!("tasks:\\n{}\\n- {{id: z, depends_on: [{}]}}", items.join("\\n"), keys.join(", "));
    let scratch = Scratch::with(
        &STREAMS.replace("MORE", "").replace("REPLY", ""),
        &format!(
            "plan) put tasks.yaml \"$(printf '{plan}')\"; brief DONE tasks.yaml;;\n*/z/build) {last}; ok;;\n\
             */build) echo $GATEWRIGHT_ITEM > src/$GATEWRIGHT_ITEM.new; ok;;"
        ),
    );
    scratch.config("sandbox: off");
    scratch
}

const ONCE: &str = "[ \"$GATEWRIGHT_ATTEMPT\" = 1 ] &&";

#[test]
fn j_48_of_each_tree_that_an_attempt_reached_into_there_is_a_patch() {
    let reach = format!("{ONCE} {{ echo gone > \"$HOME/../repo/src/a.txt\"; echo lost > ../a/src/a.txt; }}");
    let scratch = idle(&["a"], &reach);
    let root = scratch.root();
    scratch.write("src/a.txt", "a\nwork of the user that is not committed\n");
    let run = scratch.run(0);
    let said = failure_of(&scratch, &run, "each/z/build");
    assert!(said.contains("your checkout") && said.contains("worktree of another stream"), "{said}");
    let patch =
        |of: &str| scratch.state_dir(&run).join(format!("patches/intrusion-each%2Fz%2Fbuild-1-{of}.patch"));
    scratch.git(&["apply", "-R", patch("checkout").to_str().unwrap()]);
    let now = std::fs::read_to_string(root.join("src/a.txt")).unwrap();
    assert_eq!(now, "a\nwork of the user that is not committed\n");
    let other = std::fs::read_to_string(patch("a")).unwrap();
    assert!(other.contains("+lost") && !other.contains("+gone"), "{other}");
}

#[test]
fn j_48_every_idle_worktree_is_watched_however_many_there_are() {
    let keys = ["k01", "k02", "k03", "k04", "k05", "k06", "k07", "k08", "k09", "k10"];
    let scratch = idle(&keys, &format!("{ONCE} echo gone > ../k10/src/a.txt"));
    let run = scratch.run(0);
    let said = failure_of(&scratch, &run, "each/z/build");
    assert!(said.contains("worktree of another stream") && said.contains("/k10)"), "{said}");
}

#[test]
fn j_48_the_idle_worktree_of_another_run_is_watched() {
    let scratch = Scratch::with(
        "isolation: worktree\nsteps:\n  - { id: code, role: coder }\n  - { id: ask, decide: \"On?\", answers: { yes: pass } }",
        "code) if [ -e \"$HOME/other\" ] && [ \"$GATEWRIGHT_ATTEMPT\" = 1 ]; then echo gone > \"../../$(cat \"$HOME/other\")/_run/src/a.txt\"; fi; ok;;",
    );
    scratch.config("sandbox: off");
    let first = scratch.run(10);
    std::fs::write(scratch.home().join("other"), &first).unwrap();
    let second = scratch.gatewright(&["run", "w", "second"]).exits(10).id();
    let said = failure_of(&scratch, &second, "code");
    assert!(said.contains("a worktree of another run") && said.contains(&first), "{said}");
    assert!(!scratch.events_of(&second, "intrusion.noticed").is_empty());
}

#[test]
fn j_48_what_an_agent_did_to_an_idle_worktree_after_its_engine_was_killed_is_found_at_resume() {
    let scratch =
        idle(&["a"], &format!("{ONCE} {{ mark at; await go; echo gone > ../a/src/a.txt; mark did; }}"));
    let running = scratch.start(&["run", "w", "go"]);
    let run = running.id();
    scratch.marked("at");
    running.kill();
    scratch.mark("go");
    scratch.marked("did");
    scratch.gatewright(&["resume", &run]).exits(0);
    let said = failure_of(&scratch, &run, "each/z/build");
    assert!(said.contains("worktree of another stream") && said.contains("src/a.txt"), "{said}");
}
