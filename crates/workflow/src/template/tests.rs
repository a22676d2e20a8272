//! What the language promises, one behaviour a test.

use serde_json::json;

use super::*;

fn context() -> Json {
    json!({
        "request": "Add <a> & \"b\"",
        "run": {"id": "ship-1", "started": 1_767_323_045_006_i64, "ended": null},
        "steps": {"review": {"outcome": "passed", "summary": "fine", "rounds": 2}, "plan": {"rounds": 1}},
        "notes": ["one", "two\nlines"],
        "rounds": {"b": 1, "a": 2},
    })
}

fn rendered(source: &str) -> String {
    Templates::new().render("t", source, &context()).unwrap()
}

fn failed(source: &str) -> TemplateProblem {
    Templates::new().render("t", source, &context()).unwrap_err()
}

fn value(expression: &str) -> Json {
    Templates::new().evaluate("e", expression, &context()).unwrap()
}

fn no_value(expression: &str) -> TemplateProblem {
    Templates::new().evaluate("e", expression, &context()).unwrap_err()
}

#[test]
fn text_is_not_escaped_and_plain_text_stays_itself() {
    assert_eq!(rendered("{{ request }}"), "Add <a> & \"b\"");
    assert_eq!(Templates::new().render("x.html", "{{ request }}", &context()).unwrap(), "Add <a> & \"b\"");
    for plain in ["", "a\n", "a\n\n", "  { } % # \u{1f600}\r\n"] {
        assert_eq!(rendered(plain), plain);
    }
}

#[test]
fn block_tags_leave_no_empty_lines() {
    let source = "Notes:\n{% for note in notes %}\n  {% if loop.first %}\n- {{ note }}\n  {% endif %}\n{% endfor %}\nend\n";
    assert_eq!(rendered(source), "Notes:\n- one\nend\n");
}

#[test]
fn a_missing_name_is_named_with_the_nearest_of_its_level() {
    let problem = failed("one\n  {{ steps.reveiw.outcome }}");
    assert_eq!(problem.message, "`steps.reveiw` is not defined");
    assert_eq!((problem.line, problem.column), (2, Some(6)));
    assert_eq!(problem.hint.as_deref(), Some("did you mean `review`?"));

    let problem = failed("{{ stepz }}");
    assert_eq!(problem.message, "`stepz` is not defined");
    assert_eq!(problem.hint.as_deref(), Some("did you mean `steps`?"));

    let problem = failed("{{ steps[\"review\"].outcom }}");
    assert_eq!(problem.hint.as_deref(), Some("did you mean `outcome`?"));
    let problem = failed("{{ steps.plan.zzzzzz | slug }}");
    assert_eq!(
        (problem.message.as_str(), problem.hint.as_deref()),
        ("`steps.plan.zzzzzz` is not defined", Some("known: `rounds`"))
    );
}

#[test]
fn undefined_is_never_a_value() {
    for expression in [
        "steps.review.nope",
        "nope == 'x'",
        "nope != 'x'",
        "'x' in nope",
        "nope in ['x']",
        "not nope",
        "nope and true",
        "nope or true",
        "nope | length",
        "nope | tojson",
        "nope | bullets",
        "nope | iso",
        "nope ~ 'x'",
        "nope + 1",
        "{'a': nope}",
        "[nope]",
    ] {
        let problem = no_value(expression);
        let named = problem.message.contains("nope") || problem.message.contains("not defined");
        assert!(named, "{expression}: {problem}");
    }
    assert_eq!(no_value("1 if false").message, "`1 if false` has no value");
    assert_eq!(value("nope is defined"), json!(false));
    assert_eq!(value("nope | default('x')"), json!("x"));
}

