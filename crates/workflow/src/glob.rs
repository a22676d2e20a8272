//! Globs over paths of a repository: `*` and `?` stay inside a folder, `**` does not.

/// Does the whole path match? A glob without a `/` matches the last part of a path too.
pub fn matches(glob: &str, path: &str) -> bool {
    let path = path.trim_start_matches("./");
    whole(glob, path)
        || (!glob.contains('/') && path.rsplit('/').next().is_some_and(|name| whole(glob, name)))
}

enum Token {
    /// `**/`: nothing, or folders.
    Folders,
    /// `**` at the end: anything.
    Rest,
    Star,
    One,
    Letter(char),
}

fn tokens(glob: &str) -> Vec<Token> {
    let mut rest = glob.trim_start_matches("./");
    let mut tokens = Vec::new();
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            tokens.push(Token::Folders);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            tokens.push(Token::Rest);
            rest = after;
        } else {
            tokens.push(match letter {
                '*' => Token::Star,
                '?' => Token::One,
                other => Token::Letter(other),
            });
            rest = &rest[letter.len_utf8()..];
        }
    }
    tokens
}

/// One pass over the glob with the set of places in the path that are reached: no backtracking.
fn whole(glob: &str, path: &str) -> bool {
    let letters: Vec<char> = path.chars().collect();
    let mut reached = vec![false; letters.len() + 1];
    reached[0] = true;
    for token in tokens(glob) {
        let mut next = vec![false; letters.len() + 1];
        let mut carried = false;
        for place in 0..=letters.len() {
            let here = letters.get(place.wrapping_sub(1)).copied();
            match token {
                Token::Folders => {
                    next[place] = reached[place] || (carried && here == Some('/'));
                    carried |= reached[place];
                }
                Token::Rest => {
                    carried |= reached[place];
                    next[place] = carried;
                }
                Token::Star => {
                    carried = reached[place] || (carried && here != Some('/'));
                    next[place] = carried;
                }
                Token::One => next[place] = place > 0 && reached[place - 1] && here != Some('/'),
                Token::Letter(letter) => {
                    next[place] = place > 0 && reached[place - 1] && here == Some(letter);
                }
            }
        }
        reached = next;
    }
    reached[letters.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_inside_a_folder_and_two_do_not() {
        for (glob, path) in [
            ("src/*.rs", "src/a.rs"),
            ("src/**", "src/a/b.rs"),
            ("**/auth/**", "auth/login.rs"),
            ("**/auth/**", "src/auth/login.rs"),
            ("**/*auth*", "src/my-auth.rs"),
            ("*.lock", "deep/down/Cargo.lock"),
            ("a?c", "abc"),
            ("**", "any/thing"),
            ("./src/**/x", "src/x"),
        ] {
            assert!(matches(glob, path), "{glob} {path}");
        }
        for (glob, path) in [
            ("src/*.rs", "src/a/b.rs"),
            ("src/**", "other/src/a"),
            ("**/auth/**", "src/author/a.rs"),
            ("a?c", "a/c"),
            ("src", "srcs"),
            ("", "a"),
        ] {
            assert!(!matches(glob, path), "{glob} {path}");
        }
    }
}
