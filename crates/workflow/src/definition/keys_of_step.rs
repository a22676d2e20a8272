//! The keys of a step, of what stands inside one, and which kinds of step know which key.

use super::{
    keys::{BUDGET, GLOBS, PATHS, REPLIES, TEXTS_LIST, WORDS},
    shape::{KeyRule, Kinds, Shape, Table},
};

/// The key that tells the kind of a step, and the kind.
pub const KIND_KEYS: &[(&str, Kinds, &str)] = &[
    ("role", Kinds::AGENT, "an agent step"),
    ("review", Kinds::REVIEW, "a review"),
    ("check", Kinds::CHECK, "a check step"),
    ("decide", Kinds::DECIDE, "a decision"),
    ("for_each", Kinds::FOR_EACH, "a fan-out"),
    ("merge", Kinds::MERGE, "a merge"),
    ("run", Kinds::RUN, "a sub-run"),
    ("finish", Kinds::FINISH, "a finish"),
];

pub const EXHAUSTIONS: &[&str] = &["ask", "block", "complete_with_notes", "restart_stage", "fail"];
pub const EFFECTS: &[&str] = &["pass", "accept", "again", "skip", "block", "abort"];
pub const VERDICTS: &[&str] = &["pass", "pass_with_notes", "revise"];

const NAME_LIST: Shape = Shape::OneOf(&[Shape::Name, Shape::ListOf(&Shape::Name)]);
const PATH_LIST: Shape = Shape::OneOf(&[Shape::Path, Shape::ListOf(&Shape::Path)]);
const FILE_LIST: Shape = Shape::OneOf(&[Shape::File, Shape::ListOf(&Shape::File)]);
const WRITES: Shape = Shape::OneOf(&[Shape::MapOfFiles(&WRITE_RULE), Shape::ListOf(&Shape::File)]);
/// What takes a place while it works; what is inside a group takes its own.
const WORKERS: Kinds = Kinds::WORK.and(Kinds::CHECK).and(Kinds::MERGE).and(Kinds::FINISH);
/// What a group reads and writes is said by the steps inside it.
const READERS: Kinds = Kinds::WORK.and(Kinds::CHECK);

