//! What people read on a terminal: numbers and times in words, texts of others, and lines on stderr.
//!
//! It doesn't know what is told of: whoever tells does.

mod moment;
mod number;
mod printable;
mod say;
mod table;

pub(crate) use moment::{Span, rfc3339};
pub(crate) use number::{counted, whole};
pub(crate) use printable::printable;
pub(crate) use say::say;
pub(crate) use table::plain_table;
