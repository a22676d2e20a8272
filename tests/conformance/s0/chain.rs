//! A chain of reports with scripted agents: everybody does well unless a test says otherwise.

use crate::support::{Scratch, text};

/// Every standard report, as an agent that does well writes it.
pub const REPORTS: [(&str, &str); 12] = [
    ("requirements", include_str!("reports/requirements.md")),
    ("plan", include_str!("reports/plan.md")),
    ("tests-design", include_str!("reports/tests-design.md")),
    ("tests-review", include_str!("reports/tests-review.md")),
    ("implementation", include_str!("reports/implementation.md")),
    ("stabilization", include_str!("reports/stabilization.md")),
    ("acceptance", include_str!("reports/acceptance.md")),
    ("performance", include_str!("reports/performance.md")),
    ("security", include_str!("reports/security.md")),
    ("refactoring", include_str!("reports/refactoring.md")),
    ("code-review", include_str!("reports/code-review.md")),
    ("documentation", include_str!("reports/documentation.md")),
];

/// Those of loops and of further workflows.
const OTHERS: [(&str, &str); 4] = [
    ("fix", include_str!("reports/fix.md")),
    ("re-review", include_str!("reports/re-review.md")),
    ("codebase-analysis", include_str!("reports/codebase-analysis.md")),
    ("test-refactoring", include_str!("reports/test-refactoring.md")),
];

/// Who judges.
pub const REVIEWS: [&str; 6] =
    ["tests-review", "stabilization", "acceptance", "performance", "security", "code-review"];

/// A report comes from `$HOME/reports`; `NAME.md.N` is what attempt N writes instead.
const SCRIPT: &str = r#"
[ -d "$HOME/seen" ] || mkdir -p "$HOME/seen"
cp "$GATEWRIGHT_RUN_DIR/metadata.json" "$HOME/seen/$tag.json" 2>/dev/null
[ "$tag" != requirements ] || [ ! -d "$GATEWRIGHT_RUN_DIR/loop-iterations" ] || : > "$HOME/seen/loop-iterations"
prompt=$(dirname "$GATEWRIGHT_OUT")/prompt.md
mkdir -p "$GATEWRIGHT_OUT/loop-iterations"
step=${GATEWRIGHT_STEP##*/}
# The file that the prompt asks for, and the review that a loop file belongs to.
file=$(sed -n 's/^- Write `\(.*\)` in full to: .*/\1/p' "$prompt" | head -n 1)
name=$(basename "$file" .md)
number=${name##*-}
case $name in
  *-fix-*) kind=fix; loop=${name%-fix-*};;
  *-review-[0-9]*) kind=re-review; loop=${name%-review-*};;
  *) kind=$name; loop=$name;;
esac
role() { case $step in
  requirements) echo business-analyst;; plan) echo plan-creator;;
  tests-design|stabilization|*tests-fix|tests-review-fix|test-refactoring) echo automation-qa;;
  tests-review) echo tests-reviewer;; implementation|*-fix) echo backend-developer;;
  acceptance) echo acceptance-reviewer;; performance) echo performance-specialist;;
  security) echo application-security-specialist;; refactoring) echo refactorer;;
  code-review) echo code-reviewer;; documentation) echo documentation-updater;;
esac; }
refactors() { case $GATEWRIGHT_RUN in refactor-tests*) echo automation-qa;; *) echo refactorer;; esac; }
words() { case $step in
  plan) echo plan.md;; tests-design) echo plan.md, tests-design.md;;
  tests-review) echo plan.md, tests-design.md, tests-review.md;; implementation) echo plan.md, implementation.md;;
  stabilization|acceptance) echo "plan.md, implementation.md, $step.md";;
  performance|security|refactoring) echo "implementation.md, $step.md";; *) echo none;;
esac; }
report() {
  source=$HOME/reports/$kind.md
  [ -f "$source.$GATEWRIGHT_ATTEMPT" ] && source=$source.$GATEWRIGHT_ATTEMPT
  sed -e "s/STEP/$loop/; s/AGENT/$(role)/; s/REVIEW/$loop.md/; s/NUMBER/$number/; s/^\*\*Agent:\*\* refactorer/**Agent:** $(refactors)/" "$source" > "$GATEWRIGHT_OUT/$file"
}
reply() { printf 'STATUS: %s\nFILE: %s/%s\nSUMMARY: %s\nNEXT_INPUT: %s\n' "$1" "$GATEWRIGHT_RUN_DIR" "$file" "${2:-It is done.}" "$(words)"; }
judges() { case $step in tests-review|stabilization|acceptance|performance|security|code-review) return 0;; *) return 1;; esac; }
standard() { report; if judges; then reply PASS; else reply DONE; fi; }
# The reviewer objects: `objects PROBLEM [ROUTE]`.
objects() {
  report
  sed -i -e 's/^\*\*Status:\*\* PASS/**Status:** FAIL/; s/✅ RESOLVED/⚠️ PARTIAL/' "$GATEWRIGHT_OUT/$file"
  reply FAIL; printf -- '---\n- BLOCKING: %s (src/session.txt:1)\n' "$1"
  [ -z "$2" ] || printf -- '- ROUTE: %s\n' "$2"
}
"#;

