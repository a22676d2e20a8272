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

/// Does something in a thread that ends with it. An allocator keeps what a thread freed, and a stack what it once
/// needed: whoever is about to wait for hours has its preparations made here.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    // Out of reach of a thread that could not be started.
    let work = Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    thread::scope(|scope| {
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        let result = match builder.spawn_scoped(scope, || take().map(|work| work())) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => None,
        };
        result.unwrap_or_else(|| match take() {
            Some(work) => work(),
            None => unreachable!("it is taken by whoever does it"),
        })
    })
}
