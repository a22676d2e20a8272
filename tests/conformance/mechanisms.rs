//! What the interface promises, mechanism by mechanism, and the rules that rest on them.

mod environment;
