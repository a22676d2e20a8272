//! `docs/files.md`: the files of every built-in method, field by field, from the schemas that hold them and the
//! workflows that write them. `GATEWRIGHT_BLESS=1` writes it anew.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use gatewright_workflow::yaml::parse_yaml_value;
use serde_json::Value;

/// By schema: the files, and who writes them.
type Writers = BTreeMap<String, BTreeSet<(String, &'static str)>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The schemas of a method, by their path in it.
fn schemas(method: &Path) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for path in sorted(method).iter().filter(|path| path.is_dir()).flat_map(|folder| sorted(folder)) {
        let name = path.strip_prefix(method).unwrap().to_string_lossy().into_owned();
        if name.ends_with(".schema.json") {
            found.insert(name, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap());
        }
    }
    found
}

/// Who writes files of which schema: `(file, who)`, by schema.
fn writers(method: &Path) -> Writers {
    let mut writers = Writers::new();
    let others = sorted(&method.join("workflows"));
    for path in std::iter::once(method.join("workflow.yaml")).chain(others) {
        let tree = parse_yaml_value(&fs::read_to_string(path).unwrap()).unwrap();
        let mut contracts = BTreeMap::new();
        for (name, contract) in tree["contracts"].as_object().into_iter().flatten() {
            contracts.extend(schema_of(contract).map(|schema| (name.clone(), schema)));
        }
        for projection in tree["projections"].as_array().into_iter().flatten() {
            if let (Some(file), Some(schema)) = (projection["file"].as_str(), projection["schema"].as_str()) {
                note(&mut writers, schema, file, "the engine");
            }
        }
        walk(&tree["stages"], &contracts, &mut writers);
        walk(&tree["steps"], &contracts, &mut writers);
    }
    writers
}

/// `../schemas/x.json` of a workflow in a folder below is the method's `schemas/x.json`.
fn note(writers: &mut Writers, schema: &str, file: &str, who: &'static str) {
    let schema = schema.trim_start_matches("../").to_owned();
    writers.entry(schema).or_default().insert((file.to_owned(), who));
}

fn schema_of(contract: &Value) -> Option<String> {
    ["json", "yaml"].iter().find_map(|kind| contract[kind].as_str().map(str::to_owned))
}

fn walk(node: &Value, contracts: &BTreeMap<String, String>, writers: &mut Writers) {
    match node {
        Value::Array(list) => list.iter().for_each(|one| walk(one, contracts, writers)),
        Value::Object(object) => {
            for (file, contract) in object.get("writes").and_then(Value::as_object).into_iter().flatten() {
                let named = contract.as_str().and_then(|name| contracts.get(name).cloned());
                if let Some(schema) = named.or_else(|| schema_of(contract)) {
                    note(
                        writers,
                        &schema,
                        file,
                        if object.contains_key("check") { "a check" } else { "an agent" },
                    );
                }
            }
            object.values().for_each(|one| walk(one, contracts, writers));
        }
        _ => {}
    }
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a value may be, in words.
fn meaning(schema: &Value) -> String {
    if let Some(value) = schema.get("const") {
        return format!("`{}`", words(value));
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", words(value))).collect::<Vec<_>>().join(" ");
    }
    let mut text = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().map(words).collect::<Vec<_>>().join(" or "),
        _ if schema.get("anyOf").is_some() || schema.get("oneOf").is_some() => {
            let ways = schema["anyOf"].as_array().or(schema["oneOf"].as_array()).unwrap();
            ways.iter().map(meaning).collect::<Vec<_>>().join(" or ")
        }
        _ => "anything".to_owned(),
    };
    for (key, says) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minItems", "elements at least"),
        ("maxItems", "elements at most"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("format", "as"),
    ] {
        if let Some(value) = schema.get(key) {
            let _ = write!(text, ", {says} {}", words(value));
        }
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let _ = write!(text, ", `{}`", pattern.replace('|', "\\|"));
    }
    text
}

fn fields(schema: &Value, path: &str, rows: &mut String) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let must = if required.contains(&name.as_str()) { "yes" } else { "" };
        let _ = writeln!(rows, "| `{path}` | {} | {must} |", meaning(inner));
        below(inner, &path, rows);
    }
}

fn below(schema: &Value, path: &str, rows: &mut String) {
    fields(schema, path, rows);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        fields(items, &format!("{path}[]"), rows);
    }
    if let Some(each) = schema.get("additionalProperties").filter(|each| each.is_object()) {
        let path = format!("{path}.*");
        let _ = writeln!(rows, "| `{path}` | {} | |", meaning(each));
        below(each, &path, rows);
    }
}

fn page() -> String {
    let mut page = String::from(
        "<!-- Made from methods/*/**/*.schema.json and the workflows by crates/app/tests/file_reference.rs;\n     GATEWRIGHT_BLESS=1 writes it anew. -->\n\n# The files of the methods, field by field\n\nEvery file of a built-in method that has a schema: who writes it, and what is in it. `[]` is each element of a list, `.*` each\nentry of a mapping. A file that breaks its schema does not count; `gatewright import --check` says where one does.\n",
    );
    for method in sorted(&root().join("methods")).iter().filter(|path| path.is_dir()) {
        let schemas = schemas(method);
        if schemas.is_empty() {
            continue;
        }
        let writers = writers(method);
        let _ = write!(page, "\n## {}\n", method.file_name().unwrap().to_string_lossy());
        for (name, schema) in schemas {
            let title = name.rsplit('/').next().unwrap().trim_end_matches(".schema.json");
            let _ = write!(page, "\n### {title}\n\n`{name}`");
            if let Some(says) = schema["title"].as_str() {
                let _ = write!(page, ": {says}");
            }
            page.push_str(".\n");
            for (file, who) in writers.get(&name).into_iter().flatten() {
                let _ = writeln!(page, "Written by {who}: `{file}`.");
            }
            let mut rows = String::new();
            below(&schema, "", &mut rows);
            if !rows.is_empty() {
                let _ = write!(page, "\n| field | what it is | required |\n|---|---|---|\n{rows}");
            }
        }
    }
    page
}

#[test]
fn the_page_of_files_is_what_the_schemas_say() {
    let path = root().join("docs/files.md");
    let page = page();
    if std::env::var_os("GATEWRIGHT_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(before, page, "docs/files.md is stale: run with GATEWRIGHT_BLESS=1");
    for part in [
        "### state",
        "`stages.*.restartCount`",
        "### meta",
        "`phases.*.iterations`",
        "### stream_completion",
        "`steps[].status`",
    ] {
        assert!(page.contains(part), "{part}");
    }
}
