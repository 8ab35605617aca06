use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr2, memchr2_iter, memrchr};

use super::field_table::Needles;
use super::frame::{BEFORE_OUTPUT, Frame};
use super::lexer::Lexer;

/// Server-sent events (WHATWG HTML, 9.2): the text of `data` lines is fed to the lexer without a copy;
/// all other lines are skipped. An empty line ends an event. Whole events without a field are skipped
/// too.
pub(super) struct Sse {
    needles: Needles,
    line: Line,
    /// True if the event has had data.
    has_data: bool,
    /// True after a carriage return that ended a line. A line feed right after it belongs to the same
    /// line end.
    after_return: bool,
    /// The number of bytes of [`DONE`] that the event has, or `None` if it has others.
    done: Option<usize>,
}

#[derive(Default, Clone, Copy)]
enum Line {
    #[default]
    Start,
    /// In `data:`, after this many bytes.
    Name(usize),
    /// After `data:`.
    Data,
    /// In any other line.
    Other,
}

impl Sse {
    pub(super) fn new(needles: Needles) -> Self {
        let line = Line::Start;
        Self { needles, line, has_data: false, after_return: false, done: Some(0) }
    }

    /// Returns true if the stream has ended with `[DONE]`.
    pub(super) fn is_done(&self) -> bool {
        self.done == Some(DONE.len())
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], lexer: &mut Lexer, frame: &mut Frame) {
        let is_continued = !bytes.is_empty() && std::mem::take(&mut self.after_return);
        if is_continued && bytes[0] == b'\n' {
            bytes = &bytes[1..];
        }
        bytes = self.skip_events(bytes, frame);
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            self.read(&bytes[..end], lexer, frame);
            let is_event_over = self.end_line(lexer, frame);
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            match bytes.first() {
                Some(b'\n') if is_return => bytes = &bytes[1..],
                None => self.after_return = is_return,
                _ => {}
            }
            if is_event_over {
                bytes = self.skip_events(bytes, frame);
            }
        }
        self.read(bytes, lexer, frame);
    }

    /// Skips whole events that state no field.
    fn skip_events<'b>(&self, bytes: &'b [u8], frame: &mut Frame) -> &'b [u8] {
        if self.has_data || !matches!(self.line, Line::Start) {
            return bytes;
        }
        let length = whole_events(&bytes[..self.needles.bytes_before(bytes)]);
        let (skipped, rest) = bytes.split_at(length);
        if !frame.has_data()
            && let Some(first) = first_data(skipped)
        {
            if STATUS.find(first).is_some() || frame.may_await_output() && is_before_output(first) {
                return bytes;
            }
            frame.add_data();
        }
        rest
    }

    /// Reads a part of a line.
    fn read(&mut self, mut text: &[u8], lexer: &mut Lexer, frame: &mut Frame) {
        if let Line::Start = self.line {
            if text.is_empty() {
                return;
            }
            self.line = Line::Name(0);
        }
        while let Line::Name(seen) = self.line {
            let Some((byte, rest)) = text.split_first() else { return };
            text = rest;
            self.line = match NAME.get(seen + 1) {
                _ if *byte != NAME[seen] => Line::Other,
                Some(_) => Line::Name(seen + 1),
                None => Line::Data,
            };
        }
        if let Line::Data = self.line {
            self.has_data = true;
            self.compare_done(text);
            lexer.feed(text, frame);
        }
    }

    fn compare_done(&mut self, text: &[u8]) {
        let Some(seen) = self.done.filter(|seen| *seen < DONE.len()) else { return };
        let text = if seen == 0 { text.trim_ascii_start() } else { text };
        let missing = &DONE[seen..];
        let length = text.len().min(missing.len());
        self.done = text.starts_with(&missing[..length]).then_some(seen + length);
    }

    /// Ends a line, and returns true if that ends the event.
    fn end_line(&mut self, lexer: &mut Lexer, frame: &mut Frame) -> bool {
        let line = std::mem::replace(&mut self.line, Line::Start);
        match line {
            Line::Start => {
                lexer.reset();
                frame.clear();
                if std::mem::take(&mut self.has_data) {
                    frame.end_event();
                }
                if !self.is_done() {
                    self.done = Some(0);
                }
                return true;
            }
            // Lines of one event are joined by a line feed.
            Line::Data => lexer.feed(b"\n", frame),
            Line::Name(_) | Line::Other => {}
        }
        false
    }
}

/// Returns true for an event of the Responses API before the first output, which names its type first.
fn is_before_output(event: &[u8]) -> bool {
    let head = &event[..event.len().min(LONGEST_HEAD)];
    let kind = OF_RESPONSE.find(head).map_or(&[][..], |at| &head[at..]);
    BEFORE_OUTPUT.iter().any(|before| kind.starts_with(before))
}

/// Returns the bytes up to the end of the first event with data.
fn first_data(events: &[u8]) -> Option<&[u8]> {
    let (mut start, mut has_data) = (0, false);
    for end in memchr2_iter(b'\n', b'\r', events) {
        let line = &events[start..end];
        start = end + 1;
        // Between CR and LF there is no line.
        if has_data && line.is_empty() && !events[..start].ends_with(b"\r\n") {
            return Some(&events[..end]);
        }
        has_data |= line.starts_with(NAME);
    }
    None
}

/// Returns the length of the whole events among these bytes.
fn whole_events(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    while let Some(at) = memrchr(b'\n', &bytes[..end]) {
        let line = &bytes[..at];
        // An empty line after LF or CRLF. Other line ends are read one by one.
        if line.ends_with(b"\n") || line.ends_with(b"\n\r") {
            return at + 1;
        }
        end = at;
    }
    0
}

/// The object with MiniMax's status, which is an error only in the first event: no needle, since it would slow all down.
static STATUS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"base_resp\""));

static OF_RESPONSE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"response."));

/// The bytes of an event in which its type is looked for.
const LONGEST_HEAD: usize = 256;

/// The name of the only field that is read, and its colon.
const NAME: &[u8] = b"data:";

/// The data of the event that ends a stream in OpenAI's format.
const DONE: &[u8] = b"[DONE]";
