use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Error;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::budget::{BudgetExceeded, BudgetPermit};

/// A body that takes its bytes from the budget for bodies as it arrives. It fails with [`BudgetExceeded`] if
/// the client holds its part, before the first byte if its length is known.
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
        if !self.permit.has_available(self.body.size_hint().lower()) {
            return Poll::Ready(Some(Err(Error::new(BudgetExceeded))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Err(exceeded) = self.permit.grow(frame.data_ref().map_or(0, Bytes::len))
        {
            return Poll::Ready(Some(Err(Error::new(exceeded))));
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
