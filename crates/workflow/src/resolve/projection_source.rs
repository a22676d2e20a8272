//! Projections as they are written: path, format, content in place or in a file beside.

use serde_json::Value;

use super::build::Shared;
use crate::{
    definition::text_check::TEMPLATES,
    diagnostic::{Report, codes},
    frozen::{Projection, ProjectionFormat},
    load::Sources,
    yaml::tree::{Node, NodeValue, parse_tree},
};

const FORMATS: &[(&str, ProjectionFormat)] = &[
    ("json", ProjectionFormat::Json),
    ("jsonl", ProjectionFormat::JsonLines),
    ("yaml", ProjectionFormat::Yaml),
    ("markdown", ProjectionFormat::Markdown),
    ("text", ProjectionFormat::Text),
];

pub fn projections(
    tree: &Node,
    sources: &dyn Sources,
    shared: &mut Shared,
    report: &mut Report,
) -> Vec<Projection> {
    let list = tree.get("projections").map(Node::elements).unwrap_or_default();
    list.iter().filter_map(|node| projection(node, sources, shared, report)).collect()
}

fn projection(
    node: &Node,
    sources: &dyn Sources,
    shared: &mut Shared,
    report: &mut Report,
) -> Option<Projection> {
    let told: Vec<&(&str, ProjectionFormat)> =
        FORMATS.iter().filter(|(key, _)| node.get(key).is_some()).collect();
    let [(key, format)] = told.as_slice() else {
        report.error(
            codes::BAD_VALUE,
            node.span,
            format!("a projection has one content, this one {}", told.len()),
            "one of `json`, `jsonl`, `yaml`, `markdown`, `text`",
        );
        return None;
    };
    let path = node.word("file")?;
    if path.text.starts_with('/') || path.text.split('/').any(|part| part == "..") {
        report.error(
            codes::BAD_VALUE,
            path.span,
            format!("`{}` leaves the run directory", path.text),
            "a path relative to the run directory, without `..`",
        );
    }
    let schema = node.get("schema").map(|schema| data(schema, sources, shared, report));
    let projection = Projection {
        path: path.text,
        format: *format,
        content: content(node.get(key)?, *format, sources, shared, report),
        each: node.string("each"),
        when: when(node),
        schema,
    };
    // `file`, `each` and `when` are checked where all templates and expressions are.
    let content = Projection { each: None, when: None, path: "content".to_owned(), ..projection.clone() };
    for problem in crate::projection::check(&content, &TEMPLATES) {
        report.error(codes::TEMPLATE, node.place(key), problem.to_string(), "");
    }
    Some(projection)
}

fn when(node: &Node) -> Option<String> {
    match &node.get("when")?.value {
        NodeValue::Bool(value) => Some(value.to_string()),
        _ => node.string("when"),
    }
}

/// A text of one line that names a file beside the workflow stands for that file.
fn file(node: &Node, sources: &dyn Sources, shared: &mut Shared) -> Option<(String, String)> {
    let path = node.text().filter(|text| !text.contains('\n') && text.contains('.'))?;
    let text = sources.read(path)?;
    shared.read(path, &text);
    Some((path.to_owned(), text))
}

fn content(
    node: &Node,
    format: ProjectionFormat,
    sources: &dyn Sources,
    shared: &mut Shared,
    report: &mut Report,
) -> Value {
    match format {
        ProjectionFormat::Markdown | ProjectionFormat::Text => match file(node, sources, shared) {
            Some((_, text)) => Value::String(text),
            None => Value::String(node.text().unwrap_or_default().to_owned()),
        },
        ProjectionFormat::Json | ProjectionFormat::JsonLines | ProjectionFormat::Yaml => {
            data(node, sources, shared, report)
        }
    }
}

/// Data in place or in a YAML or JSON file.
fn data(node: &Node, sources: &dyn Sources, shared: &mut Shared, report: &mut Report) -> Value {
    let Some((path, text)) = file(node, sources, shared) else {
        let missing = node.text().filter(|text| {
            [".json", ".yaml", ".yml"].iter().any(|extension| text.ends_with(extension))
                && !text.contains('\n')
        });
        if let Some(path) = missing {
            report.error(codes::BAD_VALUE, node.span, format!("there is no file `{path}`"), "");
        }
        return node.to_json();
    };
    let source = report.texts.add(path, text.clone());
    match parse_tree(&text, source) {
        Ok(tree) => tree.to_json(),
        Err(problems) => {
            for problem in problems {
                report.error(codes::SYNTAX, problem.span, problem.message, "");
            }
            Value::Null
        }
    }
}
