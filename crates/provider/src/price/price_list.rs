use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use super::prices::Prices;

/// Prices that can be replaced while layers count by them (`RateLimitLayer::prices`). Clones are the same list.
///
/// ```
/// use paceline_provider::price::{Price, PriceList, Prices};
/// use paceline_provider::OPENAI;
/// use paceline_limiter::quota::Usd;
///
/// let prices = PriceList::from(Prices::built_in());
/// let of_layer = prices.clone();
/// let price = Price::per_million(Usd::from_dollars(2), Usd::from_dollars(8));
/// prices.replace(Prices::built_in().with("house-model", price));
/// assert!(of_layer.current().of(OPENAI, "house-model").is_some());
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
