//! What must never happen (J-01 … J-53).

mod artifacts;
mod budgets;
mod decisions;
mod engines;
mod graphs;
mod loops;
mod methods;
mod processes;
mod replies;
