//! What lint says about one expression: that it does not parse, that it calls something unknown,
//! that it decides by what somebody wrote in prose.
//!
//! Prose is for people. An expression that asks whether a summary equals "ok" works until an agent
//! writes "OK."; outcomes, findings and answers have fields with a fixed vocabulary for that.

use crate::template::{TemplateProblem, Templates};

/// Fields whose text nobody promises.
pub const FREE_TEXT_FIELDS: &[&str] =
    &["summary", "comment", "notes", "problem", "question", "request", "output", "message"];

/// Everything wrong with an expression, in the order of its text.
pub fn lint_expression(templates: &Templates, name: &str, expression: &str) -> Vec<TemplateProblem> {
    let mut problems = templates.check_expression(name, expression);
    // An expression that does not parse has been reported by `check_expression`.
    let uses = templates.free_text_uses(name, expression, FREE_TEXT_FIELDS).unwrap_or_default();
    problems.extend(uses.into_iter().map(|found| TemplateProblem {
        name: name.to_owned(),
        line: found.line,
        column: Some(found.column),
        message: format!("`{}` compares the free text `{}` with a literal", found.text, found.field),
        hint: Some("ask a field with a fixed vocabulary: an outcome, a severity, an answer".to_owned()),
    }));
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, places: &[usize]) {
        let problems = lint_expression(&Templates::new(), "gate", expression);
        let columns: Vec<usize> = problems.iter().filter_map(|problem| problem.column).collect();
        assert_eq!(columns, places, "{expression}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.message.contains("free text")), "{problems:?}");
    }

    #[test]
    fn comparing_prose_is_found() {
        check("steps.review.summary == \"ok\"", &[1]);
        check("'ok' != reply.summary", &[1]);
        check("reply['comment'] | trim | lower == 'ok'", &[1]);
        check("steps.a.outcome == 'passed' and 'LGTM' in steps.a.notes", &[33]);
        check("answer.comment in ['ok', 'fine']", &[1]);
        check("answer.comment is startingwith('approved')", &[1]);
        check("request[:3] == 'Fix'", &[1]);
        check("findings | selectattr('problem', 'eq', 'none') | list == []", &[1]);
        check("(message ~ '!') == 'done!'", &[2]);
        check("1 < 2 and\n  output == 'x' and summary == 'y'", &[3, 21]);
    }

    #[test]
    fn fixed_vocabulary_and_presence_are_not() {
        for expression in [
            "steps.review.outcome == 'passed'",
            "answer.comment == ''",
            "answer.comment is none",
            "answer.comment != none",
            "output | length > 100",
            "reply.summary == other.summary",
            "findings | selectattr('severity', 'eq', 'high') | list == []",
        ] {
            check(expression, &[]);
        }
    }

    #[test]
    fn what_does_not_parse_or_exist_is_reported_once() {
        let problems = lint_expression(&Templates::new(), "gate", "summary == 'ok' and");
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].name.as_str(), problems[0].line), ("gate", 1));
        let problems = lint_expression(&Templates::new(), "gate", "a | lenght > 1 and summary == 'ok'");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(problems[0].hint.as_deref(), Some("did you mean `length`?"));
    }
}
