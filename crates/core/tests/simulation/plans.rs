//! Random plans: everything the engine has, in small.

use gatewright_core::{
    ids::StepId,
    plan::{
        AnswerEffect, Budget, Condition, Exhaustion, Hardness, ItemFailure, Kind, Must, Plan, Rereview, Rerun,
    },
    verdict::{Severity, Verdict},
};

use crate::{
    common::{Draft, answer, ask},
    random::Random,
};

pub fn random_plan(random: &mut Random) -> Plan {
    let mut plan = graph(random);
    if random.chance(15) {
        let mut other = graph(random);
        if random.chance(30) {
            let launches = Some(u64::from(random.between(2, 12)));
            other = other.budget(Budget { launches, ..Budget::default() });
        }
        plan = plan.escalates("complexity", "second", other);
    }
    if random.chance(20) {
        plan = plan.budget(Budget {
            wall_ms: random.chance(30).then_some(20_000),
            tokens: random.chance(30).then_some(2_000),
            micro_usd: random.chance(30).then_some(900_000),
            launches: random.chance(60).then(|| u64::from(random.between(2, 12))),
            quota_wait_ms: random.chance(30).then_some(3_000),
        });
    }
    plan.plan()
}

/// A few stages of a few steps each.
fn graph(random: &mut Random) -> Draft {
    let mut plan = Draft::default().pool("run", random.between(1, 4)).pool("small", 1);
    // A writer of its own excludes everybody, readers share, `docs` is disjoint from both.
    plan = plan.excludes("writer", &["writer", "reader"]).excludes("reader", &["writer"]);
    let stages = random.between(1, 3);
    let mut ids: Vec<String> = Vec::new();
    for stage in 0..stages {
        plan = plan.stage(&format!("stage{stage}"));
        let off = stages > 1 && random.chance(12);
        plan = plan.stage_edit(|own| {
            own.restarts_max = 2;
            own.disabled = off.then(|| "switched off".to_owned());
        });
        for place in 0..random.between(1, 3) {
            let id = format!("s{stage}{}", char::from(b'a' + place as u8));
            plan = step(random, plan, &id, &ids, stage);
            ids.push(id);
        }
    }
    obligations(random, plan, &ids)
}

fn obligations(random: &mut Random, mut plan: Draft, ids: &[String]) -> Draft {
    if random.chance(15) {
        plan = plan.agent("duty").dormant();
        plan = plan.obligation("security", Must::Role { role: "role-duty".into() }, Some("duty"));
    }
    if random.chance(10)
        && let Some(id) = random.pick(ids)
    {
        plan = plan.obligation("visited", Must::Step { step: id.as_str().into() }, None);
    }
    plan
}

fn step(random: &mut Random, plan: Draft, id: &str, before: &[String], stage: u32) -> Draft {
    let mut plan = match random.below(12) {
        0..=2 => worker(random, plan, id),
        3 => plan.check_step(id),
        4 | 5 => reviewed(random, plan, id, before, stage),
        6 => panel(random, plan, id, before, stage),
        7 => decision(random, plan, id, before, stage),
        8 | 9 => fan_out(random, plan, id, before),
        10 => sub_run(random, plan, id),
        _ => worker(random, plan, id),
    };
    plan = plan.of(id);
    let mut needs: Vec<&str> = Vec::new();
    for other in before {
        if random.chance(60) && !needs.contains(&other.as_str()) {
            needs.push(other);
        }
    }
    plan = plan.needs(&needs);
    let back = needs.iter().find(|from| matches!(plan.graph.steps[**from].kind, Kind::Agent { .. }));
    if let (Some(from), true) = (back.copied(), random.chance(25)) {
        plan = plan.edit(|step| step.back = vec![from.into()]);
    }
    if random.chance(15) {
        let hardness = match random.below(3) {
            0 => Hardness::Hard,
            1 => Hardness::Soft,
            _ => Hardness::Skip,
        };
        plan = plan.expression("when", hardness);
    }
    if random.chance(10)
        && let Some(from) = needs.first()
    {
        let condition = match &plan.graph.steps[*from].kind {
            Kind::Agent { .. } => Condition::Artifact { step: (*from).into(), name: "out.md".into() },
            Kind::Review(_) => Condition::Verdict { step: (*from).into(), at_most: Verdict::PassWithNotes },
            _ => Condition::Expression { source: "other".to_owned() },
        };
        plan =
            plan.gate("record", if random.chance(50) { Hardness::Hard } else { Hardness::Soft }, condition);
    }
    plan
}

