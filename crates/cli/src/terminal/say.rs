use std::fmt::Display;
use std::io::{self, Write};

use super::printable::printable_lines;

/// Says something on stderr. Where nobody can hear it, nothing happens.
pub(crate) fn say(text: &dyn Display) {
    let text = printable_lines(&text.to_string());
    let _ = writeln!(io::stderr(), "tollgate: {text}");
}
