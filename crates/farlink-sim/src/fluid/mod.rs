//! The fluid engine: long-run averages of TCP flows over one bottleneck, with windows that grow continuously between losses.
//!
//! [`simulate`] runs one operating [`Point`] until its goodput is known as precisely as a [`Rule`] asks; [`run`] does so for
//! every point of a scenario, a [`Study`] for any of them. Between two events (a loss, its detection, the end of a recovery, a
//! queue that begins or fills) everything has a closed form, so that the computing time depends on the number of losses, not of
//! segments.

mod batches;
mod flow;
mod growth;
mod law;
mod link;
mod losses;
mod outcome;
mod point;
mod queue;
mod resolve;
mod simulation;
mod study;

pub use law::{Constants, Growth};
pub use outcome::{FlowOutcome, Outcome};
pub use point::{Point, Repair, Rule, Span, Timeouts};
pub use resolve::{Kind, Setup, resolve};
pub use simulation::simulate;
pub use study::{Study, run};

#[cfg(test)]
mod tests;
