//! The simulated disk loses what it should lose and keeps what it must keep; the real one does the same calls.

use std::collections::BTreeSet;
use std::path::Path;

use gatewright_host::atomic_file::{Durability, FirstWins, create_dir_durable, create_first_wins, replace};
use gatewright_host::disk::{Disk, RealDisk, SimulatedDisk};

/// What is in `/d/file` after a power cut, over many seeds; nothing when the file is not there.
fn after_crash(work: impl Fn(&SimulatedDisk, &Path)) -> BTreeSet<Option<Vec<u8>>> {
    let outcome = |seed| {
        let disk = SimulatedDisk::new(seed);
        create_dir_durable(&disk, Path::new("/d")).unwrap();
        work(&disk, Path::new("/d/file"));
        disk.crash();
        disk.read(Path::new("/d/file")).ok()
    };
    (0..300).map(outcome).collect()
}

fn outcomes<const N: usize>(expected: [Option<&[u8]>; N]) -> BTreeSet<Option<Vec<u8>>> {
    expected.into_iter().map(|bytes| bytes.map(<[u8]>::to_vec)).collect()
}

#[test]
fn only_what_was_synced_is_sure_after_a_crash() {
    let found = after_crash(|disk, path| disk.create_new(path).unwrap().write_all(b"ab").unwrap());
    assert_eq!(
        found,
        outcomes([None, Some(b""), Some(b"a"), Some(b"ab"), Some(b"\0"), Some(b"\0\0"), Some(b"a\0")])
    );
    let found = after_crash(|disk, path| {
        let mut file = disk.create_new(path).unwrap();
        file.write_all(b"ab").unwrap();
        file.sync_data().unwrap();
    });
    assert_eq!(found, outcomes([None, Some(b"ab")]), "the name was not synced");
    let found = after_crash(|disk, path| {
        let mut file = disk.create_new(path).unwrap();
        file.write_all(b"ab").unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        file.set_len(0).unwrap();
    });
    assert_eq!(found, outcomes([Some(b"ab"), Some(b"")]), "the cut was not synced");
}

#[test]
fn a_replaced_file_is_the_old_or_the_new_one() {
    let twice = |durability| {
        after_crash(move |disk, path| {
            replace(disk, path, b"old", Durability::Durable).unwrap();
            replace(disk, path, b"new", durability).unwrap();
        })
    };
    assert_eq!(twice(Durability::Durable), outcomes([Some(b"new")]));
    assert!(twice(Durability::Rebuildable).contains(&Some(b"old".to_vec())));
}

#[test]
fn a_failed_sync_is_not_made_good_by_the_next_one() {
    let found = after_crash(|disk, path| {
        let mut file = disk.create_new(path).unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        file.write_all(b"ab").unwrap();
        disk.fail_at(disk.counts().operations + 1);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        assert_eq!(disk.read(path).unwrap(), b"ab", "still readable");
    });
    assert_eq!(found, outcomes([Some(b"\0\0")]));
}

#[test]
fn both_disks_do_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let simulated = SimulatedDisk::new(1);
    simulated.create_dir_all(Path::new("/d")).unwrap();
    let disks: [(&dyn Disk, &Path); 2] = [(&RealDisk, directory.path()), (&simulated, Path::new("/d"))];
    for (disk, root) in disks {
        let at = |name: &str| root.join(name);
        create_dir_durable(disk, &at("x/y")).unwrap();
        assert_eq!(create_first_wins(disk, &at("b"), b"one").unwrap(), FirstWins::Created);
        assert_eq!(create_first_wins(disk, &at("b"), b"two").unwrap(), FirstWins::AlreadyThere);
        replace(disk, &at("a"), b"0123456789", Durability::Durable).unwrap();
        assert_eq!(disk.list_dir(root).unwrap(), ["a", "b", "x"]);
        assert_eq!(disk.read(&at("b")).unwrap(), b"one");
        assert_eq!(disk.read_range(&at("a"), 3, 4).unwrap(), b"3456");
        assert_eq!(disk.read_from(&at("a"), 8).unwrap(), b"89");
        assert_eq!(disk.read_from(&at("a"), 80).unwrap(), b"");
        let mut file = disk.open_append(&at("a")).unwrap();
        file.set_len(2).unwrap();
        file.write_all(b"!").unwrap();
        assert_eq!(disk.read(&at("a")).unwrap(), b"01!");
        assert_eq!(file.stat().unwrap(), disk.stat(&at("a")).unwrap());
        disk.rename(&at("a"), &at("x/a")).unwrap();
        assert!(!disk.exists(&at("a")).unwrap() && disk.exists(&at("x/a")).unwrap());
        disk.remove_file(&at("x/a")).unwrap();
        assert!(disk.remove_file(&at("x/a")).is_err());
        assert!(disk.open_append(&at("x/a")).is_err());
        let lock = disk.try_lock(&at("lock")).unwrap();
        assert!(lock.is_some() && disk.lock_is_held(&at("lock")).unwrap());
        assert!(disk.try_lock(&at("lock")).unwrap().is_none());
        drop(lock);
        assert!(!disk.lock_is_held(&at("lock")).unwrap());
    }
}
