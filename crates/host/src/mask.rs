//! Secrets in texts: keys and tokens by their shape, and the values of variables that an agent was given.
//! What is found is replaced by a mark. Pure; it must not know where texts come from or go to.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use gatewright_attempts::{Defence, is_usual_variable};
use serde_json::Value;

/// What stands where a secret stood.
const MARK: &str = "[masked]";
/// Shorter values are words, and would be found everywhere.
const VALUE_BYTES_MIN: usize = 8;
/// Longer than any token that is told by its shape.
const CUT_BYTES: usize = 8 * 1024;
/// A line that is longer is shown before its end has come.
const LINE_BYTES: usize = 64 * 1024;
/// A name in an address that is shorter is a person's.
const TOKEN_BYTES_MIN: usize = 16;
const SLACK_HOOKS: &str = "hooks.slack.com/services/";
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";
/// Longer than the line that ends a key.
const KEY_END_BYTES: usize = 100;

/// A token that is told by how it begins.
struct Shape {
    prefix: &'static str,
    /// Characters after the prefix, at least.
    least: usize,
}

const SHAPES: [Shape; 33] = [
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
    shape("xai-", 30),
    shape("gsk_", 30),
    shape("pplx-", 30),
    shape("nvapi-", 30),
    shape("csk-", 30),
    shape("r8_", 30),
    shape("fw_", 20),
    shape("gldt-", 18),
    shape("glrt-", 18),
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
    let others = b"-Bbe:";
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

    /// By shape, and the values of variables whose name speaks of a secret.
    pub fn of_names(env: &BTreeMap<String, String>) -> Masks {
        Masks::of(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &[])
    }

    /// Whether it finds all that the other one finds.
    pub fn covers(&self, other: &Masks) -> bool {
        other.values.iter().all(|value| self.values.contains(value))
    }

    /// What either of them finds.
    pub fn and(mut self, other: &Masks) -> Masks {
        self.values.extend(other.values.iter().cloned());
        self.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        self.values.dedup();
        self
    }

    /// A piece that was cut out of a longer text. Where it was cut half a secret may stand, which nothing tells: the
    /// line that was cut is left out.
    pub fn mask_piece(&self, text: &str, starts_cut: bool, ends_cut: bool) -> String {
        if Defence::Masks.is_off() {
            return text.to_owned();
        }
        let mut piece = text;
        if starts_cut {
            let line = piece.find('\n').map(|at| at + 1).filter(|at| *at <= CUT_BYTES);
            piece = &piece[line.unwrap_or_else(|| piece.ceil_char_boundary(CUT_BYTES.min(piece.len())))..];
            // The rest of a private key that began before.
            let begins = piece.find(KEY_BEGINS).unwrap_or(piece.len());
            if let Some(end) = end_of_key(piece).filter(|end| *end <= begins) {
                piece = &piece[end..];
            }
        }
        if ends_cut {
            let from = piece.len().saturating_sub(CUT_BYTES);
            let line = piece.rfind('\n').map(|at| at + 1).filter(|at| *at >= from);
            piece = &piece[..line.unwrap_or_else(|| piece.floor_char_boundary(from))];
        }
        self.mask(piece).into_owned()
    }

    /// What is kept of a command's output, which may have lost its middle.
    pub fn mask_output(&self, text: &str) -> String {
        let mut masked = String::new();
        let mut rest = text;
        let mut starts_cut = false;
        while let Some((at, length)) = left_out(rest) {
            masked.push_str(&self.mask_piece(&rest[..at], starts_cut, true));
            masked.push_str(&rest[at..at + length]);
            (rest, starts_cut) = (&rest[at + length..], true);
        }
        masked.push_str(&self.mask_piece(rest, starts_cut, false));
        masked
    }

    /// The text without its secrets.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if Defence::Masks.is_off() {
            return Cow::Borrowed(text);
        }
        // What colours cut into pieces is one word to whoever reads it. The colours are lost only where that is so.
        if text.contains('\u{1b}') {
            let plain = without_colours(text);
            let found = self.mask_plain(&plain);
            if found.matches(MARK).count() > self.mask_plain(text).matches(MARK).count() {
                return Cow::Owned(found.into_owned());
            }
        }
        self.mask_plain(text)
    }

    fn mask_plain<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
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
            Value::Object(object) => {
                object.values_mut().for_each(|element| self.mask_json(element));
                self.mask_names(object);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether any of it would be masked.
    pub fn finds_in(&self, text: &str) -> bool {
        matches!(self.mask(text), Cow::Owned(_))
    }

    /// A secret may be what something is called by. Each such name stays one of its own.
    fn mask_names(&self, object: &mut serde_json::Map<String, Value>) {
        if !object.keys().any(|name| self.finds_in(name)) {
            return;
        }
        for (name, element) in std::mem::take(object) {
            let mut masked = self.mask(&name).into_owned();
            let plain = masked.clone();
            let mut number = 2;
            while object.contains_key(&masked) {
                masked = format!("{plain} ({number})");
                number += 1;
            }
            object.insert(masked, element);
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

/// Without the sequences by which a terminal changes colour: `ESC [ … m`.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(inside) = rest.strip_prefix('[') {
            let end = inside.find(|c: char| ('@'..='~').contains(&c)).map_or(inside.len(), |end| end + 1);
            rest = &inside[end..];
        }
    }
    plain.push_str(rest);
    plain
}

