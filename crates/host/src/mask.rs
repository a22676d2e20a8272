//! Secrets in texts: keys and tokens by their shape, and the values of variables that an agent was given.
//! What is found is replaced by a mark. Pure; it must not know where texts come from or go to.

use std::{borrow::Cow, collections::BTreeMap};

use gatewright_attempts::{Defence, is_usual_variable};
use serde_json::Value;

/// What stands where a secret stood.
const MARK: &str = "[masked]";
/// Shorter values are words, and would be found everywhere.
const VALUE_BYTES_MIN: usize = 8;

/// A token that is told by how it begins.
struct Shape {
    prefix: &'static str,
    /// Characters after the prefix, at least.
    least: usize,
}

const SHAPES: [Shape; 24] = [
    shape("sk-ant-", 16),
    shape("sk-proj-", 16),
    shape("sk-or-", 16),
    shape("sk-", 20),
    shape("sk_live_", 16),
    shape("rk_live_", 16),
    shape("ghp_", 30),
    shape("gho_", 30),
    shape("ghu_", 30),
    shape("ghs_", 30),
    shape("ghr_", 30),
    shape("github_pat_", 22),
    shape("glpat-", 18),
    shape("xoxb-", 20),
    shape("xoxp-", 20),
    shape("xoxa-", 20),
    shape("xapp-", 20),
    shape("AIza", 30),
    shape("ya29.", 20),
    shape("npm_", 30),
    shape("pypi-", 40),
    shape("hf_", 30),
    shape("AKIA", 16),
    shape("ASIA", 16),
];

const fn shape(prefix: &'static str, least: usize) -> Shape {
    Shape { prefix, least }
}

/// The characters that a secret can begin with.
const BEGINNINGS: [bool; 256] = {
    let mut table = [false; 256];
    let mut next = 0;
    while next < SHAPES.len() {
        table[SHAPES[next].prefix.as_bytes()[0] as usize] = true;
        next += 1;
    }
    let others = b"-Bbe";
    next = 0;
    while next < others.len() {
        table[others[next] as usize] = true;
        next += 1;
    }
    table
};

/// Finds secrets. Made once for a text's source, used for many texts.
#[derive(Clone, Default)]
pub struct Masks {
    /// Longest first: one value may be the beginning of another.
    values: Vec<String>,
}

impl std::fmt::Debug for Masks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Masks({} values)", self.values.len())
    }
}

impl Masks {
    /// By shape, and these variables' values as well: those whose name speaks of a secret, and those that
    /// were named one by one and are neither a path nor an address.
    pub fn of<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>, named: &[String]) -> Masks {
        let mut values: Vec<String> = variables
            .filter(|(name, value)| {
                let plain = value.starts_with(['/', '~', '.']) || value.contains("://");
                value.len() >= VALUE_BYTES_MIN
                    && (speaks_of_a_secret(name) || (named.iter().any(|other| other == name) && !plain))
            })
            .flat_map(|(_, value)| {
                // As it is, and as it stands in JSON.
                let quoted = Value::String(value.to_owned()).to_string();
                let inner = quoted[1..quoted.len() - 1].to_owned();
                [Some(value.to_owned()), (inner != value).then_some(inner)]
            })
            .flatten()
            .collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Masks { values }
    }

    /// By shape, and whatever this launch was given besides the variables that every process has.
    pub fn of_launch(env: &BTreeMap<String, String>) -> Masks {
        let own = env.keys().filter(|name| !is_usual_variable(name) && !name.starts_with("GATEWRIGHT_"));
        let own: Vec<String> = own.cloned().collect();
        Masks::of(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &own)
    }

    /// The text without its secrets.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        if Defence::Masks.is_off() {
            return text;
        }
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), MARK));
            }
        }
        match by_shape(&text) {
            Some(masked) => Cow::Owned(masked),
            None => text,
        }
    }

    /// Every text inside a document.
    pub fn mask_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.mask(text) {
                    *text = masked;
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.mask_json(element)),
            Value::Object(object) => object.values_mut().for_each(|element| self.mask_json(element)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Anything of ours, by way of its JSON. What would not be the same kind of thing afterwards stays.
    pub fn mask_record<T: serde::Serialize + serde::de::DeserializeOwned>(&self, record: T) -> T {
        let Ok(before) = serde_json::to_value(&record) else { return record };
        let mut after = before.clone();
        self.mask_json(&mut after);
        if after == before {
            return record;
        }
        serde_json::from_value(after).unwrap_or(record)
    }
}

fn speaks_of_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"].iter().any(|word| name.contains(word))
        && !name.starts_with("GATEWRIGHT_")
}

/// `None`: there is nothing to hide.
fn by_shape(text: &str) -> Option<String> {
    let mut masked = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        // Only where a letter of the alphabet of secrets stands is a closer look taken, and there a character begins.
        match BEGINNINGS[usize::from(*byte)].then(|| secret_at(text, at)).flatten() {
            Some(end) => {
                masked.push_str(&text[kept..at]);
                masked.push_str(MARK);
                (kept, at) = (end, end);
            }
            None => at += 1,
        }
    }
    if kept == 0 {
        return None;
    }
    masked.push_str(&text[kept..]);
    Some(masked)
}

