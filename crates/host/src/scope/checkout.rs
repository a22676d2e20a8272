//! Who is at work in a checkout, across the runs of a project (decision 27). Inside one run the core sees to
//! it; here one run waits for another. A list on disk under a short lock; whoever is on it lives as long as
//! its engine holds its run or its supervisor lives.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use gatewright_workflow::globs::{Bare, Globs};
use serde::{Deserialize, Serialize};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Beside the attempt while it waits; for `why`.
pub const WAITING_FILE: &str = "waiting";

/// One attempt in a checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub version: u32,
    pub run: String,
    pub step: String,
    pub attempt: u32,
    pub attempt_dir: PathBuf,
    /// The lock of its run.
    pub run_lock: PathBuf,
    /// `None`: no scope was declared.
    pub may_write: Option<Vec<String>>,
    /// Scopes of those who were there at the same time.
    #[serde(default)]
    pub beside: Vec<Option<Vec<String>>>,
    /// Their steps, for people.
    #[serde(default)]
    pub neighbours: Vec<String>,
    /// It waits for nobody and nobody for it; it only wants to know who was there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observes: bool,
}

/// Those who were there at the same time: what they may write, and their steps.
#[derive(Debug, Default)]
pub struct Beside {
    pub scopes: Vec<Option<Vec<String>>>,
    pub steps: Vec<String>,
}

impl Holder {
    fn excludes(&self, other: &Holder) -> bool {
        if self.observes || other.observes {
            return false;
        }
        match (&self.may_write, &other.may_write) {
            (Some(one), Some(two)) if one.is_empty() || two.is_empty() => one.is_empty() != two.is_empty(),
            (Some(one), Some(two)) => {
                !Globs::new(one, Bare::InRoot).is_disjoint(&Globs::new(two, Bare::InRoot))
            }
            // Who declared nothing may write everything.
            (None, _) | (_, None) => true,
        }
    }

    fn is_same(&self, other: &Holder) -> bool {
        (&self.run, &self.step, self.attempt) == (&other.run, &other.step, other.attempt)
    }

    /// Neither engine nor supervisor is left: it changes nothing any more.
    fn is_gone(&self) -> bool {
        !is_locked(&self.run_lock) && !is_locked(&self.attempt_dir.join("lock"))
    }
}

pub fn is_locked(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
}

/// The list of one checkout.
#[derive(Debug)]
pub struct Checkout {
    list: PathBuf,
}

impl Checkout {
    pub fn of(folder: &Path, store: &Path) -> Checkout {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = &blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex()[..16];
        Checkout { list: store.join(format!("{name}.json")) }
    }

    /// Enters as soon as nobody of another run is in the way. `Ok(false)`: told to stop while it waited.
    pub fn enter(&self, own: &Holder, stopped: &dyn Fn() -> bool) -> io::Result<bool> {
        let note = own.attempt_dir.join(WAITING_FILE);
        loop {
            match self.try_enter(own)? {
                None => {
                    let _ = fs::remove_file(&note);
                    return Ok(true);
                }
                Some(other) => {
                    let text = format!(
                        "it waits for `{}` of run {}, which is at work in the same checkout",
                        other.step, other.run
                    );
                    // For readers only; without it the wait is the same.
                    let _ = fs::write(&note, text);
                }
            }
            if stopped() {
                let _ = fs::remove_file(&note);
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Who is in the way, or nobody: then it is in.
    fn try_enter(&self, own: &Holder) -> io::Result<Option<Holder>> {
        self.change(|holders| {
            holders.retain(|other| !other.is_gone() || other.is_same(own));
            let in_the_way = holders
                .iter()
                .find(|other| other.run != own.run && !other.is_same(own) && own.excludes(other));
            if let Some(other) = in_the_way {
                return Some(other.clone());
            }
            if !holders.iter().any(|other| other.is_same(own)) {
                let mut own = own.clone();
                for other in holders.iter_mut() {
                    own.beside.push(other.may_write.clone());
                    other.beside.push(own.may_write.clone());
                    own.neighbours.push(other.step.clone());
                    other.neighbours.push(own.step.clone());
                }
                holders.push(own);
            }
            None
        })
    }

    /// Who is on the list, at work or not.
    pub fn holders(&self) -> Vec<Holder> {
        let read = fs::read(&self.list).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Leaves; gives back who was there at the same time.
    pub fn leave(&self, own: &Holder) -> io::Result<Beside> {
        self.change(|holders| {
            let place = holders.iter().position(|other| other.is_same(own));
            let own = place.map(|place| holders.remove(place));
            own.map(|own| Beside { scopes: own.beside, steps: own.neighbours }).unwrap_or_default()
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Holder>) -> T) -> io::Result<T> {
        if let Some(folder) = self.list.parent() {
            fs::create_dir_all(folder)?;
        }
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.list.with_extension("lock"))?;
        lock.lock()?;
        let mut holders = self.holders();
        let before = holders.clone();
        let result = change(&mut holders);
        if holders != before {
            let temporary = self.list.with_extension("tmp");
            fs::write(&temporary, serde_json::to_vec(&holders).unwrap_or_default())?;
            fs::rename(&temporary, &self.list)?;
        }
        Ok(result)
    }
}
