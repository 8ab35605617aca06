use super::event_stream::EventStream;
use super::needles::Needles;
use super::sse::Sse;

/// How a body is framed.
#[expect(clippy::large_enum_variant, reason = "in place, so that a response allocates nothing")]
pub(super) enum Format {
    /// Not known yet.
    Unknown(Sniff),
    /// JSON objects in a row or in an array; mostly one.
    Json,
    Sse(Sse),
    EventStream(EventStream),
    /// Nothing that could state a usage: sound, images, plain text.
    Opaque,
}

/// Tells the format from the first byte that is no white space. That byte is the better witness:
/// errors come as JSON under `text/event-stream`, and streams under `application/json`.
pub(super) struct Sniff {
    declared_stream: bool,
    /// Bytes of a byte order mark seen.
    mark: usize,
}

impl Sniff {
    pub(super) fn new(content_type: Option<&str>) -> Self {
        let media = content_type.unwrap_or("").split(';').next().unwrap_or("").trim();
        let declared_stream = media.eq_ignore_ascii_case("text/event-stream");
        Self { declared_stream, mark: 0 }
    }

    /// The format if these bytes tell it, and the bytes that belong to it.
    pub(super) fn read<'b>(&mut self, bytes: &'b [u8]) -> (Option<Format>, &'b [u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            if MARK.get(self.mark) == Some(byte) {
                self.mark += 1;
            } else if !byte.is_ascii_whitespace() {
                return (Some(self.format(*byte)), &bytes[at..]);
            }
        }
        (None, &[])
    }

    fn format(&self, first: u8) -> Format {
        match first {
            b'{' | b'[' => Format::Json,
            // `data`, `event`, `id`, `retry`, or a comment.
            b'd' | b'e' | b'i' | b'r' | b':' => sse(),
            _ if self.declared_stream => sse(),
            // The length of a message, which is below 16 MiB; a CRC follows that tells for sure.
            0 => Format::EventStream(EventStream::new()),
            _ => Format::Opaque,
        }
    }
}

fn sse() -> Format {
    Format::Sse(Sse::new(Needles::new()))
}

/// The byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";
