/// Decodes the escapes of a JSON string, byte by byte.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unescape {
    state: State,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Letter,
    /// In a code unit, after this many hexadecimal digits, with their value.
    Unit(u8, u32),
}

impl Unescape {
    /// Decodes the next byte after a backslash. Returns `None` until the escape is complete, then the
    /// character that it encodes, if it encodes one by itself.
    pub(super) fn next(&mut self, byte: u8) -> Option<Option<char>> {
        let (digits, unit) = match self.state {
            State::Letter if byte == b'u' => {
                self.state = State::Unit(0, 0);
                return None;
            }
            State::Letter => return Some(Some(letter(byte))),
            State::Unit(digits, unit) => (digits, unit),
        };
        let Some(digit) = char::from(byte).to_digit(16) else {
            self.state = State::Letter;
            return Some(Some(char::REPLACEMENT_CHARACTER));
        };
        let unit = unit << 4 | digit;
        if digits < 3 {
            self.state = State::Unit(digits + 1, unit);
            return None;
        }
        self.state = State::Letter;
        Some(self.unit(unit))
    }

    /// Returns true if this byte, which follows an escape, leaves a surrogate unpaired.
    pub(super) fn is_cut_by(&mut self, byte: u8) -> bool {
        byte != b'\\' && self.high.take().is_some()
    }

    fn unit(&mut self, unit: u32) -> Option<char> {
        let high = self.high.take();
        match unit {
            0xD800..0xDC00 => {
                self.high = Some(unit);
                None
            }
            0xDC00..0xE000 => {
                let pair = high.map(|high| 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00));
                Some(pair.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            _ => char::from_u32(unit),
        }
    }
}

fn letter(byte: u8) -> char {
    match byte {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'"' | b'\\' | b'/' => char::from(byte),
        _ => char::REPLACEMENT_CHARACTER,
    }
}
