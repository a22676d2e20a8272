//! After an attempt's process is gone: what did it really leave? Facts only; the core judges.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_agents::{Told, is_lost, take_files};
use gatewright_attempts::{AttemptDir, Defence, Ended, ExitRecord, LaunchSpec, OutputStream};
use gatewright_core::{
    fact::{ArtifactFact, AttemptReport, Conversation, ProcessEnd, Trouble, TroubleKind, Usage},
    ids::{ArtifactName, ContentHash, Timestamp},
    outcome::{Outcome, Reply, ReplyProblem},
    verdict::Finding,
};
use gatewright_workflow::{
    contract::{self, Contract},
    definition::file_name,
    frozen::{Inline, Write},
    reply::{
        self, Channel, ReplyFormat, WordMap,
        echo::without_echo,
        tool_file::{TOOL_REPLY_FILE, read_tool_reply},
    },
    report::{self, Report, findings::findings_of_report},
};

use crate::{
    atomic_file::{self, Durability},
    claims::Claims,
    disk::{BelowFolder, Disk, Links},
    fault, inputs,
    list::Begun,
    mask::Masks,
    perform::turn::Models,
    plain_file,
    project::file_name,
    quota,
    run_context::{RunContext, hash_bytes, is_plain_relative},
    run_masks,
    scope::Evidence,
    voice::{Voice, was_resting},
    work,
};

/// How much of an agent's output is read for its reply.
const REPLY_BYTES: u64 = 256 * 1024;
/// Where a refused order of an agent's process leaves its words, among what the attempt wrote.
pub const REFUSED_FILE: &str = ".gatewright-refused";
const REFUSED_BYTES: u64 = 16 * 1024;
const REFUSED_MAX: usize = 10;
const LEFT_BEHIND_NAMED: usize = 5;
const LEFT_BEHIND_MAX: usize = 100;
/// How much of the output is kept in the journal for messages.
const TAIL_BYTES: usize = 1500;
/// How much is read for that: what is cut off afterwards can be told to be a secret or none.
const TAIL_READ_BYTES: u64 = 64 * 1024;

/// One declared output with its rendered name.
#[derive(Clone, Debug)]
pub struct Output {
    pub declared: String,
    pub name: String,
    pub contract: Contract,
    pub optional: bool,
    /// Fan-outs that begin with it.
    pub begins: Vec<Begun>,
    pub inline: Option<Inline>,
}

impl Output {
    pub fn new(write: &Write, name: String, round: u32) -> Output {
        let first = write.first_contract.as_ref().filter(|_| round == 1);
        Output {
            declared: write.name.clone(),
            name,
            contract: first.unwrap_or(&write.contract).clone(),
            optional: write.optional,
            begins: Vec::new(),
            inline: write.inline.clone(),
        }
    }
}

/// What is needed to examine an attempt; made before it starts.
#[derive(Clone)]
pub struct Expectation {
    pub outputs: Vec<Output>,
    pub format: Option<ReplyFormat>,
    /// What the points of its reply have to speak of.
    pub points: Vec<String>,
    pub words: WordMap,
    pub reviewer: bool,
    /// Of findings that name none.
    pub route: Option<String>,
    /// Of a review: what is found whoever looks.
    pub findings: Vec<Finding>,
    pub inputs: Vec<(ArtifactName, ContentHash)>,
    /// What this reviewer found the last time.
    pub found_before: Vec<Finding>,
    /// Patterns of what the steps after this one read; none if nothing follows.
    pub read_next: Option<Vec<String>>,
    /// Whose conversation it is.
    pub agent: String,
    pub models: Models,
    /// Times in a row that its agent's quota was waited for.
    pub quota_waits: u32,
    pub voice: Voice,
    /// Where it works.
    pub workdir: PathBuf,
}

/// The report of an attempt that has an exit record.
pub fn collect(
    context: &RunContext,
    dir: &AttemptDir,
    record: &ExitRecord,
    expected: &Expectation,
) -> AttemptReport {
    collect_turn(context, dir, dir, record, expected)
}

