//! A person's order as it lies in the inbox: its text with the user's seal. Must not know files.
//!
//! The seal is over the message's own id, so that an order cannot be sent a second time under another.

use serde::{Deserialize, Serialize};

use super::MessageId;
use crate::user_key::RunKey;

const PURPOSE: &str = "order";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    v: u32,
    order: String,
    seal: String,
}

/// Why a message is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAuthentic {
    #[error("it carries no seal of the user")]
    Unsealed,
    #[error("its seal is not by the user's key for this message of this run")]
    WrongSeal,
}

/// The text of a message that carries an order.
pub fn seal(key: &RunKey, id: &MessageId, order: &str) -> String {
    let seal = key.seal(PURPOSE, &[id.as_str().as_bytes(), order.as_bytes()]);
    let sealed = Sealed { v: VERSION, order: order.to_owned(), seal };
    // Strings and a number: this cannot fail.
    serde_json::to_string(&sealed).unwrap_or_default()
}

/// The order in a message, if the user sealed it.
pub fn open(key: &RunKey, id: &MessageId, body: &str) -> Result<String, NotAuthentic> {
    let sealed: Sealed = serde_json::from_str(body).map_err(|_| NotAuthentic::Unsealed)?;
    let parts = [id.as_str().as_bytes(), sealed.order.as_bytes()];
    if sealed.v == VERSION && key.holds(PURPOSE, &parts, &sealed.seal) {
        Ok(sealed.order)
    } else {
        Err(NotAuthentic::WrongSeal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_key::UserKey;

    #[test]
    fn j_38_only_the_sealed_order_under_its_own_id_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let key = UserKey::load_or_create(dir.path()).unwrap().for_run("r");
        let (id, other) = (MessageId::unique(1), MessageId::unique(2));
        let body = seal(&key, &id, "{\"type\":\"stop\"}");
        assert_eq!(open(&key, &id, &body).as_deref(), Ok("{\"type\":\"stop\"}"));
        assert_eq!(open(&key, &other, &body), Err(NotAuthentic::WrongSeal), "sent again under another name");
        assert_eq!(open(&key, &id, &body.replace("stop", "tick")), Err(NotAuthentic::WrongSeal));
        assert_eq!(open(&key, &id, "{\"type\":\"stop\"}"), Err(NotAuthentic::Unsealed));
    }
}
