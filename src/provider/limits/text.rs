use http::HeaderValue;

/// What one header says: its text, trimmed. Two of one name that differ say nothing; one that begins
/// with no digit is not there (recorded: a reset of `0s` beside one of `req_b176...`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Text<'h> {
    #[default]
    Absent,
    One(&'h str),
    Contradictory,
}

impl<'h> Text<'h> {
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

    /// A whole number; `None` where there is none, or one beyond belief.
    pub(super) fn number(self) -> Option<i64> {
        let number: i64 = self.get()?.parse().ok()?;
        (number <= MOST).then_some(number)
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
    /// The text of the header whose name says this, besides what is limited.
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

/// No limit is higher: a thousand times the highest that was recorded (2 x 10^11 tokens a month).
const MOST: i64 = 200_000_000_000_000;
