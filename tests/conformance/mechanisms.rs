//! What the interface promises, mechanism by mechanism, and the rules that rest on them.

mod answers;
mod claims;
mod declared;
mod environment;
mod evidence;
mod exit_codes;
mod inputs;
mod mended;
mod order;
mod orders;
mod places;
mod prompts;
mod restarts;
mod retries;
mod signals;
mod tools;
mod words;
