//! State across restarts, and between processes of one machine.

mod boot;
mod error;
mod state;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod store;
mod times;
#[cfg(feature = "yaml")]
mod yaml;

pub use boot::Boot;
pub use error::StoreError;
pub use state::State;
pub use store::Store;
#[cfg(feature = "yaml")]
pub use yaml::Yaml;