fn worker(random: &mut Random, plan: Draft, id: &str) -> Draft {
    let mut plan = plan.agent(id).writes("out.md").attempts(random.between(1, 3));
    if random.chance(20) {
        plan = plan.checks(if random.chance(50) { &["lint"] } else { &["lint", "tests"] });
    }
    let small = random.chance(30);
    let tenure = if random.chance(40) { random.pick(&["writer", "reader", "docs"]) } else { None };
    let backoff = random.chance(30);
    let commit = random.chance(30);
    let ways = exhaustion(random, "stage0");
    plan.edit(|step| {
        step.commit = commit;
        if small {
            step.pools.push("small".into());
        }
        step.tenure = tenure.map(|tenure| (*tenure).into());
        if backoff {
            step.retry.backoff_ms = vec![500, 2000];
        }
        step.retry.on_exhausted = ways;
    })
}

fn exhaustion(random: &mut Random, stage: &str) -> Vec<Exhaustion> {
    let mut ways = Vec::new();
    if random.chance(25) {
        ways.push(Exhaustion::RestartStage { stage: stage.into() });
    }
    match random.below(10) {
        0..=3 => ways.push(ask(&[
            ("accept", AnswerEffect::Accept),
            ("again", AnswerEffect::Again),
            ("skip", AnswerEffect::Skip),
            ("abort", AnswerEffect::Abort),
        ])),
        4 => ways.push(Exhaustion::CompleteWithNotes),
        5 => ways.push(Exhaustion::Fail),
        _ => ways.push(Exhaustion::Block),
    }
    ways
}

/// A review of what came before in its scope; its fixers are earlier steps or a dormant one.
fn loop_of(random: &mut Random, mut plan: Draft, id: &str, before: &[String], stage: u32) -> Draft {
    let listed = random.chance(50);
    let fixer = match random.pick(before) {
        Some(earlier) if random.chance(60) => earlier.clone(),
        _ => {
            // Two reviews may share one.
            let fixer = format!("fix{stage}");
            if !plan.graph.steps.contains_key(fixer.as_str()) {
                plan = plan.agent(&fixer).dormant();
            }
            fixer
        }
    };
    let (rounds, final_pass, failed) = (random.between(1, 3), random.chance(50), random.chance(50));
    let stalled = random.chance(20).then_some(2);
    let ways = exhaustion(random, &format!("stage{stage}"));
    let notes = random.chance(30);
    plan.of(id).review_edit(|review| {
        if notes {
            review.ask_at = Some(Severity::Note);
            review.on_notes = vec![
                answer("fix", &[], AnswerEffect::Again),
                answer("keep", &[], AnswerEffect::Pass),
                answer("accept", &[], AnswerEffect::Accept),
            ];
        }
        review.fix[0].steps = vec![fixer.as_str().into()];
        review.rounds_max = rounds;
        review.rerun = if listed { Rerun::Listed } else { Rerun::Between };
        review.rereview = if failed { Rereview::Failed } else { Rereview::All };
        review.final_pass = final_pass && failed;
        review.stalled_after = stalled;
        review.hard_stop_on_blocked = final_pass;
        review.on_exhausted = ways;
    })
}

