//! A picture as SVG: our own layout, no script, every text escaped.

use super::{
    Edge, Node, Picture, Shape,
    layout::{Layout, Rect, WORDS_MAX, layout},
};
use crate::render::text::fit;

/// State, fill, stroke.
pub const COLOURS: [(&str, &str, &str); 8] = [
    ("pending", "#f4f4f4", "#999999"),
    ("running", "#d9f2f7", "#1b7f94"),
    ("waiting", "#fff3c9", "#a67c00"),
    ("passed", "#dff3df", "#2b7a2b"),
    ("passed_with_notes", "#eef3cf", "#7a7a2b"),
    ("failed", "#fadada", "#b02a2a"),
    ("blocked", "#fadada", "#b02a2a"),
    ("skipped", "#eeeeee", "#bbbbbb"),
];

pub fn colours(state: &str) -> Option<(&'static str, &'static str)> {
    COLOURS.iter().find(|(word, ..)| *word == state).map(|(_, fill, stroke)| (*fill, *stroke))
}

pub fn render(picture: &Picture) -> String {
    let layout = layout(picture);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n",
        layout.width, layout.height
    );
    text.push_str("<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#555\"/></marker></defs>\n");
    text.push_str(&format!(
        "<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n",
        layout.width, layout.height
    ));
    text.push_str(&format!(
        "<text x=\"18\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escape(&picture.title)
    ));
    for (rect, title) in &layout.frames {
        text.push_str(&format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#000000\" fill-opacity=\"0.03\" stroke=\"#bbbbbb\"/>\n",
            rect.x, rect.y, rect.width, rect.height
        ));
        text.push_str(&format!(
            "<text x=\"{}\" y=\"{}\" fill=\"#555555\" font-weight=\"bold\">{}</text>\n",
            rect.x + 10,
            rect.y + 17,
            escape(&fit(title, 60))
        ));
    }
    let right = layout.frames.iter().map(|(rect, _)| rect.x + rect.width).max().unwrap_or(0);
    for (index, edge) in picture.edges.iter().filter(|edge| edge.back).enumerate() {
        text.push_str(&back_edge(edge, &layout, right, index as i32));
    }
    for edge in picture.edges.iter().filter(|edge| !edge.back) {
        text.push_str(&forward_edge(edge, &layout));
    }
    for (index, node) in picture.nodes.iter().enumerate() {
        if let Some(rect) = layout.nodes.get(&index) {
            text.push_str(&box_of(node, *rect));
        }
    }
    text.push_str("</svg>\n");
    text
}

fn forward_edge(edge: &Edge, layout: &Layout) -> String {
    let (Some(from), Some(to)) = (layout.nodes.get(&edge.from), layout.nodes.get(&edge.to)) else {
        return String::new();
    };
    let (x1, y1) = (from.x + from.width / 2, from.y + from.height);
    let (x2, y2) = (to.x + to.width / 2, to.y);
    let bend = ((y2 - y1) / 2).max(16);
    let mut text = format!(
        "<path d=\"M{x1},{y1} C{x1},{} {x2},{} {x2},{y2}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#arrow)\"/>\n",
        y1 + bend,
        y2 - bend
    );
    if !edge.label.is_empty() {
        text.push_str(&label(&edge.label, i32::midpoint(x1, x2), i32::midpoint(y1, y2) + 4, "middle"));
    }
    text
}

/// Out to the right of everything and back in, each on its own track.
fn back_edge(edge: &Edge, layout: &Layout, right: i32, index: i32) -> String {
    let (Some(from), Some(to)) = (layout.nodes.get(&edge.from), layout.nodes.get(&edge.to)) else {
        return String::new();
    };
    let (x1, y1) = (from.x + from.width, from.y + from.height / 2 + 6);
    let (x2, y2) = (to.x + to.width, to.y + to.height / 2 - 6);
    let track = right + 14 + (index % 12) * 14;
    let path = format!(
        "M{x1},{y1} C{track},{y1} {track},{y1} {track},{} L{track},{} C{track},{y2} {track},{y2} {x2},{y2}",
        y1 - (y1 - y2).signum() * 20,
        y2 + (y1 - y2).signum() * 20
    );
    let mut text = format!(
        "<path d=\"{path}\" fill=\"none\" stroke=\"#8a5a00\" stroke-dasharray=\"5 4\" marker-end=\"url(#arrow)\"/>\n"
    );
    if !edge.label.is_empty() {
        text.push_str(&label(&edge.label, track + 4, i32::midpoint(y1, y2) + (index % 3) * 12, "start"));
    }
    text
}

fn label(words: &str, x: i32, y: i32, anchor: &str) -> String {
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"10\" text-anchor=\"{anchor}\" fill=\"#333\" stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\">{}<title>{}</title></text>\n",
        escape(&fit(words, WORDS_MAX)),
        escape(words)
    )
}

fn box_of(node: &Node, rect: Rect) -> String {
    let (fill, stroke) = node.state.and_then(colours).unwrap_or(("#ffffff", "#444444"));
    let dash = if node.dormant && node.state.is_none() { " stroke-dasharray=\"4 3\"" } else { "" };
    let paint = format!("fill=\"{fill}\" stroke=\"{stroke}\"{dash}");
    let Rect { x, y, width, height } = rect;
    let shape = match node.shape {
        Shape::Work => {
            format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"3\" {paint}/>")
        }
        Shape::Review => format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{}\" {paint}/>",
            height / 2
        ),
        Shape::Check => {
            format!("<path d=\"M{},{y} h{} l-10,{height} h-{} z\" {paint}/>", x + 10, width - 10, width - 10)
        }
        Shape::Decision => {
            let (middle, centre) = (y + height / 2, x + width / 2);
            let (right, bottom) = (x + width, y + height);
            format!(
                "<path d=\"M{centre},{y} L{right},{middle} L{centre},{bottom} L{x},{middle} z\" {paint}/>"
            )
        }
        Shape::Group => format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" rx=\"3\" {paint}/><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"3\" {paint}/>",
            x + 4,
            y + 4
        ),
    };
    let state = node.state.map(|state| format!(": {}", state.replace('_', " "))).unwrap_or_default();
    let tip = format!("{}{state}\n{}", node.step, node.subtitle);
    let centre = x + width / 2;
    format!(
        "<g class=\"{}\"><title>{}</title>{shape}<text x=\"{centre}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text><text x=\"{centre}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#444\">{}</text></g>\n",
        node.state.unwrap_or("step"),
        escape(&tip),
        y + height / 2 - 3,
        escape(&fit(&mark(node), WORDS_MAX)),
        y + height / 2 + 12,
        escape(&fit(&node.subtitle, WORDS_MAX + 4))
    )
}

/// The state can be read without colour.
fn mark(node: &Node) -> String {
    node.state.map_or_else(
        || node.title.clone(),
        |state| format!("{} {}", crate::terminal::mark_of(state), node.title),
    )
}

/// For text and attributes; what XML does not allow at all is left out.
fn escape(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(character),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {}
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_become_markup() {
        assert_eq!(escape("<script>\"&'\u{1b}"), "&lt;script&gt;&quot;&amp;&#39;");
    }
}
