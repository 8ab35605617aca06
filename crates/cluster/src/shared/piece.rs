use std::sync::Arc;

use paceline_limiter::engine::Rule;
use paceline_limiter::limiter::{Reservation, Reserved};
use paceline_limiter::quota::{Cost, Key};

use super::script::{Amounts, LeaseRequest, MAX_AMOUNT};

/// The part of a call that concerns one key.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) key: Key,
    pub(super) rules: Arc<[Rule]>,
    /// The amount for each rule.
    pub(super) amounts: Amounts,
    pub(super) lease: Option<LeaseRequest>,
}

/// Pieces of one cluster slot, which form one call, and the indexes of their scopes in the
/// reservation.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) pieces: Vec<Piece>,
    pub(super) scopes: Vec<usize>,
}

impl Piece {
    /// Creates the piece for a cost of a key.
    pub(super) fn from_cost(reserved: &Reserved, cost: &Cost) -> Self {
        let Reserved { key, rules, .. } = reserved;
        let cost = &*reserved.part(cost);
        let amounts = rules.iter().map(|rule| rule.amount(cost).min(MAX_AMOUNT)).collect();
        Self { key: key.clone(), rules: Arc::clone(rules), amounts, lease: None }
    }

    /// Subtracts the cost that was reserved under its key; returns whether any amount is left.
    pub(super) fn subtract(&mut self, key: &Reserved, reserved: &Cost) -> bool {
        let reserved = &*key.part(reserved);
        for (rule, amount) in self.rules.iter().zip(&mut self.amounts) {
            *amount = amount.saturating_sub(rule.amount(reserved));
        }
        self.amounts.iter().any(|amount| *amount > 0)
    }
}

impl Group {
    /// Creates a group of one key with zero amounts.
    pub(super) fn without_amounts(key: &str, rules: Arc<[Rule]>) -> Self {
        let amounts = rules.iter().map(|_| 0).collect();
        Self::single(Piece { key: key.into(), rules, amounts, lease: None })
    }

    /// Creates a group of one piece.
    pub(super) fn single(piece: Piece) -> Self {
        Self { pieces: vec![piece], scopes: vec![0] }
    }

    /// Creates the groups for a cost of a reservation: one group for all keys, or one per key if
    /// they are spread.
    pub(super) fn for_reservation(
        reservation: &Reservation,
        cost: &Cost,
        spread: bool,
    ) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::with_capacity(1);
        for (scope, reserved) in reservation.scopes.iter().enumerate() {
            if reserved.rules.is_empty() {
                continue;
            }
            if groups.is_empty() || spread {
                groups.push(Self::default());
            }
            if let Some(group) = groups.last_mut() {
                group.pieces.push(Piece::from_cost(reserved, cost));
                group.scopes.push(scope);
            }
        }
        groups
    }
}
