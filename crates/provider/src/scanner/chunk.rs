use super::fields::Fields;
use super::frame::Frame;
use super::lexer::Lexer;
use super::response_field::{ErrorPart, ResponseField};
use super::sink::Sink;
use super::token_counts::TokenCount;

/// Reads the payload of an `invoke-with-response-stream` message: `{"bytes": "..", "p": ".."}`,
/// whose bytes are the JSON of the model's maker in base64 (RFC 4648, 4).
pub(super) struct Chunk {
    lexer: Lexer,
    base64: Base64,
}

impl Chunk {
    pub(super) fn new() -> Self {
        Self { lexer: Lexer::new(BYTES), base64: Base64::default() }
    }

    /// Feeds the decoded JSON to `lexer`.
    pub(super) fn feed(&mut self, bytes: &[u8], lexer: &mut Lexer, frame: &mut Frame) {
        let mut decoder = Decoder { base64: &mut self.base64, lexer, frame };
        self.lexer.feed(bytes, &mut decoder);
    }

    pub(super) fn reset(&mut self) {
        self.lexer.reset();
        self.base64 = Base64::default();
    }
}

/// Decodes the text and feeds it to the lexer of the model's JSON.
struct Decoder<'s> {
    base64: &'s mut Base64,
    lexer: &'s mut Lexer,
    frame: &'s mut Frame,
}

impl Sink for Decoder<'_> {
    fn whole(&mut self) {}
    fn end_stream(&mut self) {}

    fn begin(&mut self, part: ErrorPart) {
        if part == ErrorPart::Bytes {
            *self.base64 = Base64::default();
        }
    }

    fn push(&mut self, part: ErrorPart, bytes: &[u8]) {
        if part != ErrorPart::Bytes {
            return;
        }
        for bytes in bytes.chunks(PIECE) {
            let mut decoded = [0; PIECE];
            let length = self.base64.decode(bytes, &mut decoded);
            self.lexer.feed(&decoded[..length], self.frame);
        }
    }

    fn count(&mut self, _: TokenCount, _: u64) {}
    fn commit(&mut self) {}
    fn end(&mut self) {}
}

/// A streaming decoder of Base64, which skips all other characters.
#[derive(Debug, Clone, Copy, Default)]
struct Base64 {
    bits: u32,
    count: u32,
}

impl Base64 {
    /// Decodes into a buffer of at least the same length, and returns the number of decoded bytes.
    fn decode(&mut self, encoded: &[u8], decoded: &mut [u8]) -> usize {
        let mut length = 0;
        for byte in encoded {
            let digit = DIGITS[usize::from(*byte)];
            if digit == NONE {
                continue;
            }
            self.bits = self.bits << 6 | u32::from(digit);
            self.count += 6;
            if self.count >= 8 {
                self.count -= 8;
                decoded[length] = (self.bits >> self.count) as u8;
                length += 1;
            }
        }
        length
    }
}

const BYTES: &Fields = &Fields::new(&[ResponseField::text(&["bytes"], ErrorPart::Bytes)]);

/// The number of bytes that are decoded together.
const PIECE: usize = 512;

const NONE: u8 = 0xFF;

/// The value of each digit.
const DIGITS: [u8; 256] = {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut digits = [NONE; 256];
    let mut value = 0;
    while value < letters.len() {
        digits[letters[value] as usize] = value as u8;
        value += 1;
    }
    digits
};