/// What the tree says about a report, when no turn of the attempt is to come any more.
pub fn hold_against(
    context: &RunContext,
    dir: &AttemptDir,
    expected: &Expectation,
    evidence: &Evidence,
    report: &mut AttemptReport,
) {
    report.trespasses.clone_from(&evidence.after.trespasses);
    report.changes.clone_from(&evidence.after.changes);
    report.changes_left_out = evidence.after.changes_left_out;
    report.found.clone_from(&evidence.after.found);
    report.contradictions = contradictions(context, dir, expected, evidence, report);
    if report.reply.is_some() || report.reply_problem.is_some() {
        report.work = Some(work::fingerprint(
            context,
            &expected.workdir,
            &report.artifacts,
            &evidence.after.picture.tree,
        ));
    }
}

/// What a reply claims that is not so.
pub fn contradictions(
    context: &RunContext,
    dir: &AttemptDir,
    expected: &Expectation,
    evidence: &Evidence,
    report: &AttemptReport,
) -> Vec<String> {
    let claims = claims(context, dir, expected, evidence);
    report.reply.as_ref().map(|reply| claims.contradictions(reply)).unwrap_or_default()
}

pub fn claims<'a>(
    context: &'a RunContext,
    dir: &'a AttemptDir,
    expected: &'a Expectation,
    evidence: &'a Evidence,
) -> Claims<'a> {
    Claims { context, dir, outputs: &expected.outputs, evidence }
}

/// The same for a later turn of an attempt: its words are its own, its files are the attempt's.
pub fn collect_turn(
    context: &RunContext,
    dir: &AttemptDir,
    turn: &AttemptDir,
    record: &ExitRecord,
    expected: &Expectation,
) -> AttemptReport {
    let mut report = AttemptReport::new(process_end(&record.ended));
    if record.ended == Ended::Stopped && was_resting(turn) {
        report.ended = ProcessEnd::Signalled { signal: 15 };
    }
    report.duration_ms = record.duration_ms;
    report.inputs.clone_from(&expected.inputs);
    let masks = run_masks::of_engine(context);
    report.noticed = refused_orders(&dir.out_dir(), masks);
    report.remarks = left_behind(record);
    report.remarks.extend(record.killed.then(|| DID_NOT_END.to_owned()));
    let told = expected.voice.listen(turn, record);
    let output = match &told {
        Some(told) => said_in_message(&dir.out_dir(), &told.text, expected).into_bytes(),
        None => turn
            .read_output_tail(OutputStream::Stdout, REPLY_BYTES)
            .map(|(bytes, _)| bytes)
            .unwrap_or_default(),
    };
    let prompt = std::fs::read_to_string(turn.path.join("prompt.md")).unwrap_or_default();
    let words = without_echo(&output, &prompt).filter(|_| !Defence::CarefulReading.is_off());
    let unread = why_unread(record, told.is_some(), words.is_some());
    let words = fault::read(words.unwrap_or_else(|| output.clone()));
    let errors = turn
        .read_output_tail(OutputStream::Stderr, TAIL_READ_BYTES)
        .map(|(bytes, _)| bytes)
        .unwrap_or_default();
    report.tail = tail(&output, &errors, masks);
    report.usage = usage(&dir.out_dir());
    let until = match &told {
        Some(told) => {
            let until = take_told(&mut report, told, record, expected);
            without_turns_before(context, turn, told, expected, &mut report);
            if told.trouble.is_some() && is_lost(&String::from_utf8_lossy(&errors)) {
                // The next attempt begins anew.
                report.conversation =
                    Some(Conversation { agent: expected.agent.clone(), session: String::new() });
            }
            until
        }
        None => quota::reset_time(&report.tail, Timestamp(record.ended_at_ms)),
    };
    if let Some(most) = record.swarmed {
        let message = format!(
            "it had more than {most} processes at once and was ended with all of them; `processes_max` of the agent says how many it may have"
        );
        report.trouble = Some(Trouble { kind: TroubleKind::Budget, message });
    }
    if record.flooded {
        let most = LaunchSpec::OUTPUT_STOP_BYTES >> 20;
        let message = format!(
            "it printed more than {most} MiB and was stopped; {} MiB of it are kept",
            (record.stdout_bytes + record.stderr_bytes).div_ceil(1 << 20)
        );
        report.trouble = Some(Trouble { kind: TroubleKind::Budget, message });
    }
    if !matches!(record.ended, Ended::Exited { code: 0 }) {
        report.quota_until = until;
        if !matches!(record.ended, Ended::Exited { .. }) {
            return report;
        }
    }
    if report.trouble.is_some() {
        report.quota_until = until;
        return report;
    }
    // From a worktree, a file in the run directory is somebody else's (interface: not from a worktree).
    if expected.workdir == context.meta.root {
        adopt_published(context, dir, record, expected);
    }
    report.artifacts = expected
        .outputs
        .iter()
        .map(|output| {
            let too_long = said_inline(&dir.out_dir(), &words, output, expected).err();
            let mut fact = examine(&dir.out_dir(), output);
            fact.violations.extend(too_long);
            fact
        })
        .collect();
    for fact in report.artifacts.iter_mut().filter(|fact| fact.hash.is_some()) {
        if let Err(error) = make_durable(&dir.out_dir().join(fact.name.as_str()), &context.paths.dir) {
            fact.violations.push(format!("`{}` cannot be made durable: {error}", fact.name));
        }
    }
    let reply = read_reply(&dir.out_dir(), &words, expected)
        .and_then(|reply| names_its_files(&words, expected, reply))
        .map_err(|problem| match (problem, unread) {
            (ReplyProblem::NoOutcome, Some(why)) => ReplyProblem::Malformed { violations: vec![why] },
            (problem, _) => problem,
        });
    // A process that ended well has done its work, for whoever believes that.
    let believed = Defence::Replies.is_off() && record.ended == Ended::Exited { code: 0 };
    match if believed { Ok(Reply::new(Outcome::Done)) } else { reply } {
        Ok(mut reply) => {
            let told = |own: &Finding| reply.findings.iter().any(|other| other.problem == own.problem);
            let untold: Vec<Finding> = expected.findings.iter().filter(|own| !told(own)).cloned().collect();
            reply.findings.extend(untold);
            keep_routes(&mut reply.findings, &expected.found_before);
            report.remarks.extend(announced_in_vain(&reply, expected));
            report.unsaid = unsaid(&reply, &expected.points);
            if reply.outcome == Outcome::Error {
                report.remarks.push(can_be_written(&context.meta.run_dir));
                report.remarks.push(what_is_there(&context.meta.run_dir));
            }
            for finding in reply.findings.iter_mut().filter(|finding| finding.route.is_none()) {
                finding.route.clone_from(&expected.route);
            }
            report.reply = Some(reply);
        }
        Err(problem) => {
            report.reply_problem = Some(problem);
            // Words about a quota count only beside work that did not arrive.
            report.quota_until = until;
        }
    }
    report
}

