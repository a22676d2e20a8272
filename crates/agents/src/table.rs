//! The table of docs/agents.md: what each agent can do.

use crate::adapter::{ADAPTERS, Capabilities, Means};

/// Markdown, one row per capability.
pub fn capability_table() -> String {
    let names: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.name()).collect();
    let mut page = format!("| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    let mut row = |title: &str, cell: &dyn Fn(&Capabilities) -> String| {
        let cells: Vec<String> = ADAPTERS.iter().map(|adapter| cell(&adapter.capabilities())).collect();
        page.push_str(&format!("| {title} | {} |\n", cells.join(" | ")));
    };
    let yes = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
    row("id of a conversation chosen before the start", &|can| yes(can.session_chosen));
    row("goes on with a conversation", &|can| means(can.resume));
    row("read-only roles", &|can| means(can.read_only));
    row("a read-only role writes its report", &|can| {
        if can.read_only_writes_out { "as a file" } else { "in its last message" }.to_owned()
    });
    row("hands in its work by tools", &|can| means(can.desk));
    row("`may_run`", &|can| means(can.listed_commands));
    row("`network: false`", &|can| means(can.network));
    row("effort", &|can| means(can.effort));
    row("most turns", &|can| means(can.max_turns));
    row("models to fall back to", &|can| means(can.fallback_models));
    row("tells tokens", &|can| yes(can.tokens));
    row("tells cost", &|can| yes(can.cost));
    row("tells that it waits for its provider", &|can| yes(can.shows_waiting));
    row("updates and telemetry off", &|can| can.quiet.to_owned());
    row("its own data", &|can| can.own_data.to_owned());
    let model = |tier: &'static str| -> Vec<String> {
        let name = |model: &str| format!("`{model}`");
        ADAPTERS
            .iter()
            .map(|one| one.model_of_tier(tier).map_or_else(|| "set `models`".to_owned(), name))
            .collect()
    };
    for tier in ["strong", "fast"] {
        page.push_str(&format!("| `model: {tier}` | {} |\n", model(tier).join(" | ")));
    }
    let versions: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.tried_version()).collect();
    page.push_str(&format!("| tried with | {} |\n", versions.join(" | ")));
    page
}

/// What to know of each agent, one section each.
pub fn agent_sections() -> String {
    let mut page = String::new();
    for adapter in ADAPTERS {
        let list = |title: &str, items: Vec<String>| format!("- {title}: {}\n", items.join(", "));
        let (files, variables) = adapter.login();
        page.push_str(&format!("#### `{}`\n\n", adapter.name()));
        page.push_str(&list("program", vec![format!("`{}`", adapter.program())]));
        let shown = files.iter().map(|file| format!("`~/{file}`"));
        let shown = shown.chain(variables.iter().map(|name| format!("`{name}`")));
        page.push_str(&list("a login is seen by", shown.collect()));
        page.push_str(&format!("- to log in: {}\n", adapter.login_remedy()));
        for trap in adapter.traps() {
            page.push_str(&format!("- {trap}\n"));
        }
        page.push('\n');
    }
    page
}

fn means(means: Means) -> String {
    match means {
        Means::Yes(how) => how.to_owned(),
        Means::No("") => "no".to_owned(),
        Means::No(why) => format!("no: {why}"),
    }
}