/// Where the secret ends that begins here.
fn secret_at(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    // A token begins where a word begins, however the word was packed.
    // (`\\n` in a JSON text ends with a letter, too.)
    let before = &text.as_bytes()[..at];
    let escaped = matches!(before, [.., b'\\', b'n' | b't' | b'r']);
    if before.last().is_some_and(|byte| is_token(*byte)) && !escaped {
        return None;
    }
    match rest.as_bytes().first()? {
        b'-' => private_key(rest).map(|length| at + length),
        b'B' | b'b' => bearer(rest).map(|length| at + length),
        b'e' => web_token(rest).map(|length| at + length),
        _ => None,
    }
    .or_else(|| {
        let first = rest.as_bytes().first();
        SHAPES.iter().filter(|shape| shape.prefix.as_bytes().first() == first).find_map(|shape| {
            let tail = rest.strip_prefix(shape.prefix)?;
            let length = tail.bytes().take_while(|byte| is_token(*byte)).count();
            (length >= shape.least).then_some(at + shape.prefix.len() + length)
        })
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// From `-----BEGIN … PRIVATE KEY-----` to its end, or to the end of the text.
fn private_key(rest: &str) -> Option<usize> {
    let head = rest.strip_prefix("-----BEGIN ")?;
    let kind_end = head.find("-----")?;
    if kind_end > 40 || !head[..kind_end].ends_with("PRIVATE KEY") {
        return None;
    }
    let end = rest.find("-----END ").and_then(|end| {
        let tail = &rest[end + "-----END ".len()..];
        tail.find("-----").map(|close| end + "-----END ".len() + close + "-----".len())
    });
    Some(end.unwrap_or(rest.len()))
}

/// `Bearer TOKEN`; the word stays, so only the token's length is a secret's.
fn bearer(rest: &str) -> Option<usize> {
    let word = rest.get(..7).filter(|word| word.eq_ignore_ascii_case("bearer "))?;
    let length = rest[word.len()..].bytes().take_while(|byte| is_token(*byte) || *byte == b'.').count();
    (length >= 20).then_some(word.len() + length)
}

/// Three parts of base64 with points between, the first of them beginning with `eyJ`.
fn web_token(rest: &str) -> Option<usize> {
    rest.strip_prefix("eyJ")?;
    let length = rest.bytes().take_while(|byte| is_token(*byte) || *byte == b'.').count();
    let parts: Vec<&str> = rest[..length].split('.').collect();
    (parts.len() == 3 && parts[..2].iter().all(|part| part.len() >= 12)).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(Masks::default().mask(text), expected, "{text}");
    }

    #[test]
    fn tokens_are_told_by_their_shape() {
        let forty = "abcdefghij0123456789ABCDEFGHIJ0123456789";
        for prefix in
            ["sk-ant-api03-", "sk-", "ghp_", "github_pat_", "glpat-", "xoxb-", "npm_", "hf_", "AIza"]
        {
            check(&format!("a {prefix}{forty}, b"), "a [masked], b");
            check(&format!("KEY={prefix}{forty}"), "KEY=[masked]");
        }
        check("id AKIAIOSFODNN7EXAMPLE.", "id [masked].");
        check(&format!("Authorization: Bearer {forty}"), "Authorization: [masked]");
        check(&format!("t eyJhbGciOiJIUzI1NiJ9.{forty}.{forty} t"), "t [masked] t");
        check("x\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\ny", "x\n[masked]\ny");
        check("-----BEGIN PRIVATE KEY-----\ncut off", "[masked]");
    }

    #[test]
    fn values_are_found_as_they_stand_in_json_too() {
        let masks = Masks::of([("MY_TOKEN", "quo\"te99xx")].into_iter(), &[]);
        assert_eq!(masks.mask("a quo\"te99xx b"), "a [masked] b");
        assert_eq!(masks.mask(r#"{"text":"quo\"te99xx"}"#), r#"{"text":"[masked]"}"#);
    }

    #[test]
    fn ordinary_words_stay() {
        for text in [
            "task-force sk-short ask-questions-about-everything-here",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "a bearer of good news",
            "eyJ is how it begins",
            "übermäßig lange Wörter – und Zeichen 🙂",
            "",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn values_of_variables_are_masked_wherever_they_stand() {
        let variables = [
            ("MY_TOKEN", "hunter2hunter2"),
            ("CHOSEN", "plain-value"),
            ("HOME", "/home/someone"),
            ("LC_ALL", "C.UTF-8.long"),
        ];
        let masks = Masks::of(variables.into_iter(), &["CHOSEN".to_owned(), "HOME".to_owned()]);
        assert_eq!(
            masks.mask("hunter2hunter2/plain-value in /home/someone, C.UTF-8.long"),
            "[masked]/[masked] in /home/someone, C.UTF-8.long"
        );
        let mut value = serde_json::json!({"a": ["hunter2hunter2", 1], "b": {"c": "x plain-value"}});
        masks.mask_json(&mut value);
        assert_eq!(value, serde_json::json!({"a": ["[masked]", 1], "b": {"c": "x [masked]"}}));
        assert!(!format!("{masks:?}").contains("hunter2"));
    }
}