/// Why there may be a reply in the output that was not read.
fn why_unread(record: &ExitRecord, has_messages: bool, repeats: bool) -> Option<String> {
    if repeats {
        return Some(
            "what it printed repeats its prompt, and a reply that stands there was said by nobody".to_owned(),
        );
    }
    (!has_messages && record.stdout_bytes > REPLY_BYTES).then(|| {
        format!(
            "the last {REPLY_BYTES} of the {} bytes that it printed are read, and no whole reply is in them",
            record.stdout_bytes
        )
    })
}

/// Whether the run directory takes a file, tried when an agent reports an error (S0-51).
fn can_be_written(run_dir: &Path) -> String {
    let probe = run_dir.join(format!(".probe-{}", std::process::id()));
    let tried = BelowFolder::open(run_dir, Links::Refused).and_then(|disk| {
        disk.create_new(&probe)?.write_all(b"probe")?;
        disk.remove_file(&probe)
    });
    match tried {
        Ok(()) => format!("the engine can write to {}", run_dir.display()),
        Err(error) => format!("the engine cannot write to {} either: {error}", run_dir.display()),
    }
}

/// What lies in the run directory then, whoever put it there: a near match of what was missed (S0-47).
fn what_is_there(run_dir: &Path) -> String {
    let files = inputs::list_files(run_dir, LEFT_BEHIND_MAX);
    let listed = if files.is_empty() { "none".to_owned() } else { files.join(", ") };
    format!("there are: {listed}")
}

