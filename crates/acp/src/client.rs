//! The client's side of one turn.

use std::{
    io::{Stdout, Write as _},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client, LineDirection,
    schema::ProtocolVersion,
    v1::{ConnectionTo, schema as acp},
};
use serde_json::Value;

use crate::{
    permit::{Permit, option},
    transcript::{Call, To, Transcript},
};

/// After a cancelled turn the agent has so long to say that it has stopped.
const CANCEL_GRACE: Duration = Duration::from_secs(4);

/// A line that is on its way has so long to come.
const LAST_CALL_GRACE: Duration = Duration::from_secs(2);

/// What one turn is made of.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The agent's program and its arguments.
    pub agent: Vec<String>,
    pub prompt: String,
    pub cwd: PathBuf,
    /// Goes on with this conversation.
    pub resume: Option<String>,
    pub permit: Permit,
    /// The session's mode, by the agent's own name for it.
    pub mode: Option<String>,
    /// The model, where the session has an option for it.
    pub model: Option<String>,
    /// A command that serves the reporting tools.
    pub tools: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error("no program was named")]
    NoProgram,
    #[error("no runtime could be started")]
    Runtime { source: std::io::Error },
    #[error("the agent did not end its turn well: {message}")]
    Turn { message: String },
}

type Shared = Arc<Mutex<Transcript<Stdout>>>;

fn lock(transcript: &Shared) -> MutexGuard<'_, Transcript<Stdout>> {
    transcript.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drives one turn; its lines go to stdout. An error was said there already.
pub fn run_turn(turn: &Turn) -> Result<(), TurnError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| TurnError::Runtime { source })?;
    let transcript: Shared = Arc::new(Mutex::new(Transcript::new(std::io::stdout())));
    let ended = runtime.block_on(connect(turn, &transcript));
    let (reason, trouble) = match ended {
        Ok(reason) => (reason, trouble_of(reason)),
        Err(message) => (acp::StopReason::Cancelled, Some(message)),
    };
    lock(&transcript).finished(&word(reason), trouble.as_deref());
    trouble.map_or(Ok(()), |message| Err(TurnError::Turn { message }))
}