fn reviewed(random: &mut Random, plan: Draft, id: &str, before: &[String], stage: u32) -> Draft {
    loop_of(random, plan.review(id, &[]), id, before, stage)
}

fn panel(random: &mut Random, plan: Draft, id: &str, before: &[String], stage: u32) -> Draft {
    loop_of(random, plan.panel(id, &[], &["x", "y"]), id, before, stage)
}

fn decision(random: &mut Random, plan: Draft, id: &str, before: &[String], stage: u32) -> Draft {
    let redo: Vec<&str> = random.pick(before).map(|id| vec![id.as_str()]).unwrap_or_default();
    let mut plan = plan.decision(id, &redo);
    if random.chance(40) {
        plan = plan.show(&["out.md"]);
    }
    let restart = random.chance(40);
    plan.edit(|step| {
        if let (Kind::Decision(question), true) = (&mut step.kind, restart) {
            let stage = format!("stage{stage}").as_str().into();
            question.answers.push(answer("restart", &[], AnswerEffect::Restart { stage }));
        }
    })
}

fn fan_out(random: &mut Random, plan: Draft, id: &str, before: &[String]) -> Draft {
    let (parallel, waves, note) = (random.between(1, 3), random.chance(30), random.chance(40));
    let planner: Option<StepId> = before
        .iter()
        .rev()
        .find(|id| matches!(plan.graph.steps[id.as_str()].kind, Kind::Agent { .. }))
        .map(|id| id.as_str().into());
    let mut plan = plan.fan_out(id).fan_out_edit(|fan_out| {
        fan_out.over = format!("list-{id}.json").as_str().into();
        fan_out.parallel_max = parallel;
        fan_out.waves = waves;
        fan_out.on_item_failure = if note { ItemFailure::Note } else { ItemFailure::Block };
        fan_out.planned_by = planner;
    });
    body(random, &mut plan, &format!("{id}/*"));
    plan.of(id)
}

fn sub_run(random: &mut Random, plan: Draft, id: &str) -> Draft {
    let mut plan = plan.sub_run(id);
    let limit = random.chance(20).then(|| u64::from(random.between(1, 4)));
    plan = plan.edit(|step| {
        if let Kind::SubRun { budget, .. } = &mut step.kind {
            budget.launches = limit;
            budget.wall_ms = limit.map(|limit| limit * 5_000);
        }
    });
    body(random, &mut plan, id);
    if random.chance(30) {
        let inner = format!("{id}/deep");
        plan = plan.sub_run(&inner);
        body(random, &mut plan, &inner);
    }
    plan.of(id)
}

/// `do`, then perhaps a review of it, perhaps a decision.
fn body(random: &mut Random, plan: &mut Draft, scope: &str) {
    let work = format!("{scope}/do");
    let mut next = std::mem::take(plan).agent(&work).attempts(random.between(1, 2));
    let is_reviewed = random.chance(50);
    if is_reviewed {
        let look = format!("{scope}/look");
        next = if random.chance(30) {
            next.panel(&look, &[&work], &["x", "y"])
        } else {
            next.review(&look, &[&work])
        };
        next = next.needs(&[&work]).rounds(random.between(1, 3));
    }
    if random.chance(30) {
        next = next.decision(&format!("{scope}/ok"), &[&work]).needs(&[&work]);
        if !is_reviewed {
            // No draw of its own: what a seed makes stays what it was.
            next = next.once();
        }
    }
    *plan = next;
}

/// Answers that let a run go on, in the order in which they are tried when everything heals.
pub fn passing(effect: &AnswerEffect) -> u32 {
    match effect {
        AnswerEffect::Pass => 0,
        AnswerEffect::Accept => 1,
        AnswerEffect::Again => 2,
        AnswerEffect::Skip => 3,
        AnswerEffect::Redo { .. } | AnswerEffect::Restart { .. } => 4,
        AnswerEffect::Block | AnswerEffect::Abort => 5,
    }
}
