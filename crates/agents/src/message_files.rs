//! Files that an agent gives in its last message because it may not write any.

/// One file of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFile {
    pub name: String,
    pub text: String,
}

const OPENS: &str = "<<<FILE ";
const CLOSES: &str = ">>>END";

/// The files of a message, and the message without them. A block that never ends is no file.
pub fn take_files(message: &str) -> (Vec<MessageFile>, String) {
    let mut files = Vec::new();
    let mut rest = String::new();
    let mut open: Option<MessageFile> = None;
    for line in message.split_inclusive('\n') {
        let bare = line.trim_end();
        match &mut open {
            None => match bare.strip_prefix(OPENS).map(str::trim).filter(|name| !name.is_empty()) {
                Some(name) => open = Some(MessageFile { name: name.to_owned(), text: String::new() }),
                None => rest.push_str(line),
            },
            Some(file) if bare == CLOSES => {
                files.push(MessageFile {
                    name: std::mem::take(&mut file.name),
                    text: std::mem::take(&mut file.text),
                });
                open = None;
            }
            Some(file) => file.text.push_str(line),
        }
    }
    if let Some(file) = open {
        rest.push_str(&format!("{OPENS}{}\n{}", file.name, file.text));
    }
    (files, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_out_of_a_message() {
        let (files, rest) = take_files("Here.\n<<<FILE review.md\n# Review\n\ntext\n>>>END\nSTATUS: PASS\n");
        assert_eq!(
            files,
            [MessageFile { name: "review.md".to_owned(), text: "# Review\n\ntext\n".to_owned() }]
        );
        assert_eq!(rest, "Here.\nSTATUS: PASS\n");
    }

    #[test]
    fn a_block_without_an_end_stays_text() {
        let (files, rest) = take_files("<<<FILE a.md\ntext\n");
        assert_eq!((files, rest.as_str()), (vec![], "<<<FILE a.md\ntext\n"));
    }
}
