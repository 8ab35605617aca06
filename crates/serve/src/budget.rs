use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::client_address::ClientAddress;

/// An amount of a resource of the server that its clients share, such as bytes of memory.
///
/// A client can hold at most half of what the others leave, rounded up: alone half of the budget, next to a client that holds
/// that, a quarter. So a part of the budget is always free for another client, and most of it is of use to a few.
///
/// Requests beyond it fail instead of waiting, because others may hold their parts for long.
#[derive(Debug)]
pub(super) struct Budget {
    total: usize,
    used: AtomicUsize,
    /// The clients that may hold a part.
    shares: Mutex<HashMap<ClientAddress, Weak<Share>>>,
}

/// The part of a budget that one client holds.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<Budget>,
    client: ClientAddress,
    held: AtomicUsize,
}

/// The part of a share that one request holds; released when it is dropped.
#[derive(Debug)]
pub(super) struct BudgetPermit {
    share: Arc<Share>,
    amount: AtomicUsize,
}

/// The error for a client that holds its part of a budget.
#[derive(Debug, Clone, Copy)]
pub(super) struct BudgetExceeded;

impl Budget {
    pub(super) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, used: AtomicUsize::new(0), shares: Mutex::default() })
    }

    /// Returns the part of a client.
    pub(super) fn share(self: &Arc<Self>, client: ClientAddress) -> Arc<Share> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(&client).and_then(Weak::upgrade) {
            return share;
        }
        let share = Share { budget: Arc::clone(self), client, held: AtomicUsize::new(0) };
        let share = Arc::new(share);
        shares.insert(client, Arc::downgrade(&share));
        share
    }

    /// Returns the amount that all clients hold.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the most that a client can hold, while no other holds anything.
    pub(super) fn largest_share(&self) -> usize {
        self.total.div_ceil(2)
    }
}

impl Share {
    /// Takes an amount.
    ///
    /// # Errors
    /// Returns an error if the client would hold more than its part.
    pub(super) fn take(self: &Arc<Self>, amount: usize) -> Result<BudgetPermit, BudgetExceeded> {
        let permit = BudgetPermit::new(self);
        permit.grow(amount).map(|()| permit)
    }

    /// Returns true if the client can hold this much more.
    fn has_available(&self, amount: u64) -> bool {
        let held = self.held.load(Ordering::Relaxed).saturating_add(self.budget.used());
        let free = self.budget.total.saturating_add(1).saturating_sub(held);
        amount.saturating_mul(2) <= u64::try_from(free).unwrap_or(u64::MAX)
    }

    fn add(&self, amount: usize) -> Result<(), BudgetExceeded> {
        let held = self.held.fetch_add(amount, Ordering::Relaxed) + amount;
        let used = self.budget.used.fetch_add(amount, Ordering::Relaxed) + amount;
        if held.saturating_add(used) <= self.budget.total.saturating_add(1) {
            return Ok(());
        }
        self.release(amount);
        Err(BudgetExceeded)
    }

    fn release(&self, amount: usize) {
        self.held.fetch_sub(amount, Ordering::Relaxed);
        self.budget.used.fetch_sub(amount, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut shares = self.budget.shares.lock();
        // Another one of the same client may have replaced it.
        if shares.get(&self.client).is_some_and(|share| share.strong_count() == 0) {
            shares.remove(&self.client);
        }
    }
}

impl BudgetPermit {
    /// Creates a permit that holds nothing yet.
    pub(super) fn new(share: &Arc<Share>) -> Self {
        Self { share: Arc::clone(share), amount: AtomicUsize::new(0) }
    }

    /// Takes more.
    ///
    /// # Errors
    /// Returns an error if the client would hold more than its part.
    pub(super) fn grow(&self, amount: usize) -> Result<(), BudgetExceeded> {
        self.share.add(amount)?;
        self.amount.fetch_add(amount, Ordering::Relaxed);
        Ok(())
    }

    /// Returns true if the client can hold this much more.
    pub(super) fn has_available(&self, amount: u64) -> bool {
        self.share.has_available(amount)
    }

    /// Releases all but this amount.
    pub(super) fn shrink_to(&mut self, amount: usize) {
        let held = self.amount.get_mut();
        let kept = amount.min(*held);
        self.share.release(*held - kept);
        *held = kept;
    }
}

impl Drop for BudgetPermit {
    fn drop(&mut self) {
        self.share.release(*self.amount.get_mut());
    }
}

impl fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client holds its part of the budget")
    }
}

impl std::error::Error for BudgetExceeded {}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(n: u8) -> ClientAddress {
        ClientAddress::of(IpAddr::from([127, 0, 0, n]))
    }

    #[test]
    fn client_holds_at_most_half_of_what_others_leave() {
        let budget = Budget::new(64);
        let mut held = Vec::new();
        for (n, most) in [(1, 32), (2, 16), (3, 8), (4, 4)] {
            let share = budget.share(client(n));
            assert!(share.take(most + 1).is_err() && !share.has_available(most as u64 + 1));
            assert!(share.has_available(most as u64));
            let first = share.take(most - 1).unwrap();
            assert!(first.grow(2).is_err());
            first.grow(1).unwrap();
            // A client has one share, over all of its requests.
            assert!(budget.share(client(n)).take(1).is_err());
            held.push(first);
        }
        assert_eq!(budget.used(), 60);
        held.remove(0);
        assert_eq!(budget.used(), 28);
        held.push(budget.share(client(5)).take(18).unwrap());
        drop(held);
        assert_eq!((budget.used(), budget.shares.lock().len()), (0, 0));
        assert!(budget.share(client(1)).take(budget.largest_share()).is_ok());
    }

    #[test]
    fn last_unit_is_of_use() {
        for total in 0..9 {
            let budget = Budget::new(total);
            let held: Vec<_> =
                (0..9).filter_map(|n| budget.share(client(n)).take(1).ok()).collect();
            assert_eq!((held.len(), budget.used()), (total, total));
        }
    }

    #[test]
    fn share_lasts_as_long_as_a_permit() {
        let budget = Budget::new(10);
        let permit = budget.share(client(1)).take(4).unwrap();
        assert!(budget.share(client(1)).take(2).is_err());
        drop(permit);
        let (share, permit) = (budget.share(client(1)), budget.share(client(1)).take(5).unwrap());
        drop(permit);
        assert!(share.take(5).is_ok());
    }
}
