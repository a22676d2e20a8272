//! The keys of a workflow file outside its steps, and of the configuration.

use super::{
    keys_of_step::{GATE, STEP},
    shape::{KeyRule, Shape, Table},
};

/// Severities, strictest last.
pub const SEVERITIES: &[&str] = &["note", "low", "medium", "high", "critical"];
pub const OUTCOMES: &[&str] = &["done", "passed", "failed", "blocked", "needs_input", "error"];
pub const REPLIES: &[&str] = &["brief", "universal", "review", "completion", "task"];

/// One name or a list of them.
pub static NAMES: Shape = Shape::OneOf(&[Shape::Name, Shape::ListOf(&Shape::Name)]);
/// One step or a list of them.
pub static PATHS: Shape = Shape::OneOf(&[Shape::Path, Shape::ListOf(&Shape::Path)]);
pub static TEXTS: Shape = Shape::OneOf(&[Shape::Text, Shape::ListOf(&Shape::Text)]);

pub static WORKFLOW: Table = Table {
    name: "a workflow",
    keys: &[
        KeyRule::required("workflow", Shape::Name, "The name of the workflow."),
        KeyRule::new("description", Shape::Text, "One sentence for lists."),
        KeyRule::new(
            "dir",
            Shape::File,
            "The run directory, relative to the repository; `.gatewright/runs/{{ run.id }}` if absent.",
        ),
        KeyRule::new(
            "offer_clean",
            Shape::Flag,
            "`true`: who sees the end of a run at a terminal is asked whether to keep its files.",
        ),
        KeyRule::new(
            "dir_ignored",
            Shape::Flag,
            "`false`: what runs publish is meant to be committed, so the folder of the run directories gets no `.gitignore`.",
        ),
        KeyRule::new(
            "folders",
            Shape::ListOf(&Shape::File),
            "Folders that are in the run directory from the start.",
        ),
        KeyRule::new(
            "run_id",
            Shape::Template,
            "How run ids are made, from `workflow`, `profile`, `request`, `slug`, `settings`, `now`, `seconds`.",
        ),
        KeyRule::new("agent", Shape::Name, "The program for roles that name none."),
        KeyRule::new("roles", Shape::MapOf(&ROLE_OR_FILE), "Who does the steps."),
        KeyRule::new("checks", Shape::MapOf(&CHECK_OR_LINE), "Commands that the engine runs itself."),
        KeyRule::new("contracts", Shape::MapOf(&Shape::Any), "Contracts by name, for `writes`."),
        KeyRule::new("steps", Shape::ListOf(&Shape::Object(&STEP)), "The steps of one unnamed stage."),
        KeyRule::new(
            "stages",
            Shape::ListOf(&Shape::Object(&STAGE)),
            "Named groups of steps, one after the other.",
        ),
        KeyRule::new("profiles", Shape::MapOf(&Shape::Object(&PROFILE)), "Variants: overrides by name."),
        KeyRule::new("profile", Shape::Name, "The profile of a run that names none."),
        KeyRule::new(
            "obligations",
            Shape::ListOf(&Shape::Object(&OBLIGATION)),
            "What must have happened at the end.",
        ),
        KeyRule::new("pools", Shape::MapOf(&POOL_OR_DEPTH), "Named limits on what runs at the same time."),
        KeyRule::new(
            "isolation",
            Shape::Word(&["shared", "worktree"]),
            "`worktree`: the whole run works on a branch of its own, outside the checkout.",
        ),
        KeyRule::new("parallel_max", Shape::Count, "Steps that may run at the same time."),
        KeyRule::new("budget", Shape::Object(&BUDGET), "What a run may spend."),
        KeyRule::new("words", Shape::Object(&WORDS), "What this method's words mean in ours."),
        KeyRule::new(
            "projections",
            Shape::ListOf(&Shape::Object(&PROJECTION)),
            "Files computed from the run's state.",
        ),
        KeyRule::new(
            "settings",
            Shape::MapOf(&Shape::Any),
            "Values for templates, set with `--set key=value`.",
        ),
        KeyRule::new(
            "setting_values",
            Shape::MapOf(&Shape::Any),
            "What a setting may be: a list of values, or a JSON Schema.",
        ),
        KeyRule::new(
            "asked",
            Shape::MapOf(&Shape::Text),
            "Questions, by setting, for whoever starts a run at a terminal and did not set it.",
        ),
        KeyRule::new(
            "settings_from",
            Shape::Object(&SETTINGS_FROM),
            "Files of other tools in which settings are looked for, and where they are in them.",
        ),
        KeyRule::new(
            "branch",
            Shape::Template,
            "The name under which people find the branch of a run that works in a worktree.",
        ),
        KeyRule::new(
            "worktree",
            Shape::Template,
            "Where the worktree of such a run is, relative to the repository.",
        ),
        KeyRule::new(
            "decisions",
            Shape::Object(&DECISIONS),
            "How questions of agents are numbered and re-asked.",
        ),
        KeyRule::new("protect", GLOBS, "Globs of files that no role may touch."),
        KeyRule::new(
            "not_committed",
            GLOBS,
            "Globs of files that stay out of every commit of the run. They remain in its worktree.",
        ),
        KeyRule::new(
            "on_trespass",
            Shape::Word(&["keep", "restore"]),
            "What becomes of changes outside a role's scope: they stay and fail the step until they are gone, or are undone.",
        ),
        KeyRule::new("reply", Shape::Word(REPLIES), "The reply format of steps that name none."),
        KeyRule::new(
            "prompt",
            Shape::Template,
            "Told to every role, after its own text; or a file with it, `NAME.md`.",
        ),
        KeyRule::new(
            "registry",
            Shape::Text,
            "A file that says, by role, which files its steps may read and write.",
        ),
        KeyRule::new(
            "import",
            Shape::ListOf(&Shape::Object(&IMPORT)),
            "How folders made under the same conventions without this engine are read.",
        ),
        KeyRule::new(
            "detect",
            Shape::MapOf(&TEXTS),
            "Files of the repository to look for, by name: `detected.NAME` lists those that are there.",
        ),
    ],
};

