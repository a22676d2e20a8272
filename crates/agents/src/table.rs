//! What docs/agents.md and its pages say of each agent.

use crate::{
    acp::{ANY_ACP, acp_named},
    adapter::{ADAPTERS, Adapter, Means},
};

/// What an agent can do, in the order of the table.
fn rows(adapter: &dyn Adapter) -> Vec<(&'static str, String)> {
    let can = adapter.capabilities();
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    let report = if can.read_only_writes_out { "as a file" } else { "in its last message" };
    let tier = |tier: &str| {
        adapter.model_of_tier(tier).map_or_else(|| "set `models`".to_owned(), |model| format!("`{model}`"))
    };
    vec![
        ("id of a conversation chosen before the start", yes(can.session_chosen)),
        ("goes on with a conversation", means(can.resume)),
        ("read-only roles", means(can.read_only)),
        ("a read-only role writes its report", report.to_owned()),
        ("hands in its work by tools", means(can.desk)),
        ("`may_run`", means(can.listed_commands)),
        ("`network: false`", means(can.network)),
        ("effort", means(can.effort)),
        ("most turns", means(can.max_turns)),
        ("models to fall back to", fallback(can.fallback_models)),
        ("told the form of a JSON reply", means(can.structured_reply)),
        ("tells tokens", yes(can.tokens)),
        ("tells cost", yes(can.cost)),
        ("tells what it spends while it works", yes(can.spending)),
        ("tells that it waits for its provider", yes(can.shows_waiting)),
        ("asked to stop by; its command", can.stopping.to_owned()),
        ("updates and telemetry off", can.quiet.to_owned()),
        ("its own data", can.own_data.to_owned()),
        ("`model: strong`", tier("strong")),
        ("`model: fast`", tier("fast")),
        ("tried with", adapter.tried_version().to_owned()),
    ]
}

fn means(means: Means) -> String {
    match means {
        Means::Yes(how) => how.to_owned(),
        Means::No("") => "no".to_owned(),
        Means::No(why) => format!("no: {why}"),
    }
}

/// Whoever has no way of its own is asked for the next model by the next attempt.
fn fallback(own: Means) -> String {
    match own {
        Means::Yes(how) => format!("{how}, and by the next attempt"),
        Means::No(_) => "by the next attempt".to_owned(),
    }
}

/// Markdown, one row per capability; the last column is any agent over ACP.
pub fn capability_table() -> String {
    let names: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.name()).chain(["over ACP"]).collect();
    let columns: Vec<_> = ADAPTERS.iter().map(|adapter| rows(*adapter)).chain([rows(&ANY_ACP)]).collect();
    let mut page = format!("| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for (number, (title, _)) in rows(&ANY_ACP).iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|column| column[number].1.as_str()).collect();
        page.push_str(&format!("| {title} | {} |\n", cells.join(" | ")));
    }
    page
}

/// Links to the pages.
pub fn agent_list() -> String {
    ADAPTERS.iter().map(|one| format!("- [`{0}`](agents/{0}.md)\n", one.name())).collect()
}

/// A page for each agent: its name and the text.
pub fn agent_pages() -> Vec<(&'static str, String)> {
    ADAPTERS.iter().map(|adapter| (adapter.name(), page_of(*adapter))).collect()
}

fn page_of(adapter: &dyn Adapter) -> String {
    let name = adapter.name();
    let (files, variables) = adapter.login();
    let shown = files.iter().map(|file| format!("`~/{file}`"));
    let shown: Vec<String> = shown.chain(variables.iter().map(|name| format!("`{name}`"))).collect();
    let mut page = format!(
        "<!-- generated from the adapter; written by GATEWRIGHT_BLESS=1 cargo test -p gatewright --test docs_reference -->\n\n\
         # `{name}`\n\n\
         `agent: {name}` uses the program `{}` from `PATH`. What can be configured is in [agents](../agents.md#configuration).\n\n\
         - a login is seen by: {}\n- to log in: {}\n- `gatewright doctor` says what is missing, `gatewright doctor --probe {name}` tries it\n\n\
         ## What it can do\n\n| | |\n|---|---|\n",
        adapter.program(),
        shown.join(", "),
        adapter.login_remedy(),
    );
    for (title, cell) in rows(adapter) {
        page.push_str(&format!("| {title} | {cell} |\n"));
    }
    page.push_str("\n## What to know\n\n");
    for trap in adapter.traps() {
        page.push_str(&format!("- {trap}\n"));
    }
    let over_acp = acp_named(name);
    if !over_acp.program().is_empty() {
        page.push_str(&format!(
            "\n## Over ACP\n\n`agents: {{ {name}: {{ protocol: acp }} }}` starts `{}` instead ([over ACP](../agents.md#over-acp)).\n",
            over_acp.program()
        ));
        for trap in over_acp.traps() {
            page.push_str(&format!("- {trap}\n"));
        }
    }
    page
}
