//! All attacks, in the order of the files. Each is a test of this name, with a control and with words that a user is
//! told; docs/attacks.md is made from it.

/// An attack.
pub struct Attack {
    pub test: &'static str,
    /// What the agent tries.
    pub tries: &'static str,
    pub stopped_by: &'static str,
    /// What happens where that defence is gone.
    pub control: &'static str,
    /// What a user is told: all of these.
    pub words: &'static [&'static str],
    /// What `doctor` says, where it has other words.
    pub doctor: &'static [&'static str],
    pub in_sandbox: InSandbox,
}

/// What becomes of it in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InSandbox {
    /// It is tried as elsewhere, and told in the same words.
    Told,
    /// The kernel refuses it, so nothing happens; it tells the agent, and nobody else can know.
    Refused,
}

const fn attack(
    test: &'static str,
    tries: &'static str,
    stopped_by: &'static str,
    control: &'static str,
    words: &'static [&'static str],
) -> Attack {
    Attack { test, tries, stopped_by, control, words, doctor: &[], in_sandbox: InSandbox::Told }
}

/// One that the kernel refuses in the sandbox.
const fn refused(
    test: &'static str,
    tries: &'static str,
    stopped_by: &'static str,
    control: &'static str,
    words: &'static [&'static str],
) -> Attack {
    Attack { in_sandbox: InSandbox::Refused, ..attack(test, tries, stopped_by, control, words) }
}

impl Attack {
    const fn doctor(self, doctor: &'static [&'static str]) -> Attack {
        Attack { doctor, ..self }
    }
}

/// Tests that are no attacks.
const OTHERS: [&str; 7] = [
    "what_is_committed_is_what_was_in_the_tree",
    "its_prompt_is_its_own_to_read",
    "raw_logs_are_for_their_owner_only",
    "a_kernel_without_a_sandbox_runs_everything_and_says_so",
    "codex_keeps_its_own_sandbox_where_there_is_none_of_ours",
    "every_attack_is_proved",
    "the_page_of_attacks_is_up_to_date",
];

