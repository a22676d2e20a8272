//! Names in templates that no run can know are found; names that a run may know are not.

use std::{fs, path::PathBuf};

use gatewright_workflow::{
    config::Config,
    diagnostic::render_all,
    load::{LoadOptions, MapSources, Sources, lint},
};

/// The unknown names that are reported, each `<line> <underlined text>`.
#[track_caller]
fn check_with(text: &str, sources: &MapSources, expected: &[&str]) {
    let config = Config::default();
    let all = lint("flow.yaml", text, sources, &LoadOptions::new(&config));
    let errors: Vec<String> = all
        .iter()
        .filter(|found| found.is_error())
        .map(|found| {
            assert_eq!(found.code.0, "GW114", "\n{}", found.render());
            let underlined: String =
                found.source_line.chars().skip(found.column - 1).take(found.length).collect();
            format!("{}:{} {underlined}", found.file, found.line)
        })
        .collect();
    let expected: Vec<String> = expected.iter().map(|place| (*place).to_owned()).collect();
    assert_eq!(errors, expected, "\n{}", render_all(&all));
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|place| format!("flow.yaml:{place}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_with(text, &MapSources::default(), &expected);
}

/// One step with this prompt, in a workflow that has some of everything.
fn prompt(prompt: &str) -> String {
    format!(
        "workflow: flow
settings: {{ level: 1 }}
roles: {{ coder: {{ prompt: Build. }} }}
steps:
  - {{ id: plan, role: coder, writes: {{ plan.md: any, \"part-{{{{ round }}}}.md\": any }} }}
  - id: code
    role: coder
    data: {{ area: x }}
    prompt: |
      First.
      {prompt}
"
    )
}

#[test]
fn names_that_are_nowhere_are_found() {
    for (text, underlined) in [
        ("{{ foo }}", "foo"),
        ("{{ reqest | upper }}", "reqest"),
        ("{{ steps.zz.state }}", "steps.zz.state"),
        ("{{ steps['zz'].state }}", "steps['zz'].state"),
        ("{{ steps.plan.sate }}", "steps.plan.sate"),
        ("{{ settings.nope }}", "settings.nope"),
        ("{{ artifacts['x.md'].hash }}", "artifacts['x.md'].hash"),
        ("{{ run.idd }}", "run.idd"),
        ("{{ cost.limits.eur }}", "cost.limits.eur"),
        ("{{ step.data.aera }}", "step.data.aera"),
        ("{{ item.id }}", "item.id"),
        ("{{ cause.wy }}", "cause.wy"),
        ("{{ stages.main }}", "stages.main"),
        ("{{ request.text }}", "request.text"),
        ("{{ fan_outs.plan }}", "fan_outs.plan"),
        ("{% if foo %}x{% endif %}", "foo"),
        ("{% for s in stepp_list %}x{% endfor %}", "stepp_list"),
        ("{% set x = steps.zz %}", "steps.zz"),
        ("{{ 'a' if steps.zz.state == 'passed' else 'b' }}", "steps.zz.state"),
        ("{{ request | replace(foo, 'x') }}", "foo"),
        ("{% set foo = 1 %}{{ settings[foo] ~ bar }}", "bar"),
    ] {
        check(&prompt(text), &[&format!("11 {underlined}")]);
    }
}

#[test]
fn names_that_a_run_may_know_are_not() {
    for text in [
        "{{ request }} {{ slug }} {{ workflow }} {{ profile }} {{ round }} {{ attempt }} {{ run.dir }}",
        "{{ settings.level }} {{ steps.plan.state }} {{ steps['plan'].findings | length }}",
        "{{ artifacts['plan.md'].hash }} {{ artifacts['part-2.md'].step }} {{ step.data.area }} {{ step.id }}",
        "{% for s in step_list %}{{ s.id }} {{ s.anything }} {{ loop.index }}{% endfor %}",
        "{% for key, value in settings | items %}{{ key }}={{ value }}{% endfor %}",
        "{% set foo = 1 %}{{ foo }}",
        "{% with foo = 1 %}{{ foo }}{% endwith %}",
        "{{ foo | default('x') }} {{ settings.nope | d('x') }}",
        "{% if foo is defined %}{{ foo.bar }}{% endif %}",
        "{% if steps.zz is defined and steps.zz.state == 'passed' %}x{% endif %}",
        "{% if 'nope' in settings %}{{ settings.nope }}{% endif %}",
        "{{ decisions | selectattr('id', 'eq', 'nothing') | list | length }}",
        "{{ decisions | map(attribute='whatever') | join(', ') }}",
        "{{ range(3) | list }} {{ dict(a=1) }} {% set ns = namespace(x=1) %}{{ ns.x }}",
        "{{ steps[request].state }} {{ steps['pl' ~ 'an'].state }}",
        "{% if cause is not none and cause.why == 'fix' %}{{ cause.review }}{% endif %}",
        "{% if workflow == 'other' %}{{ settings.nope }}{{ steps.zz.state }}{% endif %}",
        "{% if item %}{{ item.id }}{% endif %}",
        "{% raw %}{{ foo }}{% endraw %} {# {{ foo }} #}",
        "{{ findings | length }} {{ answers | length }} {{ blocked_by.reason }} {{ cost.usd }}",
    ] {
        check(&prompt(text), &[]);
    }
}

#[test]
fn every_place_of_a_definition_is_looked_at() {
    let text = r#"
workflow: flow
dir: "runs/{{ run.idd }}"
run_id: "{{ workflow }}-{{ daet }}"
roles:
  coder: { prompt: "Build {{ nothing }}." }
  planner: { from: roles/planner.md }
checks: { ok: { run: "true {{ sett.x }}", when: "settings.nope" } }
steps:
  - { id: plan, role: planner, checks: [ok], writes: { "{{ stp.id }}.md": { contract: any, first: "{{ rnd }}.md" } } }
  - { id: code, role: coder, reads: ["{{ itme.id }}.md"], when: "settings.nope == 1", gates: [ { expr: "steps.zz.state == 'passed'" } ] }
  - { id: ask, decide: "Ship {{ reqest }}?", answers: { yes: pass } }
  - { id: look, review: code, by: { role: planner, prompt: "{{ whom }}" }, needs: [ask] }
projections:
  - file: "{{ fiel }}.json"
    when: "run.stat == 'done'"
    json:
      run: "{{ run.idd }}"
      steps: { $for: "s in step_lst", each: { a: { $expr: s.id }, b: { $expr: t.id } } }
      more: { $if: "runn.id == ''", then: { $for: "k, v in settings | items", $key: kk, each: "{{ k }}{{ v }}" } }
  - { file: "x/{{ item.id }}.md", each: step_lists, markdown: "{{ item.x }} {{ itm.x }}" }
  - { file: y.md, markdown: "{{ item.x }}" }
  - { file: z.md, markdown: summary.md }
"#;
    let sources = MapSources::default()
        .with("roles/planner.md", "---\ndescription: Plans.\n---\n\nYou plan.\n\nSee {{ run.dri }}.\n")
        .with("summary.md", "# Summary\n\nFor {{ requst }}.\n");
    check_with(
        text,
        &sources,
        &[
            "flow.yaml:3 run.idd",
            "flow.yaml:4 daet",
            "flow.yaml:6 nothing",
            "flow.yaml:8 sett.x",
            "flow.yaml:8 settings.nope",
            "flow.yaml:10 stp.id",
            "flow.yaml:10 rnd",
            "flow.yaml:11 itme.id",
            "flow.yaml:11 settings.nope",
            "flow.yaml:11 steps.zz.state",
            "flow.yaml:12 reqest",
            "flow.yaml:13 whom",
            "flow.yaml:15 fiel",
            "flow.yaml:16 run.stat",
            "flow.yaml:18 run.idd",
            "flow.yaml:19 step_lst",
            "flow.yaml:19 t.id",
            "flow.yaml:20 runn.id",
            "flow.yaml:20 kk",
            "flow.yaml:21 step_lists",
            "flow.yaml:21 itm.x",
            "flow.yaml:22 item.x",
            "roles/planner.md:7 run.dri",
            "summary.md:3 requst",
        ],
    );
}

#[test]
fn what_a_mistake_hides_is_not_reported_as_an_unknown_name() {
    let config = Config::default();
    let text = "workflow: flow\nroles: { coder: { prompt: Build. } }\nsteps:\n  - { role: coder, writes: [plan.md] }\n  - { id: code, role: coder, prompt: \"{{ steps.plan.state }}\" }\n";
    let all = lint("flow.yaml", text, &MapSources::default(), &LoadOptions::new(&config));
    assert_eq!(all.iter().map(|found| found.code.0).collect::<Vec<_>>(), ["GW004"], "{}", render_all(&all));
}

#[test]
fn an_item_is_known_inside_a_fan_out() {
    let text = "workflow: flow
roles: { coder: { prompt: \"Build {{ item.id }}.\" } }
steps:
  - { id: plan, role: coder, writes: { tasks.yaml: any }, prompt: \"{{ steps['each/a/one'].state }}\" }
  - id: each
    for_each: tasks.yaml
    steps:
      - { id: one, role: coder, prompt: \"{{ item.title }}\", writes: { \"{{ item.id }}.md\": any } }
      - { id: two, role: coder, prompt: \"{{ steps.one.state }}\" }
";
    check(text, &["9 steps.one.state"]);
}

struct Folder(PathBuf);

impl Sources for Folder {
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }

    fn list(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn workflow(&self, _: &str) -> Option<(String, String, Box<dyn Sources>)> {
        None
    }
}

/// The methods use the language as it is meant: nothing in them is a false alarm.
#[test]
fn the_built_in_methods_name_nothing_unknown() {
    let methods = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../methods");
    let config = Config::default();
    let mut seen = 0;
    for method in fs::read_dir(methods).unwrap().flatten() {
        let mut files = vec![method.path().join("workflow.yaml")];
        files.extend(
            fs::read_dir(method.path().join("workflows"))
                .into_iter()
                .flatten()
                .flatten()
                .map(|file| file.path()),
        );
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let folder = Folder(file.parent().unwrap().to_owned());
            let all = lint(&file.display().to_string(), &text, &folder, &LoadOptions::new(&config));
            let unknown: Vec<String> =
                all.iter().filter(|found| found.code.0 == "GW114").map(|found| found.render()).collect();
            assert!(unknown.is_empty(), "{}", unknown.join("\n"));
            seen += 1;
        }
    }
    assert!(seen >= 7, "{seen} workflows were looked at");
}
