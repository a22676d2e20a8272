//! Names of files and globs as definitions write them: what can be said of them before a run.

/// A name with `*` for each `{{ … }}` and `{% … %}` in it.
pub fn pattern(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
        out.push_str(&rest[..at]);
        out.push('*');
        let end = rest[at..].find("}}").into_iter().chain(rest[at..].find("%}")).min();
        rest = end.map_or("", |end| &rest[at + end + 2..]);
    }
    out.push_str(rest);
    out
}

/// Whether a pattern is the pattern of this name: `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
    }
    match last {
        None => rest.is_empty(),
        Some(last) => rest.ends_with(last),
    }
}

/// Whether a name, whatever its templates become, leads out of the folder it is meant in.
pub fn leaves_folder(name: &str) -> bool {
    let name = pattern(name);
    name.starts_with('/') || name.starts_with('~') || name.split('/').any(|part| part == "..")
}

/// Why a glob of `may_write` or `protect` matches nothing that its writer can have meant.
/// `!` in front takes away what the globs before it gave.
pub fn glob_problem(glob: &str) -> Option<&'static str> {
    let bare = glob.strip_prefix('!').unwrap_or(glob);
    let misplaced = |part: &str| part.contains("**") && part != "**";
    if bare.is_empty() {
        Some("is empty")
    } else if leaves_folder(bare) {
        Some("leads out of the repository")
    } else if bare.contains(['[', ']', '{', '}']) {
        Some("has brackets or braces, which are no part of a glob here")
    } else if bare.contains('\\') {
        Some("has a backslash; folders are separated by `/`")
    } else if bare.split('/').any(misplaced) {
        Some("has `**` beside other letters; it stands for whole folders")
    } else if bare.split('/').any(str::is_empty) && !bare.ends_with('/') {
        Some("has an empty folder name")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_a_template_makes() {
        assert_eq!(pattern("loop/{{ step.id }}-{% if x %}a{% endif %}.md"), "loop/*-*a*.md");
        assert!(matches("loop/*-fix-*.md", "loop/code-fix-2.md"));
        assert!(matches("plan.md", "plan.md") && matches("*", "") && matches("a*", "a"));
        assert!(!matches("plan.md", "plan.mdx") && !matches("a*b", "a") && !matches("*/x/*", "x"));
    }

    #[test]
    fn names_that_lead_out_are_told_from_those_that_do_not() {
        for inside in ["plan.md", "./src/a.rs", "a/{{ x }}/b", "{{ run.id }}", "..a/b..", "a?"] {
            assert!(!leaves_folder(inside), "{inside}");
        }
        for outside in ["/etc/passwd", "../x", "a/../../b", "{{ x }}/..", "~/x", ".."] {
            assert!(leaves_folder(outside), "{outside}");
        }
    }

    #[test]
    fn globs_that_mean_nothing_are_told_from_those_that_do() {
        for fine in ["src/**", "**/*.md", "*.lock", "!src/generated/**", "docs/", ".env*", "./src/**"] {
            assert_eq!(glob_problem(fine), None, "{fine}");
        }
        for wrong in ["", "!", "/abs/**", "../x/*", "src/{a,b}/**", "src/[ab].rs", "a\\b", "src/a**", "a//b"]
        {
            assert!(glob_problem(wrong).is_some(), "{wrong}");
        }
    }
}
