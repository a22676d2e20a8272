//! What makes a proof of an attack that fails: its control, in which it does its damage because a defence is gone, and
//! the words that tell a user. An attack that has not shown both fails.

use std::cell::Cell;

use crate::attacks::{ATTACKS, Attack};

pub struct Proof {
    attack: &'static Attack,
    damage: Cell<bool>,
    told: Cell<bool>,
}

impl Proof {
    /// Of the attack that is listed under the name of its test.
    #[track_caller]
    pub fn of(test: &str) -> Proof {
        let attack = ATTACKS.iter().find(|attack| attack.test == test);
        let attack = attack.unwrap_or_else(|| panic!("{test} is not listed in attacks.rs"));
        Proof { attack, damage: Cell::new(false), told: Cell::new(false) }
    }

    /// The control: this is what it does where nobody stops it.
    #[track_caller]
    pub fn damage(&self, is_done: bool, around: &str) {
        let Attack { test, control, .. } = self.attack;
        assert!(is_done, "{test}: the control ({control}) does no damage, so nothing is proved\n{around}");
        self.damage.set(true);
    }

    /// A user is told, in all of these words.
    #[track_caller]
    pub fn told(&self, said: &str) {
        for words in self.attack.words {
            assert!(said.contains(words), "{}: {words:?} is not in what is said:\n{said}", self.attack.test);
        }
        self.told.set(true);
    }
}

impl Drop for Proof {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.damage.get(), "{}: no control was seen to do damage", self.attack.test);
            assert!(self.told.get(), "{}: nobody was told", self.attack.test);
        }
    }
}
