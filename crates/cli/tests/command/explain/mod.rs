//! `paceline explain`: the HAR reader, the explanations, and the command.

mod broken;
mod bytes;
mod command;
mod corpus;
mod dialects;
mod explanations;
mod fuzz;
mod mutated;
mod rig;