#[test]
fn values_keep_their_type_and_order() {
    assert_eq!(value("steps.review.rounds + 1"), json!(3));
    assert_eq!(value("run.ended"), json!(null));
    assert_eq!(value("rounds").to_string(), r#"{"b":1,"a":2}"#);
    assert_eq!(value("{'z': 1, 'a': [1.0, true]}").to_string(), r#"{"z":1,"a":[1.0,true]}"#);
    assert_eq!(value("notes | map('upper') | list"), json!(["ONE", "TWO\nLINES"]));
    assert_eq!(value("rounds | items"), json!([["b", 1], ["a", 2]]));
}

#[test]
fn only_true_and_false_are_conditions() {
    let templates = Templates::new();
    assert_eq!(templates.holds("g", "steps.review.rounds >= 2", &context()), Ok(true));
    assert_eq!(templates.holds("g", "steps.review.outcome == 'failed'", &context()), Ok(false));
    let problem = templates.holds("g", "steps.review.outcome", &context()).unwrap_err();
    assert_eq!(problem.message, "`steps.review.outcome` is neither true nor false");
}

#[test]
fn limits_hold() {
    let endless = "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}";
    assert!(failed(endless).message.contains("200000 instructions"));
    let large = "{% for a in range(2000) %}{{ 'x' * 1000 }}{% endfor %}";
    assert!(failed(large).message.contains("1048576 bytes"));
    let deep = "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}";
    assert!(failed(deep).message.contains("recursion"), "{}", failed(deep));
    let nested = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(no_value(&nested).message.contains("syntax error"));
}

/// None of these is made first and found too large then.
#[test]
fn no_filter_makes_more_than_one_value_may_have() {
    let text = "'x' * 1000000";
    for (expression, what) in [
        (format!("({text}) | replace('x', {text})"), "`replace` would make"),
        (format!("({text}) | replace('', {text})"), "`replace` would make"),
        (format!("range(1000) | join({text})"), "`join` would make"),
        (format!("range(1000) | join(d={text})"), "`join` would make"),
        (format!("({text}) | join({text})"), "`join` would make"),
        (format!("([{text}] * 1000) | join"), "`join` would make"),
        (format!("([{text}] * 1000) | string"), "`string` would make"),
        (format!("([{text}] * 1000) | bullets"), "`bullets` would make"),
        ("('\\n' * 1000000) | indent(200)".to_owned(), "`indent` would make"),
        (format!("[{text}] * 1000"), "the result has"),
        (format!("{{'a': [{text}] * 1000}} | tojson"), "the result has"),
    ] {
        let said = no_value(&expression).message;
        assert!(said.contains(what) && said.contains("more than 67108864 bytes"), "{expression}: {said}");
    }
    assert_eq!(value("('x' * 1000000) | replace('x', 'yy') | length"), 2_000_000);
    assert_eq!(value("range(3) | join('-')"), "0-1-2");
    assert_eq!(value("['a', 'b'] | map('upper') | join(', ')"), "A, B");
    assert_eq!(value("'a.b.c' | replace('.', '') | string"), "abc");
}

#[test]
fn nothing_outside_can_be_reached() {
    for source in
        ["{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% macro a() %}{% endmacro %}"]
    {
        assert!(failed(source).message.contains("syntax error"), "{source}");
    }
    assert!(failed("{{ debug() }}").message.contains("unknown function"));
}

#[test]
fn check_finds_everything_wrong_with_its_place() {
    let templates = Templates::new();
    assert_eq!(
        templates.check("t", "{% for a in b %}{{ a | slug | tojson }}{{ loop.cycle(1, 2) }}{% endfor %}"),
        []
    );
    let problems = templates.check(
        "t",
        "{{ a | slgu }}\n{% if b is noen %}{{ c() }}{{ d | indnt(2) }}{{ e.split(',') }}{% endif %}",
    );
    let found: Vec<(usize, Option<usize>, &str)> =
        problems.iter().map(|problem| (problem.line, problem.column, problem.message.as_str())).collect();
    assert_eq!(
        found,
        [
            (1, Some(8), "there is no filter `slgu`"),
            (2, Some(12), "there is no test `noen`"),
            (2, Some(22), "there is no function `c`"),
            (2, Some(35), "there is no filter `indnt`"),
            (2, Some(51), "there is no method `split`"),
        ]
    );
    assert_eq!(problems[0].hint.as_deref(), Some("did you mean `slug`?"));
    assert_eq!(problems[4].hint.as_deref(), Some("did you mean `split`?"));

    let problems = templates.check("t", "a\n{{ b c }}");
    assert_eq!((problems.len(), problems[0].line, problems[0].column), (1, 2, Some(6)), "{problems:?}");
    assert_eq!(templates.check_expression("e", "a ==").len(), 1);
    assert_eq!(templates.check_expression("e", "a | nope")[0].line, 1);
    assert_eq!(templates.check("t", "{% if a %}").len(), 1);
}

#[test]
fn names_that_come_from_the_context_are_found() {
    let templates = Templates::new();
    let names: Vec<String> = templates
        .free_variables("steps.review.outcome == word and range(n)[0] in others[1:]")
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(names, ["n", "others", "steps", "word"]);
    let text = "{% set x = x %}{% for a, b in c if b %}{{ a }}{{ loop.index }}{{ d | default(e) }}{% else %}{{ a }}{% endfor %}{{ x }}";
    let names: Vec<String> = templates.free_variables_of_text(text).unwrap().into_iter().collect();
    assert_eq!(names, ["a", "c", "d", "e", "x"]);
    let paths = templates.used_paths("  steps.review[\"outcome\"] == steps[name].x").unwrap();
    let found: Vec<(String, usize)> = paths.iter().map(|used| (used.path.join("/"), used.column)).collect();
    assert_eq!(found, [("steps/review/outcome".into(), 3), ("steps".into(), 30), ("name".into(), 36)]);
    assert!(templates.free_variables("a b").is_err());
}

#[test]
fn s0_02_slugs_are_short_and_url_safe() {
    use filters::slug;
    for (text, expected) in [
        ("Add a Greeting", "add-a-greeting"),
        ("  --Fix: don't  break/it!  ", "fix-dont-break-it"),
        ("Größe über Straße", "groesse-ueber-strasse"),
        ("naïve café Ångström", "naive-cafe-angstroem"),
        ("", "run"),
        ("日本語", "run"),
        ("🚀", "run"),
        ("Make the login page remember the user for thirty days", "make-the-login-page-remember"),
        ("Donaudampfschifffahrtsgesellschaftskapitän", "donaudampfschifffahrtsgesellsc"),
    ] {
        assert_eq!(slug(text), expected, "{text:?}");
    }
}

#[test]
fn our_filters() {
    assert_eq!(rendered("{{ notes | bullets }}"), "- one\n- two\n  lines");
    assert_eq!(rendered("{{ [] | bullets }}|{{ [1, {'a': 1}] | bullets }}"), "|- 1\n- {\"a\":1}");
    assert_eq!(rendered("{{ notes[1] | blockquote }}"), "> two\n> lines");
    assert_eq!(rendered("{{ \"it's; rm -rf\" | quote }}"), r"'it'\''s; rm -rf'");
    assert_eq!(rendered("{{ notes[1] | indent(2) }}"), "two\n  lines");
    assert_eq!(rendered("{{ request | tojson }}"), r#""Add <a> & \"b\"""#);
    assert_eq!(rendered("{{ rounds | tojson(indent=2) }}"), "{\n  \"b\": 1,\n  \"a\": 2\n}");
    assert_eq!(rendered("{{ run.started | iso }}"), "2026-01-02T03:04:05.006Z");
    assert_eq!(
        rendered("{{ 0 | iso }} {{ 0 | date }} {{ -1 | seconds }}"),
        "1970-01-01T00:00:00.000Z 1970-01-01 -1"
    );
    assert_eq!(rendered("{{ run.started | date }} {{ run.started | seconds }}"), "2026-01-02 1767323045");
    assert_eq!(rendered("{{ 3 | pad(3) }} {{ 1234 | pad(3) }}"), "003 1234");
    assert_eq!(rendered("{{ notes[1] | indent(width=1, first=true) }}"), " two\n lines");
    assert!(no_value("'x' | indent(10**15)").message.contains("at most 200 columns"));
    assert_eq!(value("run.ended | iso"), json!(null));
    assert!(no_value("'x' | iso").message.contains("`iso` wants a time in milliseconds"));
    assert!(no_value("request | bullets").message.contains("`bullets` wants a list"));
}

proptest::proptest! {
    #[test]
    fn slugs_are_always_usable(text in "\\PC{0,80}") {
        let slug = filters::slug(&text);
        assert!((1..=filters::SLUG_CHARS_MAX).contains(&slug.len()));
        assert!(slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        assert!(!slug.starts_with('-') && !slug.ends_with('-') && !slug.contains("--"));
    }

    #[test]
    fn no_source_makes_it_panic(source in "[a-z{}%#| .()\\[\\]'\"=0-9\\n-]{0,60}") {
        let templates = Templates::new();
        let _ = templates.check("t", &source);
        let _ = templates.render("t", &source, &context());
        let _ = templates.evaluate("t", &source, &context());
        let _ = templates.used_paths(&source);
    }
}

/// Whoever reads, compiles or drops an expression goes as deep as it has parts: a stack is not endless.
#[test]
fn an_expression_without_end_is_a_problem_and_not_the_end_of_the_program() {
    let templates = Templates::new();
    for part in ["not ", "-", "1 ~ ", "a.", "a | upper | "] {
        let expression = format!("{}1", part.repeat(200_000));
        let said = templates.evaluate("gate", &expression, &json!({"a": "x"})).unwrap_err();
        assert!(said.message.contains("more than 4096 bytes"), "{part}: {said}");
        assert!(!templates.check_expression("gate", &expression).is_empty(), "{part}");
        for text in [format!("text {{{{ {expression} }}}}"), format!("{{% if {expression} %}}x{{% endif %}}")]
        {
            assert!(templates.render("prompt", &text, &json!({})).is_err(), "{part}");
            assert!(templates.check("prompt", &text)[0].message.contains("more than 4096 bytes"), "{part}");
        }
    }
    // Not what stands between them.
    let long = format!("{{{{ 1 }}}}{}{{{{ 2 }}}}", "x".repeat(10_000));
    assert_eq!(templates.render("prompt", &long, &json!({})).unwrap().len(), 10_002);
}
