use super::fields::{Fields, Set};
use super::key::Key;
use super::response_field::{ErrorPart, FieldValue, MAX_DEPTH, ResponseField};
use super::sink::Sink;
use super::skip::{closing_quote, ends_in_escape, plain_run, quote_or_escape};
use super::state::State;
use super::unescape::Unescape;

/// A push lexer for JSON: it follows the objects that may hold a field, and skips everything else by
/// its quotes and brackets.
///
/// It holds no text but a key of up to 32 bytes. A key that is written with escapes is never found.
/// Objects may follow one another, or be in an array; each is a root.
pub(super) struct Lexer {
    fields: &'static Fields,
    state: State,
    /// True within an array at the root, whose elements are roots.
    in_list: bool,
    /// The number of open objects that are followed.
    depth: usize,
    /// The fields that each of them may hold.
    open: [Set; MAX_DEPTH],
    /// A bit for each of them that has opened a list whose first element is followed.
    lists: u8,
    /// The fields that the value of the current key may be or hold.
    value: Set,
    /// The number of open brackets in the value that is skipped.
    nested: u64,
    key: Key,
    number: Option<u64>,
    unescape: Unescape,
    /// The depth of the members of the object that states an error, which is recorded until it ends.
    error_depth: usize,
}

impl Lexer {
    pub(super) fn new(fields: &'static Fields) -> Self {
        Self {
            fields,
            state: State::Value,
            in_list: false,
            depth: 0,
            open: [Set::EMPTY; MAX_DEPTH],
            lists: 0,
            value: Set::EMPTY,
            nested: 0,
            key: Key::default(),
            number: None,
            unescape: Unescape::default(),
            error_depth: NO_ERROR,
        }
    }

    /// Resets the lexer to the start of a root.
    pub(super) fn reset(&mut self) {
        self.state = State::Value;
        self.in_list = false;
        self.depth = 0;
        self.lists = 0;
        self.value = Set::EMPTY;
        self.nested = 0;
        self.number = None;
        self.error_depth = NO_ERROR;
    }

    /// Returns true before, between and after roots.
    pub(super) fn is_between_roots(&self) -> bool {
        self.depth == 0 && self.nested == 0 && !self.in_list && self.state == State::Value
    }

    pub(super) fn feed(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        let (mut rest, mut error) = (bytes, 0);
        while !rest.is_empty() {
            let read = match self.state {
                State::Value if self.depth == 0 => self.root(rest, sink),
                State::Value => self.begin(rest[0], sink),
                State::Element => self.element(rest[0]),
                State::Member => self.member(rest, sink),
                State::Key => self.key(rest),
                State::KeyEscape => self.advance(State::Key),
                State::Colon => self.colon(rest[0]),
                State::Number | State::Fraction | State::Scalar => self.scalar(rest, sink),
                State::Text(part) => self.text(rest, part, sink),
                State::TextEscape(part) => self.text_escape(rest[0], part, sink),
                State::String => self.string(rest, sink),
                State::StringEscape => self.advance(State::String),
                State::Nested => self.nested(rest, sink),
                State::ErrorBegins => {
                    sink.begin_error();
                    error = bytes.len() - rest.len();
                    self.state = State::Member;
                    0
                }
                State::ErrorEnds => {
                    sink.record(&bytes[error..bytes.len() - rest.len()]);
                    self.error_depth = AFTER_ERROR;
                    self.state = State::Member;
                    0
                }
                State::Lost => break,
            };
            rest = &rest[read..];
        }
        if self.depth >= self.error_depth && self.state != State::ErrorBegins {
            sink.record(&bytes[error..bytes.len() - rest.len()]);
        }
    }

    /// Consumes one byte and changes the state.
    fn advance(&mut self, state: State) -> usize {
        self.state = state;
        1
    }

    /// Reads bytes before, between and after roots.
    fn root(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        match bytes[0] {
            b'{' => {
                self.follow(self.fields.all());
                // The headers of a message may name it an error.
                if sink.is_error() {
                    self.begin_error();
                }
                1
            }
            b'[' | b']' if self.in_list != (bytes[0] == b'[') => {
                self.in_list = !self.in_list;
                1
            }
            // Commas, and numbers, whose lists are embeddings.
            byte if self.in_list && !matches!(byte, b'"' | b'[') => 1 + plain_run(&bytes[1..]),
            byte => self.begin(byte, sink),
        }
    }

