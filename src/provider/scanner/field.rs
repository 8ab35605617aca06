/// A place in a JSON object whose value is wanted: the keys from the root down to it.
#[derive(Debug, Clone, Copy)]
pub(in crate::provider) struct Field {
    pub(super) path: &'static [&'static str],
    pub(super) slot: Slot,
}

impl Field {
    /// A count of tokens. Where later objects leave it out, it stays. A path has at most five keys.
    pub(in crate::provider) const fn count(path: &'static [&'static str], count: Count) -> Self {
        Self { path, slot: Slot::Count(count) }
    }

    /// A count that tells a whole usage: what earlier objects and the head stated is forgotten.
    pub(in crate::provider) const fn whole(path: &'static [&'static str], count: Count) -> Self {
        Self { path, slot: Slot::Whole(count) }
    }

    /// An object that is a whole usage whatever it holds; some field must lie within it.
    pub(in crate::provider) const fn object(path: &'static [&'static str]) -> Self {
        Self { path, slot: Slot::Object }
    }

    pub(super) const fn text(path: &'static [&'static str], part: Part) -> Self {
        Self { path, slot: Slot::Text(part) }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    Count(Count),
    Whole(Count),
    Object,
    Text(Part),
}

/// A count that responses state, by the provider's own meaning of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::provider) enum Count {
    /// The prompt, with what came from the cache.
    Prompt,
    /// What was generated, by the name that goes before `Output` where both are stated: some
    /// servers add zeros by the names of another format.
    Completion,
    /// The prompt, without what is stated as `ReadApart` and `WrittenApart`.
    Input,
    Output,
    Total,
    /// Read from the cache, and within the input.
    CacheRead,
    /// Read from and written to the cache, beside the input.
    ReadApart,
    WrittenApart,
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

/// Where an output is stated, the best first.
pub(in crate::provider) const OUTPUTS: [Count; 4] =
    [Count::Completion, Count::Output, Count::OtherOutput, Count::OutputSoFar];

/// The counts that a body has stated.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::provider) struct Counts {
    counts: [Option<u64>; Count::OutputSoFar as usize + 1],
    are_whole: bool,
    /// An output was stated twice, and not the same.
    grew: bool,
}

impl Counts {
    pub(in crate::provider) fn of(&self, count: Count) -> Option<u64> {
        self.counts[count as usize]
    }

    /// Whether they are a usage of their own, even where none is known.
    pub(in crate::provider) fn are_whole(&self) -> bool {
        self.are_whole
    }

    pub(in crate::provider) fn set(&mut self, count: Count, value: u64) {
        self.counts[count as usize] = Some(value);
    }

    /// From now on they are a usage of their own.
    pub(super) fn set_whole(&mut self) {
        self.are_whole = true;
    }

    /// Takes over what `newer` states. What it leaves out stays, unless it is a whole usage.
    pub(super) fn update(&mut self, newer: &Self) {
        let differs = |count: &Count| {
            let (old, new) = (self.of(*count), newer.of(*count));
            old.is_some() && new.is_some() && old != new
        };
        let grew = self.grew || OUTPUTS.iter().any(differs);
        if newer.are_whole {
            *self = Self { grew, ..*newer };
            return;
        }
        self.grew = grew;
        for (old, new) in self.counts.iter_mut().zip(newer.counts) {
            *old = new.or(*old);
        }
    }

    /// Whether the output that was stated is the last, whatever is still to come: it stands where
    /// the end of a response states it, and has not grown. Servers that count along (vLLM with
    /// `continuous_usage_stats`) begin with none.
    pub(super) fn are_final(&self) -> bool {
        let output = OUTPUTS.iter().find_map(|count| Some((*count, self.of(*count)?)));
        !self.grew && output.is_some_and(|(at, tokens)| at != Count::OutputSoFar && tokens > 0)
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