pub static STEP: Table = Table {
    name: "a step",
    keys: &[
        KeyRule::required("id", Shape::Name, "Its name."),
        KeyRule::of(Kinds::AGENT, "role", Shape::Name, "An agent step: who does it."),
        KeyRule::of(Kinds::REVIEW, "review", PATH_LIST, "A review: of which steps."),
        KeyRule::of(Kinds::CHECK, "check", Shape::Name, "A check step: which check."),
        KeyRule::of(Kinds::DECIDE, "decide", Shape::Template, "A decision: the question."),
        KeyRule::of(Kinds::FOR_EACH, "for_each", Shape::PlainFile, "A fan-out: the artifact with the list."),
        KeyRule::of(Kinds::MERGE, "merge", Shape::Path, "A merge: of the worktrees of which fan-out."),
        KeyRule::of(Kinds::RUN, "run", Shape::Text, "A sub-run: which workflow."),
        KeyRule::of(
            Kinds::FINISH,
            "finish",
            Shape::Path,
            "A finish: `merge`, `keep`, `pull_request`, `discard`, `ask`, or the decision whose answer says which.",
        ),
        KeyRule::of(
            Kinds::FINISH,
            "confirm",
            Shape::Flag,
            "`false`: what is discarded is not asked about once more; a decision before it did.",
        ),
        KeyRule::new("title", Shape::Text, "For people."),
        KeyRule::new("enabled", Shape::Flag, "`false`: skipped; what follows is linked to what precedes."),
        KeyRule::new("needs", PATH_LIST, "Steps that must have passed; replaces \"the step before\"."),
        KeyRule::new("when", Shape::Expression, "Skipped unless this holds."),
        KeyRule::new("gates", Shape::ListOf(&Shape::Object(&GATE)), "What must hold before it starts."),
        KeyRule::new(
            "dormant",
            Shape::Flag,
            "Runs only when a loop, an answer or an obligation calls for it.",
        ),
        KeyRule::new("data", Shape::MapOf(&Shape::Any), "Free data, `step.data` in templates."),
        KeyRule::of(
            WORKERS,
            "pools",
            NAME_LIST,
            "Limits it counts against; of a group, each step inside names its own.",
        ),
        KeyRule::of(READERS, "reads", FILE_LIST, "Artifacts that must exist; `FILE?` may be missing."),
        KeyRule::of(READERS, "writes", WRITES, "Artifacts it must produce, each with its contract."),
        KeyRule::of(
            Kinds::WORK.and(Kinds::MERGE),
            "checks",
            NAME_LIST,
            "Run by the engine after each attempt that says it is done.",
        ),
        KeyRule::of(
            Kinds::WORK.and(Kinds::CHECK).and(Kinds::MERGE).and(Kinds::FINISH),
            "retry",
            Shape::Object(&RETRY),
            "How often an attempt that broke is repeated.",
        ),
        KeyRule::of(
            Kinds::WORK.and(Kinds::CHECK).and(Kinds::MERGE),
            "timeout",
            Shape::Duration,
            "For one attempt.",
        ),
        KeyRule::of(Kinds::WORK, "idle_timeout", Shape::Duration, "Without any output."),
        KeyRule::of(
            Kinds::WORK,
            "extension",
            Shape::Duration,
            "Added to `timeout` once, if there was output within this time before it.",
        ),
        KeyRule::of(Kinds::WORK, "prompt", Shape::Template, "What is to be done; follows the role's text."),
        KeyRule::of(Kinds::WORK, "reply", Shape::Word(REPLIES), "The format of the reply."),
        KeyRule::of(
            Kinds::WORK,
            "points",
            TEXTS_LIST,
            "What the points of the reply have to speak of: words, `a|b` for either.",
        ),
        KeyRule::of(Kinds::WORK, "agent", Shape::Name, "Which program, instead of the role's."),
        KeyRule::of(Kinds::WORK, "model", Shape::Text, "Which model, instead of the role's."),
        KeyRule::of(Kinds::WORK, "words", Shape::Object(&WORDS), "Words that mean something else here."),
        KeyRule::of(Kinds::WORK, "may_write", GLOBS, "Globs it may change, instead of the role's."),
        KeyRule::of(
            Kinds::WORK,
            "back",
            PATH_LIST,
            "Earlier steps to which its agent may refer the work back.",
        ),
        KeyRule::of(Kinds::WORK, "back_max", Shape::Count, "How often."),
        KeyRule::of(Kinds::REVIEW, "by", BY, "Role of the reviewer, or several reviewers."),
        KeyRule::of(
            Kinds::REVIEW,
            "block_at",
            Shape::Name,
            "The mildest severity that blocks; `medium` if absent.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "finds",
            Shape::Template,
            "What the engine itself finds, beside the reviewer: one finding a line, `severity: what is wrong`.",
        ),
        KeyRule::of(
            Kinds::REVIEW.and(Kinds::MERGE),
            "rounds_max",
            Shape::Count,
            "Reviews, or merges that are mended, exactly so many.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "rereview",
            Shape::Word(&["all", "failed"]),
            "Who looks again after a fix.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "rerun",
            Shape::Word(&["between", "listed"]),
            "What runs again before the next review.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "final_pass",
            Shape::Flag,
            "One more round of all after re-reviews of the failed only.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "stalled_after",
            Shape::Count,
            "Rounds with the same findings before a person is asked.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "hard_stop_on_blocked",
            Shape::Flag,
            "`blocked` stops the run whatever the severities.",
        ),
        KeyRule::of(
            Kinds::REVIEW.and(Kinds::MERGE),
            "fix",
            FIX,
            "Who repairs: the reviewed steps if absent; of a merge, a person if absent.",
        ),
        KeyRule::of(
            Kinds::REVIEW.and(Kinds::MERGE),
            "on_exhausted",
            EXHAUSTION,
            "When `rounds_max` is used up, in order.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "ask_at",
            Shape::Name,
            "The mildest note that a person judges; `note` if absent.",
        ),
        KeyRule::of(
            Kinds::REVIEW,
            "on_notes",
            Shape::MapOf(&ANSWER),
            "A pass with such notes is asked about, with these answers.",
        ),
        KeyRule::of(
            Kinds::DECIDE,
            "show",
            FILE_LIST,
            "What is shown, and so what the answer is bound to. Names may be templates; `?` behind one: if it is there.",
        ),
        KeyRule::of(
            Kinds::DECIDE,
            "answers",
            Shape::MapOf(&ANSWER),
            "The closed set of answers and what each does.",
        ),
        KeyRule::of(Kinds::DECIDE, "decision", Shape::Name, "The id under which people know it."),
        KeyRule::of(
            Kinds::DECIDE,
            "once",
            Shape::Flag,
            "In a fan-out: items that come to it with the same words ask once, and the answer holds for all of them.",
        ),
        KeyRule::of(Kinds::FOR_EACH, "steps", Shape::ListOf(&Shape::Object(&STEP)), "The steps of one item."),
        KeyRule::of(
            Kinds::FOR_EACH,
            "items",
            Shape::Text,
            "Where the list is: a name, `a.b`, or a JSON pointer.",
        ),
        KeyRule::of(Kinds::FOR_EACH, "key", Shape::Name, "What identifies an item; `id` if absent."),
        KeyRule::of(
            Kinds::FOR_EACH,
            "needs_of",
            Shape::Name,
            "What an item waits for; `depends_on` if absent.",
        ),
        KeyRule::of(
            Kinds::FOR_EACH,
            "parallel_max",
            Shape::Count,
            "Items that may be open at the same time.",
        ),
        KeyRule::of(Kinds::FOR_EACH, "waves", Shape::Flag, "Dependency levels one after the other."),
        KeyRule::of(
            Kinds::FOR_EACH,
            "on_item_failure",
            Shape::Word(&["block", "note"]),
            "What a failed item means at the end.",
        ),
        KeyRule::of(Kinds::FOR_EACH, "items_max", Shape::Count, "More items are a mistake of the plan."),
        KeyRule::of(Kinds::FOR_EACH, "planned_by", Shape::Path, "The step to redo when the list is no plan."),
        KeyRule::of(
            Kinds::FOR_EACH.and(Kinds::AGENT),
            "isolation",
            Shape::Word(&["shared", "worktree"]),
            "Where the work is done.",
        ),
        KeyRule::of(
            Kinds::AGENT,
            "commit",
            Shape::Flag,
            "The engine commits what it changed; on in worktrees, and it puts the run into one.",
        ),
        KeyRule::of(
            Kinds::RUN,
            "request",
            Shape::Template,
            "The request of the sub-run; the parent's if absent.",
        ),
        KeyRule::of(Kinds::RUN, "profile", Shape::Name, "Its profile."),
        KeyRule::of(Kinds::RUN, "budget", Shape::Object(&BUDGET), "What it may spend."),
    ],
};

