//! Keeps descriptors that this process inherited from its own parent away from the processes it starts.
//! It must not know what they are: a shell's pipe, a jobserver, somebody's socket.

use std::sync::Once;

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
