//! Files in places that agents can write, read without being held up: a named pipe in the place of a file is not waited
//! for, and what is without end is not read. Must not know what the files mean.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// More than git's own files have; larger ones are not read.
const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Opens a file, and nothing else. Links are followed.
pub fn open(path: &Path) -> io::Result<File> {
    // Without it, opening a pipe waits for somebody who writes. For a file it means nothing.
    let not_waiting = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    of_file(OpenOptions::new().read(true).custom_flags(not_waiting).open(path)?)
}

/// What was opened, if it is a file.
pub fn of_file(file: File) -> io::Result<File> {
    let data = file.metadata()?;
    if data.is_file() {
        Ok(file)
    } else if data.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"))
    }
}

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {BYTES_MAX} bytes"),
        ));
    }
    Ok(bytes)
}

pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
