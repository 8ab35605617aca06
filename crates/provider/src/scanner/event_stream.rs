use super::chunk::Chunk;
use super::crc::crc32;
use super::frame::Frame;
use super::headers::{Headers, Kind};
use super::lexer::Lexer;
use super::sink::Sink;

/// An AWS event stream (`application/vnd.amazon.eventstream`): messages of a prelude (the length of
/// all, the length of the headers, the CRC of both), headers, a payload, and the CRC of all.
///
/// Reading stops at a prelude with a wrong CRC, since a wrong length would misplace all later messages.
/// The CRC of a message is skipped: the payload before it has already been read, and TCP and TLS have
/// checksums of their own.
///
/// Source: the AWS SDKs' "event stream encoding" (smithy.io, AWS event stream specification).
pub(super) struct EventStream {
    state: State,
    prelude: [u8; PRELUDE],
    headers: Headers,
    chunk: Chunk,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// In the prelude, after this many bytes.
    Prelude(usize),
    /// In the headers: the bytes that are left of them, and the length of the payload.
    Headers(u32, u32),
    /// In the payload: the bytes that are left of it.
    Payload(u32),
    /// In the CRC of the message: the bytes that are left of it.
    Crc(u32),
    /// The body is not an event stream.
    Lost,
}

impl EventStream {
    pub(super) fn new() -> Self {
        Self {
            state: State::Prelude(0),
            prelude: [0; PRELUDE],
            headers: Headers::default(),
            chunk: Chunk::new(),
        }
    }

    /// Returns true if the body isn't an event stream.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost)
    }

    /// Returns true before, between and after messages.
    pub(super) fn is_between_messages(&self) -> bool {
        matches!(self.state, State::Prelude(0))
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], lexer: &mut Lexer, frame: &mut Frame) {
        while !bytes.is_empty() {
            let (state, rest) = match self.state {
                State::Prelude(seen) => self.prelude(seen, bytes),
                State::Headers(left, payload) => {
                    let (part, left, rest) = split(bytes, left);
                    self.headers.feed(part, frame);
                    (
                        if left > 0 {
                            State::Headers(left, payload)
                        } else {
                            before_payload(payload)
                        },
                        rest,
                    )
                }
                State::Payload(left) => {
                    let (part, left, rest) = split(bytes, left);
                    match self.headers.kind() {
                        Kind::Chunk => self.chunk.feed(part, lexer, frame),
                        Kind::Event | Kind::Failure => lexer.feed(part, frame),
                    }
                    (before_payload(left), rest)
                }
                State::Crc(left) => {
                    let (_, left, rest) = split(bytes, left);
                    (if left > 0 { State::Crc(left) } else { self.end(lexer, frame) }, rest)
                }
                State::Lost => return,
            };
            (self.state, bytes) = (state, rest);
        }
    }

    /// Reads a part of the prelude.
    fn prelude<'b>(&mut self, seen: usize, bytes: &'b [u8]) -> (State, &'b [u8]) {
        let taken = bytes.len().min(PRELUDE - seen);
        self.prelude[seen..seen + taken].copy_from_slice(&bytes[..taken]);
        let state = match seen + taken {
            PRELUDE => self.lengths().map_or(State::Lost, |(headers, payload)| match headers {
                0 => before_payload(payload),
                _ => State::Headers(headers, payload),
            }),
            seen => State::Prelude(seen),
        };
        (state, &bytes[taken..])
    }

    /// Returns the lengths of headers and payload.
    fn lengths(&self) -> Option<(u32, u32)> {
        let [all, headers, crc] = [0, 4, 8].map(|at| {
            let word = self.prelude[at..at + 4].try_into().expect("four bytes");
            u32::from_be_bytes(word)
        });
        let payload = all.checked_sub(headers)?.checked_sub(PRELUDE as u32 + CRC)?;
        (crc == crc32(&self.prelude[..8])).then_some((headers, payload))
    }

    /// Ends a message.
    fn end(&mut self, lexer: &mut Lexer, frame: &mut Frame) -> State {
        match self.headers.kind() {
            // The headers alone may state the error.
            Kind::Failure => frame.end(),
            Kind::Event | Kind::Chunk => frame.clear(),
        }
        lexer.reset();
        self.chunk.reset();
        self.headers.reset();
        State::Prelude(0)
    }
}

/// Returns the state before a payload of this length.
fn before_payload(payload: u32) -> State {
    if payload > 0 { State::Payload(payload) } else { State::Crc(CRC) }
}

/// Splits off at most `want` bytes, and returns them, the number of missing bytes, and the rest.
fn split(bytes: &[u8], want: u32) -> (&[u8], u32, &[u8]) {
    let (part, rest) = bytes.split_at(bytes.len().min(want as usize));
    (part, want - part.len() as u32, rest)
}

const PRELUDE: usize = 12;

const CRC: u32 = 4;