fn word(reason: acp::StopReason) -> String {
    serde_json::to_value(reason).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn trouble_of(reason: acp::StopReason) -> Option<String> {
    match reason {
        acp::StopReason::EndTurn => None,
        acp::StopReason::MaxTokens => Some("its answer was cut: the limit of tokens is reached".to_owned()),
        acp::StopReason::MaxTurnRequests => Some("the limit of turns is reached".to_owned()),
        acp::StopReason::Refusal => Some("the model refused to go on".to_owned()),
        acp::StopReason::Cancelled => Some("it was interrupted".to_owned()),
        _ => Some(format!("it ended for a reason that is not known: {}", word(reason))),
    }
}

async fn connect(turn: &Turn, transcript: &Shared) -> Result<acp::StopReason, String> {
    let (program, arguments) = turn.agent.split_first().ok_or_else(|| TurnError::NoProgram.to_string())?;
    let wire = transcript.clone();
    let agent =
        AcpAgent::new(AcpAgentConfig::new(program).args(arguments)).with_debug(move |line, direction| {
            match direction {
                LineDirection::Stdout => {
                    lock(&wire).wire(To::Client, line);
                    if let Some((kind, said)) = beyond_the_protocol(line) {
                        lock(&wire).unknown(&kind, &said);
                    }
                }
                LineDirection::Stderr => {
                    // What it says there is what this process says there.
                    say_aside(line);
                    if let Ok(said) = serde_json::from_str::<Value>(line) {
                        hear_plugin(&said, &mut lock(&wire));
                    }
                }
                LineDirection::Stdin => lock(&wire).wire(To::Agent, line),
            }
        });
    let (heard, asked, permit) = (transcript.clone(), transcript.clone(), turn.permit.clone());
    let client = Client
        .v1()
        .name("gatewright")
        .on_receive_notification(
            async move |said: acp::SessionNotification, _connection| {
                lock(&heard).update(&said.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: acp::RequestPermissionRequest, responder, _connection| {
                responder.respond(acp::RequestPermissionResponse::new(answer(&permit, &request, &asked)))
            },
            agent_client_protocol::on_receive_request!(),
        );
    client
        .connect_with(agent, async |connection: ConnectionTo<Agent>| {
            converse(turn, transcript, &connection).await
        })
        .await
        .map_err(|error| {
            let data = error.data.as_ref().map(|data| format!(": {data}")).unwrap_or_default();
            format!("{} (code {}){data}", error.message, i32::from(error.code))
        })
}

/// On stderr. Nobody may read it any more: the turn goes on.
fn say_aside(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A notification that this version of the protocol does not know: it has no effect, and is kept.
fn beyond_the_protocol(line: &str) -> Option<(String, Value)> {
    let mut said: Value = serde_json::from_str(line).ok()?;
    if said.get("id").is_some() {
        return None;
    }
    let method = said.get("method")?.as_str()?.to_owned();
    let params = said.get_mut("params").map(Value::take).unwrap_or_default();
    if method != "session/update" {
        return Some((method, params));
    }
    let is_known = serde_json::from_value::<acp::SessionNotification>(params.clone()).is_ok();
    let kind = params.pointer("/update/sessionUpdate").and_then(Value::as_str).unwrap_or("session/update");
    (!is_known).then(|| (kind.to_owned(), params.clone()))
}

/// The protocol has no word for waiting for a provider, nor for what a single call has spent, nor for the number of a
/// provider's error. A plugin of ours says it in lines on stderr.
fn hear_plugin(said: &Value, transcript: &mut Transcript<Stdout>) {
    let number = |pointer: &str| said.pointer(pointer).and_then(Value::as_u64);
    match said.get("type").and_then(Value::as_str) {
        Some("counts") => transcript.counts_calls(),
        Some("failed") => transcript.failed(number("/status")),
        Some("retry") => {
            if let Some(why) = said.get("message").and_then(Value::as_str) {
                transcript.waiting(why, number("/wait_ms"));
            }
        }
        Some("spent") => {
            let call = Call {
                input: number("/tokens/input").unwrap_or(0),
                output: number("/tokens/output").unwrap_or(0),
                cached: number("/tokens/cache/read").unwrap_or(0),
                usd: said.pointer("/cost").and_then(Value::as_f64).unwrap_or(0.0),
            };
            if let Some(id) = said.get("id").and_then(Value::as_str) {
                transcript.call(id, call);
            }
        }
        _ => {}
    }
}

/// Yes or no by the policy, at once.
fn answer(
    permit: &Permit,
    request: &acp::RequestPermissionRequest,
    transcript: &Shared,
) -> acp::RequestPermissionOutcome {
    let fields = &request.tool_call.fields;
    let asked = lock(transcript).asked(&request.tool_call);
    let title = fields.title.clone().or_else(|| asked.name.clone()).unwrap_or_default();
    let title = if title.is_empty() { "a tool without a name".to_owned() } else { title };
    let yes = permit.allows(&asked);
    if yes {
        lock(transcript).tool_started(&request.tool_call.tool_call_id.to_string(), &title, &title);
    } else {
        lock(transcript).denied(&title);
    }
    match option(&request.options, yes) {
        Some(option) => acp::RequestPermissionOutcome::Selected(acp::SelectedPermissionOutcome::new(
            option.option_id.clone(),
        )),
        None => acp::RequestPermissionOutcome::Cancelled,
    }
}

async fn converse(
    turn: &Turn,
    transcript: &Shared,
    connection: &ConnectionTo<Agent>,
) -> Result<acp::StopReason, agent_client_protocol::Error> {
    let hello =
        connection.send_request(acp::InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
    let (session, options) = open_session(turn, &hello, connection).await?;
    if let Some(model) = &turn.model {
        choose_model(&session, &options, model, connection).await?;
    }
    if let Some(mode) = &turn.mode {
        let request = acp::SetSessionModeRequest::new(session.clone(), mode.clone());
        // What it asks for is answered by the role's policy in any mode.
        if let Err(error) = connection.send_request(request).block_task().await {
            say_aside(&format!("the agent does not take the mode `{mode}`: {}", error.message));
        }
    }
    lock(transcript).started(&session.to_string(), turn.resume.is_some());
    let prompt = acp::PromptRequest::new(session.clone(), vec![acp::ContentBlock::from(turn.prompt.clone())]);
    let mut ended = Box::pin(connection.send_request(prompt).block_task());
    let response = tokio::select! {
        response = &mut ended => {
            if response.is_err() {
                hear(transcript, Transcript::has_heard_failure).await;
            }
            response?
        }
        () = told_to_stop() => {
            connection.send_notification(acp::CancelNotification::new(session))?;
            match tokio::time::timeout(CANCEL_GRACE, ended).await {
                Ok(response) => response?,
                Err(_) => return Ok(acp::StopReason::Cancelled),
            }
        }
    };
    if let Some(usage) = &response.usage {
        hear(transcript, |heard| heard.has_heard(usage.input_tokens, usage.output_tokens)).await;
        lock(transcript).spent(usage.input_tokens, usage.output_tokens, usage.cached_read_tokens);
    }
    Ok(response.stop_reason)
}

/// What the plugin says last comes by another pipe than the end of the turn, perhaps a moment later.
async fn hear(transcript: &Shared, is_all: impl Fn(&Transcript<Stdout>) -> bool) {
    let heard = async {
        while !is_all(&lock(transcript)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(LAST_CALL_GRACE, heard).await;
}

/// A new conversation, or the one that is named, by the best means the agent has; with the options of the session.
async fn open_session(
    turn: &Turn,
    hello: &acp::InitializeResponse,
    connection: &ConnectionTo<Agent>,
) -> Result<(acp::SessionId, Vec<acp::SessionConfigOption>), agent_client_protocol::Error> {
    let servers: Vec<acp::McpServer> = turn
        .tools
        .split_first()
        .map(|(program, arguments)| {
            acp::McpServer::Stdio(
                acp::McpServerStdio::new("gatewright", program.clone()).args(arguments.to_vec()),
            )
        })
        .into_iter()
        .collect();
    let cwd = turn.cwd.clone();
    let Some(id) = &turn.resume else {
        let request = acp::NewSessionRequest::new(cwd).mcp_servers(servers);
        let begun = connection.send_request(request).block_task().await?;
        return Ok((begun.session_id, begun.config_options.unwrap_or_default()));
    };
    let can = &hello.agent_capabilities;
    let options = if can.session_capabilities.resume.is_some() {
        let request = acp::ResumeSessionRequest::new(id.clone(), cwd).mcp_servers(servers);
        connection.send_request(request).block_task().await.map(|resumed| resumed.config_options)
    } else if can.load_session {
        let request = acp::LoadSessionRequest::new(id.clone(), cwd).mcp_servers(servers);
        connection.send_request(request).block_task().await.map(|loaded| loaded.config_options)
    } else {
        let none = "it has no way to go on with a conversation";
        return Err(agent_client_protocol::Error::new(-32002, format!("{LOST}: {none}")));
    };
    let options = options.map_err(lost)?;
    Ok((acp::SessionId::new(id.clone()), options.unwrap_or_default()))
}

/// What is said of a conversation that cannot go on. Whoever started the turn then begins a fresh one.
const LOST: &str = "Session not found";

/// Agents have many words and numbers for a session that is not there. Only that nobody is logged in is something else.
fn lost(mut error: agent_client_protocol::Error) -> agent_client_protocol::Error {
    if i32::from(error.code) != AUTH_REQUIRED {
        error.message = format!("{LOST}: {}", error.message);
    }
    error
}

/// The protocol's number for who is not logged in.
const AUTH_REQUIRED: i32 = -32000;

/// Chooses the model by the session's own option. One that the agent does not offer is said, and it works with its own.
async fn choose_model(
    session: &acp::SessionId,
    options: &[acp::SessionConfigOption],
    model: &str,
    connection: &ConnectionTo<Agent>,
) -> Result<(), agent_client_protocol::Error> {
    let for_models = options.iter().find(|one| one.category == Some(acp::SessionConfigOptionCategory::Model));
    let Some(option) = for_models else {
        say_aside(&format!("the agent has no option for its model: it was not told `{model}`"));
        return Ok(());
    };
    let value = acp::SessionConfigOptionValue::value_id(model.to_owned());
    let request = acp::SetSessionConfigOptionRequest::new(session.clone(), option.id.clone(), value);
    connection.send_request(request).block_task().await.map(drop)
}

/// Ends when this process is asked to end.
async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        // Signals cannot be watched: the supervisor ends the group anyway.
        _ => std::future::pending().await,
    }
}