    /// Reads the first byte of a value.
    fn begin(&mut self, byte: u8, sink: &mut impl Sink) -> usize {
        let has_field = !self.value.is_empty();
        let can_end = matches!(byte, b'{' | b'"' | b't');
        if has_field && can_end && self.fields.has_end(self.value, self.depth) {
            sink.end_stream();
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => 1,
            b'{' if has_field => {
                if self.fields.has_object(self.value, self.depth) {
                    sink.whole();
                }
                let has_error = self.fields.has_error(self.value, self.depth);
                self.follow(self.fields.deeper(self.value, self.depth));
                if has_error {
                    self.begin_error();
                }
                1
            }
            b'[' if has_field => self.begin_list(),
            b'"' if has_field => self.begin_string(sink),
            b'0'..=b'9' if has_field && self.current_fields().next().is_some() => {
                self.number = Some(u64::from(byte - b'0'));
                self.advance(State::Number)
            }
            b'{' | b'[' => self.skip_brackets(),
            b'"' => self.advance(State::String),
            b'0'..=b'9' | b'-' | b'a'..=b'z' | b'A'..=b'Z' => self.advance(State::Scalar),
            _ => self.advance(State::Lost),
        }
    }

    /// Enters an object that may hold these fields, or skips it if there are none.
    fn follow(&mut self, fields: Set) -> usize {
        if fields.is_empty() || self.depth == MAX_DEPTH {
            return self.skip_brackets();
        }
        self.open[self.depth] = fields;
        self.depth += 1;
        self.advance(State::Member)
    }

    /// Begins a list, whose first element is followed if it may state the end of a stream or a listed count.
    fn begin_list(&mut self) -> usize {
        match self.fields.has_listed(self.value, self.depth) {
            true => self.advance(State::Element),
            false => self.skip_brackets(),
        }
    }