/// Where a text says that its middle was left out, and how long that is.
fn left_out(text: &str) -> Option<(usize, usize)> {
    const BEGIN: &str = "\n[… ";
    const END: &str = " bytes left out …]\n";
    text.match_indices(BEGIN).find_map(|(at, _)| {
        let rest = &text[at + BEGIN.len()..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let holds = digits > 0 && rest[digits..].starts_with(END);
        holds.then_some((at, BEGIN.len() + digits + END.len()))
    })
}

/// A text that comes in pieces. What a secret may still become, or go on with, is held back until it is known.
pub struct MaskedStream {
    masks: Masks,
    kept: Vec<u8>,
    inside: Inside,
}

/// What was begun and masked, and has not ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Key,
    Token,
}

impl MaskedStream {
    pub fn new(masks: Masks) -> MaskedStream {
        MaskedStream { masks, kept: Vec::new(), inside: Inside::Nothing }
    }

    /// Others may be known by now.
    pub fn set_masks(&mut self, masks: &Masks) {
        self.masks.clone_from(masks);
    }

    /// What can be shown now. `over`: nothing comes after these bytes.
    pub fn push(&mut self, bytes: &[u8], over: bool) -> Vec<u8> {
        self.kept.extend_from_slice(bytes);
        let mut shown = Vec::new();
        loop {
            if !self.leave_secret(over) {
                return shown;
            }
            let (cut, inside) = self.cut(over);
            if cut == 0 {
                return shown;
            }
            let text = String::from_utf8_lossy(&self.kept[..cut]);
            match self.masks.mask(&text) {
                Cow::Borrowed(_) => shown.extend_from_slice(&self.kept[..cut]),
                Cow::Owned(masked) => shown.extend_from_slice(masked.as_bytes()),
            }
            self.inside = if has_open_key(&text) && !Defence::Masks.is_off() { Inside::Key } else { inside };
            self.kept.drain(..cut);
        }
    }

    /// Passes over the rest of what was masked already; whether anything is left to look at.
    fn leave_secret(&mut self, over: bool) -> bool {
        match self.inside {
            Inside::Nothing => {}
            Inside::Key => match end_of_key(&String::from_utf8_lossy(&self.kept)) {
                // Keys are plain letters; whatever else is there is shown a little late.
                Some(end) => {
                    self.kept.drain(..end.min(self.kept.len()));
                    self.inside = Inside::Nothing;
                }
                None => {
                    let rest = if over { 0 } else { KEY_END_BYTES.min(self.kept.len()) };
                    self.kept.drain(..self.kept.len() - rest);
                    return false;
                }
            },
            Inside::Token => {
                let length = self.kept.iter().take_while(|byte| is_token(**byte) || **byte == b'.').count();
                self.kept.drain(..length);
                if self.kept.is_empty() {
                    return false;
                }
                self.inside = Inside::Nothing;
            }
        }
        !self.kept.is_empty()
    }

    /// Up to where it is known what is secret, and what goes on there.
    fn cut(&mut self, over: bool) -> (usize, Inside) {
        if over {
            return (self.kept.len(), Inside::Nothing);
        }
        if let Some(last) = self.kept.iter().rposition(|byte| *byte == b'\n') {
            return (self.before_values(last + 1), Inside::Nothing);
        }
        // What never ends a line is not waited for.
        if self.kept.len() < LINE_BYTES {
            return (0, Inside::Nothing);
        }
        if std::str::from_utf8(&self.kept).is_err() {
            self.kept = String::from_utf8_lossy(&self.kept).into_owned().into_bytes();
        }
        let text = String::from_utf8_lossy(&self.kept);
        let at = text.floor_char_boundary(text.len() - CUT_BYTES);
        let over_it = shapes(&text).find(|secret| secret.start < at && at < secret.end);
        match over_it {
            Some(secret) if secret.end == text.len() => (secret.end, Inside::Token),
            Some(secret) => (self.before_values(secret.end), Inside::Nothing),
            None => (self.before_values(at), Inside::Nothing),
        }
    }

