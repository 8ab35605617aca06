//! Background calls to the store: ends of requests, and amounts that were admitted without the
//! store.

use std::sync::Arc;

use futures_util::future::join_all;

use super::coordinator::Coordinator;
use super::failure::Failure;
use super::piece::{Group, Piece};
use super::script::{Id, Operation, Response};
use crate::limiter::Clock;

/// Amounts admitted without the store, to be charged before the store decides again.
#[derive(Debug, Default)]
pub(super) struct Outbox(Vec<(Id, Piece)>);

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Coordinator {
    /// Charges the amounts that were admitted while the store was unavailable.
    ///
    /// Keys that the store can't process are charged in the background, so that they don't block
    /// the others; so are those of an unreachable node if the keys are spread over several.
    ///
    /// # Errors
    /// Returns the first other [`Failure`]; amounts that were charged are not charged again.
    pub(super) async fn charge_debts(self: &Arc<Self>) -> Result<(), Failure> {
        self.collect_debts();
        let is_spread = self.store.redis_keys.is_spread();
        loop {
            let batch: Vec<_> =
                self.outbox.lock().0.iter().take(MAX_BACKGROUND_CALLS).cloned().collect();
            if batch.is_empty() {
                return Ok(());
            }
            let calls = batch.iter().map(|(id, piece)| {
                let pieces = std::slice::from_ref(piece);
                self.store.call_while_unavailable(Operation::Charge, *id, pieces)
            });
            let responses = join_all(calls).await;
            let mut first_failure = None;
            for ((id, piece), response) in batch.into_iter().zip(responses) {
                match response {
                    Ok(_) => {}
                    Err(failure) if failure.is_call_specific() || is_spread => {
                        tokio::spawn(self.deliver(
                            Operation::Charge,
                            id,
                            vec![Group::single(piece)],
                        ));
                    }
                    Err(failure) => {
                        first_failure = first_failure.or(Some(failure));
                        continue;
                    }
                }
                self.outbox.lock().0.retain(|(other, _)| *other != id);
            }
            if let Some(failure) = first_failure {
                return Err(failure);
            }
        }
    }

    fn collect_debts(&self) {
        let mut outbox = self.outbox.lock();
        let debts = self.fallback.lock().take_debts();
        outbox.0.extend(debts.into_iter().map(|piece| (self.store.id(), piece)));
    }

    /// Returns a future that delivers the end of a request, or a charge, with retries until the
    /// store has received it. The call counts as unacknowledged from now on.
    pub(super) fn deliver(
        self: &Arc<Self>,
        operation: Operation,
        id: Id,
        groups: Vec<Group>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.store.counters.unacknowledged.add(1);
        let coordinator = Arc::clone(self);
        async move {
            for group in &groups {
                coordinator.deliver_group(operation, id, group).await;
            }
            coordinator.store.counters.unacknowledged.sub(1);
        }
    }

    /// Makes a background call. Concurrent background calls are limited, so that they don't delay
    /// each other past the timeout.
    pub(super) async fn call_in_background(
        &self,
        operation: Operation,
        id: Id,
        pieces: &[Piece],
    ) -> Result<Response, Failure> {
        // The semaphore is never closed.
        let _permit = self.background_calls.acquire().await;
        self.store.call(operation, id, pieces, self.store.ticks.now()).await
    }

    async fn deliver_group(&self, operation: Operation, id: Id, group: &Group) {
        for attempt in 0..MAX_REJECTIONS {
            loop {
                self.store.connection.wait_until_available().await;
                match self.call_in_background(operation, id, &group.pieces).await {
                    Ok(_) => return,
                    Err(Failure::Rejected(_)) => break,
                    Err(failure) => self.on_background_failure(&failure),
                }
            }
            tokio::time::sleep(FIRST_PAUSE * (1 << attempt)).await;
        }
        tracing::error!(
            verb = ?operation,
            "the shared store keeps rejecting the end of a request; its reservation will expire"
        );
    }
}

/// The maximum number of concurrent background calls.
pub(super) const MAX_BACKGROUND_CALLS: usize = 64;
/// The number of attempts with a store that rejects the call: about a minute and a half.
const MAX_REJECTIONS: u32 = 14;
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);
