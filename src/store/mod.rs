//! State across restarts, and between processes of one machine.

mod error;
mod state;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod store;

pub use error::StoreError;
pub use state::State;
pub use store::Store;
