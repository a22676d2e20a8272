//! How far a folder has come: which steps are done, which reports were judged how, what people answered. Everything that
//! is taken over is held against its contract; from the first thing that is missing or broken on, the run works.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_core::{
    event::AnsweredBefore,
    ids::{ArtifactName, ContentHash, RoleId, StepId},
    plan::{AnswerEffect, Graph, Hardness, Kind, Question, Review, Step},
    understand,
    verdict::{Verdict, verdict_of},
};
use gatewright_host::{
    collect::{Output, Spoken, judgement_in_files},
    run_context::{hash_bytes, hash_of_nothing},
};
use gatewright_workflow::{
    contract::{Level, Violation},
    frozen::{Frozen, Write},
    projection::filled,
    template::Templates,
};
use serde_json::{Value, json};

use super::inspect::{Found, Inspected, Problem, counts, problems};
use crate::command_error::CommandError;

/// Goes through the plan in its order.
pub fn take(found: &Found, frozen: &Frozen, inspected: &mut Inspected) -> Result<(), CommandError> {
    let mut stock = Stock {
        found,
        frozen,
        graph: frozen.plan.graph(&frozen.plan.profile),
        templates: Templates::new(),
        document: found.document(),
        fixes: BTreeMap::new(),
        seen: BTreeMap::new(),
        left_out: BTreeSet::new(),
        broken: false,
    };
    stock.fixes = counts(&found.import.fixes, &stock.templates, &stock.document);
    let claimed = stock.claimed()?;
    stock.left_out = stock.words("left-out steps", &found.import.skipped)?;
    for id in stock.steps() {
        stock.look_at(&id, &claimed, inspected);
    }
    stock.whole_items(inspected)?;
    if !stock.broken {
        inspected.done.extend(stock.items());
    }
    Ok(())
}

struct Stock<'f> {
    found: &'f Found,
    frozen: &'f Frozen,
    graph: &'f Graph,
    templates: Templates,
    document: Value,
    /// Repairs that were made, by review.
    fixes: BTreeMap<StepId, u32>,
    /// What is taken over: answers hold for nothing else.
    seen: BTreeMap<ArtifactName, ContentHash>,
    /// Somebody went past these, and said so.
    left_out: BTreeSet<String>,
    /// Something is missing or wrong: what rests on it is not taken over.
    broken: bool,
}

