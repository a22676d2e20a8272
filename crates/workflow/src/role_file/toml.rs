//! As much TOML as agent files use: keys, strings, numbers, booleans, arrays, tables.
//!
//! A whole TOML library for five keys was refused; what is not understood is an error, not a guess.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Values by key; the keys of a table are an object under the table's dotted name.
pub fn parse(text: &str) -> Result<BTreeMap<String, Value>, (usize, String)> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut values = BTreeMap::new();
    let mut table: Option<String> = None;
    loop {
        reader.skip_blank();
        if reader.rest.is_empty() {
            return Ok(values);
        }
        if reader.rest.starts_with('[') {
            let line = reader.rest_of_line();
            let name = line.trim().trim_matches(['[', ']']).trim().to_owned();
            values.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            table = Some(name);
            continue;
        }
        let key = reader.key()?;
        let value = reader.value(0)?;
        match &table {
            None => {
                values.insert(key, value);
            }
            Some(name) => {
                if let Some(Value::Object(object)) = values.get_mut(name) {
                    object.insert(key, value);
                }
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn problem<T>(&self, message: &str) -> Result<T, (usize, String)> {
        Err((self.line, message.to_owned()))
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn rest_of_line(&mut self) -> &'a str {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = self.take(end);
        line.split('#').next().unwrap_or(line)
    }

    fn skip_blank(&mut self) {
        loop {
            let trimmed = self.rest.trim_start();
            self.take(self.rest.len() - trimmed.len());
            if !self.rest.starts_with('#') {
                return;
            }
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.take(end);
        }
    }

    fn key(&mut self) -> Result<String, (usize, String)> {
        let line_end = self.rest.find('\n').unwrap_or(self.rest.len());
        let Some(at) = self.rest[..line_end].find('=') else {
            return self.problem("expected `key = value`");
        };
        let key = self.take(at).trim().trim_matches('"').to_owned();
        self.take(1);
        if key.is_empty() { self.problem("the key is empty") } else { Ok(key) }
    }

    fn value(&mut self, depth: usize) -> Result<Value, (usize, String)> {
        if depth > 8 {
            return self.problem("nested too deeply");
        }
        let blank = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        self.take(blank);
        for quotes in ["\"\"\"", "'''", "\"", "'"] {
            if self.rest.starts_with(quotes) {
                return self.string(quotes).map(Value::String);
            }
        }
        if self.rest.starts_with('[') {
            return self.array(depth);
        }
        let end = self.rest.find([',', ']', '\n', '#']).unwrap_or(self.rest.len());
        let word = self.take(end).trim();
        match word {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => match serde_json::from_str::<serde_json::Number>(&word.replace('_', "")) {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => self.problem("expected a string, a number, `true`, `false` or an array"),
            },
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, (usize, String)> {
        self.take(1);
        let mut elements = Vec::new();
        loop {
            self.skip_blank();
            if self.rest.is_empty() {
                return self.problem("an array never ends");
            }
            if self.rest.starts_with(']') {
                self.take(1);
                return Ok(Value::Array(elements));
            }
            elements.push(self.value(depth + 1)?);
            self.skip_blank();
            if self.rest.starts_with(',') {
                self.take(1);
            } else if !self.rest.starts_with(']') {
                return self.problem("expected `,` or `]`");
            }
        }
    }

    fn string(&mut self, quotes: &str) -> Result<String, (usize, String)> {
        let escapes = quotes.starts_with('"');
        let long = quotes.len() == 3;
        self.take(quotes.len());
        let mut out = String::new();
        loop {
            if self.rest.starts_with(quotes) {
                self.take(quotes.len());
                // The line break right after the opening quotes is not part of a long string.
                return Ok(if long { out.strip_prefix('\n').unwrap_or(&out).to_owned() } else { out });
            }
            let Some(next) = self.rest.chars().next().filter(|c| long || *c != '\n') else {
                return self.problem("a string never ends");
            };
            self.take(next.len_utf8());
            if escapes && next == '\\' {
                let Some(escaped) = self.rest.chars().next() else {
                    return self.problem("a string never ends");
                };
                self.take(escaped.len_utf8());
                match escaped {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    '"' | '\\' => out.push(escaped),
                    '\n' if long => {
                        let trimmed = self.rest.trim_start();
                        self.take(self.rest.len() - trimmed.len());
                    }
                    _ => return self.problem("an escape that is not read here"),
                }
            } else {
                out.push(next);
            }
        }
    }
}
