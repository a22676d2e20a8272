//! Copies one output pipe of an agent to its file, up to a limit, in bounded memory.
//! It must not know the process at the other end, nor wait for anything.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

/// How much is kept of the end of a stream that exceeds its limit.
const TAIL_BYTES: usize = 256 * 1024;
/// How often the file's time is moved on while bytes are dropped.
const TOUCH_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct OutputCopy {
    /// `None` after the end of the stream.
    pipe: Option<PipeReader>,
    file: File,
    room: u64,
    /// The end of what did not fit: an agent's last words count most.
    tail: VecDeque<Vec<u8>>,
    tail_bytes: usize,
    pub(crate) kept_bytes: u64,
    pub(crate) dropped_bytes: u64,
    touched: Option<Instant>,
}

impl OutputCopy {
    pub(crate) fn new(pipe: PipeReader, file: File, max_bytes: u64) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self {
            pipe: Some(pipe),
            file,
            room: max_bytes,
            tail: VecDeque::new(),
            tail_bytes: 0,
            kept_bytes: 0,
            dropped_bytes: 0,
            touched: None,
        })
    }

    /// Everything that came, kept or not.
    pub(crate) fn printed_bytes(&self) -> u64 {
        self.kept_bytes + self.dropped_bytes
    }

    /// What to poll; `None` after the end of the stream.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, at most one buffer full. Returns how much it was.
    pub(crate) fn copy_some(&mut self, buffer: &mut [u8]) -> usize {
        let Some(pipe) = &mut self.pipe else { return 0 };
        match pipe.read(buffer) {
            Ok(count) if count > 0 => {
                self.keep(&buffer[..count]);
                count
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Ok(_) | Err(_) => {
                self.pipe = None;
                0
            }
        }
    }

    /// Takes what is in the pipe now and no more: somebody out of our reach may go on writing to it.
    pub(crate) fn drain(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &self.pipe else { return };
        let mut left = rustix::io::ioctl_fionread(pipe).unwrap_or(0) as usize;
        while left > 0 {
            let want = left.min(buffer.len());
            let count = self.copy_some(&mut buffer[..want]);
            if count == 0 {
                return;
            }
            left -= count;
        }
    }

    /// Puts the end of what did not fit behind the beginning, with a line that says how much is missing.
    pub(crate) fn finish(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.tail).into_iter().flatten().collect::<Vec<u8>>();
        let tail = &all[all.len().saturating_sub(TAIL_BYTES)..];
        let missing = self.dropped_bytes - tail.len() as u64;
        let line = format!("\n[{missing} bytes are left out here]\n");
        let marked = self.write(line.as_bytes());
        let kept = self.write(tail) as u64;
        self.kept_bytes += marked as u64 + kept;
        self.dropped_bytes -= kept;
    }

    /// Makes the file as durable as the record that names its size.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if self.kept_bytes > 0 { self.file.sync_data() } else { Ok(()) }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let fits = usize::try_from(self.room).unwrap_or(usize::MAX).min(bytes.len());
        let kept = self.write(&bytes[..fits]);
        if kept < fits {
            // The disk is full or broken. The agent's work goes on; what is kept stays a prefix.
            self.room = 0;
        } else {
            self.room -= kept as u64;
        }
        self.kept_bytes += kept as u64;
        self.dropped_bytes += (bytes.len() - kept) as u64;
        if kept < bytes.len() {
            self.tail.push_back(bytes[kept..].to_vec());
            self.tail_bytes += bytes.len() - kept;
        }
        // Whole pieces go while the rest is enough; what is too much of the first goes in the end.
        while let Some(first) = self.tail.front().filter(|first| self.tail_bytes - first.len() >= TAIL_BYTES)
        {
            self.tail_bytes -= first.len();
            self.tail.pop_front();
        }
        if kept < bytes.len() && self.touched.is_none_or(|touched| touched.elapsed() >= TOUCH_EVERY) {
            // The time of the file says when the agent last wrote. It only informs, hence no error.
            drop(self.file.set_modified(SystemTime::now()));
            self.touched = Some(Instant::now());
        }
    }

    /// Like `write_all`, but says how far it came.
    fn write(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(count) if count > 0 => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(max_bytes: u64) -> (io::PipeWriter, OutputCopy, tempfile::NamedTempFile) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        (writer, OutputCopy::new(reader, file.reopen().unwrap(), max_bytes).unwrap(), file)
    }

    #[test]
    fn what_exceeds_the_limit_is_counted_and_dropped() {
        let (mut writer, mut copy, file) = copy(5);
        writer.write_all(b"abc").unwrap();
        assert_eq!(copy.copy_some(&mut [0; 16]), 3);
        assert_eq!(copy.copy_some(&mut [0; 16]), 0, "nothing there, and the pipe is open");
        writer.write_all(b"defgh").unwrap();
        drop(writer);
        assert_eq!(copy.copy_some(&mut [0; 16]), 5);
        // A test in another thread that is just starting a process has a copy of the writing end.
        let until = Instant::now() + Duration::from_secs(10);
        while copy.fd().is_some() && Instant::now() < until {
            assert_eq!(copy.copy_some(&mut [0; 16]), 0);
        }
        assert!(copy.fd().is_none());
        assert_eq!((copy.kept_bytes, copy.dropped_bytes), (5, 3));
        assert_eq!(std::fs::read(file.path()).unwrap(), b"abcde");
    }

    #[test]
    fn a_drain_ends_although_the_pipe_is_open() {
        let (mut writer, mut copy, file) = copy(100);
        writer.write_all(&[7; 50]).unwrap();
        copy.drain(&mut [0; 16]);
        assert_eq!(copy.kept_bytes, 50);
        assert!(copy.fd().is_some());
        assert_eq!(std::fs::read(file.path()).unwrap(), [7; 50]);
    }

    #[test]
    fn a_full_disk_costs_output_and_nothing_else() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let mut copy = OutputCopy::new(reader, full, 100).unwrap();
        writer.write_all(b"abc").unwrap();
        assert_eq!(copy.copy_some(&mut [0; 16]), 3);
        assert_eq!((copy.kept_bytes, copy.dropped_bytes), (0, 3));
    }
}
