use super::event_stream::EventStream;
use super::field_table::FieldTable;
use super::sse::Sse;

/// The framing of a body.
pub(super) enum Format {
    /// Not known yet.
    Unknown(Sniff),
    /// JSON objects, consecutive or in an array; usually one.
    Json,
    Sse(Sse),
    /// Boxed, since it is large and few bodies have it.
    EventStream(Box<EventStream>),
    /// A body that states no usage: audio, images, plain text.
    Opaque,
}

/// Determines the format from the first byte that is not white space. It is more reliable than the
/// content type: errors are sent as JSON under `text/event-stream`, streams under `application/json`.
pub(super) struct Sniff {
    declared_stream: bool,
    /// The number of bytes of a byte order mark that have been read.
    mark: usize,
}

impl Sniff {
    pub(super) fn new(content_type: Option<&str>) -> Self {
        let media = content_type.unwrap_or("").split(';').next().unwrap_or("").trim();
        let declared_stream = media.eq_ignore_ascii_case("text/event-stream");
        Self { declared_stream, mark: 0 }
    }

    /// Returns the format if these bytes determine it, and the rest of the bytes, which are the body.
    pub(super) fn read<'b>(
        &mut self,
        bytes: &'b [u8],
        table: &'static FieldTable,
    ) -> (Option<Format>, &'b [u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            if BYTE_ORDER_MARK.get(self.mark) == Some(byte) {
                self.mark += 1;
            } else if !byte.is_ascii_whitespace() {
                return (Some(self.format(*byte, table)), &bytes[at..]);
            }
        }
        (None, &[])
    }

    fn format(&self, first: u8, table: &'static FieldTable) -> Format {
        let sse = || Format::Sse(Sse::new(table.needles()));
        match first {
            b'{' | b'[' => Format::Json,
            // `data`, `event`, `id`, `retry`, or a comment.
            b'd' | b'e' | b'i' | b'r' | b':' => sse(),
            _ if self.declared_stream => sse(),
            // The length of a message, which is below 16 MiB; its CRC is checked.
            0 => Format::EventStream(Box::new(EventStream::new())),
            _ => Format::Opaque,
        }
    }
}

/// The byte order mark in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
