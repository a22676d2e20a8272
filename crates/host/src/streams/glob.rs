//! `src/**`, `*.md`, `.env*`: does a path of the repository match? No braces, no classes.

/// `*` and `?` stay inside one name, `**` crosses folders; a pattern without `/` is tried on the last name
/// too, and one that ends with `/` means everything below.
pub fn matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
    if let Some(folder) = pattern.strip_suffix('/') {
        return matches(&format!("{folder}/**"), path);
    }
    let whole = parts_match(&split(pattern), &split(path));
    let name = path.rsplit('/').next().unwrap_or(path);
    whole || (!pattern.contains('/') && name_matches(pattern.as_bytes(), name.as_bytes()))
}

fn split(text: &str) -> Vec<&str> {
    text.split('/').filter(|part| !part.is_empty()).collect()
}

fn parts_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => {
            parts_match(rest, path)
                || path.split_first().is_some_and(|(_, below)| parts_match(pattern, below))
        }
        (Some((part, rest)), Some((name, below))) => {
            name_matches(part.as_bytes(), name.as_bytes()) && parts_match(rest, below)
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// One name; the place of the last `*` is remembered, so that it never takes more than quadratic time.
fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut on, mut star) = (0, 0, None);
    while on < name.len() {
        if at < pattern.len() && (pattern[at] == b'?' || pattern[at] == name[on]) && pattern[at] != b'*' {
            at += 1;
            on += 1;
        } else if at < pattern.len() && pattern[at] == b'*' {
            star = Some((at, on));
            at += 1;
        } else if let Some((place, taken)) = star {
            star = Some((place, taken + 1));
            at = place + 1;
            on = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_people_expect() {
        for (pattern, path, expected) in [
            ("src/**", "src/a.rs", true),
            ("src/**", "src/deep/er/a.rs", true),
            ("src/**", "srcs/a.rs", false),
            ("**/*.md", "README.md", true),
            ("**/*.md", "docs/a/b.md", true),
            ("*.md", "docs/a/b.md", true),
            ("docs/*.md", "docs/a/b.md", false),
            (".env*", ".env.local", true),
            ("tests/", "tests/a/b", true),
            ("a?c", "abc", true),
            ("a*b*c", "a-bb-b-c", true),
            ("a*b*c", "a-bb-b-d", false),
            ("**", "anything/at/all", true),
            ("src/main.rs", "src/main.rs", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }
}
