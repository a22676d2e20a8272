//! The JSON Schema of a reply, for agents that can be told one. It helps the model; whether a reply holds is decided by
//! its reader.

use gatewright_agents::ReplySchema;
use serde_json::{Value, json};

use super::{Ladder, ReplyFormat};

/// Nothing for a reply that is no JSON.
pub fn schema_of(format: ReplyFormat, ladder: Option<Ladder>) -> Option<ReplySchema> {
    match format {
        ReplyFormat::Review => {
            let review = review(ladder.is_some_and(Ladder::says_status));
            Some(ReplySchema { open: review.clone(), closed: Some(closed(review)) })
        }
        ReplyFormat::Task => Some(ReplySchema { open: task(), closed: Some(closed(task())) }),
        // What its `artifacts` hold differs by role: it cannot be closed.
        ReplyFormat::Universal => Some(ReplySchema { open: universal(), closed: None }),
        ReplyFormat::Brief | ReplyFormat::Completion => None,
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn texts() -> Value {
    list(json!({"type": "string"}))
}

fn questions() -> Value {
    let question =
        json!({"question": {"type": "string"}, "options": texts(), "recommendation": {"type": "string"}});
    list(object(question, &["question"]))
}

fn finding(problem: &str) -> Value {
    let text = || json!({"type": "string"});
    let fields = json!({
        "severity": text(), problem: text(), "location": text(), "suggestion": text(), "category": text(),
        "id": text(), "route": text(),
    });
    object(fields, &["severity", problem])
}

fn review(says_status: bool) -> Value {
    let text = || json!({"type": "string"});
    let (judgement, kind, problem) = if says_status {
        ("status", text(), "issue")
    } else {
        ("approved", json!({"type": "boolean"}), "description")
    };
    let fields = json!({
        judgement: kind, "issues": list(finding(problem)), "summary": text(),
        "questions": questions(), "back_to": text(), "reason": text(),
    });
    object(fields, &[judgement, "issues", "summary"])
}

fn universal() -> Value {
    let (text, flag) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let gates = json!({
        "meets_definition_of_done": flag, "needs_review": flag, "needs_tests": flag, "security_concerns": texts(),
    });
    let next = json!({"recommended_agent": text, "recommended_task_id": text, "reason": text});
    let fields = json!({
        "status": text, "summary": text, "artifacts": {"type": "object"}, "gates": object(gates, &[]),
        "next": object(next, &[]), "questions": questions(), "back_to": text, "reason": text,
    });
    object(fields, &["status", "summary", "artifacts", "gates", "next"])
}

fn task() -> Value {
    let text = json!({"type": "string"});
    let fields = json!({
        "taskId": text, "status": text, "summary": text, "filesModified": texts(), "errors": texts(),
        "requestedFiles": texts(),
    });
    object(fields, &["taskId", "status", "summary"])
}

fn closed(mut schema: Value) -> Value {
    close(&mut schema);
    schema
}

/// Every object takes its own fields only and requires them all; one that was optional may be null instead.
fn close(schema: &mut Value) {
    if let Some(items) = schema.get_mut("items") {
        close(items);
    }
    let required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, property) in properties.iter_mut() {
        close(property);
        if !required.iter().any(|one| one == name) {
            property["type"] = json!([property["type"], "null"]);
        }
    }
    let all: Vec<String> = properties.keys().cloned().collect();
    schema["required"] = json!(all);
    schema["additionalProperties"] = json!(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{WordMap, parse_reply};

    fn holds(schema: &Value, value: &Value) -> bool {
        jsonschema::is_valid(schema, value)
    }

    /// What the prompt shows, and what the schemas ask for, is what the reader takes.
    #[test]
    fn what_a_schema_takes_the_reader_takes() {
        let review = json!({
            "approved": false, "summary": "One.", "questions": null, "back_to": null, "reason": null,
            "issues": [{
                "severity": "high", "description": "no name", "location": "a.rs:4", "suggestion": null,
                "category": null, "id": null, "route": null,
            }],
        });
        let schema = schema_of(ReplyFormat::Review, None).unwrap_or_else(|| panic!("a review is JSON"));
        let closed = schema.closed.unwrap_or_else(|| panic!("a review can be closed"));
        assert!(holds(&closed, &review));
        let reply =
            parse_reply(review.to_string().as_bytes(), Some(ReplyFormat::Review), &WordMap::default());
        assert_eq!(reply.map(|reply| reply.findings.len()), Ok(1));
        assert!(holds(
            &schema.open,
            &json!({"approved": true, "issues": [], "summary": "Fine.", "metrics": {"files": 3}})
        ));
        for wrong in [json!({"approved": true}), json!({"approved": "yes", "issues": [], "summary": ""})] {
            assert!(!holds(&schema.open, &wrong) && !holds(&closed, &wrong), "{wrong}");
        }
        let universal = json!({
            "status": "OK", "summary": "Done.", "artifacts": {"notes": ["a"], "test_results": {"run": 3}},
            "gates": {"needs_review": true}, "next": {"reason": "built"},
        });
        let schema = schema_of(ReplyFormat::Universal, None).unwrap_or_else(|| panic!("it is JSON"));
        assert!(holds(&schema.open, &universal) && schema.closed.is_none());
        let reply =
            parse_reply(universal.to_string().as_bytes(), Some(ReplyFormat::Universal), &WordMap::default());
        assert!(reply.is_ok(), "{reply:?}");
    }

    /// A provider that takes only closed schemas refuses one with an open or optional part.
    #[test]
    fn a_closed_schema_is_closed_everywhere() {
        fn check(schema: &Value, path: &str) {
            if let Some(properties) = schema["properties"].as_object() {
                assert_eq!(schema["additionalProperties"], false, "{path}");
                assert_eq!(schema["required"].as_array().map(Vec::len), Some(properties.len()), "{path}");
                for (name, property) in properties {
                    check(property, &format!("{path}/{name}"));
                }
            }
            if let Some(items) = schema.get("items") {
                check(items, &format!("{path}/items"));
            }
        }
        check(&closed(review(false)), "");
        check(&closed(task()), "");
    }
}
