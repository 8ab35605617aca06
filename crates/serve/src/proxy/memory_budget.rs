use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::Error;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// A budget of bytes for request bodies in memory.
///
/// Requests beyond it fail instead of waiting, because other bodies may occupy it for long.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    free: AtomicUsize,
}

impl MemoryBudget {
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self { free: AtomicUsize::new(bytes) })
    }

    fn has_available(&self, bytes: u64) -> bool {
        let free = self.free.load(Ordering::Relaxed);
        u64::try_from(free).unwrap_or(u64::MAX) >= bytes
    }

    fn try_take(&self, bytes: usize) -> bool {
        let rest = |free: usize| free.checked_sub(bytes);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

/// The part of the budget that a body uses, released when it is dropped.
#[derive(Debug)]
pub(super) struct BudgetPermit {
    budget: Arc<MemoryBudget>,
    bytes: AtomicUsize,
}

impl BudgetPermit {
    pub(super) fn new(budget: &Arc<MemoryBudget>) -> Arc<Self> {
        Arc::new(Self { budget: Arc::clone(budget), bytes: AtomicUsize::new(0) })
    }

    /// Takes more of the budget. Returns false if it is used up.
    pub(super) fn try_grow(&self, bytes: usize) -> bool {
        let is_available = self.budget.try_take(bytes);
        if is_available {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_available
    }
}

impl Drop for BudgetPermit {
    fn drop(&mut self) {
        self.budget.free.fetch_add(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// A body that takes its bytes from the budget as it arrives. It fails with [`BudgetExceeded`] if the
/// budget is used up, before the first byte if its length is known.
pub(super) struct BudgetedBody {
    body: Body,
    permit: Arc<BudgetPermit>,
}

impl BudgetedBody {
    pub(super) fn new(body: Body, permit: &Arc<BudgetPermit>) -> Self {
        Self { body, permit: Arc::clone(permit) }
    }
}

impl http_body::Body for BudgetedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if !self.permit.budget.has_available(self.body.size_hint().lower()) {
            return Poll::Ready(Some(Err(Error::new(BudgetExceeded))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if !self.permit.try_grow(bytes) {
                return Poll::Ready(Some(Err(Error::new(BudgetExceeded))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The error for a budget that is used up.
#[derive(Debug)]
pub(super) struct BudgetExceeded;

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memory budget for request bodies is used up")
    }
}

impl std::error::Error for BudgetExceeded {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_released_with_the_last_permit_clone() {
        let budget = MemoryBudget::new(10);
        let (one, other) = (BudgetPermit::new(&budget), BudgetPermit::new(&budget));
        assert!(one.try_grow(4) && one.try_grow(3) && other.try_grow(3));
        assert!(!other.try_grow(1) && !budget.has_available(1));
        let clone = Arc::clone(&one);
        drop(one);
        assert!(!budget.has_available(1));
        drop(clone);
        assert!(budget.has_available(7) && !budget.has_available(8));
    }
}
