//! Every filter, test and function of the language: the builtins we keep and our own.
//!
//! Our own filters are pure: times come in as milliseconds, nothing asks a clock. `batch`, `slice`
//! and `format` of the library are left out: a large number in a template makes them abort.

use jiff::Timestamp;
use minijinja::{
    Environment, Error, ErrorKind, State, filters as builtin, functions, tests,
    value::{Kwargs, StringInput, Value, ValueKind},
};
use serde_json::Value as Json;

use super::value::to_json;
use crate::globs::{Bare, Globs};

/// Characters of the longest slug (S0-02).
pub const SLUG_CHARS_MAX: usize = 30;
/// Bytes of one text or value that a filter or an expression makes.
pub const VALUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a value counts besides its text.
const VALUE_BYTES: usize = 8;
/// Columns that `indent` and `pad` accept.
const WIDTH_MAX: usize = 200;
/// What a text without a usable character becomes.
const SLUG_EMPTY: &str = "run";

/// A list of names and the function that teaches them to an environment, from one table.
macro_rules! table {
    ($names:ident, $add:ident, $method:ident: $($name:literal => $function:expr),* $(,)?) => {
        pub const $names: &[&str] = &[$($name),*];

        pub(super) fn $add(environment: &mut Environment<'static>) {
            $(environment.$method($name, $function);)*
        }
    };
}

table!(FILTERS, add_filters, add_filter:
    "abs" => builtin::abs,
    "attr" => builtin::attr,
    "blockquote" => blockquote,
    "bool" => builtin::bool,
    "bullets" => bullets,
    "capitalize" => builtin::capitalize,
    "chain" => builtin::chain,
    "count" => builtin::length,
    "d" => builtin::default,
    "date" => date,
    "default" => builtin::default,
    "dictsort" => builtin::dictsort,
    "first" => builtin::first,
    "float" => builtin::float,
    "groupby" => builtin::groupby,
    "indent" => indent,
    "int" => builtin::int,
    "iso" => iso,
    "items" => builtin::items,
    "join" => join,
    "last" => builtin::last,
    "length" => builtin::length,
    "lines" => builtin::lines,
    "list" => builtin::list,
    "lower" => builtin::lower,
    "map" => builtin::map,
    "matching" => matching,
    "max" => builtin::max,
    "min" => builtin::min,
    "pad" => pad,
    "quote" => quote,
    "reject" => builtin::reject,
    "rejectattr" => builtin::rejectattr,
    "replace" => replace,
    "reverse" => builtin::reverse,
    "round" => builtin::round,
    "seconds" => seconds,
    "select" => builtin::select,
    "selectattr" => builtin::selectattr,
    "slug" => slug_filter,
    "sort" => builtin::sort,
    "split" => builtin::split,
    "string" => string,
    "sum" => builtin::sum,
    "title" => builtin::title,
    "tojson" => tojson,
    "trim" => builtin::trim,
    "unique" => builtin::unique,
    "upper" => builtin::upper,
    "zip" => builtin::zip,
);

table!(TESTS, add_tests, add_test:
    "!=" => tests::is_ne,
    "<" => tests::is_lt,
    "<=" => tests::is_le,
    "==" => tests::is_eq,
    ">" => tests::is_gt,
    ">=" => tests::is_ge,
    "boolean" => tests::is_boolean,
    "containing" => containing,
    "defined" => tests::is_defined,
    "divisibleby" => tests::is_divisibleby,
    "endingwith" => tests::is_endingwith,
    "eq" => tests::is_eq,
    "equalto" => tests::is_eq,
    "even" => tests::is_even,
    "false" => tests::is_false,
    "float" => tests::is_float,
    "ge" => tests::is_ge,
    "gt" => tests::is_gt,
    "in" => tests::is_in,
    "integer" => tests::is_integer,
    "iterable" => tests::is_iterable,
    "le" => tests::is_le,
    "lower" => tests::is_lower,
    "lt" => tests::is_lt,
    "mapping" => tests::is_mapping,
    "ne" => tests::is_ne,
    "none" => tests::is_none,
    "number" => tests::is_number,
    "odd" => tests::is_odd,
    "sequence" => tests::is_sequence,
    "startingwith" => tests::is_startingwith,
    "string" => tests::is_string,
    "true" => tests::is_true,
    "undefined" => tests::is_undefined,
    "upper" => tests::is_upper,
);

