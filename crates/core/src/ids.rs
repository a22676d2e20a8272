//! Names of things, each its own type so that a step is never passed for a role.
//!
//! A step id is a path: `STEP`, `STEP/KEY/SUBSTEP` in a fan-out, `STEP/SUBSTEP` in a sub-run.

use std::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};

/// The first eight bytes as a number: ids that begin differently are told apart, and put in order, without a look
/// at their texts. Every event looks up a dozen of them.
fn head_of(text: &str) -> u64 {
    let mut head = [0; 8];
    let length = text.len().min(8);
    head[..length].copy_from_slice(&text.as_bytes()[..length]);
    u64::from_be_bytes(head)
}

/// Reads a text without a copy of its own, and makes something of it.
struct Text<T>(fn(&str) -> T);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok((self.0)(text))
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name {
            /// Compared first; it is in the order of the texts.
            head: u64,
            text: Arc<str>,
        }

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                let text = text.as_ref();
                Self { head: head_of(text), text: Arc::from(text) }
            }

            pub fn as_str(&self) -> &str {
                &self.text
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(|text| Self::new(text)))
            }
        }

        // As its text does: it stands for its text in maps.
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.text.hash(state);
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.as_str()).finish()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.text
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }
    };
}

id!(
    /// A node of the graph, or an instance of one.
    StepId
);
id!(
    /// A named group of steps, the unit of restart.
    StageId
);
id!(
    /// Who does a step.
    RoleId
);
id!(
    /// Which program plays a role.
    AgentId
);
id!(
    /// A persisted question to a person.
    DecisionId
);
id!(
    /// A command that the engine runs itself.
    CheckId
);
id!(
    /// A named limit on what may run at the same time.
    PoolId
);
id!(
    /// A predicate on an edge.
    GateId
);
id!(
    /// A variant of a workflow.
    ProfileId
);
id!(
    /// What a step does to the checkout it shares with others; some exclude each other.
    TenureId
);
id!(
    /// A file that a step must produce, under the name it is published with.
    ArtifactName
);

impl StepId {
    /// The id of `child` inside the scope of this step.
    pub fn child(&self, child: &str) -> StepId {
        StepId::new(format!("{self}/{child}"))
    }
}

/// Milliseconds since the Unix epoch. Only ever compared and added to; never read from a clock here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub fn plus_ms(self, ms: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(ms))
    }

    pub fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Content hash of a file, a tree or any other evidence, in lower-case hex.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_order_of_their_texts() {
        let texts = [
            "",
            "\0",
            "a",
            "a\0",
            "ab",
            "each/i1",
            "each/i10",
            "each/i10/one",
            "each/i2",
            "each/i2/one",
            "é",
        ];
        for (left, right) in texts.iter().flat_map(|left| texts.iter().map(move |right| (left, right))) {
            let (a, b) = (StepId::new(left), StepId::new(right));
            assert_eq!(a.cmp(&b), left.cmp(right), "{left:?} {right:?}");
            assert_eq!(a == b, left == right, "{left:?} {right:?}");
        }
    }
}
