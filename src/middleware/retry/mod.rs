//! Sending again what fails in passing.

mod again;
mod backoff;
mod future;
mod judge;
mod judging;
mod replay;
mod service;

pub use future::RetryFuture;
pub use judge::{Judge, Verdict};
pub use judging::Judging;
pub use replay::Replay;
pub use service::RetryService;
