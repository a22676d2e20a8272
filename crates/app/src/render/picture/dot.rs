//! A picture as Graphviz text.

use super::{Frame, Member, Node, Picture, Shape, svg::colours};

pub fn render(picture: &Picture) -> String {
    let mut text = format!(
        "digraph {} {{\n  rankdir=TB;\n  node [fontname=\"sans-serif\", fontsize=11, style=filled, fillcolor=\"#ffffff\"];\n  edge [fontname=\"sans-serif\", fontsize=9];\n",
        quoted(&picture.title)
    );
    for (index, stage) in picture.stages.iter().enumerate() {
        frame(picture, stage, &format!("cluster_{index}"), 1, &mut text);
    }
    for edge in &picture.edges {
        let mut words = Vec::new();
        if !edge.label.is_empty() {
            words.push(format!("label={}", quoted(&edge.label)));
        }
        if edge.back {
            words.push("style=dashed, constraint=false".to_owned());
        }
        let words = if words.is_empty() { String::new() } else { format!(" [{}]", words.join(", ")) };
        text.push_str(&format!("  n{} -> n{}{words};\n", edge.from, edge.to));
    }
    text.push_str("}\n");
    text
}

fn frame(picture: &Picture, frame_: &Frame, id: &str, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    text.push_str(&format!(
        "{indent}subgraph {id} {{\n{indent}  label={};\n{indent}  color=\"#999999\";\n",
        quoted(&frame_.title)
    ));
    for (index, member) in frame_.members.iter().enumerate() {
        match member {
            Member::Node(at) => {
                if let Some(node) = picture.nodes.get(*at) {
                    text.push_str(&format!("{indent}  n{at} [{}];\n", attributes(node)));
                }
            }
            Member::Frame(inner) => frame(picture, inner, &format!("{id}_{index}"), depth + 1, text),
        }
    }
    text.push_str(&format!("{indent}}}\n"));
}

fn attributes(node: &Node) -> String {
    let words = if node.subtitle.is_empty() {
        node.title.clone()
    } else {
        format!("{}\n{}", node.title, node.subtitle)
    };
    let shape = match node.shape {
        Shape::Work => "box",
        Shape::Review => "ellipse",
        Shape::Check => "parallelogram",
        Shape::Decision => "diamond",
        Shape::Group => "box3d",
    };
    let mut attributes = format!("label={}, shape={shape}", quoted(&words));
    if let Some((fill, stroke)) = node.state.and_then(colours) {
        attributes.push_str(&format!(
            ", fillcolor=\"{fill}\", color=\"{stroke}\", class=\"{}\"",
            node.state.unwrap_or_default()
        ));
    } else if node.dormant {
        attributes.push_str(", style=\"filled,dashed\"");
    }
    attributes
}

fn quoted(text: &str) -> String {
    let safe = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{safe}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_leave_their_quotes() {
        assert_eq!(quoted("a\"; b -> c \\"), r#""a\"; b -> c \\""#);
    }
}