static WRITE_RULE: Shape = Shape::OneOf(&[
    Shape::Text,
    Shape::Switch { key: "contract", with: &WRITE_DETAIL, without: &WRITE_WITHOUT_CONTRACT },
]);
static WRITE_DETAIL: Shape = Shape::Object(&WRITE);
static WRITE_WITHOUT_CONTRACT: Shape =
    Shape::Switch { key: "first", with: &WRITE_DETAIL, without: &WRITE_OPTIONAL_OR_CONTRACT };
static WRITE_OPTIONAL_OR_CONTRACT: Shape =
    Shape::Switch { key: "optional", with: &WRITE_DETAIL, without: &WRITE_FIRST_OR_INLINE };
static WRITE_FIRST_OR_INLINE: Shape =
    Shape::Switch { key: "first_contract", with: &WRITE_DETAIL, without: &WRITE_INLINE_OR_CONTRACT };
static WRITE_INLINE_OR_CONTRACT: Shape =
    Shape::Switch { key: "inline", with: &WRITE_DETAIL, without: &Shape::Any };

/// The keys that make an entry of `writes` more than a contract.
pub const WRITE_KEYS: &[&str] = &["contract", "first", "first_contract", "inline", "optional"];

pub static WRITE: Table = Table {
    name: "an entry of `writes`",
    keys: &[
        KeyRule::new(
            "contract",
            Shape::Any,
            "`any` (also if absent), a path, a name of `contracts`, or a contract.",
        ),
        KeyRule::new("first", Shape::File, "The name in the first round, if it differs."),
        KeyRule::new("first_contract", Shape::Any, "The contract in the first round, if it differs."),
        KeyRule::new("inline", Shape::Object(&INLINE), "Where its text may stand in the reply instead."),
        KeyRule::new("optional", Shape::Flag, "It may be missing."),
    ],
};

