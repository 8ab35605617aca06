use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::changes::shortened;
use super::outcome::Failure;
use super::repeats::repeats;

/// The failures of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The cause, as [`Failure::code`] has it: `http_400`, `connection`, `invalid_line`.
    pub code: String,
    /// How many lines failed by it.
    pub count: u64,
    /// The first of them.
    pub example: FailureExample,
}

/// A line that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureExample {
    /// Its `custom_id`, or `line-N`.
    pub custom_id: String,
    /// The start of its error message. One that repeats the request is withheld.
    pub message: String,
}

/// Failures, counted by cause.
#[derive(Debug, Default)]
pub(super) struct Failures(BTreeMap<String, (u64, FailureExample)>);

impl Failures {
    /// Counts the failure of a line with this body.
    pub(super) fn add(&mut self, custom_id: &str, failure: &Failure, body: &[u8]) {
        match self.0.entry(failure.code().to_owned()) {
            Entry::Occupied(mut known) => known.get_mut().0 += 1,
            Entry::Vacant(first) => {
                let custom_id = shortened(custom_id);
                let message = example(failure.message(), body);
                first.insert((1, FailureExample { custom_id, message }));
            }
        }
    }

    /// The causes, the most frequent first.
    pub(super) fn by_count(&self) -> Vec<FailureCount> {
        let causes = self.0.iter().map(|(code, (count, example))| FailureCount {
            code: code.clone(),
            count: *count,
            example: example.clone(),
        });
        let mut causes: Vec<_> = causes.collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
        causes
    }
}

fn example(message: &str, body: &[u8]) -> String {
    let start: String = message.chars().take(LONGEST_MESSAGE).collect();
    if repeats(&start, body) {
        return "withheld, since it quotes the request; see its line in the output".to_owned();
    }
    match start.len() < message.len() {
        true => format!("{start}..."),
        false => start,
    }
}

/// How many characters of a message are shown.
const LONGEST_MESSAGE: usize = 200;