/// A scratch project and the run in it.
pub struct Chain {
    pub scratch: Scratch,
    pub run: String,
}

impl Chain {
    /// A project whose agents do this besides the standard; nothing runs yet.
    pub fn project(cases: &str) -> Scratch {
        Chain::project_with("", cases)
    }

    /// The same with more functions for the cases.
    pub fn project_with(functions: &str, cases: &str) -> Scratch {
        let scratch = Scratch::new();
        let folder = scratch.home().join("reports");
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in REPORTS.iter().chain(&OTHERS) {
            std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
        }
        scratch.script(&format!(
            "{SCRIPT}{functions}\ncase $GATEWRIGHT_STEP in\n{cases}\n*) standard;;\nesac\n"
        ));
        scratch
    }

    #[track_caller]
    pub fn start(scratch: Scratch, flags: &[&str], code: i32) -> Chain {
        let mut words = vec!["run", "report-chain", "End other sessions"];
        words.extend(flags);
        let run = scratch.gatewright(&words).exits(code).id();
        Chain { scratch, run }
    }

    /// A run of develop-feature, driven until it rests.
    #[track_caller]
    pub fn runs(flags: &[&str], cases: &str, code: i32) -> Chain {
        Chain::start(Chain::project(cases), flags, code)
    }

    /// One run in which every report that is named comes broken in these ways first, one attempt each, and
    /// then well; each way has to be refused with its sentence, and the well one is accepted.
    #[track_caller]
    pub fn refuses(broken: &[(&str, &str, &str, &str)], cases: &str) -> Chain {
        Chain::refuses_and_ends(broken, cases, 0)
    }

    /// The same for a run that ends in another way.
    #[track_caller]
    pub fn refuses_and_ends(broken: &[(&str, &str, &str, &str)], cases: &str, code: i32) -> Chain {
        let scratch = Chain::project(cases);
        let mut flags: Vec<String> = Vec::new();
        for (report, good) in REPORTS.iter().chain(&OTHERS) {
            let of_report = broken.iter().filter(|(name, ..)| name == report);
            // A second review comes after the attempts of the first one, and the test reviewer gives it.
            let earlier = broken.iter().filter(|(name, ..)| *name == "tests-review").count() + 1;
            let before = if *report == "re-review" { earlier } else { 0 };
            for (at, (_, old, new, _)) in of_report.enumerate() {
                assert!(good.contains(old), "{report}: {old}");
                let name = format!("reports/{report}.md.{}", before + at + 1);
                std::fs::write(scratch.home().join(name), good.replacen(old, new, 1)).unwrap();
            }
        }
        let attempts = broken.len() + 1;
        for (report, ..) in broken {
            let step = match *report {
                "performance" | "security" => "performance-security",
                "re-review" => "tests-review",
                "fix" => "tests-review-fix",
                other => other,
            };
            flags.extend(["--set".to_owned(), format!("steps.{step}.retry.attempts_max={attempts}")]);
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let chain = Chain::start(scratch, &flags, code);
        let retried = chain.scratch.events_of(&chain.run, "step.retry.scheduled");
        let refused: Vec<String> = retried.iter().map(|event| text(&event["message"])).collect();
        for (report, old, new, sentence) in broken {
            let found = refused.iter().any(|message| message.contains(sentence));
            assert!(found, "{report}: `{old}` → `{new}` was not refused with `{sentence}`: {refused:#?}");
        }
        assert_eq!(refused.len(), broken.len(), "{refused:#?}");
        chain
    }

    /// What a prompt names under Input Files, without the run directory.
    #[track_caller]
    pub fn inputs(&self, step: &str, attempt: u32) -> Vec<String> {
        let prompt = self.scratch.prompt(step, attempt);
        let part = prompt.split("\n## Input Files\n").nth(1).unwrap_or_default();
        let part = part.split("\n## ").next().unwrap_or_default();
        let folder = format!(".workflow/{}/", self.run);
        let files = part.lines().filter_map(|line| line.strip_prefix("- "));
        files.map(|file| file.split(folder.as_str()).last().unwrap_or(file).to_owned()).collect()
    }

    /// A file of the run directory.
    #[track_caller]
    pub fn file(&self, name: &str) -> String {
        self.scratch.published(&self.run, name).unwrap_or_else(|| panic!("{name} is not there"))
    }
}
