//! What a value may look like. Data only; `check_shape` compares, `schema` prints.

/// The shape of one value.
#[derive(Debug)]
pub enum Shape {
    /// Anything; somebody else looks at it.
    Any,
    /// Words for people.
    Text,
    /// An id: letters, digits, `-`, `_`, `.`.
    Name,
    /// A name of a step, which may be inside another one: `STEP/SUB`.
    Path,
    /// A text with `{{ … }}`.
    Template,
    /// A template of the name of a file that stays inside its folder.
    File,
    /// The same without templates: it is taken as it is written.
    PlainFile,
    /// A glob over files of the repository.
    Glob,
    /// An expression without braces.
    Expression,
    Flag,
    /// A limit: at least 1, at most the ceiling.
    Count,
    /// A limit that may be 0, at most the ceiling.
    CountOrZero,
    /// A number of things, 0 too.
    Natural,
    /// `90s`, `20m`, `4h`, `1500ms`.
    Duration,
    /// US dollars.
    Money,
    /// One of a closed set.
    Word(&'static [&'static str]),
    Object(&'static Table),
    MapOf(&'static Shape),
    /// A mapping whose keys are names of files.
    MapOfFiles(&'static Shape),
    ListOf(&'static Shape),
    /// The first whose kind of value (text, list, mapping, …) fits decides.
    OneOf(&'static [Shape]),
    /// A mapping that has this key is the first, any other the second.
    Switch {
        key: &'static str,
        with: &'static Shape,
        without: &'static Shape,
    },
}

/// The keys of one kind of mapping.
#[derive(Debug)]
pub struct Table {
    /// As it is called in messages: "a step".
    pub name: &'static str,
    pub keys: &'static [KeyRule],
}

#[derive(Debug)]
pub struct KeyRule {
    pub name: &'static str,
    pub shape: Shape,
    pub need: Need,
    /// Kinds of step that know the key; of no meaning outside the step tables.
    pub kinds: Kinds,
    pub doc: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Required,
    Optional,
}

/// A set of step kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(pub u8);

impl Kinds {
    pub const AGENT: Kinds = Kinds(1);
    pub const REVIEW: Kinds = Kinds(2);
    pub const CHECK: Kinds = Kinds(4);
    pub const DECIDE: Kinds = Kinds(8);
    pub const FOR_EACH: Kinds = Kinds(16);
    pub const MERGE: Kinds = Kinds(32);
    pub const RUN: Kinds = Kinds(64);
    pub const FINISH: Kinds = Kinds(128);
    pub const ALL: Kinds = Kinds(255);
    /// Kinds whose work an agent does.
    pub const WORK: Kinds = Kinds(1 | 2);

    pub const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    pub fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl KeyRule {
    pub const fn new(name: &'static str, shape: Shape, doc: &'static str) -> KeyRule {
        KeyRule { name, shape, need: Need::Optional, kinds: Kinds::ALL, doc }
    }

    pub const fn required(name: &'static str, shape: Shape, doc: &'static str) -> KeyRule {
        KeyRule { name, shape, need: Need::Required, kinds: Kinds::ALL, doc }
    }

    pub const fn of(kinds: Kinds, name: &'static str, shape: Shape, doc: &'static str) -> KeyRule {
        KeyRule { name, shape, need: Need::Optional, kinds, doc }
    }
}

impl Table {
    pub fn key(&self, name: &str) -> Option<&'static KeyRule> {
        self.keys.iter().find(|rule| rule.name == name)
    }
}