pub static INLINE: Table = Table {
    name: "an `inline`",
    keys: &[
        KeyRule::required("field", Shape::Text, "The field of a JSON reply, as `artifacts.summary`."),
        KeyRule::new("lines_max", Shape::Count, "So long it may be there; without, as long as it likes."),
    ],
};

const BY: Shape = Shape::OneOf(&[
    Shape::Name,
    Shape::ListOf(&Shape::OneOf(&[Shape::Name, Shape::Object(&REVIEWER)])),
    Shape::Object(&REVIEWER),
]);

pub static REVIEWER: Table = Table {
    name: "a reviewer",
    keys: &[
        KeyRule::required("role", Shape::Name, "Who."),
        KeyRule::new("id", Shape::Name, "Its name below the review; the role's if absent."),
        KeyRule::new("title", Shape::Text, "For people."),
        KeyRule::new("reads", FILE_LIST, "Besides what the review reads."),
        KeyRule::new("writes", WRITES, "Its own artifacts."),
        KeyRule::new("prompt", Shape::Template, "After the prompt of the review."),
        KeyRule::new("agent", Shape::Name, "Which program, instead of the role's."),
        KeyRule::new("model", Shape::Text, "Which model, instead of the role's."),
        KeyRule::new("reply", Shape::Word(REPLIES), "The format of the reply."),
        KeyRule::new("points", TEXTS_LIST, "What the points of the reply have to speak of."),
        KeyRule::new("timeout", Shape::Duration, "For one attempt."),
        KeyRule::new("idle_timeout", Shape::Duration, "Without any output."),
        KeyRule::new("retry", Shape::Object(&RETRY), "How often an attempt that broke is repeated."),
        KeyRule::new("words", Shape::Object(&WORDS), "Words that mean something else here."),
        KeyRule::new("route", Shape::Name, "The route of its findings that name none."),
        KeyRule::new("may_write", GLOBS, "Globs it may change, instead of the role's."),
        KeyRule::new("data", Shape::MapOf(&Shape::Any), "Free data."),
    ],
};

/// A fix written in place: an agent step whose id may be left out.
pub static FIX_STEP: Table = Table {
    name: "a fix",
    keys: &[
        KeyRule::required("role", Shape::Name, "Who."),
        KeyRule::new("id", Shape::Name, "Its name after the review's and a hyphen; `fix` if absent."),
        KeyRule::new("title", Shape::Text, "For people."),
        KeyRule::new("reads", FILE_LIST, "Artifacts that must exist."),
        KeyRule::new("writes", WRITES, "Its artifacts."),
        KeyRule::new("checks", NAME_LIST, "Run after each attempt that says it is done."),
        KeyRule::new("prompt", Shape::Template, "What is to be done."),
        KeyRule::new("agent", Shape::Name, "Which program, instead of the role's."),
        KeyRule::new("model", Shape::Text, "Which model, instead of the role's."),
        KeyRule::new("reply", Shape::Word(REPLIES), "The format of the reply."),
        KeyRule::new("timeout", Shape::Duration, "For one attempt."),
        KeyRule::new("idle_timeout", Shape::Duration, "Without any output."),
        KeyRule::new("retry", Shape::Object(&RETRY), "How often an attempt that broke is repeated."),
        KeyRule::new("pools", NAME_LIST, "Limits it counts against."),
        KeyRule::new("words", Shape::Object(&WORDS), "Words that mean something else here."),
        KeyRule::new("may_write", GLOBS, "Globs it may change, instead of the role's."),
        KeyRule::new("data", Shape::MapOf(&Shape::Any), "Free data."),
    ],
};

