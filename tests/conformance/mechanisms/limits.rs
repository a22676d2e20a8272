//! Limits on input: what is too large, too deep, too many or too much work is an error that says so.

use crate::support::Scratch;

fn message(workflow: &str, agent: &str) -> String {
    let scratch = Scratch::with(workflow, agent);
    let run = scratch.run(11);
    scratch.blocked_by(&run).1
}

const PLAN: &str =
    "steps: [ { id: plan, role: planner, writes: { plan.md: any }, retry: { attempts_max: 1 } } ]";
const LIST: &str = "
steps:
  - { id: plan, role: planner, writes: { tasks.yaml: any }, retry: { attempts_max: 1 } }
  - { id: build, for_each: tasks.yaml, items_max: 2, steps: [ { id: code, role: coder } ] }
";

#[test]
fn an_artifact_has_a_size() {
    let said = message(
        PLAN,
        "plan) head -c 5000000 /dev/zero | tr '\\0' x > $GATEWRIGHT_OUT/plan.md; brief DONE plan.md;;",
    );
    assert!(said.contains("plan.md") && said.contains("bytes"), "{said}");
    let said = message(PLAN, "plan) truncate -s 10G $GATEWRIGHT_OUT/plan.md; brief DONE plan.md;;");
    assert!(said.contains("`plan.md` is too large"), "{said}");
}

#[test]
fn a_list_has_a_number_of_items_a_depth_and_a_size() {
    let said = message(LIST, "plan) wrote tasks.yaml '[a, b, c]';;");
    assert!(said.contains('3') && said.contains('2'), "{said}");
    let deep = "$(printf '[%.0s' $(seq 200))";
    let said = message(LIST, &format!("plan) wrote tasks.yaml \"{deep}\";;"));
    assert!(said.contains("tasks.yaml") && said.contains("deeper than 64 levels"), "{said}");
    let laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]";
    let said = message(LIST, &format!("plan) wrote tasks.yaml '{laughs}';;"));
    assert!(said.contains("tasks.yaml") && said.contains("1000 aliases, 200000 values"), "{said}");
}

#[test]
fn a_template_has_an_amount_of_work() {
    let loops = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    let said = message(
        &format!("roles: {{ coder: {{ prompt: \"{loops}\" }} }}\nsteps: [ {{ id: code, role: coder }} ]"),
        "",
    );
    assert!(said.contains("more than") || said.contains("grows beyond"), "{said}");
}

#[test]
fn a_definition_has_a_size_and_a_number_of_steps() {
    let scratch = Scratch::new();
    let steps = "  - { id: a, role: coder }\n".repeat(60_000);
    scratch.workflow("w", &format!("steps:\n{steps}"));
    let ran = scratch.gatewright(&["run", "w", "x"]).exits(3);
    assert!(ran.err.contains("more than 200000 values"), "{}", ran.err);
    scratch.workflow("w", &format!("description: {}\nsteps: []", "x".repeat(5_000_000)));
    let ran = scratch.gatewright(&["lint"]);
    assert!(ran.code != 0 && format!("{}{}", ran.out, ran.err).contains("bytes"), "{}", ran.err);
}

/// Whatever a file that people write is read for: no more of it than is said.
#[test]
fn every_file_beside_a_definition_has_a_size() {
    let large = |scratch: &Scratch, path: &str| {
        scratch.write(path, "");
        let file = std::fs::File::options().write(true).open(scratch.root().join(path)).unwrap();
        file.set_len(300_000_000).unwrap();
    };
    let step = "steps: [ { id: code, role: coder } ]";
    for (file, workflow) in [
        (".gatewright/config.yaml", step.to_owned()),
        (".gatewright/workflows/w.yaml", step.to_owned()),
        (".gatewright/workflows/roles/coder.md", format!("roles: {{ coder: roles/coder.md }}\n{step}")),
        (".gatewright/workflows/shared.md", format!("prompt: shared.md\n{step}")),
        (
            ".gatewright/workflows/page.md",
            format!("projections: [ {{ file: page.md, markdown: page.md }} ]\n{step}"),
        ),
    ] {
        let scratch = Scratch::with(&workflow, "");
        large(&scratch, file);
        let ran = scratch.gatewright(&["run", "w", "x"]).exits(3);
        assert!(ran.err.contains("more than 4194304 bytes, which are read at most"), "{file}: {}", ran.err);
        let name = file.rsplit('/').next().unwrap();
        assert!(ran.err.contains(name), "{file}: {}", ran.err);
    }
}

