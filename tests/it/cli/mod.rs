//! The command, as it is called: real processes, each in folders of its own.

mod completions;
mod count;
mod help;
mod rig;
