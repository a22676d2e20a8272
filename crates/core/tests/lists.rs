//! Lists of fan-outs: what is a list that can be worked on, and what its author is told of one that cannot.

mod common;

use common::{draft, items};
use gatewright_core::{
    fact::Item,
    plan::{FanOut, ItemFailure},
    validate_items,
};

fn fan_out(items_max: usize) -> FanOut {
    FanOut {
        over: "list.json".into(),
        body: Vec::new(),
        parallel_max: 1,
        waves: false,
        items_max,
        on_item_failure: ItemFailure::Block,
        planned_by: None,
    }
}

fn check(list: &[(&str, &[&str])]) -> Result<(), String> {
    validate_items(&fan_out(100), &items(list))
}

#[test]
fn a_list_holds_exactly_as_many_items_as_allowed() {
    let list: Vec<Item> = items(&[("a", &[]), ("b", &[]), ("c", &[])]);
    assert_eq!(validate_items(&fan_out(3), &list), Ok(()));
    assert_eq!(
        validate_items(&fan_out(2), &list),
        Err("the list has 3 items, at most 2 are allowed (`items_max`)".to_owned())
    );
    assert_eq!(
        validate_items(&fan_out(1), &list),
        Err("the list has 3 items, at most 1 are allowed (`items_max`)".to_owned())
    );
}

#[test]
fn a_key_is_a_file_name() {
    for (key, shown) in
        [("", ""), (".", "."), ("..", ".."), ("a/b", "a/b"), ("a\\b", "a\\\\b"), ("a\nb", "a\\nb")]
    {
        assert_eq!(
            check(&[("fine", &[]), (key, &[])]),
            Err(format!("item 2 has the id `{shown}`, which cannot be a file name"))
        );
    }
    assert_eq!(check(&[("...", &[]), ("a.b", &[]), ("ä", &[])]), Ok(()));
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    assert_eq!(
        check(&[("a", &["x"]), ("a", &[]), ("b", &["b"]), ("", &[])]),
        Err("the id `a` is used twice; item 4 has the id ``, which cannot be a file name; `a` depends on `x`, which \
             is not in the list; `b` depends on itself"
            .to_owned())
    );
}

#[test]
fn a_circle_is_found_wherever_it_is_and_named_from_where_it_closes() {
    let circle = |list: &[(&str, &[&str])]| check(list).unwrap_err();
    let starts = "the dependencies run in a circle: ";
    assert_eq!(circle(&[("a", &["b"]), ("b", &["a"])]), format!("{starts}a → b → a"));
    assert_eq!(
        circle(&[("a", &["b"]), ("b", &["c"]), ("c", &["d"]), ("d", &["b"])]),
        format!("{starts}b → c → d → b")
    );
    assert_eq!(
        circle(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b", "d"]), ("d", &["a", "c"])]),
        format!("{starts}c → d → c")
    );
    // Two ways to the same place are no circle.
    assert_eq!(check(&[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c", "a"])]), Ok(()));
    assert_eq!(check(&[("d", &[]), ("a", &["c", "d"]), ("b", &["a", "c"]), ("c", &["d"])]), Ok(()));
}

#[test]
fn a_list_without_items_passes_with_a_note() {
    let mut run = draft().fan_out("f").agent("f/*/do").run();
    run.list("f", &[]);
    assert!(run.why("f").contains("`list.json` holds no items: nothing was done"), "{}", run.why("f"));
}

#[test]
fn lost_items_are_counted_and_named() {
    use gatewright_core::fact::ProcessEnd;
    let mut run = draft().fan_out("f").agent("f/*/do").attempts(1).agent("keep").run();
    run.list("f", &[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &[])]);
    run.dies("f/a/do", ProcessEnd::Exited { code: 1 });
    run.done(&["f/d/do"]);
    assert_eq!(run.why("f"), "it is blocked (items_failed): 3 of 4 items did not pass: a, b, c ");
    let by = |key: &str| match &run.state.fan_outs["f"].items[key].end {
        Some(gatewright_core::event::ItemEnd::Blocked { by }) => by.join(", "),
        other => format!("{other:?}"),
    };
    assert_eq!((by("b").as_str(), by("c").as_str()), ("a", "b"));
}

#[test]
fn a_group_that_is_lost_names_those_it_was_lost_through() {
    use gatewright_core::{event::ItemEnd, fact::ProcessEnd};
    let died = ProcessEnd::Exited { code: 1 };
    let mut run = draft()
        .sub_run("sub")
        .agent("sub/a")
        .attempts(1)
        .agent("sub/b")
        .fan_out("f")
        .agent("f/*/do")
        .attempts(1)
        .agent("write")
        .panel("look", &["write"], &["one", "two"])
        .needs(&["write"])
        .of("look/one")
        .attempts(1)
        .agent("keep")
        .run();
    run.list("f", &[("a", &[]), ("b", &[])]);
    run.done(&["write", "sub/b", "f/b/do"]);
    run.dies("sub/a", died.clone());
    run.dies("f/a/do", died.clone());
    run.ends("look/two", common::reply(gatewright_core::outcome::Outcome::Passed));
    run.dies("look/one", died);
    assert_eq!(run.why("sub"), "it is blocked (items_failed): inside it: sub/a ");
    assert_eq!(run.why("look"), "it is blocked (items_failed): no verdict from look/one ");
    assert_eq!(run.state.fan_outs["f"].items["a"].end, Some(ItemEnd::Failed { by: vec!["f/a/do".into()] }));
    // Who goes on wants the lost ones, not the groups around them, tried again.
    run.done(&["keep"]);
    run.resume();
    run.wants("run f/a/do#2, run look/one#2, run sub/a#2");
    assert_eq!(run.state.steps["sub/b"].attempts, 1);
}

#[test]
fn a_group_that_is_lost_through_nobody_is_tried_again_itself() {
    use gatewright_core::event::Event;
    let mut run = draft().sub_run("sub").agent("sub/fix").dormant().agent("sub/b").needs(&["sub/fix"]).run();
    assert_eq!(run.blocked("sub"), "items_failed");
    let events = run.feed(gatewright_core::input::Input::Resume {
        raise: Default::default(),
        substitutes: Default::default(),
    });
    assert!(
        events.iter().any(|event| matches!(event, Event::Invalidated { steps, .. } if steps.contains("sub"))),
        "{events:?}"
    );
}
