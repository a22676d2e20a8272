//! Keeps descriptors that this process inherited from its own parent away from the processes it starts.
//! It must not know what they are: a shell's pipe, a jobserver, somebody's socket.

use std::sync::Once;

/// Keeps memory and environment of this process from others of the same user, as far as the kernel can.
pub fn keep_to_itself() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        // Root reads the environment of whoever it likes, from inside a sandbox too.
        if rustix::process::geteuid().is_root() {
            show_no_environment();
        }
    }
}

/// Ends the part of memory that `/proc/PID/environ` shows where it begins. The variables stay.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix has no PR_SET_MM_ENV_END")]
fn show_no_environment() {
    /// `env_start` in `/proc/PID/stat`, counted behind the name.
    const ENV_START: usize = 50 - 3;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let field = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(ENV_START));
    let Some(start) = field.and_then(|text| text.parse::<libc::c_ulong>().ok()) else { return };
    // SAFETY: changes a number that the kernel keeps for `/proc`, and no memory. It fails without the right
    // to, and then things are as they were.
    unsafe {
        libc::prctl(libc::PR_SET_MM, libc::PR_SET_MM_ENV_END, start, 0, 0);
    }
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
