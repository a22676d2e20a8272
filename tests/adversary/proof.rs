//! What makes a proof of an attack that fails: its control, in which it does its damage because a defence is gone, and
//! the words that tell a user, in the sandbox and without it. An attack that has not shown all of that fails.

use std::cell::{Cell, RefCell};

use crate::{
    attacks::{ATTACKS, Attack, InSandbox},
    stage::Sandbox,
};

pub struct Proof {
    attack: &'static Attack,
    damage: Cell<bool>,
    /// Where a user was told.
    told: RefCell<Vec<Sandbox>>,
    /// Where it was tried in vain.
    refused: RefCell<Vec<Sandbox>>,
}

impl Proof {
    /// Of the attack that is listed under the name of its test.
    #[track_caller]
    pub fn of(test: &str) -> Proof {
        let attack = ATTACKS.iter().find(|attack| attack.test == test);
        let attack = attack.unwrap_or_else(|| panic!("{test} is not listed in attacks.rs"));
        Proof { attack, damage: Cell::new(false), told: RefCell::default(), refused: RefCell::default() }
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
    pub fn told(&self, sandbox: Sandbox, said: &str) {
        self.says(self.attack.words, said);
        self.told.borrow_mut().push(sandbox);
    }

    /// The same by `doctor`, which may have words of its own.
    #[track_caller]
    pub fn told_by_doctor(&self, said: &str) {
        let words = if self.attack.doctor.is_empty() { self.attack.words } else { self.attack.doctor };
        self.says(words, said);
    }

    /// The kernel kept it from happening.
    pub fn was_refused(&self, sandbox: Sandbox) {
        self.refused.borrow_mut().push(sandbox);
    }

    #[track_caller]
    fn says(&self, words: &[&str], said: &str) {
        for words in words {
            assert!(said.contains(words), "{}: {words:?} is not in what is said:\n{said}", self.attack.test);
        }
    }
}

impl Drop for Proof {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let test = self.attack.test;
        assert!(self.damage.get(), "{test}: no control was seen to do damage");
        let (told, refused) = (self.told.borrow(), self.refused.borrow());
        assert!(told.contains(&Sandbox::Off), "{test}: nobody was told where there is no sandbox");
        match self.attack.in_sandbox {
            InSandbox::Told => assert!(told.contains(&Sandbox::On), "{test}: nobody was told in the sandbox"),
            InSandbox::Refused => {
                assert!(refused.contains(&Sandbox::On), "{test}: it was not refused by the kernel");
            }
        }
    }
}
