//! Who is at work in a checkout, across the runs of a project (decision 27). Inside one run the core sees to
//! it; here one run waits for another. A list on disk under a short lock; whoever is on it lives as long as
//! its engine holds its run or its supervisor lives.

use std::{
    collections::BTreeMap,
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
    /// Scopes of those who were there at the same time, and their steps: in lists of older versions only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Option<Vec<String>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbours: Vec<String>,
    /// It waits for nobody and nobody for it; it only wants to know who was there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observes: bool,
    /// When it came, counted in its list.
    #[serde(default)]
    pub came: u64,
    /// When it went. It stays on the list as long as somebody is there who was there with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went: Option<u64>,
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

    fn is_here(&self) -> bool {
        self.went.is_none()
    }

    /// Whether it was there after this moment.
    fn was_after(&self, moment: u64) -> bool {
        self.went.is_none_or(|went| went > moment)
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
            let now = next_moment(holders);
            see_off(holders, own, now);
            let here = || holders.iter().filter(|other| other.is_here());
            let in_the_way = here().find(|other| other.run != own.run && own.excludes(other));
            if let Some(other) = in_the_way {
                return Some(other.clone());
            }
            if !here().any(|other| other.is_same(own)) {
                holders.push(Holder { came: now, ..own.clone() });
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
            let now = next_moment(holders);
            let place = holders.iter().position(|other| other.is_here() && other.is_same(own));
            let Some(place) = place else { return Beside::default() };
            let known = &mut holders[place];
            known.went = Some(now);
            let (came, scopes) = (known.came, std::mem::take(&mut known.beside));
            let mut beside = Beside { scopes, steps: std::mem::take(&mut known.neighbours) };
            for other in holders.iter().filter(|other| other.was_after(came) && !other.is_same(own)) {
                beside.scopes.push(other.may_write.clone());
                beside.steps.push(other.step.clone());
            }
            forget(holders);
            beside
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

fn next_moment(holders: &[Holder]) -> u64 {
    holders.iter().map(|holder| holder.went.unwrap_or(holder.came)).max().unwrap_or(0) + 1
}

/// Those of whom neither engine nor supervisor is left change nothing any more: they went without a word. Whoever comes
/// again after its engine died has been there all the time.
fn see_off(holders: &mut Vec<Holder>, own: &Holder, now: u64) {
    let mut engines: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for holder in holders.iter_mut().filter(|holder| holder.is_here() && !holder.is_same(own)) {
        // One look for all attempts of a run: there may be a thousand.
        let engine = engines.entry(holder.run_lock.clone()).or_insert_with_key(|lock| is_locked(lock));
        if !*engine && !is_locked(&holder.attempt_dir.join("lock")) {
            holder.went = Some(now);
        }
    }
    forget(holders);
}

/// Those who went before anybody came who is still here.
fn forget(holders: &mut Vec<Holder>) {
    let first = holders.iter().filter(|holder| holder.is_here()).map(|holder| holder.came).min();
    holders.retain(|holder| holder.is_here() || first.is_some_and(|first| holder.was_after(first)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(step: &str, folder: &Path) -> Holder {
        Holder {
            version: 1,
            run: "r".to_owned(),
            step: step.to_owned(),
            attempt: 1,
            attempt_dir: folder.join(step),
            run_lock: folder.join("run.lock"),
            may_write: Some(vec![format!("{step}/")]),
            beside: Vec::new(),
            neighbours: Vec::new(),
            observes: false,
            came: 0,
            went: None,
        }
    }

    /// Comings and goings in every order that a small generator finds, against who was really there together.
    #[test]
    fn whoever_was_there_at_the_same_time_is_named_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("run.lock"), "").unwrap();
        let engine = fs::File::open(folder.path().join("run.lock")).unwrap();
        engine.lock().unwrap();
        let checkout = Checkout::of(folder.path(), &folder.path().join("store"));
        let (mut random, mut count) = (7_u64, 0);
        let mut here: Vec<(String, Vec<String>)> = Vec::new();
        for _ in 0..400 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = (random >> 33) as usize;
            if here.is_empty() || number % 5 < 3 && here.len() < 12 {
                let step = format!("s{count}");
                count += 1;
                assert!(checkout.enter(&holder(&step, folder.path()), &|| false).unwrap());
                let mut with: Vec<String> = Vec::new();
                for (other, beside) in &mut here {
                    beside.push(step.clone());
                    with.push(other.clone());
                }
                here.push((step, with));
            } else {
                let (step, mut expected) = here.remove(number % here.len());
                let beside = checkout.leave(&holder(&step, folder.path())).unwrap();
                let mut steps = beside.steps;
                steps.sort();
                expected.sort();
                assert_eq!(steps, expected, "beside {step}");
                assert_eq!(beside.scopes.len(), steps.len());
            }
        }
        for (step, _) in here {
            checkout.leave(&holder(&step, folder.path())).unwrap();
        }
        assert_eq!(fs::read_to_string(&checkout.list).unwrap(), "[]", "nobody is remembered for ever");
    }

    #[test]
    fn one_whose_engine_died_was_there_and_a_list_of_an_older_version_is_understood() {
        let folder = tempfile::tempdir().unwrap();
        let checkout = Checkout::of(folder.path(), &folder.path().join("store"));
        // Nobody holds their run: each finds the ones before it gone.
        checkout.enter(&holder("a", folder.path()), &|| false).unwrap();
        let lock = folder.path().join("run.lock");
        fs::write(&lock, "").unwrap();
        let engine = fs::File::open(&lock).unwrap();
        engine.lock().unwrap();
        checkout.enter(&holder("b", folder.path()), &|| false).unwrap();
        engine.unlock().unwrap();
        checkout.enter(&holder("c", folder.path()), &|| false).unwrap();
        assert_eq!(checkout.leave(&holder("c", folder.path())).unwrap().steps, Vec::<String>::new());
        let mut old = serde_json::to_value(holder("d", folder.path())).unwrap();
        old["beside"] = serde_json::json!([["x/"]]);
        old["neighbours"] = serde_json::json!(["x"]);
        old.as_object_mut().unwrap().remove("came");
        fs::write(&checkout.list, serde_json::json!([old]).to_string()).unwrap();
        let beside = checkout.leave(&holder("d", folder.path())).unwrap();
        assert_eq!((beside.steps, beside.scopes), (vec!["x".to_owned()], vec![Some(vec!["x/".to_owned()])]));
    }
}
