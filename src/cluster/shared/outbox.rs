use std::sync::Arc;

use futures_util::future::join_all;

use super::core::Core;
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

impl Core {
    /// Charges what was let in while the store was away. What it takes for one key no more than it
    /// decided about that key is told like an end, and stands in nobody's way; so is what one of
    /// several servers has no answer to.
    ///
    /// # Errors
    /// The first [`Failure`] of another kind; what is charged already isn't charged again.
    pub(super) async fn charge_owed(self: &Arc<Self>) -> Result<(), Failure> {
        self.collect_owed();
        let several = self.store.names.are_spread();
        loop {
            let batch: Vec<_> = self.outbox.lock().0.iter().take(AT_ONCE).cloned().collect();
            if batch.is_empty() {
                return Ok(());
            }
            let calls = batch.iter().map(|(id, piece)| {
                let pieces = std::slice::from_ref(piece);
                self.store.call_while_away(Verb::Charge, *id, pieces)
            });
            let answers = join_all(calls).await;
            let mut failed = None;
            for ((id, piece), answer) in batch.into_iter().zip(answers) {
                match answer {
                    Ok(_) => {}
                    Err(failure) if failure.is_of_this_call() || several => {
                        tokio::spawn(self.told(Verb::Charge, id, vec![Group::of(piece)]));
                    }
                    Err(failure) => {
                        failed = failed.or(Some(failure));
                        continue;
                    }
                }
                self.outbox.lock().0.retain(|(other, _)| *other != id);
            }
            if let Some(failure) = failed {
                return Err(failure);
            }
        }
    }

    fn collect_owed(&self) {
        let mut outbox = self.outbox.lock();
        let owed = self.fallback.lock().take_owed();
        outbox.0.extend(owed.into_iter().map(|piece| (self.store.id(), piece)));
    }

    /// Tells the store of an end, or of what went past it, again and again until it has heard. Counted
    /// as unacknowledged from now on.
    pub(super) fn told(
        self: &Arc<Self>,
        verb: Verb,
        id: Id,
        groups: Vec<Group>,
    ) -> impl Future<Output = ()> + Send + 'static {
        self.store.counters.unacknowledged.add(1);
        let core = Arc::clone(self);
        async move {
            for group in &groups {
                core.tell(verb, id, group).await;
            }
            core.store.counters.unacknowledged.sub(1);
        }
    }

    /// A call that nobody waits for: when its turn comes among the others, so that they don't make
    /// each other late.
    pub(super) async fn aside(
        &self,
        verb: Verb,
        id: Id,
        pieces: &[Piece],
    ) -> Result<Answer, Failure> {
        // The turns never end.
        let _turn = self.turns.acquire().await;
        self.store.call(verb, id, pieces, self.store.ticks.now()).await
    }

    async fn tell(&self, verb: Verb, id: Id, group: &Group) {
        for refusal in 0..REFUSALS {
            loop {
                self.store.way.back().await;
                match self.aside(verb, id, &group.pieces).await {
                    Ok(_) => return,
                    Err(Failure::Refused(_)) => break,
                    Err(failure) => self.unheard(&failure),
                }
            }
            tokio::time::sleep(PAUSE * (1 << refusal)).await;
        }
        tracing::error!(
            ?verb,
            "the shared store keeps rejecting the end of a request; its reservation will expire"
        );
    }
}

/// So many calls are on their way at once.
pub(super) const AT_ONCE: usize = 64;
/// A store that answers, but refuses, is told so often: for about a minute and a half.
const REFUSALS: u32 = 14;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);
