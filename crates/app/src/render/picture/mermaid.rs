//! A picture as Mermaid text.

use super::{Frame, Member, Node, Picture, Shape};

pub fn render(picture: &Picture) -> String {
    let mut text = format!("---\ntitle: {}\n---\nflowchart TD\n", title(&picture.title));
    for (index, stage) in picture.stages.iter().enumerate() {
        frame(picture, stage, &format!("s{index}"), 1, &mut text);
    }
    for edge in &picture.edges {
        let arrow = if edge.back { "-.->" } else { "-->" };
        let label =
            if edge.label.is_empty() { String::new() } else { format!("|\"{}\"|", escape(&edge.label)) };
        text.push_str(&format!("  n{} {arrow}{label} n{}\n", edge.from, edge.to));
    }
    text.push_str("  classDef dormant stroke-dasharray: 4 3\n");
    if picture.nodes.iter().any(|node| node.state.is_some()) {
        for (state, fill, stroke) in super::svg::COLOURS {
            text.push_str(&format!("  classDef {state} fill:{fill},stroke:{stroke},color:#111\n"));
        }
    }
    text
}

fn frame(picture: &Picture, frame_: &Frame, id: &str, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    text.push_str(&format!("{indent}subgraph {id}[\"{}\"]\n", escape(&frame_.title)));
    for (index, member) in frame_.members.iter().enumerate() {
        match member {
            Member::Node(at) => {
                if let Some(node) = picture.nodes.get(*at) {
                    text.push_str(&format!("{indent}  n{at}{}{}\n", shape(node), class(node)));
                }
            }
            Member::Frame(inner) => frame(picture, inner, &format!("{id}_{index}"), depth + 1, text),
        }
    }
    text.push_str(&format!("{indent}end\n"));
}

fn shape(node: &Node) -> String {
    let words = if node.subtitle.is_empty() {
        escape(&node.title)
    } else {
        format!("{}<br/>{}", escape(&node.title), escape(&node.subtitle))
    };
    match node.shape {
        Shape::Work => format!("[\"{words}\"]"),
        Shape::Review => format!("([\"{words}\"])"),
        Shape::Check => format!("[/\"{words}\"/]"),
        Shape::Decision => format!("{{\"{words}\"}}"),
        Shape::Group => format!("[[\"{words}\"]]"),
    }
}

fn class(node: &Node) -> String {
    match (node.state, node.dormant) {
        (Some(state), _) => format!(":::{state}"),
        (None, true) => ":::dormant".to_owned(),
        (None, false) => String::new(),
    }
}

/// The title stands in YAML.
fn title(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// Inside quotes everything that could end them or be read as HTML is an entity.
fn escape(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            '"' => safe.push_str("#quot;"),
            '<' => safe.push_str("#lt;"),
            '>' => safe.push_str("#gt;"),
            '#' => safe.push_str("#35;"),
            '&' => safe.push_str("#amp;"),
            '`' => safe.push_str("#96;"),
            '|' => safe.push_str("#124;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_leave_their_quotes() {
        assert_eq!(escape("a\"] --> <b>#1"), "a#quot;] --#gt; #lt;b#gt;#35;1");
    }
}
