//! The layout of an attempt directory: every file name in it, and bounded reading of each.
//! It must not know how processes are started, watched or ended.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::durable_file;
use crate::exit_record::ExitRecord;
use crate::launch::LaunchSpec;
use crate::pid_record::PidRecord;

/// One attempt: `launch.json`, `lock`, `pid.json`, `stdout`, `stderr`, `stop`, `exit.json`, `out/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDir {
    /// Absolute.
    pub path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

#[derive(Debug, thiserror::Error)]
pub enum AttemptDirError {
    #[error("cannot {action} {path}")]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{path} is not what Gatewright writes there")]
    Format { path: PathBuf, source: serde_json::Error },
    #[error("{path} has version {found}, this gatewright reads version {expected}")]
    Version { path: PathBuf, found: u32, expected: u32 },
}

/// The lock of an attempt, held. It belongs to the opened file and not to the process: a child that is given
/// a descriptor holds it too, and kill -9 of the last holder frees it.
#[derive(Debug)]
pub(crate) struct AttemptLock {
    /// `None` after it was handed over.
    file: Option<File>,
}

impl AttemptLock {
    /// For a child: calls `start` with a descriptor of the lock. If that succeeds the lock is the child's.
    pub(crate) fn hand_over<T>(mut self, start: impl FnOnce(File) -> io::Result<T>) -> io::Result<T> {
        let descriptor = match &self.file {
            Some(file) => file.try_clone()?,
            None => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let started = start(descriptor)?;
        self.file = None;
        Ok(started)
    }
}

impl Drop for AttemptLock {
    /// Closing would not free it at once: a child that another thread is just starting has a copy of all
    /// our descriptors until it execs.
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            drop(file.unlock());
        }
    }
}

