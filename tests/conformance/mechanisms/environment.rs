//! What an agent's process gets.