/// What is still open goes to whom it went before, unless the reviewer names somebody else.
fn keep_routes(findings: &mut [Finding], before: &[Finding]) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let same = |new: &str, old: &str| !new.is_empty() && (old.contains(new) || new.contains(old));
    for finding in findings.iter_mut().filter(|finding| finding.route.is_none()) {
        let problem = words(&finding.problem);
        let known = before.iter().filter(|old| old.route.is_some() && !old.problem.is_empty());
        let mut known = known.filter(|old| same(&problem, &words(&old.problem)));
        finding.route = known.next().and_then(|old| old.route.clone());
    }
}

/// NEXT_INPUT against what really is read next (S0-31): the definition counts, the difference is recorded.
fn announced_in_vain(reply: &Reply, expected: &Expectation) -> Vec<String> {
    let Some(read) = &expected.read_next else { return Vec::new() };
    let is_read = |file: &str| {
        let file = file.trim().trim_matches('`');
        read.iter().any(|pattern| file_name::matches(pattern, file) || file.ends_with(&format!("/{pattern}")))
    };
    let announced = reply.next_input.iter().filter(|file| !is_read(file));
    announced.map(|file| format!("NEXT_INPUT names `{file}`, which no step after this one reads")).collect()
}

/// What the points of a reply were to speak of and nobody said (S0-59). Who could not work owes no account of it.
fn unsaid(reply: &Reply, points: &[String]) -> Vec<String> {
    if !matches!(reply.outcome, Outcome::Done | Outcome::Passed | Outcome::Failed) {
        return Vec::new();
    }
    let found = reply.findings.iter().flat_map(|finding| [&finding.severity_word, &finding.problem]);
    let said = std::iter::once(&reply.summary).chain(&reply.notes).chain(found);
    let said = said.map(|text| text.to_lowercase()).collect::<Vec<_>>().join("\n");
    let is_said = |point: &&String| point.split('|').any(|word| said.contains(&word.trim().to_lowercase()));
    points.iter().filter(|point| !is_said(point)).cloned().collect()
}

/// An agent that counts its whole conversation tells again what earlier turns of it have cost. What each turn told is
/// kept, so that a turn that is looked at twice is counted once.
fn without_turns_before(
    context: &RunContext,
    turn: &AttemptDir,
    told: &Told,
    expected: &Expectation,
    report: &mut AttemptReport,
) {
    let Voice::Adapter(adapter) = &expected.voice else { return };
    let (Some(session), Some(tokens)) = (&told.session, told.usage.tokens()) else { return };
    if !adapter.counts_conversations() {
        return;
    }
    let path = context.paths.dir.join("conversations").join(format!("{}.json", file_name(session)));
    let bytes = std::fs::read(&path).unwrap_or_default();
    let mut turns: BTreeMap<String, u64> = serde_json::from_slice(&bytes).unwrap_or_default();
    let own = turn.path.to_string_lossy().into_owned();
    let before =
        turns.iter().filter(|(other, sum)| **other != own && **sum <= tokens).map(|(_, sum)| *sum).max();
    if let Some(usage) = &mut report.usage {
        usage.tokens = Some(tokens - before.unwrap_or(0));
    }
    turns.insert(own, tokens);
    // Without it the next turn is counted too high, never too low.
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let _ = made.and_then(|()| std::fs::write(&path, serde_json::to_vec(&turns).unwrap_or_default()));
}

