//! From what `writes` says of a file to its contract: `any`, a name of `contracts`, a path, or the
//! contract itself. Schemas that a contract names are put in their place.

use serde_json::Value;

use super::{build::Builder, unit::Unit};
use crate::{
    contract::Contract,
    diagnostic::{codes, suggestion},
    yaml::tree::{Node, SourceId, Span, parse_tree},
};

const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The contract that this node means; `any` when it is wrong, which was then reported.
pub fn contract(builder: &mut Builder<'_>, unit: &Unit<'_>, node: &Node) -> Contract {
    let Some(name) = node.text() else {
        return from_node(builder, unit, node, "");
    };
    if name == "any" {
        return Contract::any();
    }
    if let Some(named) = unit.tree.get("contracts").and_then(|contracts| contracts.get(name)) {
        builder.shared.used_contracts.insert(name.to_owned());
        // A name that leads to a path is followed once.
        return match named.text() {
            Some("any") => Contract::any(),
            Some(path) => from_file(builder, unit, path, named.span),
            None => from_node(builder, unit, named, ""),
        };
    }
    from_file(builder, unit, name, node.span)
}

fn from_file(builder: &mut Builder<'_>, unit: &Unit<'_>, path: &str, span: Span) -> Contract {
    let mut candidates = vec![path.to_owned()];
    candidates.extend(EXTENSIONS.iter().map(|extension| format!("{path}.{extension}")));
    let Some((file, text)) =
        candidates.into_iter().find_map(|file| unit.sources.read(&file).map(|text| (file, text)))
    else {
        let folder = folder_of(path);
        let files = unit.sources.list(folder);
        let near: Vec<String> = files
            .iter()
            .map(|file| file.rsplit('/').next().unwrap_or(file))
            .map(|file| format!("{folder}{}", file.rsplit_once('.').map_or(file, |(stem, _)| stem)))
            .collect();
        let names = unit.tree.get("contracts").map(Node::entries).unwrap_or_default();
        let known = names.iter().map(|(key, _)| key.text.as_str());
        builder.report.error(
            codes::BAD_CONTRACT,
            span,
            format!("there is no contract `{path}`: no such name in `contracts`, no such file"),
            suggestion(path, near.iter().map(String::as_str).chain(known).chain(["any"])),
        );
        return Contract::any();
    };
    let label = unit.label_of(&file);
    builder.shared.read(&label, &text);
    let source = builder.report.texts.add(label, text.clone());
    match parse_tree(&text, source) {
        Ok(tree) => from_node(builder, unit, &tree, folder_of(&file)),
        Err(problems) => {
            for problem in problems {
                builder.report.error(codes::SYNTAX, problem.span, problem.message, "");
            }
            Contract::any()
        }
    }
}

fn from_node(builder: &mut Builder<'_>, unit: &Unit<'_>, node: &Node, folder: &str) -> Contract {
    let mut value = node.to_json();
    if let Some((key, file)) =
        Contract::schema_name(&value).map(|(key, file)| (key.to_owned(), file.to_owned()))
    {
        let schema = schema(builder, unit, &file, folder, node.place(&key));
        let Some(schema) = schema else { return Contract::any() };
        value[key] = schema;
    }
    match Contract::from_value(&value) {
        Ok(contract) => contract,
        Err(problems) => {
            for problem in problems {
                let span = place_of(node, &problem.path);
                builder.report.error(codes::BAD_CONTRACT, span, format!("contract: {}", problem.message), "");
            }
            Contract::any()
        }
    }
}

/// A schema file, looked for beside the contract and then beside the workflow.
pub fn schema(
    builder: &mut Builder<'_>,
    unit: &Unit<'_>,
    file: &str,
    folder: &str,
    span: Span,
) -> Option<Value> {
    let beside = format!("{folder}{file}");
    let found = [beside, file.to_owned()]
        .into_iter()
        .find_map(|path| unit.sources.read(&path).map(|text| (path, text)));
    let Some((path, text)) = found else {
        let near = unit.sources.list(folder_of(file));
        builder.report.error(
            codes::BAD_CONTRACT,
            span,
            format!("there is no schema file `{file}`"),
            suggestion(file, near.iter().map(String::as_str)),
        );
        return None;
    };
    builder.shared.read(&unit.label_of(&path), &text);
    // JSON is YAML; the tree reports duplicate keys and places for both.
    let source = builder.report.texts.add(unit.label_of(&path), text.clone());
    match parse_tree(&text, source) {
        Ok(tree) => Some(tree.to_json()),
        Err(problems) => {
            for problem in problems {
                builder.report.error(codes::SYNTAX, problem.span, problem.message, "");
            }
            None
        }
    }
}

/// The folder of a path with its slash; empty for a bare name.
pub fn folder_of(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

/// The deepest node that a path such as `/markdown/sections/Summary` leads to.
fn place_of(node: &Node, path: &str) -> Span {
    let mut node = node;
    let mut span = node.span;
    let mut rest = path.trim_start_matches('/');
    while !rest.is_empty() {
        // Section names may hold a slash: the longest key that fits is meant.
        let next = node
            .entries()
            .iter()
            .filter(|(key, _)| {
                rest.strip_prefix(key.text.as_str())
                    .is_some_and(|after| after.is_empty() || after.starts_with('/'))
            })
            .max_by_key(|(key, _)| key.text.len());
        let Some((key, value)) = next else { break };
        span = key.span;
        node = value;
        rest = rest[key.text.len()..].trim_start_matches('/');
    }
    debug_assert!(span.source >= SourceId(0), "every place is in a text");
    span
}
