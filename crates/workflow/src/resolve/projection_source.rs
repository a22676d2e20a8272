//! Projections as they are written: path, format, content in place or in a file beside.

use serde_json::Value;

use super::{
    build::{Built, Shared},
    profile::too_large,
};
use crate::{
    definition::text_check::TEMPLATES,
    diagnostic::{Report, codes},
    frozen::{Projection, ProjectionFormat},
    lint::known::{Known, Language, Origin, PlacedText, View},
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
    built: &Built,
    shared: &mut Shared,
    report: &mut Report,
) -> Vec<Projection> {
    let known = Known::new(built, tree, shared);
    let list = tree.get("projections").map(Node::elements).unwrap_or_default();
    let mut projections = Vec::new();
    for node in list {
        let mut texts = Vec::new();
        projections.extend(projection(node, sources, &mut texts, shared, report));
        let view = View::Projection { each: node.get("each").is_some() };
        for (text, locals) in texts.iter().chain(&surroundings(node)) {
            known.check(text, view, locals, built, report);
        }
        let each = node.get("each").and_then(|node| PlacedText::expression(node, "`each` of a projection"));
        each.iter().for_each(|text| known.check(text, View::Projection { each: false }, &[], built, report));
    }
    projections
}

/// The templates around the content of a projection.
fn surroundings(node: &Node) -> Vec<(PlacedText, Vec<String>)> {
    let file = node.get("file").and_then(|node| PlacedText::template(node, "`file` of a projection"));
    let when = node.get("when").and_then(|node| PlacedText::expression(node, "`when` of a projection"));
    file.into_iter().chain(when).map(|text| (text, Vec::new())).collect()
}

fn projection(
    node: &Node,
    sources: &dyn Sources,
    texts: &mut Vec<(PlacedText, Vec<String>)>,
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
    let schema = node.get("schema").map(|schema| data(schema, sources, shared, report).to_json());
    let projection = Projection {
        path: path.text,
        format: *format,
        content: content(node.get(key)?, *format, sources, texts, shared, report),
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
    texts: &mut Vec<(PlacedText, Vec<String>)>,
    shared: &mut Shared,
    report: &mut Report,
) -> Value {
    match format {
        ProjectionFormat::Markdown | ProjectionFormat::Text => match file(node, sources, shared) {
            Some((path, text)) if too_large(&path, &text).is_some() => {
                let problem = too_large(&path, &text).unwrap_or_default();
                report.error(codes::TEMPLATE, node.span, problem, "");
                Value::String(String::new())
            }
            Some((path, text)) => {
                let source = report.texts.add(path, text.clone());
                let origin = Origin::File { source, line: 0 };
                let what = "a projection".to_owned();
                let placed = PlacedText { text: text.clone(), language: Language::Template, origin, what };
                texts.push((placed, Vec::new()));
                Value::String(text)
            }
            None => {
                texts.extend(PlacedText::template(node, "a projection").map(|text| (text, Vec::new())));
                Value::String(node.text().unwrap_or_default().to_owned())
            }
        },
        ProjectionFormat::Json | ProjectionFormat::JsonLines | ProjectionFormat::Yaml => {
            let tree = data(node, sources, shared, report);
            skeleton_texts(&tree, &[], texts);
            tree.to_json()
        }
    }
}

/// Every template and expression of a skeleton, with the names that the loops around it bind.
fn skeleton_texts(node: &Node, locals: &[String], texts: &mut Vec<(PlacedText, Vec<String>)>) {
    const WHAT: &str = "a projection";
    let mut add = |text: Option<PlacedText>| texts.extend(text.map(|text| (text, locals.to_vec())));
    match &node.value {
        NodeValue::String(text) if text.contains("{{") || text.contains("{%") => {
            add(PlacedText::template(node, WHAT));
        }
        NodeValue::Sequence(elements) => {
            elements.iter().for_each(|element| skeleton_texts(element, locals, texts));
        }
        NodeValue::Mapping(entries) => {
            let each = node.word("$for").and_then(|word| loop_of(&word.text));
            let mut inner = locals.to_vec();
            if let (Some((names, list)), Some(at)) = (each, node.get("$for")) {
                inner.extend(names);
                add(PlacedText::expression(at, WHAT).map(|text| PlacedText { text: list, ..text }));
            }
            for (key, value) in entries.iter() {
                match key.text.as_str() {
                    "$expr" | "$if" => {
                        texts.extend(PlacedText::expression(value, WHAT).map(|text| (text, locals.to_vec())));
                    }
                    "$key" => {
                        texts.extend(PlacedText::expression(value, WHAT).map(|text| (text, inner.clone())));
                    }
                    "$for" => {}
                    "each" => skeleton_texts(value, &inner, texts),
                    _ => {
                        let named = Node { value: NodeValue::String(key.text.clone()), span: key.span };
                        skeleton_texts(&named, locals, texts);
                        skeleton_texts(value, locals, texts);
                    }
                }
            }
        }
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number { .. } | NodeValue::String(_) => {}
    }
}

/// `a, b in LIST`: the names and the list.
fn loop_of(text: &str) -> Option<(Vec<String>, String)> {
    let (names, list) = text.split_once(" in ")?;
    Some((names.split(',').map(|name| name.trim().to_owned()).collect(), list.to_owned()))
}

/// Data in place or in a YAML or JSON file.
fn data(node: &Node, sources: &dyn Sources, shared: &mut Shared, report: &mut Report) -> Node {
    let Some((path, text)) = file(node, sources, shared) else {
        let missing = node.text().filter(|text| {
            [".json", ".yaml", ".yml"].iter().any(|extension| text.ends_with(extension))
                && !text.contains('\n')
        });
        if let Some(path) = missing {
            report.error(codes::BAD_VALUE, node.span, format!("there is no file `{path}`"), "");
        }
        return node.clone();
    };
    let source = report.texts.add(path, text.clone());
    match parse_tree(&text, source) {
        Ok(tree) => tree,
        Err(problems) => {
            for problem in problems {
                report.error(codes::SYNTAX, problem.span, problem.message, "");
            }
            Node::null(node.span)
        }
    }
}
