//! The keys of a scenario file: the same tables and the same walker as for workflows, so that a
//! misspelled key is reported with its line and the nearest known one.

use gatewright_workflow::definition::shape::{KeyRule, Shape, Table};

/// Behaviours that are said with a word alone.
pub const WORDS: &[&str] = &[
    "done",
    "pass",
    "crash",
    "hang",
    "slow",
    "malformed",
    "wrong_status",
    "missing_file",
    "stale_file",
    "edits_outside",
    "huge_output",
    "quota",
    "blocked",
    "error",
];

/// What a rehearsed check does.
pub const CHECK_WORDS: &[&str] = &["ok", "fail", "run"];

pub static SCENARIO: Table = Table {
    name: "a scenario",
    keys: &[
        KeyRule::new("description", Shape::Text, "What it shows, in one sentence."),
        KeyRule::new("request", Shape::Text, "What the run is asked to do."),
        KeyRule::new("profile", Shape::Name, "The profile, unless the command line names one."),
        KeyRule::new("settings", Shape::MapOf(&Shape::Any), "As with `--set key=value`."),
        KeyRule::new(
            "files",
            Shape::MapOf(&Shape::Text),
            "Files of the scratch repository before the start.",
        ),
        KeyRule::new("timeout", Shape::Duration, "The longest attempt; 30s if absent."),
        KeyRule::new(
            "checks",
            Shape::MapOf(&CHECK),
            "By check: `ok` (if absent), `fail`, a list of both by execution, or `run` to really run it.",
        ),
        KeyRule::new(
            "pull_request",
            CHECK_WORD_ONLY,
            "A command opens pull requests: `ok`, or `fail`; without, there is none, whatever is configured.",
        ),
        KeyRule::new(
            "answers",
            Shape::MapOf(&Shape::Any),
            "By decision or step: an answer, `answer: comment`, or a list of them, first asked first.",
        ),
        KeyRule::new(
            "agents",
            Shape::MapOf(&Shape::Any),
            "By step, `STEP/*/SUB`, or role: a behaviour or a list of them by attempt; the last repeats.",
        ),
        KeyRule::new("orders", Shape::ListOf(&Shape::Object(&ORDER)), "What a person orders, and when."),
        KeyRule::new("expect", Shape::Object(&EXPECT), "How it must end; `state: done` if absent."),
    ],
};

const CHECK_WORD_ONLY: Shape = Shape::Word(&["ok", "fail"]);
static CHECK_WORD: Shape = Shape::Word(CHECK_WORDS);
static CHECK: Shape = Shape::OneOf(&[Shape::Word(CHECK_WORDS), Shape::ListOf(&CHECK_WORD)]);

pub static ORDER: Table = Table {
    name: "an order",
    keys: &[
        KeyRule::required("after", Shape::Text, "The step after whose first pass the order is given."),
        KeyRule::new("restart", Shape::Name, "Run this stage again."),
        KeyRule::new("skip", Shape::Text, "Leave this step out."),
        KeyRule::new("reason", Shape::Text, "Why; `rehearsed` if absent."),
        KeyRule::new("stop", Shape::Flag, "Let running attempts finish, then rest."),
        KeyRule::new("resume", Shape::Flag, "Go on after that rest."),
        KeyRule::new("abort", Shape::Flag, "Give the run up."),
        KeyRule::new(
            "commits",
            Shape::MapOf(&Shape::Text),
            "Somebody commits these files on the branch that the run began on.",
        ),
        KeyRule::new("kill", Shape::Flag, "The engine goes without a word; another one opens the journal."),
    ],
};

pub static EXPECT: Table = Table {
    name: "`expect`",
    keys: &[
        KeyRule::new("state", Shape::Word(STATES), "How the run ends or where it rests."),
        KeyRule::new(
            "order",
            Shape::ListOf(&ORDER_ENTRY),
            "Steps in the order they began; attempts of one round count once, `[a, b]` = in any order.",
        ),
        KeyRule::new("attempts", Shape::MapOf(&Shape::Natural), "By step: attempts started."),
        KeyRule::new("rounds", Shape::MapOf(&Shape::Natural), "By step: rounds."),
        KeyRule::new("steps", Shape::MapOf(&Shape::Text), "By step: its state at the end."),
        KeyRule::new("files", TEXTS, "Published files that exist at the end."),
        KeyRule::new("decisions", Shape::MapOf(&Shape::Text), "By decision: its last answer."),
        KeyRule::new("blocked_by", Shape::Text, "The reason why the run is blocked or paused."),
        KeyRule::new("events", TEXTS, "Types of events that happen in this order, others between them."),
    ],
};

