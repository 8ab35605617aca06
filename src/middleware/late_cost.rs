use std::sync::Arc;

use parking_lot::Mutex;

use crate::quota::Cost;

/// A cost that is set while the response lasts. Clones share one value.
#[derive(Debug, Clone, Default)]
pub(super) struct LateCost(Arc<Mutex<Option<Cost>>>);

impl LateCost {
    pub(super) fn set(&self, cost: Cost) {
        *self.0.lock() = Some(cost);
    }

    pub(super) fn get(&self) -> Option<Cost> {
        self.0.lock().clone()
    }
}
