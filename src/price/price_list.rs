use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use super::prices::Prices;

/// Prices that can be replaced while layers count by them. Clones are the same list.
///
/// ```
/// use paceline::price::{Price, PriceList, Prices};
/// use paceline::provider::OPENAI;
/// use paceline::quota::Usd;
/// use paceline::{Limiter, RateLimitLayer};
///
/// let prices = PriceList::from(Prices::built_in());
/// let layer = RateLimitLayer::new(Limiter::builder().build()?).prices(prices.clone());
/// # let _ = layer;
/// let price = Price::per_million(Usd::from_dollars(2), Usd::from_dollars(8));
/// prices.replace(Prices::built_in().with("house-model", price));
/// assert!(prices.current().of(OPENAI, "house-model").is_some());
/// # Ok::<(), paceline::limiter::BuildError>(())
/// ```
#[derive(Clone)]
pub struct PriceList(Arc<RwLock<Arc<Prices>>>);

impl PriceList {
    /// Returns the present prices.
    pub fn current(&self) -> Arc<Prices> {
        Arc::clone(&self.0.read())
    }

    /// Replaces the prices. They apply to requests that are called from now on.
    pub fn replace(&self, prices: impl Into<Arc<Prices>>) {
        *self.0.write() = prices.into();
    }
}

impl Default for PriceList {
    /// Returns a list of the [built-in](Prices::built_in) prices.
    fn default() -> Self {
        Prices::built_in().into()
    }
}

impl From<Prices> for PriceList {
    fn from(prices: Prices) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(prices))))
    }
}

impl PartialEq for PriceList {
    /// Returns `true` if the present prices are equal.
    fn eq(&self, other: &Self) -> bool {
        self.current() == other.current()
    }
}

impl Eq for PriceList {}

impl fmt::Debug for PriceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.current().fmt(f)
    }
}