impl Stock<'_> {
    /// The outermost steps that the run goes through, in order.
    fn steps(&self) -> Vec<StepId> {
        let stages = self.graph.stages.iter().filter(|stage| stage.disabled.is_none());
        let awake = |id: &&StepId| self.graph.steps.get(*id).is_some_and(|step| !step.dormant);
        stages.flat_map(|stage| &stage.steps).filter(awake).cloned().collect()
    }

    /// Steps of items have no files of their own: they are taken at their word.
    fn items(&self) -> BTreeMap<StepId, String> {
        let said = filled(&self.found.import.items, &self.templates, &self.document).unwrap_or_default();
        let steps = said.as_object().into_iter().flatten().flat_map(|(item, steps)| {
            let names = steps.as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(move |name| StepId::new(format!("{item}/{name}")))
        });
        steps.map(|step| (step, self.done_before())).collect()
    }

    /// The words of a list that an expression or a skeleton makes.
    fn words(&self, what: &str, source: &Value) -> Result<BTreeSet<String>, CommandError> {
        let value = match source {
            Value::Null => Value::Null,
            Value::String(expression) => self
                .templates
                .evaluate(what, expression, &self.document)
                .map_err(|problem| self.found.unreadable(what, &problem.message))?,
            skeleton => filled(skeleton, &self.templates, &self.document)
                .ok_or_else(|| self.found.unreadable(what, "it is not written as it has to be"))?,
        };
        Ok(value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|word| Some(word.as_str()?.to_owned()))
            .collect())
    }

    /// Single items, `STEP/KEY`, count where the run goes on with that very fan-out: everything before it was taken
    /// over, so the list is the one that they were done for.
    fn whole_items(&self, inspected: &mut Inspected) -> Result<(), CommandError> {
        let Some(next) = inspected.next.clone() else { return Ok(()) };
        let (inside, each) = (format!("{next}/"), format!("{next}/*/"));
        let substeps: Vec<&str> =
            self.graph.steps.keys().filter_map(|id| id.as_str().strip_prefix(&each)).collect();
        for word in self.words("progress", &self.found.import.done)? {
            for substep in substeps.iter().filter(|_| word.starts_with(&inside)) {
                inspected.done.insert(StepId::new(format!("{word}/{substep}")), self.done_before());
            }
        }
        Ok(())
    }

    /// The steps that the folder says are done.
    fn claimed(&self) -> Result<BTreeSet<StepId>, CommandError> {
        if self.found.import.done.is_null() {
            // Nobody keeps a list: it has come as far as its last file.
            let there = |id: &StepId| {
                let outputs = self.outputs(id, 1);
                !outputs.is_empty() && outputs.iter().all(|output| self.found.has(&output.name))
            };
            let steps = self.steps();
            let last = steps.iter().rposition(there).map_or(0, |place| place + 1);
            return Ok(steps.into_iter().take(last).collect());
        }
        let words = self.words("progress", &self.found.import.done)?;
        let named = |id: &StepId| {
            let stage = self.graph.steps.get(id).map(|step| step.stage.to_string()).unwrap_or_default();
            let both = format!("{stage}:{id}");
            [id.as_str(), &stage, &both].iter().any(|word| words.contains(*word))
        };
        Ok(self.steps().into_iter().filter(named).collect())
    }

    fn look_at(&mut self, id: &StepId, claimed: &BTreeSet<StepId>, inspected: &mut Inspected) {
        let Some(step) = self.graph.steps.get(id) else { return };
        if !self.broken && self.left_out.contains(id.as_str()) {
            inspected.done.insert(id.clone(), format!("left out before, in `{}`", self.name()));
            return;
        }
        if let Kind::Decision(question) = &step.kind {
            return self.look_at_answer(id, question, inspected);
        }
        if self.broken || !claimed.contains(id) {
            if claimed.contains(id) {
                self.note_problems(id, inspected);
            }
            inspected.next.get_or_insert_with(|| id.clone());
            return;
        }
        let is_evidence = self.found.import.evidence.contains(&id.to_string());
        if matches!(step.kind, Kind::Check { .. }) && !is_evidence {
            inspected.next.get_or_insert_with(|| id.clone());
            inspected.run_again.insert(id.clone());
            return;
        }
        let held = inspected.rounds.get(id).copied().unwrap_or(0);
        if held > 0 && self.fixes.get(id).is_some_and(|fixed| *fixed >= held) {
            // What the last review demanded was mended: the next one is due.
            inspected.next.get_or_insert_with(|| id.clone());
            self.broken = true;
            return;
        }
        let outputs = self.outputs(id, held.max(1));
        let none = outputs.iter().all(|output| !self.found.has(&output.name));
        if !outputs.is_empty() && none && is_conditional(step) {
            inspected.done.insert(id.clone(), format!("`{}` has none", self.name()));
            return;
        }
        if outputs.is_empty() {
            inspected.done.insert(id.clone(), self.done_before());
            return;
        }
        let wrong = outputs.iter().flat_map(|output| problems(self.found, &output.name, &output.contract));
        let wrong: Vec<Problem> = wrong.collect();
        if !wrong.is_empty() {
            note(wrong, inspected);
            inspected.next.get_or_insert_with(|| id.clone());
            self.broken = true;
            return;
        }
        self.remember(&outputs);
        inspected.given.insert(id.clone());
        if let Kind::Review(review) = &step.kind
            && let Some(next) = self.demanded_of(id, review, &outputs)
        {
            inspected.next.get_or_insert(next);
        }
    }

    /// After the first thing that is wrong nothing is taken over, and everything else that is wrong is said all the same.
    fn note_problems(&self, id: &StepId, inspected: &mut Inspected) {
        let held = inspected.rounds.get(id).copied().unwrap_or(0);
        let outputs = self.outputs(id, held.max(1));
        let there = outputs.iter().filter(|output| self.found.has(&output.name));
        note(
            there.flat_map(|output| problems(self.found, &output.name, &output.contract)).collect(),
            inspected,
        );
    }

    /// Who has to mend something, if the report of a review demands it.
    fn demanded_of(&self, id: &StepId, review: &Review, outputs: &[Output]) -> Option<StepId> {
        let texts = self.frozen.steps.get(&self.frozen.plan.profile).and_then(|texts| texts.get(id))?;
        let words = texts.words.as_ref().unwrap_or(&self.frozen.words);
        let spoken = Spoken { format: texts.reply, words, reviewer: true };
        let reply = judgement_in_files(&self.found.folder, outputs, &spoken).ok()?;
        let verdict = verdict_of(&reply, review.block_at, review.hard_stop_on_blocked);
        let fixer = || review.fix.iter().flat_map(|route| &route.steps).next().unwrap_or(id).clone();
        (verdict >= Verdict::Revise).then(fixer)
    }

    /// What a person said there counts here for exactly what it was said to.
    fn look_at_answer(&self, id: &StepId, question: &Question, inspected: &mut Inspected) {
        let skeleton = self.found.import.answers.get(id.as_str());
        let said = skeleton.and_then(|skeleton| filled(skeleton, &self.templates, &self.document));
        let said = said.filter(|said| !said.is_null() && inspected.next.is_none() && !self.broken);
        let Some(said) = said else {
            inspected.next.get_or_insert_with(|| id.clone());
            return;
        };
        let text = |key: &str| said[key].as_str().map(str::to_owned).filter(|text| !text.trim().is_empty());
        let word = said.as_str().map(str::to_owned).or_else(|| text("answer")).unwrap_or_default();
        // Whoever wrote it down may have written what was said.
        let Some((answer, remark)) = understand(&question.answers, &word) else {
            let words: Vec<&str> = question.answers.iter().map(|answer| answer.word.as_str()).collect();
            let name = question.name.clone().unwrap_or_else(|| id.to_string());
            let violation = Violation {
                level: Level::Content,
                place: format!("{}, {name}", self.found.marker),
                expected: format!("one of the answers {}", words.join(", ")),
                found: format!("`{word}`"),
            };
            inspected.problems.push(Problem { file: self.found.folder.join(&self.found.marker), violation });
            inspected.next.get_or_insert_with(|| id.clone());
            return;
        };
        if let AnswerEffect::Redo { steps, .. } = &answer.effect {
            inspected.next.clone_from(&steps.first().cloned());
        }
        let at = text("at").map(|at| format!(", {at}")).unwrap_or_default();
        let before = AnsweredBefore {
            answer: answer.word,
            comment: text("comment").or(remark),
            route: text("route").map(|role| RoleId::new(&role)),
            channel: format!("imported ({}{at})", self.found.marker),
            seen: self.seen_at(question),
        };
        inspected.answered.insert(id.clone(), before);
    }

    /// What was there when it was asked, and what was not.
    fn seen_at(&self, question: &Question) -> BTreeMap<ArtifactName, ContentHash> {
        let plain = question.show.iter().map(|name| name.as_str().trim_end_matches('?').to_owned());
        let absent = plain.filter(|name| !self.found.has(name));
        let absent = absent.map(|name| (ArtifactName::new(&name), hash_of_nothing()));
        absent.chain(self.seen.clone()).collect()
    }

    fn remember(&mut self, outputs: &[Output]) {
        for output in outputs {
            let supplied = self.found.supplied.get(&output.name).map(|text| text.as_bytes().to_vec());
            let bytes = supplied.or_else(|| std::fs::read(self.found.folder.join(&output.name)).ok());
            self.seen.extend(bytes.map(|bytes| (ArtifactName::new(&output.name), hash_bytes(&bytes))));
        }
    }

    /// What a step must have written in this round, under the names that its files have.
    fn outputs(&self, step: &StepId, round: u32) -> Vec<Output> {
        let texts = self.frozen.steps.get(&self.frozen.plan.profile).and_then(|texts| texts.get(step));
        let name = |write: &Write| {
            let template = write.first.as_ref().filter(|_| round == 1).unwrap_or(&write.name);
            let known = json!({
                "slug": self.document["slug"], "round": round, "request": self.document["request"],
                "settings": self.frozen.settings,
            });
            self.templates.render("writes", template, &known).ok()
        };
        let writes = texts.map(|text| text.writes.as_slice()).unwrap_or_default();
        let required = writes.iter().filter(|write| !write.optional);
        let output = |write: &Write| {
            let mut output = Output::new(write, name(write)?, round);
            if let Some(own) = self.found.import.contract_of(&output.name) {
                output.contract = own.clone();
            }
            Some(output)
        };
        required.filter_map(output).collect()
    }

    fn done_before(&self) -> String {
        format!("done before, in `{}`", self.name())
    }

    fn name(&self) -> String {
        self.found.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// Each problem once: a file may be looked at for itself and for its step.
fn note(wrong: Vec<Problem>, inspected: &mut Inspected) {
    let known: Vec<String> = inspected.problems.iter().map(ToString::to_string).collect();
    inspected.problems.extend(wrong.into_iter().filter(|problem| !known.contains(&problem.to_string())));
}

fn is_conditional(step: &Step) -> bool {
    step.gates.iter().any(|gate| gate.hardness == Hardness::Skip)
}
