//! Formatting of terminal output: numbers, durations, untrusted texts, tables, and notices on
//! stderr.

mod human_duration;
mod notify;
mod number;
mod printable;
mod table;

pub(crate) use human_duration::{HumanDuration, rfc3339};
pub(crate) use notify::notify;
pub(crate) use number::{amount, counted, whole};
pub(crate) use printable::{printable, printable_lines};
pub(crate) use table::plain_table;