#[rustfmt::skip]
pub const ATTACKS: &[Attack] = &[
    attack("a_reader_moves_the_branch_it_looks_at", "a reviewer puts a commit of its own on the branch that it reviews",
        "a branch of a run stands where it was left", "nobody puts it back: it is merged", &["may write nothing: branch `gatewright/", "it is put back on"]),
    attack("a_stream_moves_the_branch_of_another", "a commit of its own on the branch of another stream that has passed",
        "a branch of a run stands where it was left", "nobody puts it back: it is merged", &["although nobody had the right to move it; it is put back on"]),
    attack("a_check_moves_the_branch_it_looks_at", "a test script puts a commit of its own on the branch that it tests",
        "a branch of a run stands where it was left", "nobody puts it back: it is merged", &["although nobody had the right to move it; it is put back on"]),
    attack("a_link_where_the_engine_writes_what_was_said", "a link to a folder of the user, and a file that is said instead of written",
        "what the engine writes for an agent follows no link", "it follows them: the file is in the user's folder", &["specs/design.md"]),
    attack("the_configuration_of_the_project_is_edited", "a command for the user's next call, in `.gatewright/config.yaml`",
        "what tells the engine what to do is put back at once", "it stays: the command runs with the user's rights", &["changed protected files: .gatewright/config.yaml (modified)"]),
    attack("the_configuration_is_edited_while_no_engine_is_there", "the same while the engine is dead, and a workflow of its own",
        "the configuration is read as it was before the attempt, and no run begins meanwhile", "it is read: the command runs with the user's rights", &["config.yaml was changed while `code` of run", "it is read as it was before", ".gatewright/workflows/evil.yaml (added)", "no run begins with it"]),
    refused("a_line_is_forged_in_its_own_journal", "a forged line in its journal",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["journal.jsonl: changed by someone else; expected", "The engine is its only writer, and it wrote nothing after that"]).doctor(&["cannot be read", "lines are missing, doubled or moved"]),
    attack("a_journal_is_written_anew_with_an_answer_in_it", "a whole journal with right checksums and a forged answer",
        "every record has a seal with the user's key", "nobody asks for the seal: the next step starts", &["the record was not written with this run's key"]),
    refused("its_own_journal_is_truncated", "its journal is truncated",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["journal.jsonl: changed by someone else; expected", "The engine is its only writer, and it wrote nothing after that"]).doctor(&["cannot be read", "holds nothing although the run had begun"]),
    refused("its_own_journal_is_cut_behind_a_record", "whole records are cut off the end of its journal",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["journal.jsonl: changed by someone else; expected"]).doctor(&["somebody cut it while an engine was at work", "2, and"]),
    refused("its_own_journal_is_deleted", "its journal is deleted",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["journal.jsonl: changed by someone else; expected", "The engine is its only writer, and it wrote nothing after that"]).doctor(&["cannot be read", "holds nothing although the run had begun"]),
    refused("a_finished_run_is_deleted", "the journal of a finished run is deleted",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["files of other runs changed while it was at work without a sandbox", "journal.jsonl (deleted)"]),
    refused("an_order_is_put_into_the_inbox", "an order is put into the inbox",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["in the inbox: it carries no seal of the user"]),
    refused("its_own_exit_record_is_forged", "the record of its own end",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["somebody else than its supervisor wrote the record of its end (exit.json)"]),
    refused("its_own_order_is_rewritten", "its own order and prompt",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["somebody rewrote the order it was started with (launch.json)"]),
    refused("the_frozen_workflow_is_edited", "the frozen workflow",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["changed what the engine keeps of the run", "plans/"]),
    refused("an_artifact_of_a_finished_run_is_replaced_where_it_was_staged", "an artifact of a finished run in the state directory",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["files of other runs changed while it was at work without a sandbox", "note.md (modified)"]),
    refused("a_key_is_added_to_the_home_directory", "`authorized_keys` and `.profile` of the user",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["files of the user changed while it was at work without a sandbox", ".ssh/authorized_keys (modified)"]),
    refused("the_sandbox_is_switched_off_in_the_users_configuration", "the sandbox is switched off in the user's configuration",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["files of the user changed while it was at work without a sandbox", "config.yaml (modified)"]),
    refused("files_are_moved_and_linked_out_of_their_folder", "files of the user are moved and linked out of their folder",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["files of the user changed while it was at work without a sandbox", ".profile (deleted)"]),
    refused("the_temporary_folder_of_the_machine_is_not_its_own", "a file in a temporary folder of others",
        "the sandbox", "sandbox off: it is done", &["sandbox: off for mine"]),
    refused("the_users_secret_and_other_runs_are_read", "the user's key and journals of other runs are read",
        "the sandbox", "sandbox off: it is done", &["sandbox: off for mine"]),
    refused("its_output_folder_is_replaced_by_a_link", "its output folder becomes a link",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["changed what the engine keeps of the run", "out of its attempt (deleted)"]),
    refused("the_state_directory_is_renamed_away", "a part of the state directory is renamed",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["plans/"]),
    refused("the_supervisor_is_killed_and_the_record_of_its_end_forged", "the supervisor is killed and the record of its end forged",
        "the sandbox", "sandbox off, and a kernel without one: it is done", &["the supervisor of its attempt was killed"]),
    attack("the_short_form_of_a_run_is_forged_so_that_it_looks_done", "the short form of a run that lists are drawn from",
        "whether a run is over is read from its journal", "the short form is believed: the run is removed by `clean`", &["is not over, although", "summary.json says so"]),
    attack("a_brief_inside_a_code_block_is_no_brief", "a reply inside a code block",
        "replies are read with care", "the careful reading is off: the next step starts", &["it ended without an outcome"]),
    attack("the_last_of_two_briefs_counts", "two replies, the first of which says that all is done",
        "the last one counts", "the careful reading is off: the next step starts", &["No access."]),
    attack("an_echo_of_the_prompt_is_no_reply", "a prompt that imitates a reply, printed again",
        "what repeats the prompt is no reply", "the careful reading is off: the next step starts", &["repeats its prompt"]),
    attack("silence_is_no_success", "no reply at all, exit code 0",
        "no reply is no success", "the exit code is believed: the next step starts", &["it ended without an outcome"]),
    attack("a_quoted_brief_of_somebody_else_is_no_brief", "a reply of somebody else, quoted",
        "quotations are no reply", "the careful reading is off: the next step starts", &["it ended without an outcome"]),
    attack("a_claimed_file_that_is_not_there_is_a_contradiction", "a file that was never written is claimed",
        "claims are held against the tree", "the claims are believed: the next step starts", &["src/never.rs"]),
    attack("a_claimed_path_that_leaves_the_repository_is_refused", "a claimed path that leaves the repository",
        "claims are held against the tree", "the claims are believed: the next step starts", &["../../etc/passwd"]),
    attack("exit_code_zero_with_a_failure_in_words_is_a_failure", "exit code 0 beside words of failure",
        "the reply counts, not the exit code", "the exit code is believed: the next step starts", &["It does not build."]),
    attack("a_template_in_an_agents_words_is_not_evaluated", "a template in an artifact and in a summary",
        "agents' words are never templates", "prompts are rendered with what agents said: it is evaluated", &["{{ 7 * 1910000191 }}"]),
    attack("control_characters_of_an_agent_do_not_reach_the_terminal", "escape sequences for the user's terminal",
        "output is cleaned before it is shown", "nothing is cleaned: they reach it", &["\\u{1b}]0;owned"]),
    attack("secrets_in_output_are_masked_where_we_print_them", "keys and tokens in output, reports and summaries",
        "secrets are masked", "nothing is masked: they are shown", &["[masked]"]),
    attack("a_link_is_no_artifact", "a link to the user's files as a report",
        "artifacts are plain files", "any kind of file is read: the user's file is published", &["is a link, not a file"]),
    attack("a_folder_is_no_artifact", "a folder as a report",
        "artifacts are plain files", "any kind of file is read: it is accepted", &["is not a file"]),
    attack("a_pipe_is_no_artifact", "a pipe as a report",
        "artifacts are plain files", "any kind of file is read: the engine waits for ever", &["is not a file"]),
    attack("an_artifact_without_end_is_refused", "a report of 10 GB",
        "artifacts have a limit", "no limits: 64 MiB are published", &["too large"]),
    attack("nothing_written_is_no_artifact", "a report that is claimed and not there",
        "contracts", "nobody looks: its word is enough", &["report.md"]),
    attack("a_list_that_explodes_is_refused", "YAML aliases that grow to a billion values",
        "limits on YAML", "no limits: 500 bytes become half a million values", &["tasks.yaml` cannot be worked on", "its aliases add up to more than is read: 1000 aliases, 200000 values in all"]),
    attack("a_list_of_too_many_items_is_refused", "a list of 100 001 items",
        "limits on lists", "no limits: a step for each of them", &["tasks.yaml` cannot be worked on", "are allowed (`items_max`)"]),
    attack("the_agent_approves_its_own_work", "`gatewright approve` and `answer`, with and without its variables",
        "orders are refused below a supervisor", "nobody asks who calls: the gate opens", &["an agent's process called `gatewright approve"]),
    attack("projections_are_edited", "a forged status.json",
        "no gate reads projections, and they are written anew", "they are not written anew: the file lies", &["status.json in the run directory was changed by somebody else"]),
    attack("the_run_directory_is_deleted", "the run directory is deleted",
        "what counts is in the state directory, and is published anew", "it is not published anew: the next step cannot start", &["plan.md"]),
    attack("another_runs_folder_in_the_repository_is_edited", "artifacts of another run, where they were published",
        "published files are protected; what counts is elsewhere", "the scope is not enforced: the attempt counts beside the forged file", &["note.md"]),
    attack("an_artifact_of_another_step_is_edited_where_it_was_published", "an artifact of another step, where it was published",
        "published files are protected", "the scope is not enforced: the attempt counts beside the forged file", &["plan.md"]),
    attack("the_repository_is_damaged_so_that_nobody_can_compare", "a protected file, and the objects that a comparison rests on",
        "what cannot be compared does not count", "the scope is not enforced: the attempt counts", &["what role `coder` changed cannot be told"]),
    attack("a_reader_takes_away_what_git_keeps", "a reviewer removes what is staged, logs of branches, a reference, and `.git` of a repository inside the repository",
        "what git keeps is compared around whoever may write nothing", "the scope is not enforced: the next step starts", &["may write nothing and changed what git keeps: .git/index (modified), .git/logs/HEAD (deleted)", "inner/.git (deleted)", "refs/own/thing (deleted"]),
    attack("a_reader_leaves_a_repository_without_files", "a reviewer makes a repository without files, with a filter",
        "repositories inside the tree are compared like files", "the scope is not enforced: the next step starts", &["inner/.git (added)", "inner/.git/config: filter.x.clean (added)"]),
    refused("a_report_is_replaced_after_it_was_accepted", "an accepted report is replaced in the state directory",
        "the sandbox; without it the attempt does not count", "sandbox off: it is replaced", &["changed what the engine keeps of the run", "attempts/plan/1/out/plan.md (modified)"]),
    refused("a_check_runs_in_the_sandbox_of_the_role_that_is_judged", "a test script that writes into the home directory",
        "checks run in the sandbox of the role", "sandbox off: it is written", &["files of the user changed while what", "wrote was executed without a sandbox", ".profile (modified)"]),
    refused("a_check_step_runs_in_the_sandbox_too", "the same in a step that is a check",
        "checks run in the sandbox", "sandbox off: it is written", &["files of the user changed while what", "wrote was executed without a sandbox", ".profile (modified)"]),
    refused("a_check_cannot_kill_the_engine", "a test script that kills the engine",
        "signals do not leave the sandbox", "sandbox off: the engine dies", &["is interrupted: no engine drives it"]),
    attack("a_check_that_multiplies_is_ended_with_all_of_its_processes", "a fork bomb in a test script",
        "`processes_max` of the check", "no limit: more than 500 processes are at work", &["check `tests` had more than 60 processes at once and was ended with all of them"]),
    attack("a_check_leaves_a_process_behind_that_writes_later", "a test script that leaves a process behind",
        "what is left behind is ended", "nothing is ended: the tree is changed after the check", &["process(es) behind, which were ended"]),
    attack("a_hook_and_a_file_system_monitor_in_the_repository_are_not_run_by_the_engine", "hooks and a file system monitor in `.git`",
        "the engine's git runs neither", "the engine's git is like any other: it runs the monitor", &[".git/config (modified)"]),
    refused("a_commit_hook_that_an_agent_wrote_runs_in_the_sandbox_of_the_role", "a commit hook that writes elsewhere",
        "commit hooks run in the sandbox of the role", "sandbox off: it is written", &["files of the user changed while what", "wrote was executed without a sandbox", ".profile (modified)"]),
    attack("a_hook_cannot_slip_a_file_into_a_commit_that_its_role_may_not_commit", "a commit hook that adds `.env.local`",
        "commits are looked at before they count", "they are not looked at: it is committed", &["`.env.local` looks like a secret"]),
    attack("git_that_an_agent_led_elsewhere_is_not_followed_by_the_engine", "`.git` of a worktree that leads to a repository with filters",
        "where a worktree leads is protected, and it has to lead back", "it is followed, on a kernel without a sandbox: the filter runs", &["changed protected files: .git (modified)"]),
    refused("an_agent_in_a_worktree_cannot_move_the_branches_of_the_user", "branches, tags and stashes of the user",
        "the sandbox", "sandbox off: they are moved", &["branches and tags of the user changed while it was at work without a sandbox", "refs/heads/main (modified)"]),
    refused("the_users_checkout_is_edited_from_a_worktree", "the user's checkout, from a worktree",
        "the sandbox; without it the attempt does not count", "sandbox off: it is edited", &["your checkout"]),
    attack("a_check_answers_for_the_person", "`gatewright answer` by a test script, also from a process that is nobody's child",
        "orders are refused below an engine", "nobody asks who calls: the gate opens", &["an agent's process called `gatewright answer"]),
    attack("a_commit_hook_answers_for_the_person", "`gatewright answer` by a commit hook",
        "orders are refused below an engine", "nobody asks who calls: the gate opens", &["an agent's process called `gatewright answer"]),
    refused("a_link_is_planted_where_others_are_granted_a_place", "a link below `.git`, or where the configuration grants a place, that leads to the home directory",
        "links that an agent can have put there are not followed", "they are followed: an agent in a worktree writes into the home directory", &["files of the user changed while it was at work without a sandbox", ".profile (modified)"]),
    attack("a_test_script_edits_what_its_role_may_not", "a test script that edits the configuration, hooks and what its role may not",
        "the tree and protected files are compared around checks too", "the scope is not enforced: the check counts", &["check `tests` changed docs.md (added); it executes what role `coder` wrote, which may write src/**", "check `tests` changed protected files: .gatewright/config.yaml (modified), .git/hooks/post-commit (added)"]),
    attack("a_check_step_edits_the_projects_configuration", "the sandbox is switched off in the project's configuration by a step that is a check",
        "protected files are compared around checks too", "the scope is not enforced: the step passes", &["check `tests` changed protected files: .gatewright/config.yaml (modified)", "the change was undone"]),
    attack("a_commit_hook_edits_what_its_role_may_not", "a commit hook that leaves a file for the next commit",
        "the tree is compared around commits too", "the scope is not enforced: the next step commits it", &["the commit (a hook or a filter) changed docs.md (added); it executes what role `coder` wrote"]),
    refused("a_check_of_a_role_without_network_reaches_nobody", "a connection from a test script of a role with `network: false`",
        "checks have the sandbox of the role", "sandbox off: it is made", &["sandbox: off for mine"]),
    refused("a_check_replaces_what_was_accepted", "a test script that replaces an accepted report and deletes another run's journal",
        "the sandbox; without it the check does not count", "sandbox off: it is done", &["check `tests` changed what the engine keeps of the run: attempts/plan/1/out/plan.md (modified)", "files of other runs changed while what `code` wrote was executed without a sandbox"]),
    attack("a_filter_of_a_repository_inside_the_repository", "a filter of a repository inside the repository",
        "a git that only looks can write nothing", "a kernel without a sandbox: the engine's git runs it with the user's rights", &["programs were left for git to run", "inner/.git/config: filter.x.clean (added)"]),
    attack("a_filter_in_the_settings_of_a_submodule", "a filter in the settings of a submodule",
        "a git that only looks can write nothing", "a kernel without a sandbox: the engine's git runs it with the user's rights", &["programs were left for git to run", "vendor/lib/.git/config: filter.x.clean (added)"]),
    attack("a_filter_in_the_settings_of_the_worktree", "a filter in the settings of the worktree",
        "a git that only looks can write nothing", "a kernel without a sandbox: the engine's git runs it with the user's rights", &["programs were left for git to run", ".git/config.worktree: filter.x.clean (added)"]),
    attack("a_filter_whose_script_is_in_the_tree", "a script in the tree that is the user's own filter",
        "a git that only looks can write nothing", "a kernel without a sandbox: the engine's git runs it with the user's rights", &["programs were left for git to run", "tools/fmt.sh (modified), which filter.fmt.clean names"]),
    attack("a_hook_in_the_tree_when_a_branch_is_pushed", "a hook in the tree when a branch is pushed",
        "the command for pull requests runs no hooks", "it runs like any other push, where the agent worked: the hook runs", &["programs were left for git to run", ".hooks/pre-push (added), which core.hookspath names"]),
    refused("the_supervisor_is_killed", "the supervisor is killed",
        "signals do not leave the sandbox", "sandbox off: it dies, and nothing of the attempt counts", &["the supervisor of its attempt was killed"]),
    refused("the_engine_is_killed", "the engine is killed",
        "signals do not leave the sandbox", "sandbox off: it dies", &["is interrupted: no engine drives it"]),
    refused("the_engines_environment_is_read", "environments of other processes are hunted for secrets",
        "engine and supervisors keep theirs to themselves", "they do not: it is read", &["sandbox: off for mine"]),
    attack("a_process_stays_behind_to_change_the_report_later", "a process that writes after the end",
        "what is left behind is ended", "nothing is ended: the accepted report is replaced", &["process(es) behind, which were ended"]),
    attack("many_processes_are_left_behind", "150 processes are left behind",
        "what is left behind is ended", "nothing is ended: all of them live", &["left at least 100 process(es) behind, which were ended: sleep"]),
    attack("processes_without_end_are_ended_and_said", "a fork bomb",
        "`processes_max`", "no limit: 511 processes are born", &["it had more than 60 processes at once and was ended with all of them"]),
    attack("much_output_is_kept_in_bounds", "150 MB of output",
        "64 MiB are kept", "no limit: all of it is on the disk", &["bytes are left out here"]),
    attack("output_without_end_is_stopped_and_said", "10 GB of output",
        "after 1 GiB it is stopped", "no limit: more than that is on the disk", &["printed more than 1024 MiB and was stopped"]),
    attack("a_second_engine_is_started", "`gatewright resume` and `run` by the agent",
        "engines are refused below a supervisor", "nobody asks who calls: a run starts", &["an agent's process called `gatewright run"]),
];

