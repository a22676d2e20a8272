//! The method `stream-dag` against the rules of its source (S3-01 … S3-48).

pub mod cycle;
mod gates;
mod hooks;
mod imports;
mod modes;
mod old_scripts;
mod pipelines;
mod prompts;
mod resuming;
mod spine;
mod streams;
mod tools;
