//! Every mistake of a file is reported at once, once, with its place; none hides another.

use gatewright_workflow::{
    config::Config,
    diagnostic::{Diagnostic, render_all},
    load::{LoadOptions, MapSources, lint},
};

fn found(text: &str) -> Vec<Diagnostic> {
    let config = Config::default();
    lint("flow.yaml", text, &MapSources::default(), &LoadOptions::new(&config))
}

/// `<code> <line> <underlined text>` of each error.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let all = found(text);
    let errors: Vec<String> = all
        .iter()
        .filter(|found| found.is_error())
        .map(|found| {
            let underlined: String =
                found.source_line.chars().skip(found.column - 1).take(found.length).collect();
            format!("{} {} {underlined}", found.code, found.line)
        })
        .collect();
    assert_eq!(errors, expected, "\n{}", render_all(&all));
}

fn flow(steps: &str) -> String {
    format!(
        "workflow: flow\nroles: {{ coder: {{ prompt: Build. }}, seer: {{ prompt: Look. }} }}\nchecks: {{ tests: \"true\" }}\nsteps:\n{steps}"
    )
}

const MANY: &str = "\
workflow: many
roles:
  coder: { prompt: Build. }
  seer: { prompt: Look., mdel: large }
checks:
  tests: { run: make test, timeout: 20 minutes }
