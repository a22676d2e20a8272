//! Signals of a supervisor as a descriptor to poll and two flags.
//! It must not know what a stop means. Once installed, the handlers stay for the life of the process.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);
static KILL_REQUESTED: AtomicBool = AtomicBool::new(false);
static WAKE_FD: AtomicI32 = AtomicI32::new(-1);

/// SIGTERM asks to stop, SIGUSR1 asks to stop without grace, SIGCHLD wakes; SIGHUP and SIGINT do nothing.
/// They are handled and not ignored: an ignored signal would stay ignored in the agent, a handler does not
/// survive exec.
#[derive(Debug)]
pub(crate) struct Signals {
    wake: PipeReader,
    stop: &'static AtomicBool,
    kill: &'static AtomicBool,
}

impl Signals {
    pub(crate) fn install() -> io::Result<Self> {
        let (wake, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&wake, true)?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        WAKE_FD.store(writer.into_raw_fd(), Ordering::SeqCst);
        for signal in [libc::SIGTERM, libc::SIGUSR1, libc::SIGCHLD, libc::SIGHUP, libc::SIGINT] {
            handle(signal)?;
        }
        Ok(Self { wake, stop: &STOP_REQUESTED, kill: &KILL_REQUESTED })
    }

    pub(crate) fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::SeqCst) || self.kill_requested()
    }

    pub(crate) fn kill_requested(&self) -> bool {
        self.kill.load(Ordering::SeqCst)
    }

    /// Readable when a signal came since the last `clear`.
    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    pub(crate) fn clear(&mut self) {
        let mut bytes = [0; 256];
        while matches!(self.wake.read(&mut bytes), Ok(count) if count > 0) {}
    }
}

/// Flags carry the meaning, the byte only wakes: a pipe full of SIGCHLD cannot lose a SIGTERM.
extern "C" fn on_signal(signal: libc::c_int) {
    match signal {
        libc::SIGTERM => STOP_REQUESTED.store(true, Ordering::SeqCst),
        libc::SIGUSR1 => KILL_REQUESTED.store(true, Ordering::SeqCst),
        _ => {}
    }
    wake();
}

#[expect(unsafe_code, reason = "a signal handler may only make async-signal-safe calls, and errno is C's")]
fn wake() {
    let byte = 0u8;
    // SAFETY: write(2) is async-signal-safe; the descriptor is never closed once stored, and the pointer is
    // to one live byte. errno is saved and put back, because the handler may have interrupted a call whose
    // errno was not read yet.
    unsafe {
        let errno = errno_location();
        let saved = *errno;
        libc::write(WAKE_FD.load(Ordering::SeqCst), (&raw const byte).cast(), 1);
        *errno = saved;
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "binding")]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: returns the address of this thread's errno, valid for the life of the thread.
    unsafe { libc::__errno_location() }
}

#[cfg(not(target_os = "linux"))]
#[expect(unsafe_code, reason = "binding")]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: returns the address of this thread's errno, valid for the life of the thread.
    unsafe { libc::__error() }
}

#[expect(unsafe_code, reason = "rustix installs no signal handlers")]
fn handle(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: a zeroed sigaction is valid (empty mask, no flags); the handler is an `extern "C"` function of
    // the expected type that makes only async-signal-safe calls.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART | if signal == libc::SIGCHLD { libc::SA_NOCLDSTOP } else { 0 };
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
