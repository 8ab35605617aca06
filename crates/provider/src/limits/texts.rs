use http::HeaderValue;

/// The trimmed text of a header. Two different values under one name are contradictory. A value that
/// begins with neither a digit nor `-` is ignored (recorded: a reset of `0s` beside one of
/// `req_b176...`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Text<'h> {
    #[default]
    Absent,
    One(&'h str),
    Contradictory,
}

impl<'h> Text<'h> {
    /// Adds a value.
    pub(super) fn put(&mut self, value: &'h HeaderValue) {
        let text = value.to_str().map_or("", str::trim);
        if !text.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            return;
        }
        *self = match *self {
            Self::Absent => Self::One(text),
            Self::One(before) if before == text => Self::One(text),
            Self::One(_) | Self::Contradictory => Self::Contradictory,
        };
    }

    pub(super) fn get(self) -> Option<&'h str> {
        match self {
            Self::One(text) => Some(text),
            Self::Absent | Self::Contradictory => None,
        }
    }

    /// Returns the integer; `None` if the text is not one, or if it is implausibly high.
    pub(super) fn number(self) -> Option<i64> {
        let number: i64 = self.get()?.parse().ok()?;
        (number <= MAX_NUMBER).then_some(number)
    }
}

/// The texts of one limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Texts<'h> {
    pub(super) limit: Text<'h>,
    pub(super) remaining: Text<'h>,
    pub(super) reset: Text<'h>,
    pub(super) renewal: Text<'h>,
}

impl<'h> Texts<'h> {
    /// Returns the text of a part, by the word for it in header names.
    pub(super) fn of(&mut self, part: &str) -> Option<&mut Text<'h>> {
        Some(match part {
            "limit" => &mut self.limit,
            "remaining" => &mut self.remaining,
            "reset" => &mut self.reset,
            "renewalperiod" => &mut self.renewal,
            _ => return None,
        })
    }

    pub(super) fn is_part(part: &str) -> bool {
        Self::default().of(part).is_some()
    }
}

/// A thousand times the highest limit that was recorded (2 x 10^11 tokens a month).
const MAX_NUMBER: i64 = 200_000_000_000_000;
