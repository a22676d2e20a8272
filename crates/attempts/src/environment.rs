//! Which variables of the engine's environment an agent or a check may see: an allow-list.
//! It must not know what the variables are for, and never lets one of Gatewright's own through.

use std::collections::BTreeMap;

const ALLOWED: [&str; 11] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TERM", "TZ", "TMPDIR", "XDG_*"];
const OWN_PREFIX: &str = "GATEWRIGHT_";

/// Keeps what the allow-list or `extra` names. A name with a trailing `*` is a prefix.
/// `GATEWRIGHT_*` is never kept, not even by `extra`: the engine sets those itself.
pub fn allowed_environment(
    extra: &[String],
    from: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    from.filter(|(name, _)| {
        !name.starts_with(OWN_PREFIX)
            && ALLOWED
                .into_iter()
                .chain(extra.iter().map(String::as_str))
                .any(|allowed| covers(allowed, name))
    })
    .collect()
}

/// Whether every agent gets it, named or not.
pub fn is_usual_variable(name: &str) -> bool {
    ALLOWED.into_iter().any(|allowed| covers(allowed, name))
}

fn covers(allowed: &str, name: &str) -> bool {
    match allowed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => allowed == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(extra: &[&str], from: &[&str], expected: &[&str]) {
        let extra: Vec<String> = extra.iter().map(ToString::to_string).collect();
        let from = from.iter().map(|name| ((*name).to_owned(), format!("value of {name}")));
        let kept = allowed_environment(&extra, from);
        assert_eq!(kept.keys().map(String::as_str).collect::<Vec<_>>(), expected);
        assert!(kept.iter().all(|(name, value)| *value == format!("value of {name}")));
    }

    #[test]
    fn only_listed_names_pass() {
        check(
            &[],
            &[
                "PATH",
                "HOME",
                "SECRET_TOKEN",
                "LC_ALL",
                "LC",
                "XDG_RUNTIME_DIR",
                "PATHOLOGY",
                "TERM",
                "TMPDIR",
            ],
            &["HOME", "LC_ALL", "PATH", "TERM", "TMPDIR", "XDG_RUNTIME_DIR"],
        );
    }

    #[test]
    fn extra_names_and_prefixes_pass() {
        check(
            &["API_KEY", "CARGO_*"],
            &["API_KEY", "API_KEY_2", "CARGO_HOME", "CARGO"],
            &["API_KEY", "CARGO_HOME"],
        );
    }

    #[test]
    fn own_variables_never_pass() {
        check(&["GATEWRIGHT_SECRET", "GATEWRIGHT_*", "*"], &["GATEWRIGHT_SECRET", "OTHER"], &["OTHER"]);
    }
}