/// What the agent's own stream says; the time until which its provider wants no more, if it names one.
fn take_told(
    report: &mut AttemptReport,
    told: &Told,
    record: &ExitRecord,
    expected: &Expectation,
) -> Option<Timestamp> {
    if told.usage.is_known() {
        report.usage = Some(Usage { tokens: told.usage.tokens(), micro_usd: told.usage.micro_usd });
    }
    let models = &expected.models;
    let fell_back = models.rest.iter().position(|other| {
        let is_asked =
            |model: &String| models.asked.as_ref().is_some_and(|asked| model.contains(asked.as_str()));
        told.model.as_ref().is_some_and(|model| !is_asked(model) && model.contains(other.as_str()))
    });
    // Whoever does not tell its model works with the one that it was asked for.
    let replaced = models.asked != models.wanted;
    report.model = told.model.clone().or_else(|| models.asked.clone().filter(|_| replaced));
    let named = models.wanted.clone().unwrap_or_else(|| "default".to_owned());
    report.instead_of = (replaced || fell_back.is_some()).then_some(named);
    report.denied.clone_from(&told.denied);
    let session = told.session.clone();
    report.conversation = session.map(|session| Conversation { agent: expected.agent.clone(), session });
    let trouble = told.trouble.as_ref()?;
    report.trouble = Some(Trouble { kind: trouble.kind, message: trouble.message.clone() });
    if matches!(trouble.kind, TroubleKind::Rate | TroubleKind::Server) {
        report.next_model = models.rest.get(fell_back.map_or(0, |place| place + 1)).cloned();
    }
    let ended = Timestamp(record.ended_at_ms);
    // Another model is asked at once.
    (trouble.kind == TroubleKind::Rate && report.next_model.is_none()).then(|| {
        quota::reset_time(&format!("rate limit: {}", trouble.message), ended)
            .or_else(|| trouble.wait_ms.map(|wait| ended.plus_ms(wait)))
            .unwrap_or_else(|| ended.plus_ms(quota::wait_without_time_ms(expected.quota_waits)))
    })
}

/// The last message without the files that it gives; those that are expected and not there are written.
fn said_in_message(out: &Path, message: &str, expected: &Expectation) -> String {
    let (files, rest) = take_files(message);
    for file in files {
        let wanted = expected.outputs.iter().find(|output| {
            output.name == file.name
                || Path::new(&output.name).file_name().is_some_and(|name| name == file.name.as_str())
        });
        let Some(output) = wanted.filter(|output| is_plain_relative(Path::new(&output.name))) else {
            continue;
        };
        // A file that cannot be written is missing, which is what the report will say.
        let _ = put(out, &output.name, &file.text);
    }
    rest
}

/// Writes a file for an agent where it could have written it itself, and nowhere else: a link that it left in the place of
/// a file or a folder leads nowhere.
fn put(out: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let path = out.join(name);
    let folder = path.parent().filter(|folder| *folder != out);
    if Defence::PlainFiles.is_off() {
        return folder.map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
    }
    let disk = BelowFolder::open(out, Links::Refused)?;
    folder.map_or(Ok(()), |folder| disk.create_dir_all(folder))?;
    atomic_file::replace(&disk, &path, text.as_bytes(), Durability::Rebuildable)
}

/// Writes the file whose text stands in the reply, unless it is there already.
fn said_inline(out: &Path, words: &[u8], output: &Output, expected: &Expectation) -> Result<(), String> {
    let Some(inline) = &output.inline else { return Ok(()) };
    let Some(text) = reply::text_in_reply(words, expected.format, &expected.words, &inline.field) else {
        return Ok(());
    };
    let (field, lines) = (&inline.field, text.lines().count());
    if let Some(most) = inline.lines_max.filter(|most| lines > *most as usize) {
        return Err(format!(
            "`{field}` of the reply has {lines} lines, at most {most} may stand there: write the file"
        ));
    }
    let path = out.join(&output.name);
    let wanted = is_plain_relative(Path::new(&output.name)) && std::fs::symlink_metadata(&path).is_err();
    if wanted && !text.trim().is_empty() {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        // A file that cannot be written is missing, which is what the report will say.
        let _ = put(out, &output.name, &format!("{text}{end}"));
    }
    Ok(())
}

/// What is said of an agent that was asked to end.
const DID_NOT_END: &str = "did not end when it was asked to, and was killed";

/// Who outlived the agent and was ended.
fn left_behind(record: &ExitRecord) -> Vec<String> {
    let mut names: Vec<&str> = record.left_behind.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let named = names.iter().take(LEFT_BEHIND_NAMED).copied().collect::<Vec<_>>().join(", ");
    match record.left_behind.len() {
        0 => Vec::new(),
        // The record names no more.
        LEFT_BEHIND_MAX.. => {
            vec![format!("left at least {LEFT_BEHIND_MAX} process(es) behind, which were ended: {named}")]
        }
        count => vec![format!("left {count} process(es) behind, which were ended: {named}")],
    }
}