static ORDER_ENTRY: Shape = Shape::OneOf(&[Shape::Text, Shape::ListOf(&Shape::Text)]);
const TEXTS: Shape = Shape::OneOf(&[Shape::Text, Shape::ListOf(&Shape::Text)]);
const STATES: &[&str] = &["waiting", "blocked", "paused", "done", "failed", "abandoned"];

/// A behaviour written as a mapping. The keys that end an attempt exclude each other.
pub static BEHAVIOUR: Table = Table {
    name: "a behaviour",
    keys: &[
        KeyRule::new("done", Shape::Any, "It finishes its work."),
        KeyRule::new("pass", Shape::Any, "A reviewer is content."),
        KeyRule::new("findings", Shape::Any, "A reviewer finds these."),
        KeyRule::new("crash", Shape::Any, "It exits with this code; 1 if none is named."),
        KeyRule::new("hang", Shape::Any, "It never ends by itself."),
        KeyRule::new("malformed", Shape::Any, "It says something, but gives no reply."),
        KeyRule::new("wrong_status", Shape::Any, "Its status is a word that does not exist."),
        KeyRule::new("missing_file", Shape::Any, "It names files that it does not write."),
        KeyRule::new("stale_file", Shape::Any, "It writes nothing and relies on the files of last time."),
        KeyRule::new("asks", Shape::Any, "It has questions."),
        KeyRule::new("quota", Shape::Any, "The provider's quota is used up for this long."),
        KeyRule::new("blocked", Shape::Any, "It cannot go on, for this reason."),
        KeyRule::new("error", Shape::Any, "It reports an error."),
        KeyRule::new("back_to", Shape::Text, "It refers the work back to this step."),
        KeyRule::new("reply", Shape::Text, "It ends with exactly this text."),
        KeyRule::new("slow", Shape::Any, "It first waits this long."),
        KeyRule::new("huge_output", Shape::Any, "It first prints this much: `200MB`."),
        KeyRule::new("edits", Shape::MapOf(&Shape::Text), "Files of the repository that it writes."),
        KeyRule::new("edits_outside", Shape::Any, "Files outside its scope that it writes."),
        KeyRule::new("files", Shape::MapOf(&Shape::Text), "By declared output: what it writes there."),
        KeyRule::new("summary", Shape::Text, "The sentence in its reply."),
    ],
};

pub static FINDING: Table = Table {
    name: "a finding",
    keys: &[
        KeyRule::new("id", Shape::Text, "Its number."),
        KeyRule::new("severity", Shape::Text, "critical, high, medium, low, note; `high` if absent."),
        KeyRule::required("problem", Shape::Text, "What is wrong."),
        KeyRule::new("location", Shape::Text, "Where."),
        KeyRule::new("category", Shape::Text, "Of what kind."),
        KeyRule::new("fix", Shape::Text, "What to do."),
        KeyRule::new("route", Shape::Text, "Who should do it."),
        KeyRule::new("out_of_scope", Shape::Flag, "It asks for more than the task."),
    ],
};

pub static QUESTION: Table = Table {
    name: "a question",
    keys: &[
        KeyRule::required("question", Shape::Text, "What is asked."),
        KeyRule::new("options", Shape::ListOf(&Shape::Text), "Closed answers."),
        KeyRule::new("recommendation", Shape::Text, "What the agent would take."),
        KeyRule::new("security", Shape::Flag, "Never put off for want of an answer."),
    ],
};

/// An answer with more than its word and a comment.
pub static ANSWER: Table = Table {
    name: "an answer",
    keys: &[
        KeyRule::new("answer", Shape::Text, "One of the decision's words, or a text."),
        KeyRule::new("comment", Shape::Text, "What is said beside it."),
        KeyRule::new("route", Shape::Text, "Who should do what the answer asks for."),
        KeyRule::new("confirmed", Shape::Flag, "The comment beside an approval is no condition."),
        KeyRule::new("cancel", Shape::Text, "Put the decision off, for this reason."),
    ],
};
