mod agent;
mod port;

pub use agent::Agent;
pub use port::{Bus, Receiver};