static FIX_ONE: Shape = Shape::OneOf(&[Shape::Path, Shape::Object(&FIX_STEP)]);
static FIX_MANY: Shape = Shape::OneOf(&[Shape::Path, Shape::Object(&FIX_STEP), Shape::ListOf(&FIX_ONE)]);
static FIX_INLINE: Shape = Shape::Object(&FIX_STEP);
static FIX_ROUTES: Shape = Shape::MapOf(&FIX_MANY);
const FIX: Shape = Shape::OneOf(&[
    Shape::Path,
    Shape::ListOf(&FIX_ONE),
    Shape::Switch { key: "role", with: &FIX_INLINE, without: &FIX_ROUTES },
]);

pub static RETRY: Table = Table {
    name: "a retry",
    keys: &[
        KeyRule::new("attempts_max", Shape::Count, "Executions per round, exactly so many."),
        KeyRule::new(
            "backoff",
            Shape::OneOf(&[Shape::Duration, Shape::ListOf(&Shape::Duration)]),
            "Pause before the second, third, … attempt.",
        ),
        KeyRule::new("interruptions_max", Shape::Count, "The machine's fault is counted apart."),
        KeyRule::new("on_exhausted", EXHAUSTION, "When `attempts_max` is used up, in order."),
    ],
};

const EXHAUSTION: Shape = Shape::OneOf(&[
    Shape::Word(EXHAUSTIONS),
    Shape::ListOf(&EXHAUSTION_ONE),
    Shape::Object(&EXHAUSTION_DETAIL),
]);
static EXHAUSTION_ONE: Shape = Shape::OneOf(&[Shape::Word(EXHAUSTIONS), Shape::Object(&EXHAUSTION_DETAIL)]);

pub static EXHAUSTION_DETAIL: Table = Table {
    name: "an entry of `on_exhausted`",
    keys: &[
        KeyRule::new(
            "ask",
            Shape::Switch { key: "answers", with: &Shape::Object(&ASK), without: &ASK_ANSWERS },
            "A person, with these answers.",
        ),
        KeyRule::new("restart_stage", Shape::Name, "Another stage than this one."),
    ],
};

static ASK_ANSWERS: Shape = Shape::MapOf(&ANSWER);
pub static ASK: Table = Table {
    name: "`ask`",
    keys: &[KeyRule::required("answers", Shape::MapOf(&ANSWER), "The closed set of answers.")],
};

static ANSWER: Shape = Shape::OneOf(&[Shape::Word(EFFECTS), Shape::Object(&ANSWER_EFFECT)]);

pub static ANSWER_EFFECT: Table = Table {
    name: "an answer",
    keys: &[
        KeyRule::new("does", Shape::Word(EFFECTS), "What it does."),
        KeyRule::new("redo", PATH_LIST, "Run these again, with the comment."),
        KeyRule::new(
            "routes",
            Shape::MapOf(&PATHS),
            "By role: what runs again when the person names the role.",
        ),
        KeyRule::new("restart", Shape::Name, "Run this stage again."),
        KeyRule::new("synonyms", Shape::ListOf(&Shape::Text), "Other ways to say it."),
    ],
};

pub static GATE: Table = Table {
    name: "a gate",
    keys: &[
        KeyRule::new("artifact", Shape::PlainFile, "Written by a step that passed, its contract held."),
        KeyRule::new("verdict", Shape::Path, "The last verdict of this review …"),
        KeyRule::new(
            "at_most",
            Shape::Word(VERDICTS),
            "… is at most this strict; `pass_with_notes` if absent.",
        ),
        KeyRule::new("check", Shape::Name, "The last execution of this check …"),
        KeyRule::new("of", Shape::Path, "… by this step succeeded."),
        KeyRule::new("decision", Shape::Path, "This decision was answered …"),
        KeyRule::new("answers", NAME_LIST, "… with one of these."),
        KeyRule::new("obligation", Shape::Name, "It is met."),
        KeyRule::new("expr", Shape::Expression, "It is true."),
        KeyRule::new("soft", Shape::Flag, "A person may let it pass."),
    ],
};

/// The keys of a gate that say what it asks.
pub const GATE_KEYS: &[&str] = &["artifact", "verdict", "check", "decision", "obligation", "expr"];
