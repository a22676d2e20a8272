//! Journal and inbox on disks that lose, tear and fail. Must not write journals by hand: bytes come from the writer.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crashes;
mod exclusive;
mod following;
mod inbox;
mod model;
mod recovery;
mod scale;
mod support;
