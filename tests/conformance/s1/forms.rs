//! The universal JSON as its contract has it, every field of every role filled in: it is accepted as it is.

use super::session::Session;

/// `whole STATUS SUMMARY ARTIFACTS`: all common fields, and those of the role.
const FORMS: &str = r#"
whole() { printf '{"status":"%s","summary":"%s","artifacts":{"files_to_create_or_update":[],"files_changed":[],"tests_added_or_updated":[],"commands_to_run":["make test"],"manual_steps":[],"review_comments":[%s],"findings":[%s],"notes":["nothing conflicts"]%s},"gates":{"meets_definition_of_done":true,"needs_review":false,"needs_tests":false,"security_concerns":[]},"next":{"recommended_agent":"Reviewer","recommended_task_id":"T-001","reason":"it is its turn"}}' "$1" "$2" "$3" "$4" "$5"; }
comment='{"severity":"nit","category":"%s","file":"src/a.txt","line":3,"message":"%s","suggested_fix":"say it shorter"}'
checklist=',"checklist_summary":{"security":"OK","architecture":"OK","logic":"issues_found","performance":"N/A","quality":"OK","devils_advocate":"issues_found"}'
results=',"test_results":{"passed":4,"failed":0,"skipped":1,"output":"4 passed"},"coverage_gaps":["AC-001 at midnight"]'
options=',"research_summary":"One store is enough.","confidence":"high","options":[{"id":"OPT-1","label":"the store that is there","pros":["known"],"cons":["old"],"effort":"low","recommended":true}]'
finding='{"severity":"low","category":"Validation","file":"src/a.txt","description":"a long name is cut","recommended_fix":"refuse it"}'
"#;

const CASES: &str = r#"
intake) spec; acceptance; triage true true; whole OK 'Specified.';;
research) research; whole OK 'Researched.' '' '' "$options";;
architecture) architecture; whole OK 'Designed.';;
design) design; whole OK 'Drawn.' '' '' ',"design_spec_file":"design-specs/design-spec-remember-me.md","design_spec_inline":"one box"';;
plan) plan; whole OK 'Planned.';;
*/code) whole OK 'Implemented.' '' '' ',"patch_summary":["an end date"]';;
*/review) whole OK 'PASS WITH NOTES: two nits.' "$(printf "$comment,$comment" Logic 'a name' "Devil's Advocate" 'a doubt')" '' "$checklist";;
*/qa) whole OK 'Everything is green.' '' '' "$results";;
*/security) whole OK 'Nothing grave.' '' "$finding";;
final-review) whole OK 'PASS' '' '' ',"checklist_summary":{"security":"OK","architecture":"OK","logic":"OK","performance":"N/A","quality":"OK","devils_advocate":"OK"}';;
integrate) whole OK 'Green.' '' '' ',"ci_notes":["no pipeline here"]';;
docs) report; whole OK 'Written.';;
release) results; whole OK 'Released.' '' '' ',"ci_notes":[]';;
"#;

#[test]
fn s1_66_the_whole_universal_json_of_every_role_is_accepted() {
    let scratch = Session::project_with(FORMS, CASES);
    std::fs::write(scratch.home().join("tasks"), "task T-001 feat security").unwrap();
    let session = Session::starts(scratch, &[], 10);
    session.answer("UD-APPROVE-DESIGN", "approved", 10);
    session.answer("UD-REVIEW-STRATEGY", "per-batch", 10);
    // Two nits are a person's; nothing else was in the way.
    session.answer("UD-1", "keep", 0);
    assert_eq!(session.current_state(), "DONE");
    let retried = session.scratch.events_of(&session.run, "step.retry.scheduled");
    assert!(retried.is_empty(), "{retried:#?}");
    let known = session.status()["known_issues"].to_string();
    for issue in ["a name", "a doubt", "a long name is cut"] {
        assert!(known.contains(issue), "{issue}: {known}");
    }
    for role in
        ["research", "architecture", "design", "plan", "tasks/T-001/security", "integrate", "docs", "release"]
    {
        assert_eq!(session.scratch.count(role), 1, "{role}");
    }
}