table!(FUNCTIONS, add_functions, add_function:
    "dict" => functions::dict,
    "namespace" => functions::namespace,
    "range" => functions::range,
);

/// Lower case, digits and hyphens, at most [`SLUG_CHARS_MAX`], whole words where one fits; never
/// empty (S0-02).
pub fn slug(text: &str) -> String {
    let mut words: Vec<String> = vec![String::new()];
    for character in text.chars().flat_map(char::to_lowercase) {
        let spelled = spell(character);
        match spelled {
            Spelled::Letters(letters) => {
                if let Some(word) = words.last_mut() {
                    word.push_str(letters);
                }
            }
            Spelled::Same => {
                if let Some(word) = words.last_mut() {
                    word.push(character);
                }
            }
            Spelled::Dropped => {}
            Spelled::Gap => words.push(String::new()),
        }
    }
    let mut slug = String::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        if slug.is_empty() {
            // Every character is ASCII here, so characters are bytes.
            slug.push_str(&word[..word.len().min(SLUG_CHARS_MAX)]);
        } else if slug.len() + 1 + word.len() <= SLUG_CHARS_MAX {
            slug.push('-');
            slug.push_str(word);
        } else {
            break;
        }
    }
    if slug.is_empty() { SLUG_EMPTY.to_owned() } else { slug }
}

enum Spelled {
    Same,
    Letters(&'static str),
    /// Joins its neighbours: apostrophes, combining marks, letters we cannot spell.
    Dropped,
    Gap,
}

fn spell(character: char) -> Spelled {
    let letters = match character {
        'a'..='z' | '0'..='9' => return Spelled::Same,
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'ç' | 'ć' | 'č' | 'ĉ' | 'ċ' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' => "e",
        'ğ' | 'ģ' => "g",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'į' | 'ı' => "i",
        'ķ' => "k",
        'ł' | 'ľ' | 'ļ' => "l",
        'ñ' | 'ń' | 'ň' | 'ņ' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ō' | 'ő' => "o",
        'ö' | 'œ' => "oe",
        'ř' | 'ŕ' => "r",
        'ś' | 'š' | 'ş' | 'ș' => "s",
        'ß' => "ss",
        'ť' | 'ţ' | 'ț' => "t",
        'þ' => "th",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' | 'ų' => "u",
        'ü' => "ue",
        'ý' | 'ÿ' => "y",
        'ź' | 'ž' | 'ż' => "z",
        '\'' | '’' | '\u{300}'..='\u{36f}' => return Spelled::Dropped,
        other if other.is_alphanumeric() => return Spelled::Dropped,
        _ => return Spelled::Gap,
    };
    Spelled::Letters(letters)
}

fn slug_filter(state: &State, value: &Value) -> Result<String, Error> {
    text_of(state, value, "slug").map(|text| slug(&text))
}

/// Whether a list has this element: `groups | selectattr("streams", "containing", "WS-1")`.
fn containing(list: &Value, element: &Value) -> bool {
    list.try_iter().is_ok_and(|mut elements| elements.any(|one| one == *element))
}

/// Those of the paths that one of the globs matches.
fn matching(paths: &Value, globs: &Value) -> Result<Vec<String>, Error> {
    let texts = |list: &Value| -> Result<Vec<String>, Error> {
        list.try_iter()?
            .map(|one| {
                one.as_str().map(str::to_owned).ok_or_else(|| {
                    Error::new(
                        ErrorKind::InvalidOperation,
                        "`matching` takes lists of texts: paths and globs",
                    )
                })
            })
            .collect()
    };
    let globs = Globs::new(&texts(globs)?, Bare::Anywhere);
    Ok(texts(paths)?.into_iter().filter(|path| globs.contains(path)).collect())
}

/// `- a` per element; further lines of an element stand under its first.
fn bullets(state: &State, value: &Value) -> Result<String, Error> {
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(refused(state, "bullets", "a list", value));
    }
    fits("bullets", size(value))?;
    let mut lines = Vec::new();
    for element in value.try_iter()?.checked() {
        let element = element?;
        let text = match element.kind() {
            ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => json_of(state, &element)?.to_string(),
            _ => text_of(state, &element, "bullets")?,
        };
        lines.push(format!("- {}", text.trim_end().replace('\n', "\n  ")));
    }
    Ok(lines.join("\n"))
}

