use super::response_field::ErrorPart;

/// What a lexer reads next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A value is expected.
    Value,
    /// The first element of a list is expected, which is followed if it is an object.
    Element,
    /// In a followed object: a key or the end is expected.
    Member,
    /// The same, at the first byte of an error's members.
    ErrorBegins,
    /// The end of an object that states an error.
    ErrorEnds,
    Key,
    KeyEscape,
    Colon,
    /// In the integer part of a field.
    Number,
    /// In the fraction of a field.
    Fraction,
    /// Any other number, `true`, `false`, `null`.
    Scalar,
    /// In the string of a field.
    Text(ErrorPart),
    TextEscape(ErrorPart),
    /// Any other string.
    String,
    StringEscape,
    /// Within brackets that are skipped.
    Nested,
    /// Invalid JSON, until the next reset.
    Lost,
}