pub const GLOBS: Shape = Shape::OneOf(&[Shape::Glob, Shape::ListOf(&Shape::Glob)]);
pub(super) const TEXTS_LIST: Shape = Shape::OneOf(&[Shape::Text, Shape::ListOf(&Shape::Text)]);

pub static ROLE_OR_FILE: Shape = Shape::OneOf(&[Shape::Object(&ROLE), Shape::Text]);
pub static CHECK_OR_LINE: Shape = Shape::OneOf(&[Shape::Object(&CHECK), Shape::Template]);

pub static ROLE: Table = Table {
    name: "a role",
    keys: &[
        KeyRule::new("from", Shape::Text, "A role file: ours, or an agent's own format."),
        KeyRule::new("agent", Shape::Name, "Which program plays it."),
        KeyRule::new("model", Shape::Text, "`strong`, `fast`, or a name that the program knows."),
        KeyRule::new("description", Shape::Text, "One sentence."),
        KeyRule::new(
            "prompt",
            Shape::Template,
            "Who the role is; after the text of `from`, if both are there.",
        ),
        KeyRule::new(
            "may_write",
            GLOBS,
            "Globs it may change, `!` in front takes away; absent = everything, `[]` = nothing.",
        ),
        KeyRule::new("may_run", TEXTS_LIST, "Commands it may run, `git *`; absent = any, `[]` = none."),
        KeyRule::new("network", Shape::Flag, "Whether it may use the network."),
        KeyRule::new("parallel_max", Shape::Count, "Steps of this role at the same time."),
        KeyRule::new(
            "extra",
            Shape::MapOf(&Shape::Any),
            "Fields for the program's adapter: tools, effort, …",
        ),
    ],
};

pub static POOL_OR_DEPTH: Shape = Shape::OneOf(&[Shape::Count, Shape::Object(&POOL)]);

pub static POOL: Table = Table {
    name: "a pool",
    keys: &[
        KeyRule::required("depth", Shape::Count, "How many at the same time."),
        KeyRule::new(
            "scope",
            Shape::Word(&["run", "machine"]),
            "`machine`: together with all other runs of this user on this machine.",
        ),
    ],
};

