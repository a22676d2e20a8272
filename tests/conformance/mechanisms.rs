//! What the interface promises, mechanism by mechanism, and the rules that rest on them.

mod answers;
mod channels;
mod claims;
mod damage;
mod declared;
mod environment;
mod evidence;
mod exit_codes;
mod inputs;
mod language;
mod limits;
mod mended;
mod order;
mod orders;
mod places;
mod prompts;
mod reality;
mod restarts;
mod retries;
mod scopes;
mod signals;
mod standing;
mod tools;
mod waivers;
mod words;
