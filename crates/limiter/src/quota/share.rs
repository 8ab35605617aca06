use core::fmt;
use core::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// The part of a limit that this program may use while others use the same account: above 0, at most 1.
///
/// It is stored in parts per million.
///
/// ```
/// use paceline_limiter::quota::{Quota, Share};
/// let half = Quota::new().rpm(501).tpm(30_000).with_share(Share::percent(50)?);
/// let amounts: Vec<_> = half.limits().iter().map(|limit| limit.amount()).collect();
/// assert_eq!(amounts, [250, 15_000]);
/// assert!(Share::try_from(1.5).is_err());
/// # Ok::<(), paceline_limiter::quota::InvalidShare>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "f64", try_from = "f64")]
pub struct Share(u32);

impl Share {
    /// The whole limit.
    pub const WHOLE: Self = Self(WHOLE);

    /// Creates a share in percent.
    ///
    /// # Errors
    /// Returns [`InvalidShare`] for 0, and for more than 100.
    pub fn percent(percent: u8) -> Result<Self, InvalidShare> {
        Self::try_from(f64::from(percent) / 100.0)
    }

    /// Returns this share of an amount, rounded down, and at least 1 so that the limit remains.
    pub fn of(self, amount: NonZeroU64) -> NonZeroU64 {
        let part = u128::from(amount.get()) * u128::from(self.0) / u128::from(WHOLE);
        u64::try_from(part).ok().and_then(NonZeroU64::new).unwrap_or(NonZeroU64::MIN)
    }

    /// Returns the share as a part of 1.
    pub fn as_part(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl TryFrom<f64> for Share {
    type Error = InvalidShare;

    /// Rounds the share to a millionth, and to at least one millionth.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0 to 10^6")]
    fn try_from(share: f64) -> Result<Self, InvalidShare> {
        if share > 0.0 && share <= 1.0 {
            Ok(Self(((share * f64::from(WHOLE) + 0.5) as u32).max(1)))
        } else {
            Err(InvalidShare { share })
        }
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.as_part()
    }
}

/// A share that isn't above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct InvalidShare {
    /// The share that was given.
    pub share: f64,
}

impl fmt::Display for InvalidShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "share: {} is out of range; give a number above 0 and at most 1", self.share)
    }
}

impl core::error::Error for InvalidShare {}

const WHOLE: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_outside_range_is_an_error() {
        for bad in [0.0, -0.5, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(Share::try_from(bad).is_err(), "{bad}");
        }
        assert!(Share::percent(0).is_err() && Share::percent(101).is_err());
        let bad = Share::try_from(2.5).unwrap_err();
        assert_eq!(
            bad.to_string(),
            "share: 2.5 is out of range; give a number above 0 and at most 1"
        );
        assert_eq!(Share::percent(100), Ok(Share::WHOLE));
        assert_eq!(Share::try_from(1e-9), Ok(Share(1)));
    }

    #[test]
    fn share_of_amount_rounds_down_to_at_least_1() {
        let of = |share: f64, amount| {
            Share::try_from(share).unwrap().of(NonZeroU64::new(amount).unwrap()).get()
        };
        assert_eq!([of(0.29, 100), of(0.5, 3), of(0.001, 7)], [29, 1, 1]);
        assert_eq!([of(1.0, u64::MAX), of(0.5, u64::MAX)], [u64::MAX, u64::MAX / 2]);
    }
}
