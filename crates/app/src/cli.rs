//! The command line: words, flags and help. Decides nothing.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs coding agents through gates that cannot be skipped
#[derive(Debug, Parser)]
#[command(name = "gatewright", version, max_term_width = 100, propagate_version = false)]
pub struct Cli {
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a whole run in a scratch repository with rehearsed agents: no network, no key
    Demo(DemoArgs),
    /// Set this project up: at most five files, never over one of yours
    Init(InitArgs),
    /// Look for what is missing or wrong here, with the remedy for each
    Doctor(DoctorArgs),
    /// List the built-in methods, or copy one into the project for editing
    Methods(MethodsArgs),
    /// Say everything that is wrong with workflow definitions
    Lint(LintArgs),
    /// Draw a workflow or a run
    Graph(GraphArgs),
    /// Start a run
    Run(RunArgs),
    /// Say where a run stands (without RUN: all that are not over)
    Status(StatusArgs),
    /// List all runs of this project
    List(ListArgs),
    /// Say why a step is (not) running and what its gate misses
    Why(WhyArgs),
    /// Show reports and artifacts of a run
    Show(ShowArgs),
    /// Show the output of agents
    Logs(LogsArgs),
    /// Print the journal of a run as JSON lines
    Events(EventsArgs),
    /// List the questions that wait for an answer
    Decisions(DecisionsArgs),
    /// Answer a question, or put it off with --cancel
    Answer(AnswerArgs),
    /// Answer the open approval of a run with yes
    Approve(ApproveArgs),
    /// Answer the open approval of a run with what has to change
    Reject(RejectArgs),
    /// Go on after anything: crash, stop, block, pause
    Resume(ResumeArgs),
    /// Let running attempts finish, then rest
    Stop(RunOnly),
    /// Give a run up; its agents are ended
    Abort(AbortArgs),
    /// Run one stage of a run, then rest: one phase a command
    Phase(PhaseArgs),
    /// Read a folder made under the conventions of a method, and start a run from it
    Import(ImportArgs),
    /// Run a stage again, with everything that rests on it
    Restart(RestartArgs),
    /// Leave a step out, or let it pass a closed gate: a waiver, recorded for ever
    Skip(SkipArgs),
    /// Try a workflow with scripted agents
    Rehearse(RehearseArgs),
    /// Remove finished runs
    Clean(CleanArgs),
    /// Check an output of a pipeline; the exit code says what is wrong with it
    Validate(ValidateArgs),
    /// Keep track of a pipeline in files: plan, agents, gates
    Progress(ProgressArgs),
    /// Tell an agent's program what is under way here (called by its hooks)
    Hook(HookArgs),
    /// Print the script that completes commands in a shell
    Completions(CompletionsArgs),
    /// Serve the tools by which an agent reports (started by the agent, over stdin and stdout)
    Mcp(McpArgs),
    /// (internal) One turn of an agent that speaks the Agent Client Protocol; the prompt comes on stdin
    #[command(hide = true)]
    AcpTurn(AcpTurnArgs),
    /// (internal) Watch over one attempt
    #[command(hide = true)]
    Supervise { dir: PathBuf },
    /// (internal) Drive one run in the background
    #[command(hide = true)]
    Engine { run: String },
    /// (internal) The agent of rehearsals
    #[command(hide = true)]
    RehearsalAgent,
}

