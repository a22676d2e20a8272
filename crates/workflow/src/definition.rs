//! The language as data: tables of keys with their shapes, a walker that holds a tree against them,
//! and typed reads from a tree that was held. What the keys mean is the business of `resolve`.
//!
//! The same tables make the JSON Schema for editors, so that the two cannot drift apart.

pub mod check_shape;
pub mod file_name;
pub mod keys;
pub mod keys_of_step;
pub mod overrides;
pub mod read;
pub mod scalar;
pub mod shape;
pub mod text_check;
