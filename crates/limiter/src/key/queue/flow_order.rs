use std::collections::BTreeSet;

use super::turn::Kind;

/// The flows with waiters, in the order in which they go.
#[derive(Debug, Default)]
pub(super) struct FlowOrder {
    /// Kept outside of the tree, which stays empty if there is one flow.
    first: Option<FlowRank>,
    rest: BTreeSet<FlowRank>,
}

/// The rank of a flow with waiters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowRank {
    /// The virtual time at which its next request starts.
    pub(super) start: u128,
    /// The arrival number of its first waiter.
    pub(super) arrival: u64,
    pub(super) flow: u64,
    pub(super) kind: Kind,
}

impl FlowOrder {
    pub(super) fn first(&self) -> Option<FlowRank> {
        self.first
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.first.iter().chain(&self.rest).map(|rank| rank.flow)
    }

    /// Replaces the rank of a flow: `None` if it has no waiters.
    pub(super) fn replace(&mut self, old: Option<FlowRank>, new: Option<FlowRank>) {
        if old == new {
            return;
        }
        if old.is_some_and(|old| self.first.is_some_and(|first| first.flow == old.flow)) {
            self.first = None;
        } else if let Some(old) = old {
            self.rest.remove(&old);
        }
        match (self.first, new) {
            (Some(first), Some(new)) if new < first => {
                self.rest.insert(first);
                self.first = Some(new);
            }
            (None, Some(new)) if self.rest.first().is_none_or(|next| new < *next) => {
                self.first = Some(new);
            }
            (first, new) => {
                self.first = first.or_else(|| self.rest.pop_first());
                self.rest.extend(new);
            }
        }
    }
}
