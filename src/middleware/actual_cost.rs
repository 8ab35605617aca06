use std::sync::Arc;

use http::Extensions;
use parking_lot::Mutex;

use super::late_cost::LateCost;
use super::response_guard::ResponseGuard;
use crate::quota::Cost;

/// The actual cost of a request, which its handler can set at any time until the response body ends.
///
/// In server mode a handler inserts an `ActualCost` into the extensions of its response, and the
/// reservation is settled with it when the body ends. Clones share one value.
///
/// A response that upgrades its connection (101) has no body. Its reservation ends, and its place in flight is
/// free again, when the last clone of the `ActualCost` in its extensions is dropped. In client mode the layer
/// inserts one. Keep a clone until the connection ends: the layer doesn't see that.
///
/// ```no_run
/// # use paceline::middleware::ActualCost;
/// # async fn example(response: reqwest::Response) -> Result<(), Box<dyn std::error::Error>> {
/// let in_flight = response.extensions().get::<ActualCost>().cloned();
/// let connection = response.upgrade().await?;
/// // ... and when the connection ends:
/// drop((connection, in_flight));
/// # Ok(())
/// # }
/// ```
///
/// ```
/// use paceline::middleware::ActualCost;
/// use paceline::quota::Cost;
/// let actual = ActualCost::new();
/// let response = http::Response::builder().extension(actual.clone()).body("a long stream")?;
/// // ... and when the end of the stream has been generated:
/// actual.set(Cost::new().tokens(1_234));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ActualCost(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    cost: LateCost,
    /// The reservation of an upgraded connection, which lasts as long as the value.
    held: Mutex<Option<Box<ResponseGuard>>>,
}

impl ActualCost {
    /// Creates a value that is not set yet. If it is never set, the reserved cost is charged.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a value that is set to `cost`.
    pub fn of(cost: Cost) -> Self {
        let actual = Self::new();
        actual.set(cost);
        actual
    }

    /// Sets the cost. The last value set before the body ends is charged.
    pub fn set(&self, cost: Cost) {
        self.0.cost.set(cost);
    }

    /// Returns the value in the extensions of a response, which it inserts if there is none.
    pub(super) fn in_extensions(extensions: &mut Extensions) -> Self {
        if let Some(known) = extensions.get::<Self>() {
            return known.clone();
        }
        let new = Self::new();
        extensions.insert(new.clone());
        new
    }

    /// Holds a reservation until the last clone is dropped.
    pub(super) fn hold(&self, guard: ResponseGuard) {
        *self.0.held.lock() = Some(Box::new(guard));
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let (Some(guard), Some(cost)) = (self.held.get_mut(), self.cost.get()) {
            guard.charged(cost);
        }
    }
}

impl ResponseGuard {
    /// Sets the [`ActualCost`] from which the actual cost is taken when the response ends.
    pub fn charged_later(&mut self, charge: ActualCost) {
        let ActualCost(shared) = charge;
        self.set_late_cost(shared.cost.clone());
    }
}
