use super::response_field::ErrorPart;
use super::token_counts::TokenCount;

/// The receiver of the fields that a lexer finds.
pub(super) trait Sink {
    /// Receives a count.
    fn count(&mut self, count: TokenCount, value: u64);

    /// Marks the usage in the current root object as whole.
    fn whole(&mut self);

    /// Marks the current object as the last one of a stream.
    fn end_stream(&mut self);

    /// Returns true if the current root names itself an error.
    fn is_error(&self) -> bool {
        false
    }

    /// Begins an object that states an error, in place of one around it.
    fn begin_error(&mut self) {}

    /// Receives the next bytes of an object that states an error.
    fn record(&mut self, _: &[u8]) {}

    /// Begins the text of a part.
    fn begin(&mut self, part: ErrorPart);

    /// Receives a chunk of the text, with escapes decoded.
    fn push(&mut self, part: ErrorPart, bytes: &[u8]);

    /// Ends a member of a root object, if it is an object that holds fields.
    fn commit(&mut self);

    /// Ends a root object.
    fn end(&mut self);

    /// Receives a part that is written as a number.
    fn write(&mut self, part: ErrorPart, number: u64) {
        self.begin(part);
        self.push(part, compact_str::format_compact!("{number}").as_bytes());
    }
}
