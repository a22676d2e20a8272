//! The desk as an MCP server on stdin and stdout.

use std::path::PathBuf;

use rmcp::{
    ServerHandler, ServiceExt,
    handler::server::wrapper::Parameters,
    model::{CallToolResult, ContentBlock},
    tool, tool_handler, tool_router,
};

use crate::{
    desk::{Answer, Desk, Progress, Question, Report, Review},
    promised::Promised,
};

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{}: what the attempt promised to write cannot be read", out.display())]
    Promised { out: PathBuf, source: std::io::Error },
    #[error("the server cannot be started")]
    Start { source: std::io::Error },
    #[error("the client broke the protocol: {message}")]
    Protocol { message: String },
}

/// Serves one agent until it hangs up.
pub fn serve(out: PathBuf) -> Result<(), ServeError> {
    let promised =
        Promised::of_attempt(&out).map_err(|source| ServeError::Promised { out: out.clone(), source })?;
    let server = Server { desk: Desk::new(out, promised) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|source| ServeError::Start { source })?;
    runtime.block_on(async {
        let protocol = |message: String| ServeError::Protocol { message };
        let service =
            server.serve(rmcp::transport::stdio()).await.map_err(|error| protocol(error.to_string()))?;
        service.waiting().await.map_err(|error| protocol(error.to_string()))?;
        Ok(())
    })
}

#[derive(Clone)]
struct Server {
    desk: Desk,
}

fn result(answer: Answer) -> CallToolResult {
    match answer {
        Answer::Accepted(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Answer::Rejected(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
    }
}

#[tool_router]
impl Server {
    #[tool(
        description = "Hand in a file of your task and say how the work ended. What breaks its contract is returned with every violation: change it and hand it in again."
    )]
    async fn submit_report(&self, Parameters(report): Parameters<Report>) -> CallToolResult {
        result(self.desk.submit_report(report))
    }

    #[tool(description = "Hand in your review: whether you approve, and every finding.")]
    async fn submit_review(&self, Parameters(review): Parameters<Review>) -> CallToolResult {
        result(self.desk.submit_review(review))
    }

    #[tool(description = "Say what you are doing now. Shown to people; decides nothing.")]
    async fn update_progress(&self, Parameters(progress): Parameters<Progress>) -> CallToolResult {
        result(self.desk.update_progress(&progress))
    }

    #[tool(
        description = "Put a question to a person. It does not wait: end your turn afterwards, you are called again with the answer."
    )]
    async fn ask_human(&self, Parameters(question): Parameters<Question>) -> CallToolResult {
        result(self.desk.ask_human(question))
    }
}

#[tool_handler(
    name = "gatewright",
    instructions = "Hand in your work with these tools: submit_report or submit_review at the end, ask_human for what only a person can decide."
)]
impl ServerHandler for Server {}
