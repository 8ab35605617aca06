use std::sync::Arc;

use futures_util::future::join_all;

use super::coordinator::Coordinator;
use super::failure::Failure;
use super::piece::{Group, Piece};
use super::script::{Answer, Id, Verb};
use crate::limiter::Clock;

/// What was let in without the store, and is to be charged before it decides again.
#[derive(Debug, Default)]
pub(super) struct Outbox(Vec<(Id, Piece)>);

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Coordinator {
    /// Charges what was let in while the store was away. What it takes for one key no more than it
    /// decided about that key is told like an end, and stands in nobody's way; so is what one of
    /// several servers has no answer to.
    ///
    /// # Errors
    /// The first [`Failure`] of another kind; what is charged already isn't charged again.
    pub(super) async fn charge_debts(self: &Arc<Self>) -> Result<(), Failure> {
        self.collect_debts();
        let several = self.store.redis_keys.is_spread();
        loop {
            let batch: Vec<_> =
                self.outbox.lock().0.iter().take(MAX_BACKGROUND_CALLS).cloned().collect();
            if batch.is_empty() {
                return Ok(());
            }
            let calls = batch.iter().map(|(id, piece)| {
                let pieces = std::slice::from_ref(piece);
                self.store.call_while_away(Verb::Charge, *id, pieces)
            });
            let answers = join_all(calls).await;
            let mut first_failure = None;
            for ((id, piece), answer) in batch.into_iter().zip(answers) {
                match answer {
                    Ok(_) => {}
                    Err(failure) if failure.is_call_specific() || several => {
                        tokio::spawn(self.deliver(Verb::Charge, id, vec![Group::single(piece)]));
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

    /// Tells the store of an end, or of what went past it, again and again until it has heard. Counted
    /// as unacknowledged from now on.
    pub(super) fn deliver(
        self: &Arc<Self>,
        verb: Verb,
        id: Id,
        groups: Vec<Group>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.store.counters.unacknowledged.add(1);
        let coordinator = Arc::clone(self);
        async move {
            for group in &groups {
                coordinator.deliver_group(verb, id, group).await;
            }
            coordinator.store.counters.unacknowledged.sub(1);
        }
    }

    /// A call that nobody waits for: when its turn comes among the others, so that they don't make
    /// each other late.
    pub(super) async fn call_in_background(
        &self,
        verb: Verb,
        id: Id,
        pieces: &[Piece],
    ) -> Result<Answer, Failure> {
        // The turns never end.
        let _permit = self.background_calls.acquire().await;
        self.store.call(verb, id, pieces, self.store.ticks.now()).await
    }

    async fn deliver_group(&self, verb: Verb, id: Id, group: &Group) {
        for attempt in 0..MAX_REJECTIONS {
            loop {
                self.store.connection.wait_until_available().await;
                match self.call_in_background(verb, id, &group.pieces).await {
                    Ok(_) => return,
                    Err(Failure::Rejected(_)) => break,
                    Err(failure) => self.on_background_failure(&failure),
                }
            }
            tokio::time::sleep(FIRST_PAUSE * (1 << attempt)).await;
        }
        tracing::error!(
            ?verb,
            "the shared store keeps rejecting the end of a request; its reservation will expire"
        );
    }
}

/// So many calls are on their way at once.
pub(super) const MAX_BACKGROUND_CALLS: usize = 64;
/// A store that answers, but refuses, is told so often: for about a minute and a half.
const MAX_REJECTIONS: u32 = 14;
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);