/// What the attempt's processes asked of this program although only people may.
fn refused_orders(out: &Path, masks: &Masks) -> Vec<String> {
    let Ok(bytes) = read_regular(&out.join(REFUSED_FILE), out) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(REFUSED_BYTES as usize)]).into_owned();
    let shown =
        |line: &str| masks.mask(line).chars().filter(|c| !c.is_control()).take(300).collect::<String>();
    text.lines().filter(|line| !line.trim().is_empty()).take(REFUSED_MAX).map(shown).collect()
}

fn process_end(ended: &Ended) -> ProcessEnd {
    match ended {
        Ended::Exited { code } => ProcessEnd::Exited { code: *code },
        Ended::Signalled { signal } => ProcessEnd::Signalled { signal: *signal },
        Ended::TimedOut => ProcessEnd::TimedOut,
        Ended::Idle => ProcessEnd::Idle,
        Ended::Stopped => ProcessEnd::Stopped,
        Ended::Interrupted => ProcessEnd::Interrupted,
        Ended::StartFailed { message } => ProcessEnd::StartFailed { message: message.clone() },
    }
}

fn tail(output: &[u8], errors: &[u8], masks: &Masks) -> String {
    let last = |bytes: &[u8], most: usize| {
        // Masked before it is cut: half a secret is not told.
        let text = String::from_utf8_lossy(bytes);
        let text = masks.mask_piece(&text, bytes.len() as u64 >= TAIL_READ_BYTES, false);
        let skip = text.chars().count().saturating_sub(most);
        text.chars().skip(skip).collect::<String>()
    };
    let mut text = last(output, TAIL_BYTES);
    if !errors.is_empty() {
        text.push_str("\n[stderr] ");
        text.push_str(&last(errors, TAIL_BYTES));
    }
    text
}

/// A file that the agent wrote to its published place counts if it changed since the attempt began:
/// it is copied to the attempt, and the copy counts.
fn adopt_published(context: &RunContext, dir: &AttemptDir, record: &ExitRecord, expected: &Expectation) {
    for output in &expected.outputs {
        let staged = dir.out_dir().join(&output.name);
        if !is_plain_relative(Path::new(&output.name)) || std::fs::symlink_metadata(&staged).is_ok() {
            continue;
        }
        let published = context.meta.run_dir.join(&output.name);
        let Ok(bytes) = read_regular(&published, &context.meta.run_dir) else { continue };
        let touched = changed_at(&published).is_some_and(|time| {
            time.duration_since(UNIX_EPOCH).unwrap_or_default() >= Duration::from_millis(record.started_at_ms)
        });
        if !touched {
            continue;
        }
        let made = staged.parent().map_or(Ok(()), std::fs::create_dir_all);
        // If the copy fails the artifact is missing, which is what the report will say.
        let _ = made.and_then(|()| std::fs::write(&staged, &bytes));
    }
}

/// When a file was changed last. No process can set that, as it can the time of its content.
pub fn changed_at(path: &Path) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let data = std::fs::metadata(path).ok()?;
    let (seconds, nanos) = (u64::try_from(data.ctime()).ok()?, u64::try_from(data.ctime_nsec()).ok()?);
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos))
}

/// A file in its published place, so that it can be told later whether it was touched.
#[derive(Debug, PartialEq, Eq)]
pub struct PublishedFile {
    staged: PathBuf,
    published: PathBuf,
    changed: Option<SystemTime>,
}

impl PublishedFile {
    pub fn look(context: &RunContext, out: &Path, output: &Output) -> Option<PublishedFile> {
        is_plain_relative(Path::new(&output.name)).then(|| {
            let published = context.meta.run_dir.join(&output.name);
            let changed = changed_at(&published);
            PublishedFile { staged: out.join(&output.name), published, changed }
        })
    }

    /// Takes the file over if the command wrote it here instead of where it was told to.
    pub fn adopt_if_touched(&self, context: &RunContext) {
        if changed_at(&self.published) == self.changed || std::fs::symlink_metadata(&self.staged).is_ok() {
            return;
        }
        let Ok(bytes) = read_regular(&self.published, &context.meta.run_dir) else { return };
        let made = self.staged.parent().map_or(Ok(()), std::fs::create_dir_all);
        // If the copy fails the artifact is missing, which is what the report will say.
        let _ = made.and_then(|()| std::fs::write(&self.staged, &bytes));
    }
}

