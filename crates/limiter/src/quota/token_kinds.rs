use super::Dimension;

/// A set of the three dimensions that count tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenKinds(u8);

impl TokenKinds {
    pub(crate) const NONE: Self = Self(0);
    const TOTAL: u8 = 1;
    const INPUT: u8 = 2;
    const OUTPUT: u8 = 4;
    const PARTS: u8 = Self::INPUT | Self::OUTPUT;

    /// Returns the set with this dimension added, if it counts tokens.
    pub(crate) const fn with(self, dimension: &Dimension) -> Self {
        Self(
            self.0
                | match dimension {
                    Dimension::Tokens => Self::TOTAL,
                    Dimension::InputTokens => Self::INPUT,
                    Dimension::OutputTokens => Self::OUTPUT,
                    _ => 0,
                },
        )
    }

    /// Returns the union of two sets.
    #[inline]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns `true` if the set contains this dimension.
    #[inline]
    pub(crate) fn has(self, dimension: &Dimension) -> bool {
        let one = Self::NONE.with(dimension);
        one != Self::NONE && one.is_within(self)
    }

    /// Returns `true` if `other` contains the whole set.
    #[inline]
    pub(crate) const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the sets of cost dimensions that limits with this set of dimensions don't count: the sets that
    /// share no dimension with it. Limits of every kind count a cost that sets the total and a part of it.
    #[inline]
    pub(crate) fn uncounted(self) -> UncountedKinds {
        let is_uncounted = |named: &Self| {
            let is_whole = named.0 & Self::TOTAL != 0 && named.0 & Self::PARTS != 0;
            self != Self::NONE && *named != Self::NONE && !is_whole && self.0 & named.0 == 0
        };
        let sets = (0..8).map(Self).filter(is_uncounted);
        UncountedKinds(sets.fold(0, |bits, set| bits | 1 << set.0))
    }
}

/// The sets of token dimensions that the limits of a key don't count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UncountedKinds(u8);

impl UncountedKinds {
    /// Returns `true` if a cost with this set of dimensions isn't counted.
    #[inline]
    pub(crate) const fn has(self, named: TokenKinds) -> bool {
        self.0 >> named.0 & 1 == 1
    }
}
