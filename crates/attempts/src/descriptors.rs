//! Keeps descriptors that this process inherited from its own parent away from the processes it starts.
//! It must not know what they are: a shell's pipe, a jobserver, somebody's socket.

use std::sync::Once;

#[cfg(target_os = "linux")]
use crate::defence::Defence;

/// Keeps memory and environment of this process from others of the same user, as far as the kernel can.
pub fn keep_to_itself() {
    #[cfg(target_os = "linux")]
    if !Defence::Privacy.is_off() {
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        // Root reads the environment of whoever it likes, from inside a sandbox too.
        if rustix::process::geteuid().is_root() {
            show_no_environment();
        }
    }
}

/// Moves the variables to memory of the process's own and clears where `/proc/PID/environ` looks.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the kernel shows the memory in which the process was given its variables")]
fn show_no_environment() {
    /// `env_start` in `/proc/PID/stat`, counted behind the name; `env_end` follows it.
    const ENV_START: usize = 50 - 3;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(") ") else { return };
    let mut fields = rest.split(' ').skip(ENV_START).map_while(|text| text.parse::<usize>().ok());
    let (Some(start), Some(end)) = (fields.next(), fields.next()) else { return };
    if start == 0 || end <= start {
        return;
    }
    let variables: Vec<_> = std::env::vars_os().collect();
    for (name, value) in variables {
        // SAFETY: called first thing in `main`, before there is a second thread.
        unsafe { std::env::set_var(name, value) };
    }
    // SAFETY: this is the block of strings that the process was started with. Every variable has just been
    // copied out of it, so nothing points into it any more.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(start).write_bytes(0, end - start) };
}

/// Marks everything above stderr as to be closed on exec, once: what this process opens later, std opens
/// that way. Otherwise an agent could write to what the user's shell left open, and a supervisor would keep
/// a pipe of the user's open long after the engine's end.
pub(crate) fn keep_inherited_from_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(close_on_exec);
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix has no close_range")]
fn close_on_exec() {
    // SAFETY: with CLOSE_RANGE_CLOEXEC the call closes nothing; it sets a flag on each open descriptor. It
    // fails before Linux 5.11, and then things are as they were.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

#[cfg(not(target_os = "linux"))]
fn close_on_exec() {}