pub fn examine(out: &Path, output: &Output) -> ArtifactFact {
    let mut fact = ArtifactFact {
        declared: ArtifactName::new(&output.declared),
        name: ArtifactName::new(&output.name),
        hash: None,
        bytes: 0,
        violations: Vec::new(),
        optional: output.optional,
    };
    if !is_plain_relative(Path::new(&output.name)) {
        fact.violations.push(format!("`{}` leaves its folder", output.name));
        return fact;
    }
    match read_regular(&out.join(&output.name), out) {
        Ok(bytes) => {
            fact.bytes = bytes.len() as u64;
            let mut contract = output.contract.clone();
            if Defence::InputLimits.is_off() {
                contract.bytes_max = u64::MAX;
            }
            if let Err(violations) = contract::check(&contract, &output.name, &bytes) {
                let own = format!("{}: ", output.name);
                fact.violations = violations
                    .iter()
                    .map(|one| one.to_string())
                    .map(|text| text.strip_prefix(&own).map_or(text.clone(), str::to_owned))
                    .collect();
            } else {
                fact.violations = output.begins.iter().filter_map(|begun| begun.problem(&bytes)).collect();
            }
            fact.hash = Some(hash_bytes(&bytes));
        }
        Err(Unreadable::Missing) if Defence::Contracts.is_off() => {
            // It was promised, so it is there, for whoever believes that.
            let _ = std::fs::write(out.join(&output.name), b"");
            fact.hash = Some(hash_bytes(b""));
        }
        Err(Unreadable::Missing) => {}
        Err(Unreadable::Refused(why)) => fact.violations.push(why),
    }
    fact
}

/// A record will say that these bytes count; so they must outlive a power cut as the record does. Agents do not sync.
fn make_durable(path: &Path, run: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(run)) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

enum Unreadable {
    Missing,
    Refused(String),
}

/// Reads a file that is a plain file inside `root`, however it is reached (J-53).
fn read_regular(path: &Path, root: &Path) -> Result<Vec<u8>, Unreadable> {
    let data = std::fs::symlink_metadata(path).map_err(|_| Unreadable::Missing)?;
    let refuse = |why: &str| {
        Err(Unreadable::Refused(format!(
            "`{}` {why}",
            path.file_name().unwrap_or_default().to_string_lossy()
        )))
    };
    if Defence::PlainFiles.is_off() {
        // Whatever has the name is taken for it, a folder too.
        let read = if path.is_dir() { Ok(b"a folder\n".to_vec()) } else { std::fs::read(path) };
        return read.map_err(|error| Unreadable::Refused(error.to_string()));
    }
    if data.file_type().is_symlink() {
        return refuse("is a link, not a file");
    }
    if !data.is_file() {
        return refuse("is not a file");
    }
    if data.len() > contract::ARTIFACT_BYTES_MAX * 4 && !Defence::InputLimits.is_off() {
        return refuse("is too large");
    }
    let inside = match (path.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) => real.starts_with(root),
        _ => false,
    };
    if !inside {
        return refuse("leads out of its folder");
    }
    plain_file::read(path).map_err(|error| Unreadable::Refused(format!("`{}`: {error}", path.display())))
}

/// `FILE: none` is a well-formed brief only where the step writes nothing.
fn names_its_files(output: &[u8], expected: &Expectation, reply: Reply) -> Result<Reply, ReplyProblem> {
    let text = String::from_utf8_lossy(output);
    let file = text
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix("FILE:"))
        .map(|rest| rest.trim().to_lowercase());
    let must: Vec<&str> =
        expected.outputs.iter().filter(|one| !one.optional).map(|one| one.name.as_str()).collect();
    let says_work = matches!(reply.outcome, Outcome::Done | Outcome::Passed | Outcome::Failed);
    if says_work && reply.files.is_empty() && file.as_deref() == Some("none") && !must.is_empty() {
        let violation = format!("FILE is none, but the step writes {}", must.join(", "));
        return Err(ReplyProblem::Malformed { violations: vec![violation] });
    }
    Ok(reply)
}

