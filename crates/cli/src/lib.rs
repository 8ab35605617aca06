//! The `tollgate` command: what it does, composed of the library, the server and the simulator.
//!
//! | module | what it is |
//! |---|---|
//! | [`batch`] | a file of requests in, a file of results out |
//! | [`explain`] | what recorded traffic would have been charged |
//! | [`command`] | the arguments, and what each subcommand does |

pub mod batch;
pub mod command;
pub mod explain;
mod latencies;
mod terminal;