    fn element(&mut self, byte: u8) -> usize {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => 1,
            b'{' => {
                self.lists |= 1 << self.depth;
                self.follow(self.fields.deeper(self.value, self.depth))
            }
            _ => self.skip_brackets() - 1,
        }
    }

    /// Begins to skip a value in brackets.
    fn skip_brackets(&mut self) -> usize {
        self.nested = 1;
        self.advance(State::Nested)
    }

    fn begin_string(&mut self, sink: &mut impl Sink) -> usize {
        let part = self.current_fields().find_map(|field| match field.value {
            FieldValue::Text(part) => Some(part),
            _ => None,
        });
        let Some(part) = part else { return self.advance(State::String) };
        sink.begin(part);
        self.unescape = Unescape::default();
        self.advance(State::Text(part))
    }

    /// Reads bytes between the members of a followed object. Commas may be missing or repeated.
    fn member(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let is_between = |b: &u8| matches!(b, b',' | b' ' | b'\t' | b'\n' | b'\r');
        let Some(at) = bytes.iter().position(|b| !is_between(b)) else { return bytes.len() };
        match bytes[at] {
            b'"' => {
                self.key.clear();
                self.state = State::Key;
                at + 1 + self.key(&bytes[at + 1..])
            }
            b'}' => {
                if self.depth == self.error_depth {
                    self.state = State::ErrorEnds;
                    return at;
                }
                self.depth -= 1;
                if self.depth == 1 {
                    sink.commit();
                }
                let list = self.lists & 1 << self.depth;
                self.lists &= !list;
                // The other elements of a list are skipped.
                if list == 0 {
                    self.end_value(sink)
                } else {
                    _ = self.skip_brackets()
                }
                at + 1
            }
            _ => at + self.advance(State::Lost),
        }
    }

    fn key(&mut self, bytes: &[u8]) -> usize {
        let Some(end) = quote_or_escape(bytes) else {
            self.key.push(bytes);
            return bytes.len();
        };
        if bytes[end] == b'\\' {
            self.key.set_unknown();
            self.state = State::KeyEscape;
            return end + 1;
        }
        let fields = self.open[self.depth - 1];
        let key = self.key.complete(&bytes[..end]);
        self.value = key.map_or(Set::EMPTY, |key| self.fields.with_key(fields, self.depth, key));
        if bytes.get(end + 1) == Some(&b':') {
            self.state = State::Value;
            return end + 2;
        }
        self.state = State::Colon;
        end + 1
    }

    fn colon(&mut self, byte: u8) -> usize {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => 1,
            b':' => self.advance(State::Value),
            _ => self.advance(State::Lost),
        }
    }

    /// Reads a number, `true`, `false` or `null`. The byte after it is not consumed.
    fn scalar(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            match (byte, self.state) {
                (b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r', _) => {
                    self.end_scalar(sink);
                    return at;
                }
                (b'0'..=b'9', State::Number) => {
                    let digit = u64::from(byte - b'0');
                    self.number =
                        self.number.map(|number| number.saturating_mul(10).saturating_add(digit));
                }
                (b'.', State::Number) => self.state = State::Fraction,
                (b'0'..=b'9', State::Fraction) => {}
                (b'"' | b'{' | b'[' | b':', _) => return at + self.advance(State::Lost),
                _ => self.state = State::Scalar,
            }
        }
        bytes.len()
    }

    fn end_scalar(&mut self, sink: &mut impl Sink) {
        let number = self.number.take().filter(|_| self.state != State::Scalar);
        if let Some(number) = number {
            for field in self.current_fields() {
                match field.value {
                    FieldValue::Count(count) => sink.count(count, number),
                    FieldValue::WholeCount(count) | FieldValue::ListedCount(count) => {
                        sink.whole();
                        sink.count(count, number);
                    }
                    FieldValue::Object | FieldValue::End | FieldValue::Error => {}
                    FieldValue::Text(part) => sink.write(part, number),
                }
            }
        }
        self.end_value(sink);
    }

    fn text(&mut self, bytes: &[u8], part: ErrorPart, sink: &mut impl Sink) -> usize {
        if self.unescape.is_cut_by(bytes[0]) {
            sink.push(part, "\u{FFFD}".as_bytes());
        }
        let Some(end) = quote_or_escape(bytes) else {
            sink.push(part, bytes);
            return bytes.len();
        };
        sink.push(part, &bytes[..end]);
        if bytes[end] == b'\\' {
            self.state = State::TextEscape(part);
        } else {
            self.end_value(sink);
            let names_root = matches!(part, ErrorPart::RootKind | ErrorPart::RootObject);
            if names_root && sink.is_error() {
                self.begin_error();
            }
        }
        end + 1
    }

    fn text_escape(&mut self, byte: u8, part: ErrorPart, sink: &mut impl Sink) -> usize {
        if let Some(character) = self.unescape.next(byte) {
            if let Some(character) = character {
                sink.push(part, character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            self.state = State::Text(part);
        }
        1
    }

    fn string(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let Some(end) = closing_quote(bytes) else {
            if ends_in_escape(bytes) {
                self.state = State::StringEscape;
            }
            return bytes.len();
        };
        match self.nested {
            0 => self.end_value(sink),
            _ => self.state = State::Nested,
        }
        end + 1
    }

    /// Skips bytes within brackets. The kinds of brackets are not matched.
    fn nested(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => match closing_quote(&bytes[at..]) {
                    Some(end) => at += end + 1,
                    None => {
                        self.state = State::String;
                        return at;
                    }
                },
                b'{' | b'[' => self.nested = self.nested.saturating_add(1),
                b'}' | b']' => {
                    self.nested -= 1;
                    if self.nested == 0 {
                        self.end_value(sink);
                        return at;
                    }
                }
                // Skips long lists of numbers: embeddings.
                b',' if bytes.get(at) != Some(&b'"') => at += plain_run(&bytes[at..]),
                _ => {}
            }
        }
        at
    }

    /// Begins to record the members of this object that follow, unless an error was recorded: what is after it may repeat
    /// the request. An error within an object that names itself one counts in its place.
    fn begin_error(&mut self) {
        if self.error_depth == NO_ERROR || self.error_depth < self.depth {
            self.error_depth = self.depth;
            self.state = State::ErrorBegins;
        }
    }

    fn end_value(&mut self, sink: &mut impl Sink) {
        if self.depth > 0 {
            self.state = State::Member;
        } else {
            sink.end();
            self.error_depth = NO_ERROR;
            self.value = Set::EMPTY;
            self.state = State::Value;
        }
    }

    /// Returns the fields whose value is the current one.
    fn current_fields(&self) -> impl Iterator<Item = &'static ResponseField> {
        self.fields.ending(self.value, self.depth)
    }
}

/// Depths that no member has: before the first error of a root, and after it.
const NO_ERROR: usize = usize::MAX;
const AFTER_ERROR: usize = usize::MAX - 1;
