//! GW301, GW302, GW303: what is defined and never used. Warnings.

use crate::{
    diagnostic::{Report, codes},
    resolve::Shared,
    yaml::tree::Node,
};

/// `tree` is the workflow file itself; what sub-runs bring along is theirs to use or not.
pub fn check_unused(tree: &Node, shared: &Shared, report: &mut Report) {
    for (id, span) in &shared.role_places {
        if span.source == tree.span.source && !shared.used_roles.contains(id) {
            report.warning(codes::UNUSED_ROLE, *span, format!("no step has the role `{id}`"), "");
        }
    }
    for (id, span) in &shared.check_places {
        if span.source == tree.span.source && !shared.used_checks.contains(id) {
            report.warning(codes::UNUSED_CHECK, *span, format!("nothing runs the check `{id}`"), "");
        }
    }
    for (key, _) in tree.get("contracts").map(Node::entries).unwrap_or_default() {
        if !shared.used_contracts.contains(&key.text) {
            let message = format!("nothing is written under the contract `{}`", key.text);
            report.warning(codes::UNUSED_CONTRACT, key.span, message, "");
        }
    }
}
