use std::fmt::Display;
use std::io::{self, Write};

use super::printable::printable_lines;

/// Prints a notice on stderr, ignoring errors.
pub(crate) fn notify(text: &dyn Display) {
    let text = printable_lines(&text.to_string());
    let _ = writeln!(io::stderr(), "paceline: {text}");
}