pub static CHECK: Table = Table {
    name: "a check",
    keys: &[
        KeyRule::required(
            "run",
            Shape::Template,
            "A shell line; `{{ settings.x | quote }}` puts a setting in.",
        ),
        KeyRule::new(
            "when",
            Shape::Expression,
            "Left out unless this holds; what is left out has not failed.",
        ),
        KeyRule::new("cwd", Shape::PlainFile, "Relative to the repository or worktree."),
        KeyRule::new("env", Shape::MapOf(&Shape::Text), "Variables for the command."),
        KeyRule::new("timeout", Shape::Duration, "30m if absent."),
        KeyRule::new(
            "class",
            Shape::OneOf(&[
                Shape::Word(&["build", "test"]),
                Shape::MapOf(&Shape::Word(&["schema", "reality", "build", "test"])),
            ]),
            "What its failure means for the retry: one class, or one for each exit code.",
        ),
        KeyRule::new("junit", Shape::Text, "A JUnit file with the test counts."),
        KeyRule::new(
            "counts",
            Shape::Text,
            "Where the output names its tests: `{passed} passed, {failed} failed, {skipped} skipped`.",
        ),
        KeyRule::new(
            "reruns",
            Shape::Natural,
            "How often a failed command is run again to see whether it is flaky; 0 if absent.",
        ),
        KeyRule::new(
            "processes_max",
            Shape::Count,
            "Its processes at the same time; with more it is ended. Else 2000.",
        ),
        KeyRule::new("tests_min", Shape::Natural, "Fewer tests than this is a failure."),
        KeyRule::new("skipped_max", Shape::Natural, "More skipped tests than this is a failure."),
        KeyRule::new(
            "expect_failure",
            Shape::Flag,
            "Succeeds when the command fails: tests that must be red first.",
        ),
    ],
};

pub static STAGE: Table = Table {
    name: "a stage",
    keys: &[
        KeyRule::required("id", Shape::Name, "Its name."),
        KeyRule::required(
            "steps",
            Shape::ListOf(&Shape::Object(&STEP)),
            "Its steps, one after the other unless `needs` says otherwise.",
        ),
        KeyRule::new(
            "enabled",
            Shape::Flag,
            "`false`: its steps are skipped, what follows is linked to what precedes.",
        ),
        KeyRule::new("restarts_max", Shape::CountOrZero, "How often it may be run again as a whole."),
        KeyRule::new(
            "gates",
            Shape::ListOf(&Shape::Object(&GATE)),
            "Gates of every step with which the stage starts.",
        ),
        KeyRule::new(
            "announce",
            Shape::Template,
            "What people who watch the run are told when the stage is through.",
        ),
    ],
};

pub static IMPORT: Table = Table {
    name: "an import",
    keys: &[
        KeyRule::required("marker", Shape::PlainFile, "A folder that has this file is of this kind."),
        KeyRule::new("contract", Shape::Any, "What the marker must be like."),
        KeyRule::new(
            "files",
            Shape::MapOf(&Shape::Any),
            "Other files, by glob, and what they must be like where they are there.",
        ),
        KeyRule::new("when", Shape::Expression, "Only folders of which this holds."),
        KeyRule::required("request", Shape::Template, "What the run is asked for."),
        KeyRule::new("profile", Shape::Template, "The profile of the run."),
        KeyRule::new("note", Shape::Template, "What whoever imports it is told; nothing if it is empty."),
        KeyRule::new("over", Shape::Expression, "It has come to its end: no run goes on with it."),
        KeyRule::new(
            "done",
            Shape::OneOf(&[Shape::Expression, Shape::MapOf(&Shape::Any)]),
            "A list of the stages and steps that are done, as an expression or a skeleton; those whose files are there if absent.",
        ),
        KeyRule::new(
            "items",
            Shape::MapOf(&Shape::Any),
            "Steps of items that are done: by item, `STEP/KEY`, a list of names, as a skeleton.",
        ),
        KeyRule::new(
            "evidence",
            TEXTS_LIST,
            "Steps that are commands and whose files are taken all the same. Every other command is run.",
        ),
        KeyRule::new(
            "rounds",
            Shape::OneOf(&[Shape::MapOf(&Shape::Any), Shape::ListOf(&Shape::MapOf(&Shape::Any))]),
            "How many reviews were held already, by step: a skeleton with `$expr`, `$for`, `$if`. Of other steps: how many attempts were made.",
        ),
        KeyRule::new(
            "fixes",
            Shape::MapOf(&Shape::Any),
            "How many repairs were made, by review: where there are fewer than reviews, the run goes on with the last report.",
        ),
        KeyRule::new(
            "answers",
            Shape::MapOf(&Shape::Any),
            "What people answered, by decision: a word, or a mapping of `answer`, `comment`, `route`, `at`, as skeletons.",
        ),
        KeyRule::new("numbered", Shape::Expression, "How many ad-hoc decisions have their numbers already."),
        KeyRule::new(
            "keep",
            Shape::MapOf(&Shape::Any),
            "What templates of the run see as `run.imported`: a skeleton with `$expr`, `$for`, `$if`.",
        ),
        KeyRule::new(
            "skipped",
            Shape::OneOf(&[Shape::Expression, Shape::MapOf(&Shape::Any)]),
            "A list of the steps that somebody left out on purpose, in the same way: they are not done.",
        ),
        KeyRule::new(
            "restarts",
            Shape::MapOf(&Shape::Any),
            "How often stages were started again, by stage: a skeleton with `$expr`, `$for`, `$if`.",
        ),
        KeyRule::new(
            "accept",
            Shape::MapOf(&Shape::Any),
            "Files by name, and what they must be like instead of what their step would have to write.",
        ),
        KeyRule::new(
            "supply",
            Shape::MapOf(&Shape::Any),
            "Files that such folders do not have, made from what is known: skeletons with `$expr`, `$for`, `$if`.",
        ),
    ],
};

