//! Files that the four methods need, and what must never leave this module.

use proptest::prelude::*;
use serde_json::Map;

use super::*;

fn projection(path: &str, format: ProjectionFormat, content: Value) -> Projection {
    Projection { path: path.to_owned(), format, content, each: None, when: None, schema: None }
}

fn json_of(content: Value) -> Projection {
    projection("out.json", ProjectionFormat::Json, content)
}

fn context() -> Value {
    json!({
        "run": {"id": "add-login-1", "request": "Add a \"login\"\nplease", "started_ms": 1_767_323_045_000_i64,
                "ended_ms": null, "state": "running"},
        "phases": [
            {"name": "specify", "started_ms": 1_767_323_045_000_i64, "done": true, "notes": ["ok: fine", "- dash"]},
            {"name": "design", "started_ms": 1_767_323_999_000_i64, "done": false, "notes": []},
        ],
        "retries": {"T-2": {"FIX_TESTS": 1}, "T-1": {"FIX_TESTS": 0}},
    })
}

fn files(projection: &Projection) -> Vec<ProjectedFile> {
    project(projection, &context(), &Templates::new()).unwrap()
}

fn text(projection: &Projection) -> String {
    let mut files = files(projection);
    assert_eq!(files.len(), 1);
    String::from_utf8(files.remove(0).bytes.unwrap()).unwrap()
}

fn problem(projection: &Projection) -> String {
    project(projection, &context(), &Templates::new()).unwrap_err().to_string()
}

#[test]
fn s0_06_metadata_has_its_fields_in_the_skeletons_order() {
    let metadata = json_of(json!({
        "taskId": {"$expr": "run.id"},
        "feature": "{{ run.request }}",
        "started": {"$expr": "run.started_ms | iso"},
        "currentStep": {"$expr": "phases | length"},
        "status": {"$if": "run.ended_ms is none", "then": "in_progress", "else": "completed"},
        "completedAt": {"$if": "run.ended_ms is not none", "then": {"$expr": "run.ended_ms | iso"}},
        "command": "develop-feature",
    }));
    let expected = "{\n  \"taskId\": \"add-login-1\",\n  \"feature\": \"Add a \\\"login\\\"\\nplease\",\n  \
                    \"started\": \"2026-01-02T03:04:05.000Z\",\n  \"currentStep\": 2,\n  \
                    \"status\": \"in_progress\",\n  \"command\": \"develop-feature\"\n}\n";
    assert_eq!(text(&metadata), expected);
}

