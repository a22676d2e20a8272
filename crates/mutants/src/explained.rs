//! Survivors that are known, each with its reason: `explained.txt`.

use std::{collections::BTreeMap, fs, io, path::Path};

/// The reason by the key of the mutant.
pub fn read(path: &Path) -> io::Result<BTreeMap<String, String>> {
    parse(&fs::read_to_string(path)?)
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// A line that begins with `= ` is a reason; the lines below it are the mutants that it is about.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let (mut found, mut reason) = (BTreeMap::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with("# ") {
            continue;
        }
        if let Some(words) = line.strip_prefix("= ") {
            reason = Some(words);
        } else {
            let reason = reason.ok_or(format!("line {number}: a mutant stands below its reason (`= …`)"))?;
            if found.insert(line.to_owned(), reason.to_owned()).is_some() {
                return Err(format!("line {number}: it is explained already"));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_for_all_below_it() {
        let found = parse("# what this is\n\n= the same\na.rs: x\na.rs: y\n\n= nobody asks\nb.rs: z\n")
            .expect("good");
        assert_eq!(found["a.rs: y"], "the same");
        assert_eq!(found["b.rs: z"], "nobody asks");
        assert!(parse("a.rs: x\n").is_err(), "without a reason");
        assert!(parse("= r\na.rs: x\na.rs: x\n").is_err(), "twice");
    }
}