impl AttemptDir {
    /// Makes the directory and its `out/`, both for the user only. One that exists is opened.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, AttemptDirError> {
        let path = absolute(path.as_ref())?;
        let out = path.join("out");
        DirBuilder::new().recursive(true).mode(0o700).create(&out).map_err(failed("create", &out))?;
        Ok(Self { path })
    }

    pub fn open(path: impl AsRef<Path>) -> Result<Self, AttemptDirError> {
        let path = absolute(path.as_ref())?;
        if !fs::metadata(&path).map_err(failed("open", &path))?.is_dir() {
            return Err(failed("open", &path)(io::ErrorKind::NotADirectory.into()));
        }
        Ok(Self { path })
    }

    /// Where the agent puts what it makes (`GATEWRIGHT_OUT`).
    pub fn out_dir(&self) -> PathBuf {
        self.path.join("out")
    }

    /// How the attempt ended. `None`: it has not.
    pub fn exit_record(&self) -> Result<Option<ExitRecord>, AttemptDirError> {
        read_versioned(&self.exit_path(), ExitRecord::VERSION)
    }

    /// The order that was given. `None`: nobody tried to start this attempt.
    pub fn launch_spec(&self) -> Result<Option<LaunchSpec>, AttemptDirError> {
        read_versioned(&self.path.join("launch.json"), LaunchSpec::VERSION)
    }

    /// Who runs. `None`: no agent was ever started here.
    pub fn pid_record(&self) -> Result<Option<PidRecord>, AttemptDirError> {
        read_versioned(&self.path.join("pid.json"), PidRecord::VERSION)
    }

    /// When the agent last wrote to either stream, also when the bytes were dropped. `None`: never.
    pub fn last_output_at(&self) -> Result<Option<SystemTime>, AttemptDirError> {
        let mut last = None;
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let path = self.output_path(stream);
            match fs::metadata(&path) {
                Ok(metadata) if metadata.len() > 0 => {
                    last = last.max(Some(metadata.modified().map_err(failed("read the time of", &path))?));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed("read the time of", &path)(error)),
            }
        }
        Ok(last)
    }

    /// The end of a stream, at most `max_bytes`, and whether something stands before it.
    pub fn read_output_tail(
        &self,
        stream: OutputStream,
        max_bytes: u64,
    ) -> Result<(Vec<u8>, bool), AttemptDirError> {
        let path = self.output_path(stream);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
            Err(error) => return Err(failed("open", &path)(error)),
        };
        let mut read = || {
            let skipped = file.metadata()?.len().saturating_sub(max_bytes);
            file.seek(SeekFrom::Start(skipped))?;
            let mut bytes = Vec::new();
            // The file may grow meanwhile; what is read stays bounded.
            (&mut file).take(max_bytes).read_to_end(&mut bytes)?;
            Ok((bytes, skipped > 0))
        };
        read().map_err(failed("read", &path))
    }

    pub fn output_path(&self, stream: OutputStream) -> PathBuf {
        self.path.join(match stream {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        })
    }

    pub(crate) fn exit_path(&self) -> PathBuf {
        self.path.join("exit.json")
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// `None`: somebody else holds it.
    pub(crate) fn try_lock(&self) -> Result<Option<AttemptLock>, AttemptDirError> {
        let path = self.lock_path();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open", &path))?;
        self.lock_file(file)
    }

    /// Locks an opened `lock`. One that holds the lock already keeps it.
    pub(crate) fn lock_file(&self, file: File) -> Result<Option<AttemptLock>, AttemptDirError> {
        match file.try_lock() {
            Ok(()) => Ok(Some(AttemptLock { file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("lock", &self.lock_path())(error)),
        }
    }

    pub(crate) fn write_launch_spec(&self, spec: &LaunchSpec) -> Result<(), AttemptDirError> {
        replace_json(&self.path.join("launch.json"), spec)
    }

    pub(crate) fn write_pid_record(&self, record: &PidRecord) -> Result<(), AttemptDirError> {
        replace_json(&self.path.join("pid.json"), record)
    }

    /// Moves a record away that its supervisor did not write, and keeps it. Only for the holder of the lock: nobody
    /// else writes one.
    pub(crate) fn set_aside_exit_record(&self, _lock: &AttemptLock) -> Result<bool, AttemptDirError> {
        let path = self.exit_path();
        match fs::rename(&path, self.path.join("exit.forged.json")) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("move", &path)(error)),
        }
    }

    /// Creates the exit record if there is none and returns the one that stands.
    pub(crate) fn write_exit_record(&self, record: ExitRecord) -> Result<ExitRecord, AttemptDirError> {
        let path = self.exit_path();
        if durable_file::create_first(&path, &json(&path, &record)?).map_err(failed("create", &path))? {
            return Ok(record);
        }
        self.exit_record()?.ok_or_else(|| failed("read", &path)(io::ErrorKind::NotFound.into()))
    }

    /// A new, empty file for a stream, for the user only.
    pub(crate) fn create_output(&self, stream: OutputStream) -> Result<File, AttemptDirError> {
        let path = self.output_path(stream);
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("create", &path))
    }

    /// Bytes in the file of a stream; nothing if there is none.
    pub(crate) fn output_len(&self, stream: OutputStream) -> u64 {
        fs::metadata(self.output_path(stream)).map_or(0, |metadata| metadata.len())
    }

    pub fn stop_requested(&self) -> bool {
        self.path.join("stop").exists()
    }

    pub(crate) fn write_stop(&self) -> Result<(), AttemptDirError> {
        let path = self.path.join("stop");
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map(drop)
            .map_err(failed("create", &path))
    }
}

fn absolute(path: &Path) -> Result<PathBuf, AttemptDirError> {
    std::path::absolute(path).map_err(failed("resolve", path))
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> AttemptDirError + use<'a> {
    move |source| AttemptDirError::File { action, path: path.to_owned(), source }
}

fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, AttemptDirError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|source| AttemptDirError::Format { path: path.to_owned(), source })?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn replace_json(path: &Path, value: &impl Serialize) -> Result<(), AttemptDirError> {
    durable_file::replace(path, &json(path, value)?).map_err(failed("write", path))
}