/// Every test of this suite is in the list above, and asks for the proof; what that wants it says itself.
#[test]
fn every_attack_is_proved() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/adversary");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for part in text.split("\n#[test]\n").skip(1) {
            let (_, part) = part.split_once("fn ").unwrap();
            let (name, body) = part.split_once('(').unwrap();
            found.push(name.to_owned());
            let is_attack = ATTACKS.iter().any(|attack| attack.test == name);
            assert!(is_attack != OTHERS.contains(&name), "{name} is listed once, as an attack or as none");
            let body = body.split("\n}\n").next().unwrap_or_default();
            let asks = body.contains(&format!("\"{name}\""));
            assert!(asks || !is_attack, "{name} asks for no proof");
        }
    }
    for attack in ATTACKS {
        assert!(found.iter().any(|name| name == attack.test), "{} is no test", attack.test);
        assert!(!attack.control.is_empty(), "{}", attack.test);
        assert!(!attack.words.is_empty(), "{}", attack.test);
    }
    assert!(ATTACKS.len() >= 30);
}

#[test]
fn the_page_of_attacks_is_up_to_date() {
    let mut page = "# Attacks that are tried\n\nMade from `tests/adversary/attacks.rs`; each row is a test of that name, run in the sandbox and without it. The control\nis the same attack with the defence taken away: there it does its damage, so it does not fail by accident elsewhere.\nA defence is taken away by `GATEWRIGHT_WITHOUT`, which only a program built with the feature `fault-injection` knows.\n\nWhat a user reads is said by the run, its events or the command that refuses, and where it says so also by `doctor`. Where\nthe last column says “nothing in the sandbox”, nothing happened there: the kernel refused what the agent tried, and tells\nnobody but the agent ([what is not covered](security.md#what-is-not-covered)).\n\n| what an agent tries | what stops it | the control | what a user reads |\n|---|---|---|---|\n".to_owned();
    for Attack { test, tries, stopped_by, control, words, doctor, in_sandbox } in ATTACKS {
        let quoted = |words: &[&str]| {
            words.iter().map(|words| format!("“{}”", words.replace('`', ""))).collect::<Vec<_>>().join(", ")
        };
        let mut shown = quoted(words);
        if !doctor.is_empty() {
            shown.push_str(&format!("; by doctor {}", quoted(doctor)));
        }
        if *in_sandbox == InSandbox::Refused {
            shown.push_str("; nothing in the sandbox");
        }
        page.push_str(&format!("| {tries} <!-- {test} --> | {stopped_by} | {control} | {shown} |\n"));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/attacks.md");
    if std::env::var_os("GATEWRIGHT_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "made anew with GATEWRIGHT_BLESS=1");
}
