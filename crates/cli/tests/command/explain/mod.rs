//! `tollgate explain`: its reader of recordings, what it makes of them, and the command.

mod broken;
mod bytes;
mod command;
mod corpus;
mod dialects;
mod explanations;
mod fuzz;
mod mutated;
mod rig;