pub static PROFILE: Table = Table {
    name: "a profile",
    keys: &[
        KeyRule::new("description", Shape::Text, "One sentence."),
        KeyRule::new("stages", Shape::MapOf(&Shape::Object(&STAGE_OVERRIDE)), "By stage: what is different."),
        KeyRule::new("steps", Shape::MapOf(&Shape::Any), "By step: any key of a step, or `enabled: false`."),
        KeyRule::new("roles", Shape::MapOf(&Shape::Any), "By role: what is different."),
        KeyRule::new("checks", Shape::MapOf(&Shape::Any), "By check: what is different."),
        KeyRule::new(
            "obligations",
            Shape::ListOf(&Shape::Object(&OBLIGATION)),
            "What must have happened at the end, instead of the workflow's.",
        ),
        KeyRule::new(
            "isolation",
            Shape::Word(&["shared", "worktree"]),
            "`worktree`: the whole run works on a branch of its own, outside the checkout.",
        ),
        KeyRule::new("parallel_max", Shape::Count, "Steps that may run at the same time."),
        KeyRule::new("budget", Shape::Object(&BUDGET), "What a run may spend."),
        KeyRule::new("settings", Shape::MapOf(&Shape::Any), "Other defaults of settings."),
        KeyRule::new("asked", Shape::MapOf(&Shape::Text), "More questions for settings."),
        KeyRule::new(
            "escalate_to",
            Shape::OneOf(&[Shape::Name, Shape::MapOf(&Shape::Name)]),
            "The profile to change to when a step is blocked, by reason; a bare name is for `complexity`.",
        ),
    ],
};

pub static STAGE_OVERRIDE: Table = Table {
    name: "a profile's stage",
    keys: &[
        KeyRule::new("enabled", Shape::Flag, "`false`: its steps are skipped."),
        KeyRule::new("restarts_max", Shape::CountOrZero, "How often it may be run again as a whole."),
        KeyRule::new(
            "gates",
            Shape::ListOf(&Shape::Object(&GATE)),
            "Gates of every step with which the stage starts.",
        ),
    ],
};

pub static BUDGET: Table = Table {
    name: "a budget",
    keys: &[
        KeyRule::new("usd", Shape::Money, "US dollars."),
        KeyRule::new("wall", Shape::Duration, "Time from start to end."),
        KeyRule::new("tokens", Shape::Natural, "Tokens of all agents together."),
        KeyRule::new("launches", Shape::Natural, "Attempts started."),
        KeyRule::new(
            "quota_wait",
            Shape::Duration,
            "How long in a row the quota of one agent is waited for; 24h if nothing is said.",
        ),
    ],
};

pub static WORDS: Table = Table {
    name: "words",
    keys: &[
        KeyRule::new(
            "ladder",
            Shape::Word(&["s0", "s1", "s2", "s3", "s4"]),
            "The severities of a known dialect.",
        ),
        KeyRule::new("outcomes", Shape::MapOf(&Shape::Word(OUTCOMES)), "Status words of replies."),
        KeyRule::new("severities", Shape::MapOf(&Shape::Word(SEVERITIES)), "Severities of findings."),
    ],
};

pub static OBLIGATION: Table = Table {
    name: "an obligation",
    keys: &[
        KeyRule::required("name", Shape::Name, "Its name, for gates."),
        KeyRule::new("role", Shape::Name, "Some step of this role has passed."),
        KeyRule::new("step", Shape::Path, "This step has passed."),
        KeyRule::new("decision", Shape::Path, "This decision was answered."),
        KeyRule::new("else_run", Shape::Path, "A dormant step that fulfils it when nothing else did."),
    ],
};