impl Command {
    /// It is started by an agent or is one: it holds no more than its starter knows.
    pub fn is_an_agents(&self) -> bool {
        matches!(self, Command::Mcp(_) | Command::AcpTurn(_) | Command::RehearsalAgent)
    }
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the scratch repository and say where it is
    #[arg(long)]
    pub keep: bool,
    /// Do not pause between scenes
    #[arg(long)]
    pub fast: bool,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Start from this built-in method
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// Say what would be written, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Enter our hooks in the configuration of this agent's program instead
    #[arg(long, value_name = "NAME", value_enum)]
    pub hooks: Option<Harness>,
    /// Take the hooks out again
    #[arg(long, requires = "hooks")]
    pub remove: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Harness {
    Claude,
    Codex,
    Copilot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HookEvent {
    SessionStart,
    PreCompact,
}

#[derive(Debug, Args)]
pub struct HookArgs {
    pub event: HookEvent,
    /// Whose dialect to answer in; without it the input tells
    #[arg(long = "for", value_name = "NAME", value_enum)]
    pub harness: Option<Harness>,
}

#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Hold --file against the schema of this name
    #[arg(long, value_name = "NAME")]
    pub schema: Option<String>,
    /// Files that --file names exist, and git knows of the changes
    #[arg(long)]
    pub reality_check: bool,
    /// The code builds
    #[arg(long)]
    pub build_check: bool,
    /// The tests pass
    #[arg(long)]
    pub test_check: bool,
    /// The graph in --file has no circle, no double id, no edge to nowhere
    #[arg(long)]
    pub dag_check: bool,
    /// All files in progress/ of --project-dir keep their schemas
    #[arg(long)]
    pub progress_check: bool,
    /// Schema, reality, build, and tests if a test step passed; the first failure counts
    #[arg(long)]
    pub full: bool,
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// go, python, node or multi
    #[arg(long, value_name = "NAME")]
    pub lang: Option<String>,
    /// Only these tests: files, folders or globs
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    pub test_files: Vec<String>,
    #[arg(long, value_name = "DIR")]
    pub project_dir: Option<PathBuf>,
    /// The commit before the stream began: what it changed is compared with that, not with the last commit
    #[arg(long, value_name = "SHA")]
    pub pre_sha: Option<String>,
    /// The command that builds, instead of that of the language
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub build_command: Option<String>,
    /// The command that tests, instead of that of the language
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    pub test_command: Option<String>,
}

#[derive(Debug, Args)]
pub struct ProgressArgs {
    /// The folder that has, or gets, progress/
    #[arg(long, value_name = "DIR", global = true, default_value = ".")]
    pub project_dir: PathBuf,
    /// Print nothing but what was asked for
    #[arg(long, global = true)]
    pub quiet: bool,
    #[command(subcommand)]
    pub command: ProgressCommand,
}

#[derive(Debug, Subcommand)]
pub enum ProgressCommand {
    /// Begin a plan
    Init(ProgressInitArgs),
    /// Enter or change a milestone
    Milestone(ProgressMilestoneArgs),
    /// Enter or change a part of a milestone
    Subtask(ProgressSubtaskArgs),
    /// Say what an agent has reached; inside an attempt it is a hint
    Update(ProgressUpdateArgs),
    /// Say that a gate has passed or failed
    Gate(ProgressGateArgs),
    /// Enter a decision; it gets its number by itself
    Decision(ProgressDecisionArgs),
    /// Show plan and agents together; not for agents
    View(ProgressViewArgs),
    /// Make a plan of an older pipeline_state.json
    Migrate(ProgressMigrateArgs),
    /// Compare what an agent said with what git has; changes nothing
    Reconcile(ProgressReconcileArgs),
}

#[derive(Debug, Args)]
pub struct ProgressInitArgs {
    #[arg(long, value_name = "ID")]
    pub pipeline_id: String,
    #[arg(long, value_name = "TYPE", value_parser = ["backend", "ui", "fullstack", "pending_detection"])]
    pub feature_type: String,
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct ProgressMilestoneArgs {
    #[arg(long)]
    pub id: String,
    #[arg(long)]
    pub title: Option<String>,
    #[arg(long, value_parser = ["discovery", "design", "planning", "implementation", "review", "delivery"])]
    pub phase: Option<String>,
    #[arg(long, value_parser = ["pending", "started", "in_progress", "completed", "skipped", "blocked", "failed"])]
    pub status: Option<String>,
    #[arg(long, value_name = "IDS")]
    pub depends_on: Option<String>,
    #[arg(long)]
    pub tags: Option<String>,
    #[arg(long)]
    pub description: Option<String>,
}

#[derive(Debug, Args)]
pub struct ProgressSubtaskArgs {
    #[arg(long, value_name = "ID")]
    pub milestone: String,
    #[arg(long)]
    pub id: String,
    #[arg(long)]
    pub title: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub agent_hint: Option<String>,
    #[arg(long, value_name = "IDS")]
    pub fr_ids: Option<String>,
    #[arg(long, value_parser = ["pending", "started", "in_progress", "completed", "skipped", "blocked", "failed"])]
    pub status: Option<String>,
}

#[derive(Debug, Args)]
pub struct ProgressUpdateArgs {
    #[arg(long, value_name = "NAME")]
    pub agent: String,
    #[arg(long, value_name = "ID")]
    pub milestone: String,
    #[arg(long, value_parser = ["pending", "started", "in_progress", "completed", "failed", "blocked", "skipped"])]
    pub status: String,
    #[arg(long, value_name = "ID")]
    pub subtask: Option<String>,
    /// At most 100 characters
    #[arg(long, value_name = "TEXT")]
    pub summary: Option<String>,
    #[arg(long, value_name = "FILES")]
    pub files: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub error: Option<String>,
}

#[derive(Debug, Args)]
pub struct ProgressGateArgs {
    #[arg(long, value_parser = ["G1", "G2", "G3", "G4"])]
    pub id: String,
    #[arg(long, value_parser = ["passed", "failed", "pending"])]
    pub status: String,
}

#[derive(Debug, Args)]
pub struct ProgressDecisionArgs {
    #[arg(long)]
    pub question: String,
    #[arg(long)]
    pub chosen: String,
    #[arg(long)]
    pub gate: Option<String>,
    #[arg(long)]
    pub stage: Option<String>,
    /// Comma-separated
    #[arg(long)]
    pub options: Option<String>,
    #[arg(long)]
    pub rationale: Option<String>,
    #[arg(long, default_value = "user", value_parser = ["user", "orchestrator"])]
    pub decided_by: String,
}

#[derive(Debug, Args)]
pub struct ProgressViewArgs {
    /// tree, table, summary or json
    #[arg(long, default_value = "tree")]
    pub format: String,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ProgressMigrateArgs {
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct ProgressReconcileArgs {
    #[arg(long, value_name = "NAME")]
    pub agent: String,
    /// The commit before the agent began
    #[arg(long, value_name = "SHA")]
    pub pre_sha: Option<String>,
}

#[derive(Debug, Args)]
pub struct McpArgs {
    /// Where the attempt writes its artifacts [default: $GATEWRIGHT_OUT]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct AcpTurnArgs {
    /// Go on with this conversation
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,
    /// Deny everything that changes something
    #[arg(long)]
    pub read_only: bool,
    /// Allow this command (`git *`) and no other that is not named
    #[arg(long, value_name = "COMMAND")]
    pub may_run: Vec<String>,
    /// Allow no command
    #[arg(long, conflicts_with = "may_run")]
    pub may_run_nothing: bool,
    /// Deny fetching from the network
    #[arg(long)]
    pub no_network: bool,
    /// Choose this model, if the session has an option for it
    #[arg(long)]
    pub model: Option<String>,
    /// The agent's own name of the mode to work in
    #[arg(long)]
    pub mode: Option<String>,
    /// Hand the agent the reporting tools for this attempt
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The agent's program and its arguments
    #[arg(last = true, required = true)]
    pub agent: Vec<String>,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Really run this agent with a one-word prompt
    #[arg(long, value_name = "AGENT")]
    pub probe: Option<String>,
    /// Take away worktrees of runs that are over; what is on no branch is kept as a patch
    #[arg(long)]
    pub remove_worktrees: bool,
}

#[derive(Debug, Args)]
pub struct MethodsArgs {
    #[command(subcommand)]
    pub action: Option<MethodsAction>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum MethodsAction {
    /// Copy a method to .gatewright/workflows for editing
    Eject { name: String },
}

#[derive(Debug, Args)]
pub struct LintArgs {
    /// Files or workflow names; without any: all of this project
    pub files: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    Mermaid,
    Dot,
    Svg,
}

#[derive(Debug, Args)]
pub struct GraphArgs {
    /// A workflow, or a run (then its state is drawn too)
    #[arg(value_name = "WORKFLOW|RUN")]
    pub what: String,
    #[arg(long, value_enum, default_value_t = GraphFormat::Mermaid)]
    pub format: GraphFormat,
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A name (of this project, or built in) or a path to a workflow file
    pub workflow: String,
    /// What is to be done
    pub request: String,
    #[command(flatten)]
    pub start: StartArgs,
    /// Go on in the folder of a run that is over, with what it left there
    #[arg(long = "continue", value_name = "RUN")]
    pub continues: Option<String>,
    /// Print what would happen, start nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// How a run is started, whatever it begins with.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// The profile; without it the workflow's own, or as an imported folder says
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Play every role with this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Change a setting of the workflow
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Rest when this stage is through; `gatewright phase` goes on from there
    #[arg(long, value_name = "STAGE")]
    pub until: Option<String>,
    /// Go on in the background; every other shell can follow
    #[arg(long)]
    pub detach: bool,
    /// Script for the agent `rehearsal`
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    pub run: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct WhyArgs {
    pub run: String,
    pub step: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    pub run: String,
    #[arg(value_name = "STEP|ARTIFACT")]
    pub what: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    pub run: String,
    pub step: Option<String>,
    /// Follow until the run rests
    #[arg(short, long)]
    pub follow: bool,
    /// Which attempt; without it the last one
    #[arg(long)]
    pub attempt: Option<u32>,
    /// As the agents printed it, without telling their streams in words
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, Args)]
pub struct EventsArgs {
    pub run: String,
    /// Also what the agents do, from their own streams
    #[arg(long)]
    pub agents: bool,
    /// Follow until the run rests
    #[arg(short, long)]
    pub follow: bool,
}

#[derive(Debug, Args)]
pub struct DecisionsArgs {
    pub run: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct AnswerArgs {
    pub run: String,
    /// The decision; may be left out with --file
    pub decision: Option<String>,
    pub value: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Who should do what the answer asks for
    #[arg(long, value_name = "ROLE")]
    pub route: Option<String>,
    /// Confirm an approval that has a comment
    #[arg(long)]
    pub yes: bool,
    /// Put the decision off, with the reason
    #[arg(long, value_name = "REASON", conflicts_with = "value")]
    pub cancel: Option<String>,
    /// Several answers: a YAML mapping of decision to answer
    #[arg(long, value_name = "FILE", conflicts_with_all = ["decision", "value", "cancel"])]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ApproveArgs {
    pub run: String,
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// Confirm that the comment is no condition
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct RejectArgs {
    pub run: String,
    /// What has to change
    pub what: String,
    #[arg(long, value_name = "ROLE")]
    pub route: Option<String>,
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    pub run: String,
    /// Take the definition and configuration as they are now
    #[arg(long)]
    pub adopt: bool,
    /// Raise a budget: usd=30, tokens=2000000, wall=6h, launches=50, quota_wait=48h
    #[arg(long, value_name = "KIND=LIMIT")]
    pub raise: Vec<String>,
    /// Use another file for a missing input
    #[arg(long = "use", value_name = "FILE=OTHER")]
    pub substitute: Vec<String>,
    #[arg(long)]
    pub detach: bool,
}

#[derive(Debug, Args)]
pub struct RunOnly {
    pub run: String,
}

#[derive(Debug, Args)]
pub struct AbortArgs {
    pub run: String,
    #[arg(long, default_value = "given up by a person")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The folder, or the file that says where it stands
    pub dir: PathBuf,
    /// Only say what is wrong with it and where a run would go on
    #[arg(long)]
    pub check: bool,
    /// Print one JSON document
    #[arg(long, requires = "check")]
    pub json: bool,
    /// The workflow to read it with; without it the one that knows such folders
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    #[command(flatten)]
    pub start: StartArgs,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("partial").args(["go_on", "fresh", "review"]))]
pub struct PhaseArgs {
    /// The stage
    #[arg(value_name = "NAME")]
    pub stage: String,
    /// Without it: the latest run under way that has such a stage
    pub run: Option<String>,
    /// Only say whether the stage may begin: proceed, warning or blocked
    #[arg(long)]
    pub check: bool,
    /// Print one JSON document
    #[arg(long, requires = "check")]
    pub json: bool,
    /// Begin although stages before it are not complete: they are left out, which is recorded
    #[arg(long)]
    pub yes: bool,
    /// Run the stages before it too, those that are not complete
    #[arg(long, conflicts_with = "yes")]
    pub through: bool,
    /// It was begun and not completed: go on with what is there
    #[arg(long = "continue")]
    pub go_on: bool,
    /// It was begun or completed: discard that and begin anew
    #[arg(long)]
    pub fresh: bool,
    /// It was begun and not completed: its artifact goes to the reviewer as it is
    #[arg(long)]
    pub review: bool,
}

#[derive(Debug, Args)]
pub struct RestartArgs {
    pub run: String,
    #[arg(long)]
    pub stage: String,
    #[arg(long, default_value = "restarted by a person")]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct SkipArgs {
    pub run: String,
    pub step: String,
    /// Waive its closed gate instead and run the step; with several closed, name one
    #[arg(long, value_name = "GATE", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "not said, said, said with a name")]
    pub gate: Option<Option<String>>,
    #[arg(long)]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct RehearseArgs {
    pub workflow: String,
    /// What agents, checks and people do, and what must come of it; of a folder all its scenarios
    #[arg(long, value_name = "FILE")]
    pub scenario: Vec<PathBuf>,
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Also make what this agent would be started with, without starting it
    #[arg(long = "as", value_name = "AGENT")]
    pub as_agents: Vec<String>,
    /// Try all combinations of outcomes to this depth instead of one scenario
    #[arg(long, value_name = "DEPTH", num_args = 0..=1, default_missing_value = "4")]
    pub explore: Option<u32>,
    /// Say which ways through the workflow, in all of its profiles, the scenarios did not take
    #[arg(long, conflicts_with = "explore")]
    pub coverage: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Only these runs; without any: all that are over
    pub runs: Vec<String>,
    /// Only runs that ended before so many days
    #[arg(long, value_name = "N")]
    pub older_than_days: Option<u64>,
    /// Only runs that publish below this folder, relative to the repository
    #[arg(long, value_name = "FOLDER")]
    pub under: Option<PathBuf>,
    /// Only runs that are done, not those that failed or were given up
    #[arg(long)]
    pub completed: bool,
    /// Also remove what the runs published in the repository
    #[arg(long)]
    pub artifacts: bool,
    /// Really remove; without it only listed
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    pub shell: Shell,
}
