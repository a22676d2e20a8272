//! Threads that carry effects out. One that is done waits for the next effect: to make one takes longer than many
//! an effect.

use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{SendError, Sender, channel},
    },
    thread,
};

pub type Job = Box<dyn FnOnce() + Send>;

/// So many wait at most; the others end.
const IDLE_MAX: usize = 16;
const STACK_BYTES: usize = 512 * 1024;

static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Sender<Job>>> {
    // Nothing is left half done while it is held.
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the job. It catches its own panics.
pub fn run(job: Job) -> io::Result<()> {
    let waiting = idle().pop();
    let job = match waiting {
        Some(thread) => match thread.send(job) {
            Ok(()) => return Ok(()),
            Err(SendError(job)) => job,
        },
        None => job,
    };
    thread::Builder::new().stack_size(STACK_BYTES).spawn(move || live(job)).map(drop)
}

fn live(first: Job) {
    let (sender, jobs) = channel::<Job>();
    first();
    loop {
        {
            let mut idle = idle();
            if idle.len() >= IDLE_MAX {
                return;
            }
            idle.push(sender.clone());
        }
        let Ok(job) = jobs.recv() else { return };
        job();
    }
}
