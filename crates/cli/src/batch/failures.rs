use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::changes::shortened;
use super::outcome::Failure;
use super::quotes::quotes;
use paceline::provider::RefusalKind;

/// The failures with the same cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The [`Failure::code`]: `http_400`, `connection`, `invalid_line`.
    pub code: String,
    /// The kind of the provider's refusal: `rate`, `request`, `account`, `window`, `capacity`. `None` if it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Why the provider refused the requests, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of failed lines.
    pub count: u64,
    /// The first failed line.
    pub example: FailureExample,
}

/// A failed line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureExample {
    /// The `custom_id`, or `line-N`.
    pub custom_id: String,
    /// The start of its error message. A message that quotes the request is withheld.
    pub message: String,
}

/// The failures by cause.
#[derive(Debug, Default)]
pub(super) struct Failures(BTreeMap<(String, Option<RefusalKind>), (u64, FailureExample)>);

impl Failures {
    /// Counts a failed line. `body` is the body of its request.
    pub(super) fn add(&mut self, custom_id: &str, failure: &Failure, body: &[u8]) {
        match self.0.entry((failure.code().to_owned(), failure.refusal())) {
            Entry::Occupied(mut known) => known.get_mut().0 += 1,
            Entry::Vacant(first) => {
                let custom_id = shortened(custom_id);
                let message = example(failure.message(), body);
                first.insert((1, FailureExample { custom_id, message }));
            }
        }
    }

    /// Returns the causes, most frequent first.
    pub(super) fn by_count(&self) -> Vec<FailureCount> {
        let causes = self.0.iter().map(|((code, kind), (count, example))| FailureCount {
            code: code.clone(),
            kind: kind.map(|kind| kind.as_str().to_owned()),
            reason: kind.map(|kind| kind.describe().to_owned()),
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
    if quotes(&start, body) {
        return "withheld, since it quotes the request; see its line in the output".to_owned();
    }
    match start.len() < message.len() {
        true => format!("{start}..."),
        false => start,
    }
}

/// The length of a message, in characters.
const LONGEST_MESSAGE: usize = 200;
