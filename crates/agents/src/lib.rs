//! Coding agents as other people wrote them: how each is started, how its stream is read, and when it
//! was content with itself. Text in, text out: no file, no process, no clock, no environment.

mod acp;
mod adapter;
mod claude;
mod codex;
mod command;
mod dialect;
mod event;
mod gemini;
mod message_files;
mod opencode;
mod order;
mod pi;
mod qwen;
mod role;
mod table;
mod told;
mod trouble;

pub use self::{
    acp::acp_named,
    adapter::{
        ADAPTERS, Adapter, Capabilities, Exit, Help, Means, Moved, Places, Reader, Stop, adapter_named,
    },
    command::{Declared, DeclaredReader, Fields, ReplyFrom, SessionFlags},
    event::{Event, Usage},
    message_files::{MessageFile, take_files},
    order::{Conversation, DESK, Desk, Launch, Order, Policy, QuietFile, ReplySchema},
    role::{policy_of, untold_of_definition},
    table::{agent_list, agent_pages, capability_table},
    told::Told,
    trouble::{Trouble, is_lost},
};
