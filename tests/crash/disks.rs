//! Real disks that are full, locked, or lose their power: mounted for the test, by root only.
//!
//! Where nothing can be mounted the test says so and does nothing; on such machines the simulated disk stands for
//! them (`crates/simulation`, `crates/host/tests/durability`).

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{assert_whole, project::Project};

/// A file system of its own; unmounted when it is dropped, whoever still uses it.
struct Mounted {
    folder: tempfile::TempDir,
    options: Vec<String>,
}

fn quietly(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

impl Mounted {
    fn new(options: &[&str]) -> Option<Mounted> {
        let mounted = Mounted {
            folder: tempfile::tempdir().unwrap(),
            options: options.iter().map(|&text| text.into()).collect(),
        };
        if mounted.mount() {
            return Some(mounted);
        }
        println!("left out: `mount {}` is not possible here", options.join(" "));
        None
    }

    fn mount(&self) -> bool {
        let folder = self.path().display().to_string();
        let arguments: Vec<&str> = self.options.iter().map(String::as_str).chain([folder.as_str()]).collect();
        quietly("mount", &arguments)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn remount(&self, option: &str) {
        let folder = self.path().display().to_string();
        assert!(quietly("mount", &["-o", &format!("remount,{option}"), &folder]), "remount,{option}");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        quietly("umount", &["-l", &self.path().display().to_string()]);
    }
}

fn small_disk() -> Option<(Mounted, PathBuf)> {
    let disk = Mounted::new(&["-t", "tmpfs", "-o", "size=2m", "none"])?;
    let state = disk.path().join("state");
    Some((disk, state))
}

/// Everything of a disk is taken but so many pages; the run ends with an error and goes on when there is room.
#[test]
fn a_full_disk_ends_the_engine_and_loses_nothing() {
    for pages_left in [0, 1, 3, 6, 10, 20, 40] {
        let Some((disk, state)) = small_disk() else { return };
        let story = format!("{pages_left} pages are left");
        let project = Project::with_state(Some(state));
        project.hold();
        let mut engine = project.spawn(&["run", "all", "go"], None);
        Project::wait_for(|| !project.agent_log().is_empty());
        let ballast = disk.path().join("ballast");
        let room = vec![0_u8; 4096];
        let mut written = Vec::new();
        let mut file = std::fs::File::create(&ballast).unwrap();
        while std::io::Write::write_all(&mut file, &room).is_ok() {
            written.push(());
        }
        let kept = (written.len().saturating_sub(pages_left) * 4096) as u64;
        file.set_len(kept).unwrap();
        drop(file);
        project.let_go();
        let code = engine.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 10 | 70)), "{story}: {code:?}");
        assert!(pages_left > 0 || code == Some(70), "{story}: a full disk was not noticed ({code:?})");
        std::fs::remove_file(&ballast).unwrap();
        project.finish(&story);
        let status = project.status();
        assert_eq!(status["state"], "done", "{story}\n{status:#}");
        project.assert_files(&story);
        project.assert_nothing_runs(&story);
    }
}

#[test]
fn a_read_only_disk_ends_the_engine_and_loses_nothing() {
    let Some((disk, state)) = small_disk() else { return };
    let project = Project::with_state(Some(state));
    assert_eq!(project.gatewright(&["run", "all", "go"], None).code, Some(10));
    disk.remount("ro");
    let refused = project.gatewright(&["answer", "latest", "agree", "approved"], None);
    assert_eq!(refused.code, Some(70), "{}", refused.stderr);
    assert!(refused.stderr.contains("error:") && !refused.stderr.contains("panicked"), "{}", refused.stderr);
    disk.remount("rw");
    project.finish("read-only");
    assert_whole(&project, "read-only");
}

/// An ext4 of its own on a loop device.
fn loop_disk(image: &Path) -> Option<Mounted> {
    let file = std::fs::File::create(image).unwrap();
    file.set_len(32 << 20).unwrap();
    let image = image.display().to_string();
    if !quietly("mkfs.ext4", &["-q", "-F", &image]) || !quietly("perl", &["-e", "1"]) {
        println!("left out: mkfs.ext4 or perl is missing");
        return None;
    }
    Mounted::new(&["-o", "loop", &image])
}

/// FS_IOC_SHUTDOWN without flushing the log: what was not synced is gone, as after a power cut.
fn cut_power(folder: &Path) -> bool {
    let call = "my $how = pack('L', 2); open(F, '<', $ARGV[0]) and ioctl(F, 0x8004587d, $how) or exit 1";
    quietly("perl", &["-e", call, &folder.display().to_string()])
}

/// The real program on a disk that loses its power at some moment, together with all its processes.
#[test]
fn power_cuts_lose_nothing_that_was_acknowledged() {
    let images = tempfile::tempdir().unwrap();
    let mut cuts = 0;
    for round in 0..6_u64 {
        let Some(disk) = loop_disk(&images.path().join(format!("{round}.img"))) else { return };
        let project = Project::with_state(Some(disk.path().join("state")));
        let mut engine = project.spawn(&["run", "all", "go"], None);
        let until = Instant::now() + Duration::from_millis(60 + 110 * round);
        Project::wait_for(|| Instant::now() > until);
        let before = if project.runs().is_empty() { Vec::new() } else { project.events() };
        if !cut_power(disk.path()) {
            println!("left out: FS_IOC_SHUTDOWN is not possible here");
            let _ = engine.kill();
            let _ = engine.wait();
            return;
        }
        cuts += 1;
        Project::signal(engine.id(), "KILL");
        let _ = engine.wait();
        for pid in ["supervise", "agent.sh"].iter().flat_map(|word| project.processes(word)) {
            Project::signal(pid, "KILL");
        }
        project.assert_nothing_runs("power cut");
        // A killed process holds its files for a moment after its memory is gone.
        Project::wait_for(|| quietly("umount", &[&disk.path().display().to_string()]));
        assert!(disk.mount(), "the cut disk cannot be mounted again");
        let story = format!("power cut {round}");
        if !before.is_empty() {
            let after = project.events();
            // The reader may have seen a last batch that was written and not yet synced: nobody acted on it.
            let synced = before.len().saturating_sub(16);
            assert_eq!(after.get(..synced), before.get(..synced), "{story}: acknowledged records are gone");
        }
        project.finish(&story);
        let status = project.status();
        assert_eq!(status["state"], "done", "{story}\n{status:#}");
        project.assert_nothing_runs(&story);
    }
    println!("{cuts} power cuts");
}