    /// The same place, or the beginning of a value that stands over it.
    fn before_values(&self, mut cut: usize) -> usize {
        if Defence::Masks.is_off() {
            return cut;
        }
        let goes_on = |cut: usize| {
            self.masks.values.iter().map(|value| value.as_bytes()).find_map(|value| {
                (1..value.len().min(cut + 1)).find_map(|before| {
                    let here = &self.kept[cut - before..];
                    let length = here.len().min(value.len());
                    (here[..length] == value[..length]).then_some(cut - before)
                })
            })
        };
        while let Some(earlier) = goes_on(cut) {
            cut = earlier;
        }
        cut
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
    for secret in shapes(text) {
        masked.push_str(&text[kept..secret.start]);
        masked.push_str(MARK);
        kept = secret.end;
    }
    if kept == 0 {
        return None;
    }
    masked.push_str(&text[kept..]);
    Some(masked)
}

/// Where the secrets of a text are, as far as their shape tells.
fn shapes(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(byte) = text.as_bytes().get(at) {
            // Only where a letter of the alphabet of secrets stands is a closer look taken, and there a character
            // begins.
            match BEGINNINGS[usize::from(*byte)].then(|| secret_at(text, at)).flatten() {
                Some(secret) => {
                    at = secret.end;
                    return Some(secret);
                }
                None => at += 1,
            }
        }
        None
    })
}

/// The secret that begins here, or right behind this.
fn secret_at(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = &text[at..];
    if rest.starts_with(':') {
        return in_address(rest).map(|inside| at + inside.start..at + inside.end);
    }
    // A token begins where a word begins, however the word was packed.
    // (`\\n` in a JSON text ends with a letter, too.)
    let before = &text.as_bytes()[..at];
    let escaped = matches!(before, [.., b'\\', b'n' | b't' | b'r']);
    if before.last().is_some_and(|byte| is_token(*byte)) && !escaped {
        return None;
    }
    match rest.as_bytes().first()? {
        b'-' => private_key(rest),
        b'B' | b'b' => bearer(rest).or_else(|| basic(before, rest)),
        b'e' => web_token(rest),
        _ => None,
    }
    .or_else(|| {
        let first = rest.as_bytes().first();
        SHAPES.iter().filter(|shape| shape.prefix.as_bytes().first() == first).find_map(|shape| {
            let tail = rest.strip_prefix(shape.prefix)?;
            let length = tail.bytes().take_while(|byte| is_token(*byte)).count();
            (length >= shape.least).then_some(shape.prefix.len() + length)
        })
    })
    .map(|length| at..at + length)
}

/// Who somebody is and their password in `://user:password@host`; alone, a name that is as long as a token. What
/// stands in the path of a Slack webhook is its secret.
fn in_address(rest: &str) -> Option<Range<usize>> {
    const BEGIN: &str = "://";
    let place = rest.strip_prefix(BEGIN)?;
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '\\');
    if let Some(path) = place.strip_prefix(SLACK_HOOKS) {
        let length = path.bytes().take_while(|byte| is_token(*byte) || *byte == b'/').count();
        let begin = BEGIN.len() + SLACK_HOOKS.len();
        return (length >= VALUE_BYTES_MIN).then_some(begin..begin + length);
    }
    let place = &place[..place.find(is_end).unwrap_or(place.len())];
    let (who, _) = place.rsplit_once('@')?;
    let is_secret = match who.split_once(':') {
        Some((_, password)) => !password.is_empty(),
        None => who.len() >= TOKEN_BYTES_MIN && who.bytes().any(|byte| byte.is_ascii_digit()),
    };
    (is_secret && who != MARK).then_some(BEGIN.len()..BEGIN.len() + who.len())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// From `-----BEGIN … PRIVATE KEY-----` to its end, or to the end of the text.
fn private_key(rest: &str) -> Option<usize> {
    let head = rest.strip_prefix(KEY_BEGINS)?;
    let kind_end = head.find("-----")?;
    if kind_end > 40 || !is_private_key(&head[..kind_end]) {
        return None;
    }
    Some(end_of_key(rest).unwrap_or(rest.len()))
}

/// `RSA PRIVATE KEY`, `PGP PRIVATE KEY BLOCK`.
fn is_private_key(kind: &str) -> bool {
    kind.trim_end_matches(" BLOCK").ends_with("PRIVATE KEY")
}

