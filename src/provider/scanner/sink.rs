use super::response_field::ErrorPart;
use super::token_counts::TokenCount;

/// Is told what a lexer finds.
pub(super) trait Sink {
    /// A wanted number.
    fn count(&mut self, count: TokenCount, value: u64);

    /// What this root states is a whole usage.
    fn whole(&mut self);

    /// The text of a part begins.
    fn begin(&mut self, part: ErrorPart);

    /// A piece of that text, its escapes decoded.
    fn push(&mut self, part: ErrorPart, bytes: &[u8]);

    /// A member of a root object has ended, if it was an object that was followed.
    fn commit(&mut self);

    /// A root has ended.
    fn end(&mut self);

    /// A part that is written as a number.
    fn write(&mut self, part: ErrorPart, number: u64) {
        self.begin(part);
        self.push(part, compact_str::format_compact!("{number}").as_bytes());
    }
}
