/// What is given up because requests reach the provider later than they were admitted, and out of
/// order.
///
/// Token buckets hold less by the larger of `percent` of their burst and what they refill in
/// `lag_nanos`; windows are longer by `lag_nanos`, and a fixed window is also closed that long
/// before its end. A limiter that guards its own server needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Margin {
    /// Least share of a token bucket's burst that is given up, in percent (at most 100).
    pub percent: u8,
    /// How much later than admitted a request may arrive, in nanoseconds.
    pub lag_nanos: u64,
}

impl Margin {
    /// No margin: for a limiter that is itself the judge.
    pub const NONE: Self = Self { percent: 0, lag_nanos: 0 };
}

impl Default for Margin {
    /// 2 % and 500 ms.
    fn default() -> Self {
        Self { percent: 2, lag_nanos: 500_000_000 }
    }
}