pub static PROJECTION: Table = Table {
    name: "a projection",
    keys: &[
        KeyRule::required("file", Shape::File, "The path, relative to the run directory."),
        KeyRule::new(
            "json",
            Shape::Any,
            "A skeleton with `$expr`, `$if`, `$for`, `$key`, or a file with one.",
        ),
        KeyRule::new("jsonl", Shape::Any, "A skeleton of a list, one element a line."),
        KeyRule::new("yaml", Shape::Any, "A skeleton."),
        KeyRule::new("markdown", Shape::Text, "A template, or a file with one."),
        KeyRule::new("text", Shape::Text, "A template, or a file with one."),
        KeyRule::new("each", Shape::Expression, "One file per element of this list, bound to `item`."),
        KeyRule::new("when", Shape::Expression, "Only while this holds."),
        KeyRule::new("schema", Shape::Any, "A JSON Schema that the file must satisfy, or a file with one."),
    ],
};

pub static SETTINGS_FROM: Table = Table {
    name: "settings_from",
    keys: &[
        KeyRule::required(
            "files",
            TEXTS_LIST,
            "JSON or YAML, the weakest first; `~/…` is below the home directory. They are merged key by key.",
        ),
        KeyRule::required(
            "values",
            Shape::MapOf(&Shape::OneOf(&[
                Shape::Text,
                Shape::ListOf(&Shape::Text),
                Shape::Object(&SETTING_AT),
            ])),
            "By setting: its dotted path, or several, of which the last that is there counts.",
        ),
        KeyRule::new("ignored", TEXTS_LIST, "Dotted paths that are known and mean nothing here."),
    ],
};

pub static SETTING_AT: Table = Table {
    name: "a setting of another tool",
    keys: &[
        KeyRule::required("at", TEXTS_LIST, "Its dotted path, or several."),
        KeyRule::new("unit", Shape::Text, "Put behind a number: `s` makes 5 to `5s`."),
    ],
};

pub static DECISIONS: Table = Table {
    name: "decisions",
    keys: &[
        KeyRule::new("prefix", Shape::Text, "`D-` if absent: D-1, D-2, …"),
        KeyRule::new("reasks_max", Shape::Count, "How often an answer that is none is asked again."),
    ],
};

pub static CONFIG: Table = Table {
    name: "a configuration",
    keys: &[
        KeyRule::new("agent", Shape::Name, "The default agent for roles that name none."),
        KeyRule::new("agents", Shape::MapOf(&Shape::Object(&AGENT)), "Agents: built in, or any program."),
        KeyRule::new("budget", Shape::Object(&BUDGET), "What a run may spend if its workflow does not say."),
        KeyRule::new("notify", Shape::Object(&NOTIFY), "Who is told that a run waits."),
        KeyRule::new("parallel_max", Shape::Count, "Steps at the same time if the workflow does not say."),
        KeyRule::new("protect", GLOBS, "Globs of files that no role may touch."),
        KeyRule::new(
            "sandbox",
            Shape::OneOf(&[Shape::Word(&["off", "on"]), Shape::Object(&SANDBOX)]),
            "For all agents and checks: more places they may write, or `off`.",
        ),
        KeyRule::new(
            "on_trespass",
            Shape::Word(&["keep", "restore"]),
            "What becomes of changes outside a role's scope: they stay and fail the step until they are gone, or are undone.",
        ),
        KeyRule::new(
            "state_dir",
            Shape::Text,
            "Where the journals are; inside the tree they are unprotected.",
        ),
        KeyRule::new("settings", Shape::MapOf(&Shape::Any), "Values of workflows' settings."),
        KeyRule::new("seed", TEXTS_LIST, "Globs of ignored files that a new worktree gets a copy of."),
        KeyRule::new("pull_request", Shape::Object(&PULL_REQUEST), "What `finish: pull_request` calls."),
        KeyRule::new(
            "workflows",
            Shape::MapOf(&Shape::Object(&PROFILE)),
            "By workflow: what is different here.",
        ),
    ],
};

