use std::sync::Arc;

use parking_lot::Mutex;

use crate::quota::Cost;

/// What a request was really charged, said by whoever makes its response: at once, or by the end of
/// a body that is still on its way.
///
/// In server mode a handler puts one into the extensions of its response, and the reservation settles
/// by it when the body ends. Clones are the same charge.
///
/// ```
/// use tollgate::middleware::Charge;
/// use tollgate::quota::Cost;
/// let charge = Charge::new();
/// let response = http::Response::builder().extension(charge.clone()).body("a long stream")?;
/// // ... and when the last of it has been made:
/// charge.set(Cost::new().tokens(1_234));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Charge(Arc<Mutex<Option<Cost>>>);

impl Charge {
    /// Not known yet; as long as that stays so, what was reserved counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// This much.
    pub fn of(cost: Cost) -> Self {
        Self(Arc::new(Mutex::new(Some(cost))))
    }

    /// It was this much; the last word before the end of the body counts.
    pub fn set(&self, cost: Cost) {
        *self.0.lock() = Some(cost);
    }

    pub(super) fn cost(&self) -> Option<Cost> {
        self.0.lock().clone()
    }
}
