//! Background calls to the store: ends of requests, and amounts that were admitted without the
//! store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use paceline_limiter::limiter::{Clock, Reservation};
use paceline_limiter::quota::Dimension;

use super::coordinator::{Coordinator, MAX_BACKGROUND_CALLS};
use super::failure::Failure;
use super::outbox::Debt;
use super::piece::{Group, Piece};
use super::script::{Id, Operation, Order, Outcome, Response};
use super::settings::micros;
use crate::OnFailure;

impl Coordinator {
    /// Cancels a pending call, and undoes it in the store. Returns `false` if the call is not
    /// pending any more. Must be called on the worker's runtime.
    pub(super) fn cancel(self: &Arc<Self>, reservation: &Arc<Reservation>, id: Id) -> bool {
        let was_pending = self.reservations.lock().finish_call(reservation, id, None);
        if was_pending {
            let groups = self.groups(reservation, &reservation.cost);
            tokio::spawn(self.deliver(Operation::Release { unsure: true }, id, groups));
        }
        was_pending
    }

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
            let batch = self.outbox.lock().first(MAX_BACKGROUND_CALLS);
            if batch.is_empty() {
                return Ok(());
            }
            let responses = join_all(batch.iter().map(|debt| self.charge_debt(debt))).await;
            let mut first_failure = None;
            for (Debt { id, piece, .. }, response) in batch.into_iter().zip(responses) {
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
                self.outbox.lock().remove(id);
            }
            if let Some(failure) = first_failure {
                return Err(failure);
            }
        }
    }

    fn collect_debts(&self) {
        let mut outbox = self.outbox.lock();
        let debts = self.fallback.lock().take_debts();
        let is_final = self.store.settings.on_failure != OnFailure::Open;
        let debt = |piece| Debt { id: self.store.id(), piece, is_final };
        outbox.extend(debts.into_iter().map(debt));
    }

    async fn charge_debt(&self, debt: &Debt) -> Result<(), Failure> {
        let Debt { id, piece, is_final } = debt;
        if !is_final && self.charge_what_fits(*id, piece).await? {
            return Ok(());
        }
        let final_piece = self.outbox.lock().piece(*id).unwrap_or_else(|| piece.clone());
        let pieces = std::slice::from_ref(&final_piece);
        self.store.call_while_unavailable(Operation::Charge, *id, pieces).await.map(drop)
    }

    /// Charges amounts that were admitted without a limit as far as the limits have them left, so that
    /// requests don't wait for the rest, which is counted. Returns whether that is done: other processes may
    /// charge theirs at the same time, so the amounts are reserved first.
    async fn charge_what_fits(&self, id: Id, owed: &Piece) -> Result<bool, Failure> {
        let ttl = micros(self.store.settings.ttl);
        let reserve = Operation::Reserve { ttl, waits: false, order: Order::ARRIVAL };
        let mut piece = owed.clone();
        for amount in piece.rules.iter().zip(&mut piece.amounts) {
            if *amount.0.dimension() == Dimension::Concurrency {
                *amount.1 = 0;
            }
        }
        for _ in 0..MAX_REFUSALS {
            // If there is no answer, the next attempt charges these amounts, unless this one has.
            self.outbox.lock().set_final(id, &piece);
            let pieces = std::slice::from_ref(&piece);
            let response = self.store.call_while_unavailable(reserve, id, pieces).await?;
            if response.outcome == Outcome::Done {
                self.count_uncharged(owed, &piece);
                let settle = Operation::Settle { unsure: false };
                return self.store.call_while_unavailable(settle, id, pieces).await.map(|_| true);
            }
            self.store.call_while_unavailable(READ, self.store.id(), pieces).await?;
            self.cap(&mut piece);
        }
        self.count_uncharged(owed, &piece);
        self.outbox.lock().set_final(id, &piece);
        Ok(false)
    }

    /// Caps amounts at what the limits have left, as far as is known.
    fn cap(&self, piece: &mut Piece) {
        let (store, now) = (&self.store, self.store.clock.now());
        let (slot, ticks) = (store.slot(&piece.key), store.ticks.now());
        let buckets = store.views.lock().buckets(&piece.key, slot, &piece.rules, ticks, now);
        let levels = piece.rules.iter().zip(buckets.into_iter().flatten());
        for ((rule, bucket), amount) in levels.zip(&mut piece.amounts) {
            *amount = (*amount).min(bucket.level(rule, now).available);
        }
    }

    fn count_uncharged(&self, owed: &Piece, charged: &Piece) {
        let (mut requests, mut tokens) = (0, 0);
        let amounts = owed.amounts.iter().zip(&charged.amounts);
        for (rule, (owed, charged)) in owed.rules.iter().zip(amounts) {
            let most = match rule.dimension() {
                Dimension::Requests => &mut requests,
                Dimension::Tokens | Dimension::InputTokens | Dimension::OutputTokens => &mut tokens,
                _ => continue,
            };
            *most = owed.saturating_sub(*charged).max(*most);
        }
        self.store.counters.uncharged_requests.add(requests);
        self.store.counters.uncharged_tokens.add(tokens);
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

    /// Reads the state of keys of one slot, which is remembered.
    pub(super) async fn read(&self, pieces: &[Piece]) -> Result<(), Failure> {
        let started_at = self.store.ticks.now();
        self.store.call(READ, self.store.id(), pieces, started_at).await.map(drop)
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
        for piece in &group.pieces {
            self.store.views.lock().forget_reservation(&piece.key, id);
        }
        tracing::error!(
            verb = ?operation,
            "the shared store keeps rejecting the end of a request; its reservation will expire"
        );
    }
}

/// The number of attempts to charge what fits, while other processes do the same.
const MAX_REFUSALS: usize = 8;
/// The end of an unknown reservation: changes nothing, and answers with the state.
const READ: Operation = Operation::Release { unsure: false };
/// The number of attempts with a store that rejects the call: about a minute and a half.
const MAX_REJECTIONS: u32 = 14;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