/// The builtin within bounds: what stands for each place may be as long as the text.
fn replace(value: StringInput<'_>, from: StringInput<'_>, to: StringInput<'_>) -> Result<Value, Error> {
    let (text, from, to) = (value.as_str(), from.as_str(), to.as_str());
    let places = text.matches(from).count();
    let more = places.saturating_mul(to.len().saturating_sub(from.len()));
    fits("replace", text.len().saturating_add(more))?;
    Ok(Value::from(text.replace(from, to)))
}

/// The builtin within bounds: what stands between any two may be as long as all of them.
fn join(
    state: &mut State,
    value: &Value,
    joiner: Option<StringInput<'_>>,
    attribute: Option<&str>,
    options: Kwargs,
) -> Result<Value, Error> {
    let named: Option<StringInput<'_>> = options.get("d")?;
    let between = joiner.as_ref().or(named.as_ref()).map_or(0, |text| text.as_str().len());
    let count = value.as_str().map(|text| text.chars().count()).or_else(|| value.len()).unwrap_or_default();
    fits("join", size(value).saturating_add(between.saturating_mul(count)))?;
    builtin::join(state, value, joiner, attribute, options)
}

/// The builtin within bounds: one text may be in a list many times.
fn string(state: &State, value: &Value) -> Result<Value, Error> {
    fits("string", size(value))?;
    builtin::string(state, value)
}

fn fits(what: &str, bytes: usize) -> Result<(), Error> {
    if bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("`{what}` would make more than {VALUE_BYTES_MAX} bytes");
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// About how much a value is when it is written out; counted no further than the limit.
pub(super) fn size(value: &Value) -> usize {
    let mut left = VALUE_BYTES_MAX;
    if count(value, &mut left).is_some() { VALUE_BYTES_MAX - left } else { usize::MAX }
}

fn count(value: &Value, left: &mut usize) -> Option<()> {
    let own = value.as_str().map_or(0, str::len).saturating_add(VALUE_BYTES);
    *left = left.checked_sub(own)?;
    let is_map = value.kind() == ValueKind::Map;
    // One that can be gone through only once has no length, and nothing in it is there yet.
    if value.len().is_none() || !(is_map || matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)) {
        return Some(());
    }
    for element in value.try_iter().into_iter().flatten() {
        if is_map {
            count(&value.get_item(&element).unwrap_or_default(), left)?;
        }
        count(&element, left)?;
    }
    Some(())
}

