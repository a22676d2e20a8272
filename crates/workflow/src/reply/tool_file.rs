//! The reply that an agent gave by tool calls, as the file that the tools keep beside its artifacts.
//!
//! A claim like any other file of an attempt: the agent could have written it by hand.

use gatewright_core::outcome::{Reply, ReplyProblem};
use serde::{Deserialize, Serialize};

/// Its name in `GATEWRIGHT_OUT`.
pub const TOOL_REPLY_FILE: &str = "gatewright-reply.json";
/// Where hints of progress go, one JSON object a line, by tool or by `gatewright progress update`.
pub const TOOL_PROGRESS_FILE: &str = "progress.jsonl";
/// Beyond this the file is refused unread.
pub const TOOL_REPLY_BYTES_MAX: u64 = 1024 * 1024;
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct ToolReply {
    version: u32,
    reply: Reply,
}

pub fn write_tool_reply(reply: &Reply) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec_pretty(&ToolReply { version: VERSION, reply: reply.clone() })
}

/// What the file says. Anything that is not wholly understood is malformed, never ignored: what it
/// meant to say may have been stricter than the final message.
pub fn read_tool_reply(bytes: &[u8]) -> Result<Reply, ReplyProblem> {
    let malformed = |violation: String| ReplyProblem::Malformed { violations: vec![violation] };
    if bytes.len() as u64 > TOOL_REPLY_BYTES_MAX {
        return Err(malformed(format!("{TOOL_REPLY_FILE} has more than {TOOL_REPLY_BYTES_MAX} bytes")));
    }
    let said: ToolReply =
        serde_json::from_slice(bytes).map_err(|error| malformed(format!("{TOOL_REPLY_FILE}: {error}")))?;
    if said.version != VERSION {
        return Err(malformed(format!("{TOOL_REPLY_FILE} is of version {}, not {VERSION}", said.version)));
    }
    Ok(said.reply)
}

#[cfg(test)]
mod tests {
    use gatewright_core::outcome::Outcome;

    use super::*;

    #[test]
    fn what_was_written_is_read_and_anything_else_is_malformed() {
        let mut reply = Reply::new(Outcome::Done);
        reply.files.push("plan.md".to_owned());
        let bytes = write_tool_reply(&reply).unwrap();
        assert_eq!(read_tool_reply(&bytes), Ok(reply));
        for wrong in [&b""[..], b"{}", b"{\"version\": 2, \"reply\": {\"outcome\": \"done\"}}", b"done"] {
            assert!(matches!(read_tool_reply(wrong), Err(ReplyProblem::Malformed { .. })), "{wrong:?}");
        }
    }
}
