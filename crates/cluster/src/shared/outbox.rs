use super::piece::Piece;
use super::script::Id;

/// Amounts admitted without the store, to be charged before the store decides again.
#[derive(Debug, Default)]
pub(super) struct Outbox(Vec<Debt>);

/// The amounts of one key.
#[derive(Debug, Clone)]
pub(super) struct Debt {
    pub(super) id: Id,
    pub(super) piece: Piece,
    /// The amounts are charged even if the limits have less left.
    pub(super) is_final: bool,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn extend(&mut self, debts: impl Iterator<Item = Debt>) {
        self.0.extend(debts);
    }

    /// Returns the first debts, at most this number of them.
    pub(super) fn first(&self, count: usize) -> Vec<Debt> {
        self.0.iter().take(count).cloned().collect()
    }

    pub(super) fn piece(&self, id: Id) -> Option<Piece> {
        self.0.iter().find(|debt| debt.id == id).map(|debt| debt.piece.clone())
    }

    /// Sets the amounts to charge.
    pub(super) fn set_final(&mut self, id: Id, piece: &Piece) {
        if let Some(debt) = self.0.iter_mut().find(|debt| debt.id == id) {
            (debt.piece, debt.is_final) = (piece.clone(), true);
        }
    }

    pub(super) fn remove(&mut self, id: Id) {
        self.0.retain(|debt| debt.id != id);
    }
}
