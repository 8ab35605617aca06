use memchr::memchr2;

use super::frame::Frame;
use super::lexer::Lexer;

/// Server-sent events (WHATWG HTML, 9.2): the text of `data` lines goes to the lexer where it
/// stands; all other lines are passed over. An empty line ends an event.
#[derive(Default)]
pub(super) struct Sse {
    line: Line,
    /// A line ended in a carriage return; a line feed right after it belongs to it.
    after_return: bool,
}

#[derive(Default, Clone, Copy)]
enum Line {
    #[default]
    Start,
    /// So many bytes of `data:` have been seen.
    Name(usize),
    /// After `data:`.
    Data,
    /// In any other line.
    Other,
}

impl Sse {
    pub(super) fn feed(&mut self, mut bytes: &[u8], lexer: &mut Lexer, frame: &mut Frame) {
        if self.after_return && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        if !bytes.is_empty() {
            self.after_return = false;
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            self.text(&bytes[..end], lexer, frame);
            self.end_line(lexer, frame);
            let is_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            match bytes.first() {
                Some(b'\n') if is_return => bytes = &bytes[1..],
                None => self.after_return = is_return,
                _ => {}
            }
        }
        self.text(bytes, lexer, frame);
    }

    /// A part of a line.
    fn text(&mut self, mut text: &[u8], lexer: &mut Lexer, frame: &mut Frame) {
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
            lexer.feed(text, frame);
        }
    }

    fn end_line(&mut self, lexer: &mut Lexer, frame: &mut Frame) {
        match self.line {
            Line::Start => {
                lexer.reset();
                frame.clear();
            }
            // Lines of one event are joined by a line feed.
            Line::Data => lexer.feed(b"\n", frame),
            Line::Name(_) | Line::Other => {}
        }
        self.line = Line::Start;
    }
}

/// The name of the only field that is read, and its colon.
const NAME: &[u8] = b"data:";
