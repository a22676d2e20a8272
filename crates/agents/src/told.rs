//! What an agent's stream says of the attempt, when it is over. A claim like any other: whether the
//! reply and the files hold is for the engine to see.

use serde::{Deserialize, Serialize};

use crate::{event::Usage, trouble::Trouble};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The last message, where the reply stands.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub usage: Usage,
    /// Tools that it was not allowed to use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Why it did not end well; absent: its stream says that it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// Lines of a kind that this version does not know.
    #[serde(default)]
    pub unknown: u64,
}
