//! What the interface promises, mechanism by mechanism, and the rules that rest on them.

mod answers;
mod claims;
mod damage;
mod declared;
mod environment;
mod evidence;
mod exit_codes;
mod inputs;
mod language;
mod mended;
mod order;
mod orders;
mod places;
mod prompts;
mod restarts;
mod retries;
mod signals;
mod standing;
mod tools;
mod waivers;
mod words;
