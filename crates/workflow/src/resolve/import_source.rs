//! How folders of the same conventions are read, as a definition says it.

use std::collections::BTreeMap;

use super::{build::Builder, contract_source::contract, unit::Unit};
use crate::{contract::Contract, frozen::Import, yaml::tree::Node};

pub fn imports(builder: &mut Builder<'_>, unit: &Unit<'_>) {
    for node in unit.tree.get("import").map(Node::elements).unwrap_or_default() {
        let import = import(builder, unit, node);
        builder.built.imports.extend(import);
    }
}

fn import(builder: &mut Builder<'_>, unit: &Unit<'_>, node: &Node) -> Option<Import> {
    let held = |builder: &mut Builder<'_>, node: Option<&Node>| {
        node.map_or_else(Contract::any, |node| contract(builder, unit, node))
    };
    let supply = node.get("supply").map(Node::entries).unwrap_or_default();
    let mut by_name = |key: &str| {
        let files = node.get(key).map(Node::entries).unwrap_or_default();
        files
            .iter()
            .map(|(key, file)| (key.text.clone(), held(builder, Some(file))))
            .collect::<BTreeMap<_, _>>()
    };
    let (files, accept) = (by_name("files"), by_name("accept"));
    let answers = node.get("answers").map(Node::entries).unwrap_or_default();
    Some(Import {
        marker: node.string("marker")?,
        contract: held(builder, node.get("contract")),
        files,
        accept,
        when: node.string("when"),
        request: node.string_or_empty("request"),
        profile: node.string("profile"),
        note: node.string("note"),
        over: node.string("over"),
        done: node.get("done").map(Node::to_json).unwrap_or_default(),
        items: node.get("items").map(Node::to_json).unwrap_or_default(),
        evidence: node.strings("evidence"),
        skipped: node.get("skipped").map(Node::to_json).unwrap_or_default(),
        restarts: node.get("restarts").map(Node::to_json).unwrap_or_default(),
        rounds: node.get("rounds").map(Node::to_json).unwrap_or_default(),
        fixes: node.get("fixes").map(Node::to_json).unwrap_or_default(),
        answers: answers.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect(),
        numbered: node.string("numbered"),
        keep: node.get("keep").map(Node::to_json).unwrap_or_default(),
        supply: supply.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect(),
    })
}
