/// A place in a JSON object whose value is wanted: the keys from the root down to it.
#[derive(Debug, Clone, Copy)]
pub(in crate::provider) struct Field {
    pub(super) path: &'static [&'static str],
    pub(super) slot: Slot,
}

impl Field {
    /// A count of tokens. A path has at most five keys.
    pub(in crate::provider) const fn count(path: &'static [&'static str], count: Count) -> Self {
        Self { path, slot: Slot::Count(count) }
    }

    pub(super) const fn text(path: &'static [&'static str], part: Part) -> Self {
        Self { path, slot: Slot::Text(part) }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    Count(Count),
    Text(Part),
}

/// A count that responses state, by the provider's own meaning of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum Count {
    Input,
    Output,
    Total,
    CacheRead,
    CacheWrite,
    /// Generated while thinking, where that is stated apart from the output.
    Thoughts,
    /// Prompt that tools added, where that is stated apart from the input.
    ToolPrompt,
    /// The input and the output as another place states them, for responses in which the first one
    /// is missing.
    OtherInput,
    OtherOutput,
    /// The output as it is stated while there is more to come, as `message_start` does. It counts
    /// where no other says more.
    OutputSoFar,
}

/// The counts that a body has stated.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::provider) struct Counts {
    stated: [Option<u64>; 10],
    /// An output was stated twice, and not the same.
    grew: bool,
}

impl Counts {
    pub(in crate::provider) fn of(&self, count: Count) -> Option<u64> {
        self.stated[count as usize]
    }

    pub(in crate::provider) fn set(&mut self, count: Count, value: u64) {
        self.stated[count as usize] = Some(value);
    }

    /// Takes over what `newer` states; what it leaves out stays.
    pub(super) fn update(&mut self, newer: &Self) {
        let differs = |count| {
            let (old, new) = (self.of(count), newer.of(count));
            old.is_some() && new.is_some() && old != new
        };
        self.grew |= [Count::Output, Count::OtherOutput].into_iter().any(differs);
        for (old, new) in self.stated.iter_mut().zip(newer.stated) {
            *old = new.or(*old);
        }
    }

    /// Whether the output that was stated is the last, whatever is still to come: it stands where
    /// the end of a response states it, and has not grown. Servers that count along (vLLM with
    /// `continuous_usage_stats`) begin with none.
    pub(super) fn are_final(&self) -> bool {
        let output = self.of(Count::Output).or(self.of(Count::OtherOutput));
        !self.grew && output.is_some_and(|tokens| tokens > 0)
    }
}

/// A part of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Code,
    Kind,
    Message,
    /// The same three at the root, where they mean an error only if something else says so.
    RootCode,
    RootKind,
    RootMessage,
    /// `object` at the root: `error` with older vLLM and Mistral.
    RootObject,
    /// No part of an error: the encoded text in a message of Bedrock's.
    Bytes,
}

/// Where errors stand, with every provider seen.
pub(super) const ERRORS: &[Field] = &[
    Field::text(&["error"], Part::Message),
    Field::text(&["error", "message"], Part::Message),
    Field::text(&["error", "code"], Part::Code),
    Field::text(&["error", "type"], Part::Kind),
    Field::text(&["error", "status"], Part::Kind),
    // The stream of Responses: `response.failed`.
    Field::text(&["response", "error", "message"], Part::Message),
    Field::text(&["response", "error", "code"], Part::Code),
    // The stream of Responses: `{"type": "error", "code": .., "message": ..}`.
    Field::text(&["type"], Part::RootKind),
    Field::text(&["__type"], Part::RootKind),
    Field::text(&["object"], Part::RootObject),
    Field::text(&["code"], Part::RootCode),
    Field::text(&["message"], Part::RootMessage),
    Field::text(&["Message"], Part::RootMessage),
    Field::text(&["detail"], Part::RootMessage),
    // Cohere v2: `message-end`.
    Field::text(&["delta", "error"], Part::Message),
];
