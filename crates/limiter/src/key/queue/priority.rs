use std::fmt;

/// The priority of a request: of the requests that wait for a key, those with the highest priority go
/// first.
///
/// A request with a lower priority still gets a turn after
/// [`max_starvation`](crate::limiter::WaitPolicy::max_starvation), 30 s unless set otherwise.
///
/// ```
/// use paceline_limiter::limiter::Priority;
/// assert!(Priority::INTERACTIVE > Priority::NORMAL && Priority::NORMAL > Priority::BATCH);
/// assert_eq!("batch".parse(), Ok(Priority::BATCH));
/// assert_eq!("-7".parse(), Ok(Priority::new(-7)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Priority(i8);

/// The error of a text that is not a priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityError(String);

impl Priority {
    /// The priority of a request that a person waits for: 10.
    pub const INTERACTIVE: Self = Self(10);
    /// The default priority: 0.
    pub const NORMAL: Self = Self(0);
    /// The priority of a request that may be late: -10.
    pub const BATCH: Self = Self(-10);

    /// Creates a priority; a higher number goes first.
    pub const fn new(level: i8) -> Self {
        Self(level)
    }

    /// Returns the number of the priority.
    pub const fn level(self) -> i8 {
        self.0
    }
}

impl std::str::FromStr for Priority {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Self, PriorityError> {
        match text {
            "interactive" => Ok(Self::INTERACTIVE),
            "normal" => Ok(Self::NORMAL),
            "batch" => Ok(Self::BATCH),
            number => number.parse().map(Self).map_err(|_| PriorityError(text.to_owned())),
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::INTERACTIVE => f.write_str("interactive"),
            Self::NORMAL => f.write_str("normal"),
            Self::BATCH => f.write_str("batch"),
            Self(level) => write!(f, "{level}"),
        }
    }
}

impl fmt::Display for PriorityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "{text:?} is not a priority; use interactive, normal, batch or a number from -128 to 127"
        )
    }
}

impl std::error::Error for PriorityError {}