/// Behind the first line that ends a private key.
fn end_of_key(text: &str) -> Option<usize> {
    text.match_indices(KEY_ENDS).find_map(|(at, _)| {
        let kind = at + KEY_ENDS.len();
        let close = text[kind..].find("-----")?;
        let is_key = close <= 40 && is_private_key(&text[kind..kind + close]);
        is_key.then_some(kind + close + "-----".len())
    })
}

/// Whether the last private key of a text does not end in it.
fn has_open_key(text: &str) -> bool {
    let begins = text.rfind(KEY_BEGINS);
    begins.is_some_and(|at| private_key(&text[at..]).is_some() && end_of_key(&text[at..]).is_none())
}

/// `Bearer TOKEN`; the word stays, so only the token's length is a secret's.
fn bearer(rest: &str) -> Option<usize> {
    let word = rest.get(..7).filter(|word| word.eq_ignore_ascii_case("bearer "))?;
    let length = rest[word.len()..].bytes().take_while(|byte| is_token(*byte) || *byte == b'.').count();
    (length >= 20).then_some(word.len() + length)
}

/// `Authorization: Basic NAME-AND-PASSWORD`; behind other words it is a word like any other.
fn basic(before: &[u8], rest: &str) -> Option<usize> {
    let word = rest.get(..6).filter(|word| word.eq_ignore_ascii_case("basic "))?;
    let begins = before.trim_ascii_end().strip_suffix(b":")?;
    let is_header = begins.to_ascii_lowercase().ends_with(b"authorization");
    let of_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(*byte, b'+' | b'/' | b'=');
    let length = rest[word.len()..].bytes().take_while(of_base64).count();
    (is_header && length >= 8).then_some(word.len() + length)
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
        for prefix in [
            "sk-ant-api03-",
            "sk-",
            "ghp_",
            "github_pat_",
            "glpat-",
            "xoxb-",
            "npm_",
            "hf_",
            "AIza",
            "xai-",
            "gsk_",
            "pplx-",
            "nvapi-",
            "csk-",
            "r8_",
            "fw_",
            "gldt-",
            "glrt-",
        ] {
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
    fn names_and_passwords_in_headers_and_keys_of_pgp_are_masked() {
        check("Authorization: Basic dXNlcjpwYXNzd29yZA==\r", "Authorization: [masked]\r");
        check("proxy-authorization: basic dXNlcjpwYXNzd29yZA==", "proxy-authorization: [masked]");
        check("that is basic knowledge", "that is basic knowledge");
        let key = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n-----END PGP PRIVATE KEY BLOCK-----";
        check(&format!("a\n{key}\nb"), "a\n[masked]\nb");
        let public = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nlQOYBF\n-----END PGP PUBLIC KEY BLOCK-----";
        check(public, public);
    }

    #[test]
    fn passwords_in_addresses_are_masked() {
        for (text, expected) in [
            (
                "git clone https://me:hunter2@example.org/a.git now",
                "git clone https://[masked]@example.org/a.git now",
            ),
            (
                "DATABASE_URL=postgres://app:p@ss:w0rd@db:5432/app",
                "DATABASE_URL=postgres://[masked]@db:5432/app",
            ),
            ("redis://:secret@cache", "redis://[masked]@cache"),
            ("{\"url\":\"amqp://u:p@h\"}", "{\"url\":\"amqp://[masked]@h\"}"),
            ("twice http://a:b@c and http://d:e@f", "twice http://[masked]@c and http://[masked]@f"),
        ] {
            check(text, expected);
            check(expected, expected);
        }
        for text in
            ["ssh://git@example.org/a", "http://example.org:80/@scope/a", "see: a@b", "http://h:80 me@x"]
        {
            check(text, text);
        }
    }

    #[test]
    fn secrets_are_masked_in_names_too() {
        let key = format!("sk-ant-{}", "abcdefghij".repeat(2));
        let other = format!("{key}x");
        let mut value =
            serde_json::json!({"steps": {key.clone(): 1, other: 2, "plain": {format!("work/{key}"): "x"}}});
        Masks::default().mask_json(&mut value);
        let expected =
            serde_json::json!({"steps": {"[masked]": 1, "[masked] (2)": 2, "plain": {"work/[masked]": "x"}}});
        assert_eq!(value, expected);
    }

    #[test]
    fn values_are_found_as_they_stand_in_json_too() {
        let masks = Masks::of([("MY_TOKEN", "quo\"te99xx")].into_iter(), &[]);
        assert_eq!(masks.mask("a quo\"te99xx b"), "a [masked] b");
        assert_eq!(masks.mask(r#"{"text":"quo\"te99xx"}"#), r#"{"text":"[masked]"}"#);
    }

    /// In pieces of every size the same is shown, and never a part of a secret.
    #[test]
    fn a_secret_that_comes_in_pieces_is_masked_all_the_same() {
        let masks = || {
            Masks::of([("MY_TOKEN", "correct-horse-99"), ("PEM_KEY", "two\nlines of it")].into_iter(), &[])
        };
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEa\nMIIEb\n-----END RSA PRIVATE KEY-----";
        let token = format!("sk-ant-{}", "a1".repeat(20));
        let text = format!("a correct-horse-99 b\n{key} c\n{token}\ntwo\nlines of it d\ncorrect-horse-9");
        let expected = "a [masked] b\n[masked] c\n[masked]\n[masked] d\ncorrect-horse-9";
        for size in 1..text.len() {
            let mut stream = MaskedStream::new(masks());
            let mut shown = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                shown.extend(stream.push(piece, false));
            }
            shown.extend(stream.push(b"", true));
            assert_eq!(String::from_utf8_lossy(&shown), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_that_never_ends_hides_no_secret_at_any_place() {
        let token = format!("ghp_{}", "b2".repeat(20));
        for before in [LINE_BYTES - CUT_BYTES - 20, LINE_BYTES - 10, LINE_BYTES, 2 * LINE_BYTES - 7] {
            for secret in ["correct-horse-battery-99", token.as_str()] {
                let masks = Masks::of([("MY_TOKEN", "correct-horse-battery-99")].into_iter(), &[]);
                let text = format!("{} {secret} {}", ".".repeat(before), "y".repeat(5_000));
                let mut stream = MaskedStream::new(masks);
                let mut shown = Vec::new();
                for piece in text.as_bytes().chunks(LINE_BYTES) {
                    shown.extend(stream.push(piece, false));
                }
                shown.extend(stream.push(b"", true));
                let shown = String::from_utf8_lossy(&shown).into_owned();
                assert_eq!(shown.len(), text.len() - secret.len() + MARK.len(), "{before}");
                assert!(shown.contains(". [masked] y"), "{before}");
            }
        }
        // A token without end takes no memory.
        let mut stream = MaskedStream::new(Masks::default());
        let mut shown = stream.push(format!("sk-{}", "c".repeat(3 * LINE_BYTES)).as_bytes(), false);
        shown.extend(stream.push(&b"c".repeat(LINE_BYTES), false));
        assert!(stream.kept.len() <= LINE_BYTES);
        shown.extend(stream.push(b"c end", true));
        assert_eq!(String::from_utf8_lossy(&shown), "[masked] end");
    }

    #[test]
    fn a_secret_on_a_cut_is_left_out_with_its_line() {
        let masks = Masks::of([("MY_TOKEN", "correct-horse-99")].into_iter(), &[]);
        assert_eq!(masks.mask_piece("horse-99 a\nb correct-horse-99\nc correct", true, true), "b [masked]\n");
        let key = "MIIEx\nMIIEy\n-----END RSA PRIVATE KEY-----\nafter\n";
        assert_eq!(masks.mask_piece(key, true, false), "\nafter\n");
        let output = "begin\nx correct-ho\n[… 12 bytes left out …]\nrse-99 y\nend";
        assert_eq!(masks.mask_output(output), "begin\n\n[… 12 bytes left out …]\nend");
        assert_eq!(masks.mask_output("[… no bytes …] correct-horse-99"), "[… no bytes …] [masked]");
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

    #[test]
    fn a_token_alone_in_an_address_a_webhook_and_a_token_with_colours_are_masked() {
        check("clone https://0123456789abcdef0123@example.org/a", "clone https://[masked]@example.org/a");
        check("ssh://git@example.org/a", "ssh://git@example.org/a");
        check("mail https://someone@example.org", "mail https://someone@example.org");
        let hook = "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnop";
        check(&format!("post {hook}, now"), "post https://hooks.slack.com/services/[masked], now");
        let token = "\u{1b}[32mghp_\u{1b}[0mabcdefghij0123456789\u{1b}[1mABCDEFGHIJ0123456789\u{1b}[0m";
        check(&format!("a {token} b"), "a [masked] b");
        let red = "\u{1b}[31mfailed\u{1b}[0m";
        check(red, red);
        let beside = "\u{1b}[31mghp_abcdefghij0123456789ABCDEFGHIJ0123456789\u{1b}[0m";
        // The end of a colour is a letter, which would be a part of the word.
        check(beside, "[masked]");
    }
}