#[test]
fn s2_24_lists_become_objects_with_computed_keys() {
    let meta = json_of(json!({
        "phases": {"$for": "phase in phases", "$key": "phase.name", "each": {
            "started": {"$expr": "phase.started_ms | iso"},
            "verified": false,
            "reviewerNotes": {"$expr": "phase.notes"},
        }},
        "open": {"$for": "phase in phases", "each": {"$if": "not phase.done", "then": {"$expr": "phase.name"}}},
        "retry_counts": {"$for": "task, counts in retries | items", "$key": "task", "each": {"$expr": "counts"}},
        "none": {"$for": "x in []", "$key": "x", "each": 1},
        "{{ run.state }}": [1, "{{ 1 + 1 }}", {"$expr": "1 + 2"}],
        "$schema": "x",
    }));
    let value: Value = serde_json::from_str(&text(&meta)).unwrap();
    assert_eq!(value["phases"]["specify"]["reviewerNotes"], json!(["ok: fine", "- dash"]));
    assert_eq!(value["open"], json!(["design"]));
    assert_eq!(value["retry_counts"].to_string(), r#"{"T-2":{"FIX_TESTS":1},"T-1":{"FIX_TESTS":0}}"#);
    assert_eq!((&value["none"], &value["running"]), (&json!({}), &json!([1, "2", 3])));
}

#[test]
fn s2_42_history_is_a_text() {
    let source = "{% for phase in phases %}\n## Phase: {{ phase.name }}\n{{ phase.notes | bullets }}\n---\n{% endfor %}";
    let history = projection(".review-history.md", ProjectionFormat::Markdown, json!(source));
    assert_eq!(text(&history), "## Phase: specify\n- ok: fine\n- - dash\n---\n## Phase: design\n\n---\n");
    let ignore = projection(".gitignore", ProjectionFormat::Text, json!("*"));
    assert_eq!(text(&ignore), "*\n");
}

#[test]
fn json_lines_have_one_compact_object_a_line() {
    let mut lines = projection(
        "history.jsonl",
        ProjectionFormat::JsonLines,
        json!({"$for": "phase in phases", "each": {"name": {"$expr": "phase.name"}, "at": {"$expr": "phase.started_ms"}}}),
    );
    lines.schema = Some(json!({"required": ["name"]}));
    assert_eq!(
        text(&lines),
        "{\"name\":\"specify\",\"at\":1767323045000}\n{\"name\":\"design\",\"at\":1767323999000}\n"
    );
    lines.schema = Some(json!({"properties": {"name": {"const": "specify"}}}));
    assert!(problem(&lines).contains("history.jsonl, line 2, /name"), "{}", problem(&lines));
    lines.content = json!({});
    assert!(problem(&lines).contains("made from a list"));
}

#[test]
fn yaml_reads_as_it_was_meant() {
    let tasks = projection(
        "tasks.yaml",
        ProjectionFormat::Yaml,
        json!({"project": {"name": "yes"}, "tasks": [{"id": "1.0", "notes": {"$expr": "phases[0].notes"}, "goal": "{{ run.request }}"}]}),
    );
    let text = text(&tasks);
    let expected = json!({"project": {"name": "yes"}, "tasks": [{"id": "1.0", "notes": ["ok: fine", "- dash"], "goal": "Add a \"login\"\nplease"}]});
    assert_eq!(parse_yaml_value(&text).unwrap(), expected);
    assert!(text.starts_with("project:\n  name: \"yes\"\n"), "{text}");
}

#[test]
fn each_makes_a_file_per_element_and_when_removes_it() {
    let mut specs =
        projection("specs/{{ item.name }}.md", ProjectionFormat::Markdown, json!("# {{ item.name }}"));
    specs.each = Some("phases".to_owned());
    specs.when = Some("item.done".to_owned());
    assert_eq!(
        files(&specs),
        [
            ProjectedFile { path: "specs/specify.md".to_owned(), bytes: Some(b"# specify\n".to_vec()) },
            ProjectedFile { path: "specs/design.md".to_owned(), bytes: None },
        ]
    );
    specs.path = "specs/all.md".to_owned();
    assert!(problem(&specs).contains("is that of two elements"));
    specs.each = Some("retries".to_owned());
    assert!(problem(&specs).contains("not a list"));
    specs.each = None;
    specs.when = Some("run.state".to_owned());
    assert!(problem(&specs).contains("neither true nor false"));
}

#[test]
fn s1_29_a_schema_is_checked_against_what_was_written() {
    let mut status =
        json_of(json!({"current_state": {"$expr": "run.state"}, "items": [{"n": 1}, {"n": "x"}]}));
    status.schema = Some(json!({
        "properties": {
            "current_state": {"enum": ["DONE", "PLAN"]},
            "items": {"items": {"properties": {"n": {"type": "integer"}}}},
        }
    }));
    let Err(ProjectionProblem::Schema { path, violations }) = project(&status, &context(), &Templates::new())
    else {
        panic!("the schema must refuse it");
    };
    let places: Vec<&str> = violations.iter().map(|violation| violation.place.as_str()).collect();
    assert_eq!(
        (path.as_str(), places),
        ("out.json", vec!["out.json, /current_state", "out.json, /items/1/n"])
    );
    status.format = ProjectionFormat::Yaml;
    assert!(problem(&status).contains("out.json, /items/1/n"));
    status.schema = Some(json!({"type": 7}));
    assert!(problem(&status).contains("schema"));
    assert!(matches!(check(&status, &Templates::new())[..], [ProjectionProblem::Content { .. }]));
}

#[test]
fn paths_stay_inside() {
    for path in
        ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a\\b", "a\nb", "{{ run.request }}"]
    {
        let found =
            project(&projection(path, ProjectionFormat::Text, json!("x")), &context(), &Templates::new());
        assert!(matches!(found, Err(ProjectionProblem::Path { .. })), "{path:?}: {found:?}");
    }
    let deep = projection("a/.b/{{ run.id }}.json", ProjectionFormat::Json, json!(1));
    assert_eq!(files(&deep)[0].path, "a/.b/add-login-1.json");
}

#[test]
fn mistakes_in_a_skeleton_are_named_with_their_place() {
    for (content, place) in [
        (json!({"a": {"$expr": "run.nope"}}), "content/a: content/a:1:1: `run.nope` is not defined"),
        (json!({"a": [{"$expr": "1", "b": 2}]}), "content/a/0: `b` does not belong beside `$expr`"),
        (json!({"a": {"$exp": "1"}}), "content/a: there is no instruction `$exp`"),
        (json!({"a": {"$if": "true"}}), "content/a: `then` is missing"),
        (json!({"a": {"$for": "x of y", "each": 1}}), "content/a: `$for` wants `name in list`"),
        (
            json!({"a": {"$for": "x in phases", "$key": "'k'", "each": 1}}),
            "content/a: the key `k` appears twice",
        ),
        (
            json!({"a": {"$for": "x, y in phases", "each": 1}}),
            "content/a: an element of `phases` has not 2 parts",
        ),
        (json!({"a": {"$expr": 1}}), "content/a: `$expr` wants an expression in a text"),
        (json!({"$if": "false", "then": 1}), "its content is left out"),
    ] {
        let found = problem(&json_of(content.clone()));
        assert!(found.contains(place), "{content}: {found}");
    }
}

#[test]
fn check_needs_no_run_and_finds_everything() {
    let mut wrong = json_of(
        json!({"a": {"$expr": "x | nope"}, "b": "{{ x", "c": {"$for": "y in", "each": "{{ y | slgu }}"}}),
    );
    wrong.path = "{{ a.b() }}".to_owned();
    wrong.when = Some("a ==".to_owned());
    let problems = check(&wrong, &Templates::new());
    assert_eq!(problems.len(), 3, "{problems:?}");
    wrong.content =
        json!({"a": {"$expr": "x | nope"}, "b": "{{ x", "c": {"$for": "y in z", "each": "{{ y | slgu }}"}});
    let problems = check(&wrong, &Templates::new());
    assert_eq!(problems.len(), 5, "{problems:?}");
    wrong.format = ProjectionFormat::Text;
    assert!(
        check(&wrong, &Templates::new())
            .iter()
            .any(|found| matches!(found, ProjectionProblem::Content { .. }))
    );
}

#[test]
fn equal_contexts_give_equal_bytes() {
    let all = json_of(json!({"all": {"$expr": "run"}, "retries": {"$expr": "retries"}}));
    let first = files(&all);
    for _ in 0..20 {
        assert_eq!(files(&all), first);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let awkward = prop::sample::select(vec![
        '\n',
        ' ',
        '\t',
        '\r',
        '#',
        ':',
        '-',
        'a',
        '"',
        '\'',
        '\\',
        '{',
        '}',
        '%',
        '|',
        '>',
        '\0',
        '\u{7f}',
        '\u{85}',
        '\u{2028}',
        '\u{feff}',
        '\u{1f600}',
        '1',
        '.',
        '~',
        '&',
        '*',
        '!',
        '[',
        ']',
        ',',
        '?',
        '@',
        '`',
        '=',
        '<',
    ]);
    let words = [
        "yes",
        "no",
        "null",
        "~",
        "true",
        "1",
        "1.0",
        "0x1",
        "1e3",
        ".inf",
        "---",
        "2026-01-02",
        "12:30",
        "<<",
    ];
    prop_oneof![
        prop::collection::vec(awkward, 0..12)
            .prop_map(|characters| characters.into_iter().collect::<String>()),
        prop::collection::vec(any::<char>(), 0..10)
            .prop_map(|characters| characters.into_iter().collect::<String>()),
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn s1_70_user_text_survives_every_format(user_text in any_text(), value in any_value()) {
        let context = json!({"text": user_text, "value": value});
        let templates = Templates::new();
        let content = json!({"a": {"$expr": "text"}, "b": "{{ text }}", "c": {"$expr": "value"}, "d": ["x{{ text }}y"],
                             "e": {"$for": "t in [text]", "$key": "t", "each": 1}});
        let expected = json!({"a": user_text, "b": user_text, "c": value, "d": [format!("x{user_text}y")], "e": {&user_text: 1}});
        for format in [ProjectionFormat::Json, ProjectionFormat::Yaml, ProjectionFormat::JsonLines] {
            let wanted = match format {
                ProjectionFormat::JsonLines => json!([content]),
                _ => content.clone(),
            };
            let files = project(&projection("out", format, wanted), &context, &templates).unwrap();
            let text = String::from_utf8(files[0].bytes.clone().unwrap()).unwrap();
            prop_assert!(text.ends_with('\n'));
            let read = match format {
                ProjectionFormat::Yaml => parse_yaml_value(&text).unwrap(),
                ProjectionFormat::JsonLines => {
                    prop_assert_eq!(text.matches('\n').count(), 1);
                    parse_json_value(&text).unwrap()
                }
                _ => parse_json_value(&text).unwrap(),
            };
            prop_assert_eq!(&read, &expected);
        }
    }
}