/// JSON of agents is as deep as YAML.
#[test]
fn json_has_a_depth() {
    let workflow = "steps: [ { id: plan, role: planner, writes: { plan.json: { json: {} } }, retry: { attempts_max: 1 } } ]";
    let nested = |levels: u32| {
        format!(
            "plan) wrote plan.json \"$(printf '[%.0s' $(seq {levels}); printf ']%.0s' $(seq {levels}))\";;"
        )
    };
    let said = message(workflow, &nested(65));
    assert!(said.contains("plan.json") && said.contains("nested deeper than 64 levels"), "{said}");
    Scratch::with(workflow, &nested(64)).run(0);
}

#[test]
fn an_order_has_a_size() {
    let scratch = Scratch::with(
        "steps: [ { id: slow, role: coder }, { id: agree, needs: [], decide: \"Go?\", answers: { approved: pass, no: block } } ]",
        "slow) mark at-work; await go; ok;;",
    );
    let engine = scratch.start(&["run", "w", "x"]);
    let run = engine.id();
    scratch.marked("at-work");
    let answers = scratch.root().join("answers.yaml");
    std::fs::write(&answers, format!("agree: \"no: {}\"\n", "x".repeat(2_000_000))).unwrap();
    let ran = scratch.gatewright(&["answer", &run, "--file", answers.to_str().unwrap()]);
    assert!(ran.code != 0 && ran.err.contains("bytes"), "{}: {}", ran.code, ran.err);
    scratch.mark("go");
    engine.ended().exits(10);
}

#[test]
fn a_junit_report_has_a_size() {
    let said = message(
        "
checks: { tests: { run: \"head -c 33554433 /dev/zero > r.xml\", junit: r.xml } }
steps: [ { id: prove, check: tests, retry: { attempts_max: 1 } } ]
",
        "",
    );
    assert!(said.contains("33554432"), "{said}");
}

#[test]
fn words_have_a_size() {
    let review = r#"{"approved": true, "issues": [], "summary": "SUMMARY"}"#
        .replace("SUMMARY", "$(head -c 300000 /dev/zero | tr '\\0' x)");
    let said = message(
        "steps: [ { id: code, role: coder, reply: review, retry: { attempts_max: 1 } } ]",
        &format!("code) echo '{}';;", review.replace("$(", "'\"$(").replace("x)", "x)\"'")),
    );
    assert!(said.contains("262144"), "{said}");
}

/// The time that counts is the step's, if it has one.
#[test]
fn a_check_that_takes_too_long_names_its_time() {
    let said = message(
        "
checks: { slow: { run: sleep 60, timeout: 20m } }
steps: [ { id: prove, check: slow, timeout: 300ms, retry: { attempts_max: 1 } } ]
",
        "",
    );
    assert!(said.contains("300 ms"), "{said}");
}

/// Where it runs, with what, and how long it took.
#[test]
fn a_check_has_its_folder_its_environment_and_its_duration() {
    let scratch = Scratch::with(
        "
checks: { here: { run: \"test $(basename $PWD) = src && test $COLOUR = blue && sleep 0.3\", cwd: src, env: { COLOUR: blue } } }
steps: [ { id: prove, check: here } ]
",
        "",
    );
    let run = scratch.run(0);
    let events = scratch.events_of(&run, "step.attempt.ended");
    let check = &events[0]["report"]["check"];
    assert!(check["duration_ms"].as_u64().unwrap() >= 300 && check["exit_code"] == 0, "{}", events[0]);
}

#[test]
fn a_plan_has_a_number_of_steps() {
    let scratch = Scratch::new();
    let steps = |line: &str, times: usize| -> String {
        (0..times).map(|n| format!("  - {{ id: s{n}, {line} }}\n")).collect()
    };
    scratch.workflow("inner", &format!("steps:\n{}", steps("role: coder", 300)));
    scratch.workflow("w", &format!("steps:\n{}", steps("run: inner", 400)));
    let ran = scratch.gatewright(&["run", "w", "x"]).exits(3);
    assert!(ran.err.contains("at most 100000 are planned"), "{}", ran.err);
}