pools: { gpu: 0 }
steps:
  - { id: plan, role: planer, writes: { plan.md: any } }
  - { id: code, role: coder, needs: [plann], reads: [plan.md], checks: [test] }
  - { id: left, role: coder, needs: [right], writes: { left.md: any } }
  - { id: right, role: coder, needs: [left], reads: [left.md] }
  - { id: docs, role: coder, needs: [plan], reads: [nowhere.md] }
  - { id: review, review: plan, by: seer, needs: [plan], rounds_max: 0 }
  - { id: ask, decide: Good?, needs: [review], answers: { no: block } }
  - { id: sleeper, role: coder, dormant: true }
  - { id: mystery, writes: { secret.md: any } }
  - { id: after, role: coder, needs: [mystery], reads: [secret.md] }
  - { id: plan, role: coder, needs: [ask] }
  - { id: gated, check: tests, needs: [ask], gates: [ { verdict: code }, { expr: \"steps.plan.summary == 'ok'\" } ] }
";

#[test]
fn j_28_a_file_with_many_mistakes_shows_all_of_them_once() {
    check(
        MANY,
        &[
            "GW003 4 mdel",
            "GW005 6 20 minutes",
            "GW203 7 0",
            "GW102 9 planer",
            "GW101 10 plann",
            "GW103 10 test",
            "GW201 11 [",
            "GW204 13 [",
            "GW205 13 nowhere.md",
            "GW203 14 0",
            "GW207 15 {",
            "GW202 16 true",
            "GW007 17 {",
            "GW009 19 plan",
            "GW113 20 code",
            "GW208 20 s",
        ],
    );
}

#[test]
fn j_28_each_mistake_is_shown_with_file_line_caret_and_remedy() {
    for diagnostic in found(MANY) {
        let shown = diagnostic.render();
        let line = MANY.lines().nth(diagnostic.line - 1).unwrap();
        assert!(shown.contains(&format!("flow.yaml:{}:{}", diagnostic.line, diagnostic.column)), "{shown}");
        assert!(shown.contains(&format!("{} | {line}", diagnostic.line)), "{shown}");
        assert!(
            shown.lines().any(|line| line.trim_start().starts_with("| ") && line.contains('^')),
            "{shown}"
        );
        assert!(shown.contains("= help: "), "{shown}");
    }
}

#[test]
fn an_unknown_need_leaves_the_order_open_and_nothing_else() {
    // `code` may come after `plan`; `lost.md` is written by nobody whatever it needs.
    let steps = "  - { id: plan, role: coder, writes: { plan.md: any } }
  - { id: code, role: coder, needs: [pln], reads: [plan.md, lost.md] }
  - { id: more, role: coder, reads: [plan.md] }
  - { id: review, review: plan, by: seer }
";
    check(&flow(steps), &["GW101 6 pln", "GW205 6 lost.md"]);
}

#[test]
fn a_misspelt_key_is_one_mistake() {
    check(&flow("  - { id: code, rol: coder }\n"), &["GW003 5 rol"]);
    check(&flow("  - { di: code, role: coder }\n"), &["GW003 5 di"]);
    check(&flow("  - { id: ask, decide: Good?, answer: { yes: pass } }\n"), &["GW003 5 answer"]);
    let steps = "  - { id: plan, role: coder, wries: { plan.md: any } }
  - { id: code, role: coder, reads: [plan.md] }
";
    check(&flow(steps), &["GW003 5 wries"]);
    let steps = "  - { id: plan, role: coder }
  - { id: review, review: plan, by: seer, fixx: mend }
  - { id: mend, role: coder, dormant: true }
";
    check(&flow(steps), &["GW003 6 fixx"]);
}

#[test]
fn a_name_that_leads_nowhere_is_one_mistake() {
    let steps = "  - { id: plan, role: coder }
  - { id: review, review: plan, by: seer, fix: mned }
  - { id: mend, role: coder, dormant: true }
";
    check(&flow(steps), &["GW101 6 mned"]);
    let steps = "  - { id: plan, role: coder, checks: [test] }
  - { id: code, role: coder, gates: [ { check: tests, of: plan } ] }
";
    check(&flow(steps), &["GW103 5 test"]);
    check(&flow("  - { id: join, merge: paln }\n  - { id: plan, role: coder }\n"), &["GW101 5 paln"]);
    let steps = "  - { id: sub, run: elsewhere }
  - { id: code, role: coder, reads: [from-there.md] }
";
    check(&flow(steps), &["GW109 5 elsewhere"]);
}

#[test]
fn an_answer_that_says_nothing_is_one_mistake() {
    check(&flow("  - { id: ask, decide: Good?, answers: { yes: pas, no: block } }\n"), &["GW005 5 pas"]);
    check(&flow("  - { id: ask, decide: Good? }\n"), &["GW004 5 {"]);
}

#[test]
fn a_circle_hides_no_other_proof() {
    let steps = "  - { id: a, role: coder, needs: [b], writes: { a.md: any }, reads: [b.md, c.md] }
  - { id: b, role: coder, needs: [a], writes: { b.md: any }, reads: [a.md] }
  - { id: c, role: coder, needs: [b], writes: { c.md: any }, reads: [a.md, b.md] }
";
    check(&flow(steps), &["GW201 5 [", "GW205 5 c.md"]);
}

#[test]
fn a_key_that_is_there_twice_hides_nothing() {
    let steps = "  - { id: code, role: coder, role: coder }\n  - { id: more, role: codr }\n";
    check(&flow(steps), &["GW001 5 role", "GW102 6 codr"]);
}

#[test]
fn steps_and_stages_without_ids_are_looked_at_too() {
    let steps = "  - { role: coder, writes: { plan.md: any } }
  - { role: coder, reads: [plan.md, lost.md] }
";
    check(&flow(steps), &["GW004 5 {", "GW004 6 {", "GW205 6 lost.md"]);
}

#[test]
fn profiles_with_mistakes_hide_none_of_each_other() {
    let text = "\
workflow: flow
roles: { coder: { prompt: Build. } }
steps:
  - { id: plan, role: coder, writes: { plan.md: any } }
  - { id: code, role: coder, reads: [plan.md] }
profiles:
  one: { steps: { code: { reads: [lost.md] } } }
  two: { steps: { code: { needs: [code] } } }
  three: { steps: { cod: {} } }
";
    check(text, &["GW205 7 lost.md", "GW201 8 [", "GW101 9 cod"]);
}

#[test]
fn limits_that_are_none_are_found_wherever_they_stand() {
    let text = "\
workflow: flow
parallel_max: 0
pools: { gpu: 0 }
roles: { coder: { prompt: Build., parallel_max: 0, may_write: [\"src/[ab]\"] } }
stages:
  - id: build
    restarts_max: 99999999
    steps:
      - { id: code, role: coder, pools: [gpu], retry: { attempts_max: 0, backoff: [0s] } }
decisions: { reasks_max: -1 }
budget: { usd: -1 }
";
    check(
        text,
        &[
            "GW203 2 0",
            "GW203 3 0",
            "GW203 4 0",
            "GW005 4 \"src/[ab]\"",
            "GW203 7 99999999",
            "GW203 9 0",
            "GW005 9 0s",
            "GW203 10 -1",
            "GW002 11 -1",
        ],
    );
}

#[test]
fn names_that_lead_out_of_their_folder_are_found() {
    let text = "\
workflow: flow
dir: \"/tmp/{{ run.id }}\"
roles: { coder: { prompt: Build. } }
checks: { ok: { run: \"true\", cwd: /tmp } }
steps:
  - { id: code, role: coder, checks: [ok], reads: [/etc/passwd, \"../x.md?\"], writes: { ../y.md: { contract: any, first: /z.md } } }
  - { id: ask, decide: Good?, show: [../w.md], answers: { yes: pass } }
  - { id: many, for_each: ../list.yaml, steps: [ { id: one, role: coder, writes: [\"{{ item.id }}/../../v.md\"] } ] }
projections:
  - { file: \"{{ run.id }}/../../p.md\", markdown: x }
";
    check(
        text,
        &[
            "GW115 2 \"/tmp/{{ run.id }}\"",
            "GW115 4 /tmp",
            "GW115 6 /etc/passwd",
            "GW115 6 \"../x.md?\"",
            "GW115 6 ../y.md",
            "GW115 6 /z.md",
            "GW115 7 ../w.md",
            "GW115 8 ../list.yaml",
            "GW115 8 \"{{ item.id }}/../../v.md\"",
            "GW115 10 \"{{ run.id }}/../../p.md\"",
        ],
    );
}
