//! Names of things, each its own type so that a step is never passed for a role.
//!
//! A step id is a path: `STEP`, `STEP/KEY/SUBSTEP` in a fan-out, `STEP/SUBSTEP` in a sub-run.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Arc::from(text.as_ref()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
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
