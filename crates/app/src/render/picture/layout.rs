//! Places for boxes: frames inside frames, rows by dependency. Small, deterministic, no overlap.

use std::collections::{BTreeMap, BTreeSet};

use super::{Frame, Member, Picture, Shape};
use crate::render::text::columns;

const CHARACTER: i32 = 7;
const NODE_HEIGHT: i32 = 44;
const GAP_X: i32 = 28;
const GAP_Y: i32 = 46;
const PADDING: i32 = 18;
const TITLE_HEIGHT: i32 = 22;
/// Longer words are cut; the whole is in the tool tip.
pub const WORDS_MAX: usize = 34;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

/// Everything with its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub width: i32,
    pub height: i32,
    /// By index of the node.
    pub nodes: BTreeMap<usize, Rect>,
    /// Outer ones first.
    pub frames: Vec<(Rect, String)>,
}

pub fn layout(picture: &Picture) -> Layout {
    let mut layout = Layout::default();
    let blocks: Vec<Block> = picture.stages.iter().map(|stage| block(picture, stage)).collect();
    let width = blocks.iter().map(|block| block.width).max().unwrap_or(0);
    let mut y = PADDING + TITLE_HEIGHT;
    for block in &blocks {
        block.put(PADDING, y, width, &mut layout);
        y += block.height + GAP_Y / 2;
    }
    // Ways back are drawn to the right of everything.
    let bows = picture.edges.iter().filter(|edge| edge.back).count() as i32;
    layout.width = width + 2 * PADDING + if bows > 0 { 150 + bows.min(12) * 14 } else { 0 };
    layout.height = y + PADDING;
    layout
}

/// A node or a frame with a size, its parts placed relative to it.
struct Block {
    width: i32,
    height: i32,
    content: Content,
}

enum Content {
    Node(usize),
    Frame { title: String, parts: Vec<(i32, i32, Block)> },
}

impl Block {
    /// Writes absolute places. `width` may be more than needed: stages are as wide as the widest.
    fn put(&self, x: i32, y: i32, width: i32, layout: &mut Layout) {
        let rect = Rect { x, y, width, height: self.height };
        match &self.content {
            Content::Node(node) => {
                layout.nodes.insert(*node, rect);
            }
            Content::Frame { title, parts } => {
                layout.frames.push((rect, title.clone()));
                let shift = (width - self.width) / 2;
                for (part_x, part_y, part) in parts {
                    part.put(x + shift + part_x, y + part_y, part.width, layout);
                }
            }
        }
    }
}

fn block(picture: &Picture, frame: &Frame) -> Block {
    let blocks: Vec<Block> = frame
        .members
        .iter()
        .map(|member| match member {
            Member::Node(node) => {
                let (width, height) = node_size(picture, *node);
                Block { width, height, content: Content::Node(*node) }
            }
            Member::Frame(inner) => block(picture, inner),
        })
        .collect();
    let rows = rows(picture, &frame.members);
    let row_width = |row: &[usize]| row.iter().map(|part| blocks[*part].width + GAP_X).sum::<i32>() - GAP_X;
    let title_width = CHARACTER * columns(&frame.title).min(60) as i32 + PADDING;
    let inner = rows.iter().map(|row| row_width(row)).max().unwrap_or(0).max(title_width);
    let mut at: BTreeMap<usize, (i32, i32)> = BTreeMap::new();
    let mut y = TITLE_HEIGHT + PADDING / 2;
    for row in &rows {
        let tallest = row.iter().map(|part| blocks[*part].height).max().unwrap_or(0);
        let mut x = PADDING + (inner - row_width(row)) / 2;
        for part in row {
            at.insert(*part, (x, y + (tallest - blocks[*part].height) / 2));
            x += blocks[*part].width + GAP_X;
        }
        y += tallest + GAP_Y;
    }
    let height = (y - GAP_Y + PADDING).max(TITLE_HEIGHT + PADDING);
    let parts = blocks
        .into_iter()
        .enumerate()
        .filter_map(|(index, part)| at.get(&index).map(|(x, y)| (*x, *y, part)))
        .collect();
    Block {
        width: inner + 2 * PADDING,
        height,
        content: Content::Frame { title: frame.title.clone(), parts },
    }
}

/// Width and height of a node; a diamond needs more of both around the same words.
fn node_size(picture: &Picture, node: usize) -> (i32, i32) {
    let Some(node) = picture.nodes.get(node) else { return (0, 0) };
    let words = columns(&node.title).max(columns(&node.subtitle)).clamp(8, WORDS_MAX);
    let width = CHARACTER * words as i32 + 28;
    if node.shape == Shape::Decision { (width * 4 / 3, NODE_HEIGHT * 8 / 5) } else { (width, NODE_HEIGHT) }
}

/// Members in rows: each below everything it depends on inside this frame.
fn rows(picture: &Picture, members: &[Member]) -> Vec<Vec<usize>> {
    let mut part_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        collect(member, index, &mut part_of);
    }
    let part_edges = |back: bool| -> BTreeSet<(usize, usize)> {
        let lifted = picture
            .edges
            .iter()
            .filter(|edge| edge.back == back)
            .filter_map(|edge| Some((*part_of.get(&edge.from)?, *part_of.get(&edge.to)?)));
        lifted.filter(|(from, to)| from != to).collect()
    };
    let mut forward = part_edges(false);
    // What runs only when called for stands below who calls.
    for (from, to) in part_edges(true) {
        let called = matches!(&members[to], Member::Node(node) if picture.nodes.get(*node).is_some_and(|node| node.dormant));
        if called && from < to {
            forward.insert((from, to));
        }
    }
    let mut rank = vec![0_usize; members.len()];
    // A cycle cannot rank for ever: each round settles at least one member.
    for _ in 0..members.len() {
        let mut moved = false;
        for (from, to) in &forward {
            if rank[*to] <= rank[*from] && rank[*from] + 1 < members.len().max(2) {
                rank[*to] = rank[*from] + 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let mut rows: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, rank) in rank.iter().enumerate() {
        rows.entry(*rank).or_default().push(index);
    }
    rows.into_values().collect()
}

fn collect(member: &Member, part: usize, part_of: &mut BTreeMap<usize, usize>) {
    match member {
        Member::Node(node) => {
            part_of.insert(*node, part);
        }
        Member::Frame(frame) => {
            for inner in &frame.members {
                collect(inner, part, part_of);
            }
        }
    }
}
