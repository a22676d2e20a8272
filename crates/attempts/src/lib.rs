//! Runs processes: agents by attempt directory and supervisor, checks as plain children.
//! It must not know runs, steps, gates or journals: an attempt is a directory, a launch and an exit record.

mod adopter;
mod attempt_dir;
mod census;
mod check;
mod check_record;
mod defence;
mod descriptors;
mod durable_file;
mod environment;
mod exit_record;
mod git;
mod git_lock;
mod git_wait;
mod interrupted;
mod launch;
mod memory;
mod output_copy;
mod own_supervisor;
mod pid_record;
mod private_tmp;
mod process_table;
mod program;
mod sandbox;
mod signals;
mod start;
mod supervisor;
mod sweep;
mod writable_places;

pub use adopter::{ADOPT, adopt};
pub use attempt_dir::{AttemptDir, AttemptDirError, OutputStream};
pub use check::{
    Adopter, CHECK_OUTPUT_KEEP_BYTES, CheckCommand, CheckResult, CheckSpec, run_check, run_marked_check,
};
pub use check_record::{CheckMark, end_check};
pub use defence::Defence;
pub use descriptors::keep_to_itself;
pub use environment::{allowed_environment, is_usual_variable};
pub use exit_record::{Ended, ExitRecord};
pub use git::{GIT_PLACES, Git, GitError};
pub use git_lock::{LockHolder, clear_lock, lock_holder};
pub use git_wait::{Stuck, wait_for_git};
pub use interrupted::end_carriers;
pub use launch::{LaunchSpec, StopSignal};
pub use memory::{allocate_together, give_back as give_back_memory, give_back_heap, give_back_stack};
pub use pid_record::PidRecord;
pub use private_tmp::{create_group_tmp, grouped_tmp_path, private_tmp_path, remove_group_tmp};
pub use process_table::{ProcessIdentity, session_leader};
pub use sandbox::{Network, SandboxSpec, SandboxSupport, sandbox_support};
pub use start::{
    StartError, Started, SupervisorCommand, kill_now, request_stop, start_or_attach, wait_for_exit,
};
pub use supervisor::supervise;
pub use writable_places::{agent_places, cache_places};