/// The version is read by itself first, so that a newer file is named as such and not as broken.
fn read_versioned<T: DeserializeOwned>(path: &Path, expected: u32) -> Result<Option<T>, AttemptDirError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path)(error)),
    };
    let format = |source| AttemptDirError::Format { path: path.to_owned(), source };
    let found = serde_json::from_slice::<Versioned>(&bytes).map_err(format)?.version;
    if found != expected {
        return Err(AttemptDirError::Version { path: path.to_owned(), found, expected });
    }
    serde_json::from_slice(&bytes).map(Some).map_err(format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_record::Ended;

    fn attempt() -> (tempfile::TempDir, AttemptDir) {
        let root = tempfile::tempdir().unwrap();
        let dir = AttemptDir::create(root.path().join("a/1")).unwrap();
        (root, dir)
    }

    fn record(ended: Ended) -> ExitRecord {
        ExitRecord {
            version: 1,
            ended,
            started_at_ms: 1,
            ended_at_ms: 2,
            duration_ms: 1,
            stdout_bytes: 0,
            stderr_bytes: 0,
            dropped_bytes: 0,
            left_behind: Vec::new(),
            killed: false,
            flooded: false,
            swarmed: None,
            forged: false,
            supervisor_killed: false,
        }
    }

    #[test]
    fn the_tail_is_bounded_and_says_so() {
        let (_root, dir) = attempt();
        assert_eq!(dir.read_output_tail(OutputStream::Stdout, 10).unwrap(), (Vec::new(), false));
        assert_eq!(dir.last_output_at().unwrap(), None);
        fs::write(dir.output_path(OutputStream::Stdout), b"0123456789").unwrap();
        assert_eq!(dir.read_output_tail(OutputStream::Stdout, 10).unwrap(), (b"0123456789".to_vec(), false));
        assert_eq!(dir.read_output_tail(OutputStream::Stdout, 3).unwrap(), (b"789".to_vec(), true));
        assert!(dir.last_output_at().unwrap().is_some());
    }

    #[test]
    fn the_first_exit_record_stands() {
        let (_root, dir) = attempt();
        assert_eq!(dir.exit_record().unwrap(), None);
        let first = dir.write_exit_record(record(Ended::Exited { code: 3 })).unwrap();
        let second = dir.write_exit_record(record(Ended::Interrupted)).unwrap();
        assert_eq!(first, second);
        assert_eq!(dir.exit_record().unwrap(), Some(first));
    }

    #[test]
    fn an_exit_record_reads_as_documented() {
        let (_root, dir) = attempt();
        dir.write_exit_record(record(Ended::StartFailed { message: "no".to_owned() })).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&fs::read(dir.exit_path()).unwrap()).unwrap();
        assert_eq!(value["ended"], serde_json::json!({"how": "start_failed", "message": "no"}));
        assert_eq!(value["version"], 1);
    }

    #[test]
    fn a_newer_record_is_named_as_newer() {
        let (_root, dir) = attempt();
        fs::write(dir.exit_path(), r#"{"version": 2, "other": true}"#).unwrap();
        assert!(matches!(dir.exit_record(), Err(AttemptDirError::Version { found: 2, expected: 1, .. })));
        fs::write(dir.exit_path(), "{").unwrap();
        assert!(matches!(dir.exit_record(), Err(AttemptDirError::Format { .. })));
    }

    #[test]
    fn the_lock_excludes_and_is_freed() {
        let (_root, dir) = attempt();
        let held = dir.try_lock().unwrap().unwrap();
        assert!(dir.try_lock().unwrap().is_none());
        let handed_over = held.hand_over(Ok).unwrap();
        assert!(dir.try_lock().unwrap().is_none());
        drop(handed_over);
        assert!(dir.try_lock().unwrap().is_some());
    }

    #[test]
    fn a_lock_that_could_not_be_handed_over_is_free() {
        let (_root, dir) = attempt();
        let mut copy = None;
        let failed = dir.try_lock().unwrap().unwrap().hand_over(|file| {
            copy = Some(file);
            Err::<(), _>(io::ErrorKind::NotFound.into())
        });
        assert!(failed.is_err() && copy.is_some());
        assert!(dir.try_lock().unwrap().is_some());
    }

    #[test]
    fn opening_what_is_not_there_names_the_path() {
        let error = AttemptDir::open("/nonexistent/attempt").unwrap_err();
        assert!(error.to_string().contains("/nonexistent/attempt"), "{error}");
    }
}
