//! One configuration file, for the library and every command.

mod watch;
mod watched;

pub use watch::Watch;
pub use watched::Watched;