pub static AGENT: Table = Table {
    name: "an agent",
    keys: &[
        KeyRule::new(
            "command",
            Shape::ListOf(&Shape::Text),
            "Program and arguments with `{role}`, `{model}`, `{prompt}`, `{prompt_file}`, `{step}`.",
        ),
        KeyRule::new("prompt", Shape::Word(&["stdin", "argument", "file"]), "How it gets the prompt."),
        KeyRule::new("env", Shape::ListOf(&Shape::Text), "Names of variables passed on."),
        KeyRule::new("set", Shape::MapOf(&Shape::Text), "Variables set to fixed values."),
        KeyRule::new(
            "sandbox",
            Shape::OneOf(&[Shape::Word(&["off", "on"]), Shape::Object(&SANDBOX)]),
            "More places it may write, or `off`.",
        ),
        KeyRule::new(
            "adapter",
            Shape::Word(&["claude", "codex", "gemini", "opencode", "qwen", "pi"]),
            "The adapter that drives it, if its name is not that of one; `command` is then its program.",
        ),
        KeyRule::new(
            "protocol",
            Shape::Word(&["acp"]),
            "Over the Agent Client Protocol instead of the agent's headless mode.",
        ),
        KeyRule::new("args", Shape::ListOf(&Shape::Text), "Arguments after those of the adapter."),
        KeyRule::new(
            "models",
            Shape::MapOf(&Shape::Text),
            "What `strong`, `fast` and `default` mean for this agent; `fresh`: the model of fix rounds after `resume_rounds`.",
        ),
        KeyRule::new("fallback", TEXTS_LIST, "Models to go on with when the first is not to be had."),
        KeyRule::new(
            "reply",
            Shape::OneOf(&[Shape::Word(&["text"]), Shape::Object(&AGENT_REPLY)]),
            "Where the last message is in the output of a `command`.",
        ),
        KeyRule::new(
            "session",
            Shape::Object(&AGENT_SESSION),
            "How a `command` goes on with a conversation.",
        ),
        KeyRule::new(
            "repairs_max",
            Shape::Natural,
            "Turns within one attempt that may mend a reply; else 2.",
        ),
        KeyRule::new(
            "resume_rounds",
            Shape::Natural,
            "Fix rounds that go on with the same conversation before a fresh one begins; else 2.",
        ),
        KeyRule::new("parallel_max", Shape::Count, "Attempts of this agent at the same time."),
        KeyRule::new(
            "processes_max",
            Shape::Count,
            "Processes of one attempt at the same time; with more it is ended. Else 2000.",
        ),
        KeyRule::new("timeout", Shape::Duration, "For steps that name none."),
        KeyRule::new("idle_timeout", Shape::Duration, "For steps that name none."),
    ],
};

pub static AGENT_REPLY: Table = Table {
    name: "a reply",
    keys: &[
        KeyRule::required("format", Shape::Word(&["text", "json", "jsonl"]), "One document, or one a line."),
        KeyRule::new("text", Shape::Text, "Dotted path of the message: `item.text`."),
        KeyRule::new("only", Shape::Text, "`type=message`: only lines of which this is true."),
        KeyRule::new("session", Shape::Text, "Dotted path of the conversation's id."),
        KeyRule::new("tokens", Shape::Text, "Dotted path of the tokens spent."),
        KeyRule::new("usd", Shape::Text, "Dotted path of the dollars spent."),
        KeyRule::new("error", Shape::Text, "Dotted path of what is there only if it failed."),
    ],
};

pub static AGENT_SESSION: Table = Table {
    name: "a session",
    keys: &[
        KeyRule::new(
            "start",
            Shape::ListOf(&Shape::Text),
            "Arguments of a new conversation with `{session}`, an id that we choose.",
        ),
        KeyRule::new(
            "resume",
            Shape::ListOf(&Shape::Text),
            "Arguments that go on with conversation `{session}`.",
        ),
    ],
};

pub static SANDBOX: Table = Table {
    name: "a sandbox",
    keys: &[
        KeyRule::new(
            "write",
            Shape::ListOf(&Shape::Text),
            "Places it may write besides the usual ones; `~/…` is below the home directory.",
        ),
        KeyRule::new("network", Shape::Word(&["on", "off"]), "`off`: no TCP, not even on this machine."),
    ],
};

pub static PULL_REQUEST: Table = Table {
    name: "pull_request",
    keys: &[KeyRule::required(
        "command",
        TEXTS_LIST,
        "A command with `{branch}`, `{base}`, `{title}`, `{run}`.",
    )],
};

pub static NOTIFY: Table = Table {
    name: "notify",
    keys: &[KeyRule::required("command", TEXTS_LIST, "A command with `{title}`, `{body}`, `{run}`.")],
};
