//! Names of files as text, also those that are no text: bytes that are not UTF-8 are kept in characters that nobody
//! uses, one for each, so that the way back leads to the same file. Must not know git or pictures.

use std::{ffi::OsString, fmt::Write as _, os::unix::ffi::OsStringExt};

/// The last characters of the last private plane stand for the bytes 0x80 to 0xff.
const STAND_IN: u32 = 0x10_ff00;

/// The name of these bytes; two names are never the same for different bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(is_stand_in)
    {
        return text.to_owned();
    }
    let mut name = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_stand_in(character) {
                let mut buffer = [0; 4];
                name.extend(character.encode_utf8(&mut buffer).bytes().map(stand_in));
            } else {
                name.push(character);
            }
        }
        name.extend(chunk.invalid().iter().copied().map(stand_in));
    }
    name
}

/// The bytes of a name.
pub fn bytes_of(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    for character in name.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

pub fn path_of(name: &str) -> OsString {
    OsString::from_vec(bytes_of(name))
}

/// As people read it: `\xff` for a byte that is no text.
pub fn shown(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        match byte_of(character) {
            Some(byte) => drop(write!(text, "\\x{byte:02x}")),
            None => text.push(character),
        }
    }
    text
}

/// As whoever cannot tell such names apart has it.
pub fn lossy(name: &str) -> String {
    String::from_utf8_lossy(&bytes_of(name)).into_owned()
}

fn is_stand_in(character: char) -> bool {
    byte_of(character).is_some()
}

fn byte_of(character: char) -> Option<u8> {
    let byte = u8::try_from((character as u32).checked_sub(STAND_IN)?).ok()?;
    (byte >= 0x80).then_some(byte)
}

fn stand_in(byte: u8) -> char {
    // Bytes below 0x80 are text, and every number of the range is a character.
    char::from_u32(STAND_IN + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_bytes_and_to_no_others() {
        let tricky = of_bytes(b"\xff");
        let names: [&[u8]; 7] = [
            b"src/a.txt",
            "ü/🙂".as_bytes(),
            b"src/\xff.txt",
            b"src/\xfe.txt",
            b"\xe2\x82",
            // What stands for a byte is itself a name that somebody can give.
            tricky.as_bytes(),
            b"\\xff",
        ];
        for bytes in names {
            assert_eq!(bytes_of(&of_bytes(bytes)), bytes);
            let same = names.iter().filter(|other| of_bytes(other) == of_bytes(bytes)).count();
            assert_eq!(same, 1, "{}", shown(&of_bytes(bytes)));
        }
        assert_eq!(of_bytes("ü".as_bytes()), "ü");
        assert_eq!(shown(&of_bytes(b"src/\xff.txt")), "src/\\xff.txt");
        assert_eq!(lossy(&of_bytes(b"src/\xff.txt")), "src/\u{fffd}.txt");
    }
}