/// The builtin within bounds: it allocates whatever width it is given.
fn indent(
    value: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<Value, Error> {
    let named: Option<usize> = options.get("width")?;
    let columns = width.or(named).unwrap_or_default();
    bounded("indent", columns)?;
    let text = value.as_str();
    fits("indent", text.len().saturating_add(text.lines().count().saturating_mul(columns)))?;
    builtin::indent(value, width, first, blank, options)
}

/// A number with leading zeros: `{{ 3 | pad(3) }}` is 003.
fn pad(state: &State, value: &Value, width: usize) -> Result<String, Error> {
    bounded("pad", width)?;
    if !value.is_integer() {
        return Err(refused(state, "pad", "a whole number", value));
    }
    Ok(format!("{:0>width$}", value.to_string()))
}

fn bounded(filter: &str, width: usize) -> Result<(), Error> {
    if width <= WIDTH_MAX {
        return Ok(());
    }
    let message = format!("`{filter}` wants at most {WIDTH_MAX} columns, found {width}");
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// Markdown quotation: `> ` before each line, so that quoted text cannot end its own quotation.
fn blockquote(state: &State, value: &Value) -> Result<String, Error> {
    let text = text_of(state, value, "blockquote")?;
    let lines = text.trim_end().lines().map(|line| format!("> {line}").trim_end().to_owned());
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// One word of a POSIX shell line, whatever the text contains.
fn quote(state: &State, value: &Value) -> Result<String, Error> {
    let text = text_of(state, value, "quote")?;
    if text.contains('\0') {
        return Err(Error::new(ErrorKind::InvalidOperation, "a shell word cannot contain NUL"));
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// JSON without the builtin's escapes for HTML, which prompts and files do not want.
fn tojson(state: &State, value: &Value, indent: Option<&Value>, options: Kwargs) -> Result<String, Error> {
    let named: Option<&Value> = options.get("indent")?;
    options.assert_all_used()?;
    let pretty = indent.or(named).is_some_and(Value::is_true);
    let json = json_of(state, value)?;
    let text = if pretty { serde_json::to_string_pretty(&json) } else { serde_json::to_string(&json) };
    text.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// Milliseconds since 1970 as ISO 8601 in UTC, always with milliseconds; none stays none.
fn iso(state: &State, value: &Value) -> Result<Value, Error> {
    formatted(state, value, "iso", "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// The UTC day of milliseconds since 1970, `2026-01-31`; none stays none.
fn date(state: &State, value: &Value) -> Result<Value, Error> {
    formatted(state, value, "date", "%Y-%m-%d")
}

/// Whole seconds of milliseconds; none stays none.
fn seconds(state: &State, value: &Value) -> Result<Value, Error> {
    Ok(milliseconds(state, value, "seconds")?.map_or(Value::from(()), |ms| Value::from(ms.div_euclid(1000))))
}

fn formatted(state: &State, value: &Value, filter: &str, format: &str) -> Result<Value, Error> {
    let Some(ms) = milliseconds(state, value, filter)? else { return Ok(Value::from(())) };
    let time = Timestamp::from_millisecond(ms)
        .map_err(|_| refused(state, filter, "a time in milliseconds", value))?;
    Ok(Value::from(time.strftime(format).to_string()))
}

fn milliseconds(state: &State, value: &Value, filter: &str) -> Result<Option<i64>, Error> {
    if value.is_none() {
        return Ok(None);
    }
    let whole = if value.is_integer() { value.as_i64() } else { None };
    whole.map(Some).ok_or_else(|| refused(state, filter, "a time in milliseconds", value))
}

fn text_of(state: &State, value: &Value, filter: &str) -> Result<String, Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Number | ValueKind::Bool => Ok(value.to_string()),
        _ => Err(refused(state, filter, "a text", value)),
    }
}

fn json_of(state: &State, value: &Value) -> Result<Json, Error> {
    if value.is_undefined() {
        return Err(refused(state, "tojson", "a value", value));
    }
    to_json(value).map_err(|reason| Error::new(ErrorKind::BadSerialization, reason.to_string()))
}

fn refused(state: &State, filter: &str, wanted: &str, value: &Value) -> Error {
    // The library's own error, because only it knows which name was undefined.
    if value.is_undefined()
        && let Err(error) = StringInput::new(state, value)
    {
        return error;
    }
    let found = match value.kind() {
        kind @ (ValueKind::Map | ValueKind::Seq | ValueKind::None) => kind.to_string(),
        kind => format!("the {kind} {value:?}"),
    };
    Error::new(ErrorKind::InvalidOperation, format!("`{filter}` wants {wanted}, found {found}"))
}
