use std::fmt;

use super::Explanation;
use super::seconds::seconds;
use paceline::provider::LimitReading;
use paceline::quota::{Dimension, Window};

/// The columns of a [`TableRow`].
pub const HEADING: &str = concat!(
    " entry  provider          model                         class      ",
    "    charge      in     out   used in     out  cached"
);

/// An explanation as one row of a table. [`HEADING`] lists its columns, which are followed by the
/// limits stated in headers (`remaining/limit`), what a refusal says, or the delay, and the error code.
///
/// `charge` is the charge to the token limit at admission; `~` marks a guess from the size of an
/// unreadable request.
#[derive(Debug)]
pub struct TableRow<'a> {
    index: usize,
    explanation: &'a Explanation,
}

impl<'a> TableRow<'a> {
    /// Returns the row for the entry at `index` (from 0).
    pub fn new(index: usize, explanation: &'a Explanation) -> Self {
        Self { index, explanation }
    }
}

impl fmt::Display for TableRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, explanation } = self;
        let estimate = &explanation.estimate;
        let amount = |dimension| estimate.cost.amount(&dimension);
        let model = estimate.model.as_deref().map_or_else(|| "-".to_owned(), printable);
        let model = fitting(model);
        let guess = if estimate.exact { "" } else { "~" };
        let used = explanation.usage.map(|u| [u.input, u.output, u.cache_read]);
        let [input, output, cached] =
            used.map_or([const { String::new() }; 3], |u| u.map(|n| n.to_string()));
        write!(
            f,
            "{index:>6}  {:<16}  {model:<28}  {:<11}{:>10} {:>7} {:>7}  {:>8} {:>7} {:>7}",
            explanation.profile.name(),
            explanation.class_name(),
            format!("{guess}{}", amount(Dimension::Tokens)),
            amount(Dimension::InputTokens),
            amount(Dimension::OutputTokens),
            or_dash(&input),
            or_dash(&output),
            or_dash(&cached),
        )?;
        self.remarks(f)
    }
}

impl TableRow<'_> {
    fn remarks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for limit in &self.explanation.limits {
            write!(f, "  {}", LimitRemark(limit))?;
        }
        match (&self.explanation.refusal, self.explanation.retry_after) {
            (Some(refusal), _) => write!(f, "  {refusal}")?,
            (None, Some(delay)) => write!(f, "  retry after {}s", seconds(&delay))?,
            (None, None) => {}
        }
        // The message may quote the prompt; the code doesn't.
        match &self.explanation.error {
            Some(error) => match error.code().or(error.kind()) {
                Some(code) => write!(f, "  {}", printable(code)),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }
}

/// Truncates a name to its column.
fn fitting(name: String) -> String {
    match name.char_indices().nth(WIDEST_MODEL - 1) {
        Some((end, last)) if name.len() > end + last.len_utf8() => format!("{}…", &name[..end]),
        _ => name,
    }
}

/// The width of the model column, in characters.
const WIDEST_MODEL: usize = 28;

struct LimitRemark<'a>(&'a LimitReading);

impl fmt::Display for LimitRemark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitReading { dimension, window, limit, remaining, reset, .. } = self.0;
        let number = |n: &Option<u64>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        write!(f, "{} {}/{}", printable(dimension.as_str()), number(remaining), number(limit))?;
        match *window {
            Window::SECOND => f.write_str(" per second")?,
            Window::MINUTE => f.write_str(" per minute")?,
            Window::DAY => f.write_str(" per day")?,
            other => write!(f, " per {:?}", other.as_duration())?,
        }
        match reset {
            Some(reset) => write!(f, ", full in {}s", seconds(reset)),
            None => Ok(()),
        }
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Replaces control characters in an untrusted text, and truncates it.
pub(super) fn printable(text: &str) -> String {
    text.chars().take(LONGEST_NAME).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The maximum length of a name, in characters.
const LONGEST_NAME: usize = 100;
