use std::sync::Arc;

use smallvec::SmallVec;

use super::key_reservation::KeyReservation;
use crate::backend::Reservation;
use crate::quota::{Cost, Dimension};

/// The end of a permit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Charge<'a> {
    /// The request was never sent.
    Nothing,
    /// The request is charged the reserved cost.
    Reserved,
    /// The request is charged the cost that the caller states.
    Stated(&'a Cost),
}

/// Fields that few permits have.
#[derive(Debug, Default)]
pub(super) struct PermitDetails {
    /// The cost reserved under the first key, if it is less than the cost of the permit.
    pub(super) reserved: Option<Box<Cost>>,
    /// `true` if the first key has something to do when the permit ends, even if exactly what is reserved is charged.
    pub(super) is_first_open: bool,
    /// The reservations under the other keys.
    pub(super) others: SmallVec<[KeyReservation; 2]>,
    pub(super) remote: Option<Arc<Reservation>>,
    /// The dimensions that are already settled, and the amounts charged.
    pub(super) early: SmallVec<[(Dimension, u64); 1]>,
}

impl PermitDetails {
    /// Returns the part of a reserved cost that isn't settled yet.
    pub(super) fn unsettled(&self, mut reserved: Cost) -> Cost {
        self.early.iter().for_each(|(dimension, _)| reserved.set(dimension, 0));
        reserved
    }

    /// Returns the part of a charge that isn't charged yet: of dimensions that are already settled, the
    /// amount by which a stated charge exceeds the settled one.
    pub(super) fn uncharged(&self, mut charged: Cost, charge: &Charge<'_>) -> Cost {
        for (dimension, settled) in &self.early {
            let uncharged = match charge {
                Charge::Stated(stated) if !stated.names(dimension) => 0,
                _ => charged.amount(dimension).saturating_sub(*settled),
            };
            charged.set(dimension, uncharged);
        }
        charged
    }
}
