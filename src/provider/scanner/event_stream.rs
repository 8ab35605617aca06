use super::chunk::Chunk;
use super::crc::crc32;
use super::frame::Frame;
use super::headers::{Headers, Kind};
use super::lexer::Lexer;
use super::sink::Sink;

/// An AWS event stream (`application/vnd.amazon.eventstream`): messages of a prelude (the length of
/// all, the length of the headers, the CRC of both), headers, a payload, and the CRC of all.
///
/// A prelude with a wrong CRC ends the reading: a wrong length would have all that follows it
/// misread. The CRC of the message is passed over: it comes when the payload has been read, and
/// TCP and TLS have their own.
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
    /// In the prelude, behind this many bytes.
    Prelude(usize),
    /// Bytes that are left of the headers, and bytes of payload behind them.
    Headers(u32, u32),
    /// Bytes that are left.
    Payload(u32),
    Crc(u32),
    /// This is no event stream.
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

    pub(super) fn feed(&mut self, mut bytes: &[u8], lexer: &mut Lexer, frame: &mut Frame) {
        while !bytes.is_empty() {
            let (state, rest) = match self.state {
                State::Prelude(seen) => self.prelude(seen, bytes),
                State::Headers(left, payload) => {
                    let (part, left, rest) = split(bytes, left);
                    self.headers.feed(part, frame);
                    (if left > 0 { State::Headers(left, payload) } else { begin(payload) }, rest)
                }
                State::Payload(left) => {
                    let (part, left, rest) = split(bytes, left);
                    match self.headers.kind() {
                        Kind::Chunk => self.chunk.feed(part, lexer, frame),
                        Kind::Event | Kind::Failure => lexer.feed(part, frame),
                    }
                    (begin(left), rest)
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

    fn prelude<'b>(&mut self, seen: usize, bytes: &'b [u8]) -> (State, &'b [u8]) {
        let taken = bytes.len().min(PRELUDE - seen);
        self.prelude[seen..seen + taken].copy_from_slice(&bytes[..taken]);
        let state = match seen + taken {
            PRELUDE => self.lengths().map_or(State::Lost, |(headers, payload)| match headers {
                0 => begin(payload),
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

    fn end(&mut self, lexer: &mut Lexer, frame: &mut Frame) -> State {
        match self.headers.kind() {
            // Its headers alone are an error.
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
fn begin(payload: u32) -> State {
    if payload > 0 { State::Payload(payload) } else { State::Crc(CRC) }
}

/// Splits off at most `want` bytes, and returns them, the number of missing bytes, and the rest.
fn split(bytes: &[u8], want: u32) -> (&[u8], u32, &[u8]) {
    let (part, rest) = bytes.split_at(bytes.len().min(want as usize));
    (part, want - part.len() as u32, rest)
}

const PRELUDE: usize = 12;

const CRC: u32 = 4;
