use super::frame::Frame;
use super::key::Key;
use super::response_field::ErrorPart;
use super::sink::Sink;

/// Reads the headers of a message of an AWS event stream: the kind of the message, and parts of an
/// error. A header is the length of its name, the name, a type, and a value.
#[derive(Default)]
pub(super) struct Headers {
    kind: Kind,
    step: Step,
    /// The name, then the value, up to the length of the longest that is compared.
    text: Key,
    name: Name,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Its payload is JSON.
    #[default]
    Event,
    /// Its payload holds the encoded JSON of the model's maker.
    Chunk,
    /// An exception or an error.
    Failure,
}

#[derive(Debug, Clone, Copy, Default)]
enum Step {
    #[default]
    NameLength,
    /// In the name: the bytes that are left of it.
    Name(u8),
    Type,
    /// In the length of a value, after its high byte if that has been read.
    Length(Option<u8>),
    /// In the value: the bytes that are left of it.
    Value(u16),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Name {
    MessageType,
    EventType,
    /// The header is a part of an error.
    Error(ErrorPart),
    #[default]
    Other,
}

impl Headers {
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(super) fn feed(&mut self, mut bytes: &[u8], frame: &mut Frame) {
        while let Some((first, rest)) = bytes.split_first() {
            (self.step, bytes) = match self.step {
                Step::NameLength => {
                    self.text.clear();
                    (if *first > 0 { Step::Name(*first) } else { self.end_name() }, rest)
                }
                Step::Name(left) => {
                    let (part, rest) = bytes.split_at(bytes.len().min(left.into()));
                    self.text.push(part);
                    let left = left - part.len() as u8;
                    (if left > 0 { Step::Name(left) } else { self.end_name() }, rest)
                }
                Step::Type => (self.begin_type(*first), rest),
                Step::Length(None) => (Step::Length(Some(*first)), rest),
                Step::Length(Some(high)) => {
                    (self.begin_value(u16::from_be_bytes([high, *first]), frame), rest)
                }
                Step::Value(left) => {
                    let (part, rest) = bytes.split_at(bytes.len().min(left.into()));
                    self.read_value(part, frame);
                    let left = left - part.len() as u16;
                    (if left > 0 { Step::Value(left) } else { self.end_value(frame) }, rest)
                }
            };
        }
    }

    fn end_name(&mut self) -> Step {
        self.name = match self.text.complete(b"") {
            Some(b":message-type") => Name::MessageType,
            Some(b":event-type") => Name::EventType,
            Some(b":exception-type") => Name::Error(ErrorPart::RootKind),
            Some(b":error-code") => Name::Error(ErrorPart::RootCode),
            Some(b":error-message") => Name::Error(ErrorPart::RootMessage),
            _ => Name::Other,
        };
        Step::Type
    }

    /// Begins a value of this type. Only texts are read; other values are skipped by their length.
    fn begin_type(&mut self, kind: u8) -> Step {
        let length = match kind {
            TEXT => return Step::Length(None),
            BYTES => {
                self.name = Name::Other;
                return Step::Length(None);
            }
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            // `true`, `false` and unknown types.
            _ => 0,
        };
        self.name = Name::Other;
        if length > 0 { Step::Value(length) } else { Step::NameLength }
    }

    fn begin_value(&mut self, length: u16, frame: &mut Frame) -> Step {
        self.text.clear();
        if let Name::Error(part) = self.name {
            frame.begin(part);
        }
        if length > 0 { Step::Value(length) } else { self.end_value(frame) }
    }

    fn read_value(&mut self, bytes: &[u8], frame: &mut Frame) {
        match self.name {
            Name::MessageType | Name::EventType => self.text.push(bytes),
            Name::Error(part) => frame.push(part, bytes),
            Name::Other => {}
        }
    }

    fn end_value(&mut self, frame: &mut Frame) -> Step {
        match (self.name, self.text.complete(b"")) {
            (Name::MessageType, Some(b"exception" | b"error")) => {
                self.kind = Kind::Failure;
                // Makes the parts at the root of the payload count as an error.
                frame.begin(ErrorPart::RootObject);
                frame.push(ErrorPart::RootObject, b"error");
            }
            (Name::EventType, Some(b"chunk")) if self.kind == Kind::Event => {
                self.kind = Kind::Chunk;
            }
            _ => {}
        }
        Step::NameLength
    }
}

/// The types of a value that state its length.
const BYTES: u8 = 6;
const TEXT: u8 = 7;