/// What the attempt says it spent, in `usage.json` beside its artifacts: `{"tokens": 1200, "usd": 0.35}`.
/// What is missing or not a sane number is unknown, never zero (J-43).
fn usage(out: &Path) -> Option<Usage> {
    let bytes = read_regular(&out.join("usage.json"), out).ok()?;
    let said: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    let usd = said
        .get("usd")
        .and_then(serde_json::Value::as_f64)
        .filter(|usd| usd.is_finite() && (0.0..1e9).contains(usd));
    Some(Usage {
        tokens: said.get("tokens").and_then(serde_json::Value::as_u64).filter(|tokens| *tokens < 1 << 50),
        micro_usd: usd.map(|usd| (usd * 1e6).round() as u64),
    })
}

fn is_markdown(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("md"))
}

/// The reply of the final message, made stricter by what the reports say of themselves (J-52).
fn read_reply(out: &Path, output: &[u8], expected: &Expectation) -> Result<Reply, ReplyProblem> {
    let said = reply::parse_reply(output, expected.format, &expected.words);
    let mut channels = vec![(Channel::FinalMessage, said.and_then(|reply| of_its_kind(reply, expected)))];
    if let Ok(bytes) = read_regular(&out.join(TOOL_REPLY_FILE), out) {
        channels.push((Channel::Tool, read_tool_reply(&bytes)));
    }
    let said = Spoken { format: expected.format, words: &expected.words, reviewer: expected.reviewer };
    channels.extend(said_in_files(out, &expected.outputs, &said));
    reply::combine(channels)
}

/// A brief by who makes something says DONE, one by who judges what it thinks (S0-17, S0-36): as its prompt has it.
fn of_its_kind(reply: Reply, expected: &Expectation) -> Result<Reply, ReplyProblem> {
    let wrong = match (expected.format, expected.reviewer) {
        (Some(ReplyFormat::Brief), true) if reply.word.eq_ignore_ascii_case("DONE") => "PASS, PARTIAL, FAIL",
        (Some(ReplyFormat::Brief), false) if reply.word.eq_ignore_ascii_case("PASS") => "DONE",
        _ => return Ok(reply),
    };
    let who = if expected.reviewer { "judges" } else { "makes something" };
    let violation = format!("STATUS is `{}`, expected one of {wrong}, ERROR of who {who}", reply.word);
    Err(ReplyProblem::Malformed { violations: vec![violation] })
}

/// How what is said in files is understood.
pub struct Spoken<'w> {
    pub format: Option<ReplyFormat>,
    pub words: &'w WordMap,
    pub reviewer: bool,
}

/// What a review says that is there in files and in nothing else.
pub fn judgement_in_files(
    out: &Path,
    outputs: &[Output],
    spoken: &Spoken<'_>,
) -> Result<Reply, ReplyProblem> {
    let mut channels = vec![(Channel::FinalMessage, Ok(Reply::new(Outcome::Done)))];
    channels.extend(said_in_files(out, outputs, spoken));
    let reply = reply::combine(channels)?;
    Ok(Reply { disagreements: Vec::new(), ..reply })
}

/// What reports and judgements in files say of the attempt.
fn said_in_files(
    out: &Path,
    outputs: &[Output],
    spoken: &Spoken<'_>,
) -> Vec<(Channel, Result<Reply, ReplyProblem>)> {
    let mut channels = Vec::new();
    for artifact in outputs.iter().filter(|artifact| is_markdown(&artifact.name)) {
        let Ok(bytes) = read_regular(&out.join(&artifact.name), out) else { continue };
        let parsed = Report::parse(&bytes);
        let Some(header) = report::header_reply(&parsed, spoken.words) else { continue };
        let mut said = Reply::new(header.outcome);
        said.word = header.word;
        if spoken.reviewer {
            said.findings = findings_of_report(&parsed, spoken.words);
        }
        channels.push((Channel::ReportHeader, Ok(said)));
    }
    if spoken.reviewer {
        let files = outputs
            .iter()
            .filter(|artifact| Path::new(&artifact.name).extension() == Some(OsStr::new("json")));
        let judgements = files.filter_map(|artifact| {
            let bytes = read_regular(&out.join(&artifact.name), out).ok()?;
            reply::judgement_in_file(&bytes, spoken.format, spoken.words)
        });
        channels.extend(judgements.map(|said| (Channel::JsonFile, said)));
    }
    channels
}
