use memchr::memchr;

use super::key::Key;
use super::skip::{closing_quote, ends_in_escape, quote_or_escape};

/// Measures the generated text in the events of a stream: the strings under the keys in which providers
/// stream their output, at any depth. Text that a later event repeats counts again, so that the size is
/// never below that of the text.
#[derive(Default)]
pub(super) struct OutputSize {
    bytes: u64,
    /// True if a member of an event was read. Comments and the names of events have none.
    has_event: bool,
    state: State,
    key: Key,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    /// Outside strings.
    #[default]
    Between,
    /// In a string that may be a key.
    String,
    StringEscape,
    /// After a string: a colon makes it a key.
    AfterString {
        is_output: bool,
    },
    /// After the key of an output and its colon.
    Value,
    /// In a text that was generated.
    Text,
    TextEscape,
}

impl OutputSize {
    /// Returns the bytes of the text, with escapes as they are written; `None` if no event was read.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.has_event.then_some(self.bytes)
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let read = match self.state {
                State::Between => self.between(bytes),
                State::String => self.string(bytes),
                State::StringEscape => self.advance(State::String),
                State::AfterString { is_output } => self.after_string(bytes[0], is_output),
                State::Value => self.value(bytes[0]),
                State::Text => self.text(bytes),
                State::TextEscape => {
                    self.bytes = self.bytes.saturating_add(1);
                    self.advance(State::Text)
                }
            };
            bytes = &bytes[read..];
        }
    }

    /// Consumes one byte and changes the state.
    fn advance(&mut self, state: State) -> usize {
        self.state = state;
        1
    }

    fn between(&mut self, bytes: &[u8]) -> usize {
        let Some(quote) = memchr(b'"', bytes) else { return bytes.len() };
        self.key.clear();
        self.state = State::String;
        quote + 1
    }

    fn string(&mut self, bytes: &[u8]) -> usize {
        let Some(end) = quote_or_escape(bytes) else {
            self.key.push(bytes);
            return bytes.len();
        };
        if bytes[end] == b'\\' {
            self.key.set_unknown();
            self.state = State::StringEscape;
        } else {
            let key = self.key.complete(&bytes[..end]);
            let is_output = key.is_some_and(|key| OUTPUTS.contains(&key));
            self.state = State::AfterString { is_output };
        }
        end + 1
    }

    fn after_string(&mut self, byte: u8, is_output: bool) -> usize {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => 1,
            b':' => {
                self.has_event = true;
                self.advance(if is_output { State::Value } else { State::Between })
            }
            _ => {
                self.state = State::Between;
                0
            }
        }
    }

    fn value(&mut self, byte: u8) -> usize {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => 1,
            b'"' => self.advance(State::Text),
            _ => {
                self.state = State::Between;
                0
            }
        }
    }

    fn text(&mut self, bytes: &[u8]) -> usize {
        let (length, read) = match closing_quote(bytes) {
            Some(end) => {
                self.state = State::Between;
                (end, end + 1)
            }
            None => {
                if ends_in_escape(bytes) {
                    self.state = State::TextEscape;
                }
                (bytes.len(), bytes.len())
            }
        };
        self.bytes = self.bytes.saturating_add(length as u64);
        read
    }
}

/// The keys of generated texts: OpenAI's chat, completions and Responses, Anthropic's messages, and the
/// additions of compatible servers. Audio and images count by their Base64.
const OUTPUTS: &[&[u8]] = &[
    b"content",
    b"text",
    b"delta",
    b"arguments",
    b"partial_json",
    b"name",
    b"refusal",
    b"reasoning_content",
    b"reasoning",
    b"thinking",
    b"transcript",
    b"data",
    b"input",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(stream: &str, piece: usize) -> Option<u64> {
        let mut size = OutputSize::default();
        stream.as_bytes().chunks(piece).for_each(|piece| size.feed(piece));
        size.bytes()
    }

    #[test]
    fn output_size_counts_generated_texts_alone() {
        for (stream, size) in [
            ("", None),
            (": keep-alive \"x\"\n\n", None),
            ("event: ping\ndata: {\"type\": \"ping\"}\n\n", Some(0)),
            (r#"{"id":"abc","choices":[{"delta":{"content":"Hi"}}],"usage":null}"#, Some(2)),
            (r#"{"choices":[{"delta":{"content":"say \"Hi\"\n\\"}}]}"#, Some(14)),
            (r#"{"choices":[{"delta":{"content":null,"role":"assistant"}}]}"#, Some(0)),
            (r#"{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}}"#, Some(3)),
            (r#"{"type":"response.output_text.delta","item_id":"x","delta" : "Hello"}"#, Some(5)),
            (
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#,
                Some(2),
            ),
            (r#"{"instructions":"\"text\":\"not generated\""}"#, Some(0)),
            (r#"{"text":{"format":{"type":"text"}}}"#, Some(0)),
            // Cut off within a text, and within its escape.
            (r#"{"text":"Hell"#, Some(4)),
            (r#"{"text":"Hell\"#, Some(5)),
        ] {
            for piece in [1, 2, 3, 7, 1_000] {
                assert_eq!(measured(stream, piece), size, "{stream} in pieces of {piece}");
            }
        }
    }
}
