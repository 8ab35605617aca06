use std::sync::Arc;

use parking_lot::Mutex;

use crate::quota::Cost;

/// The actual cost of a request, which its handler can set at any time until the response body ends.
///
/// In server mode a handler inserts an `ActualCost` into the extensions of its response, and the
/// reservation is settled with it when the body ends. Clones share one value.
///
/// ```
/// use tollgate::middleware::ActualCost;
/// use tollgate::quota::Cost;
/// let actual = ActualCost::new();
/// let response = http::Response::builder().extension(actual.clone()).body("a long stream")?;
/// // ... and when the end of the stream has been generated:
/// actual.set(Cost::new().tokens(1_234));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ActualCost(Arc<Mutex<Option<Cost>>>);

impl ActualCost {
    /// Creates a value that is not set yet. If it is never set, the reserved cost is charged.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a value that is set to `cost`.
    pub fn of(cost: Cost) -> Self {
        Self(Arc::new(Mutex::new(Some(cost))))
    }

    /// Sets the cost. The last value set before the body ends is charged.
    pub fn set(&self, cost: Cost) {
        *self.0.lock() = Some(cost);
    }

    pub(super) fn cost(&self) -> Option<Cost> {
        self.0.lock().clone()
    }
}
