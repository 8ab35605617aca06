use smallvec::SmallVec;

use super::answer::View;
use crate::engine::Rule;

/// A reservation's name: the same for each call on its behalf, so that a call that is sent again is
/// carried out once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::cluster::shared) struct Id(pub(in crate::cluster::shared) [u8; 16]);

/// One call, on keys whose state lies in one slot.
#[derive(Debug, Clone)]
pub(in crate::cluster::shared) struct Call<'a> {
    pub(in crate::cluster::shared) verb: Verb,
    pub(in crate::cluster::shared) id: Id,
    pub(in crate::cluster::shared) time: ServerTime,
    pub(in crate::cluster::shared) parts: &'a [Part<'a>],
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cluster::shared) enum Verb {
    /// Reserves in all parts or in none; one that is there under this id already is granted as it was.
    /// It is kept for `ttl` microseconds: if nobody renews or ends it by then, what it holds counts
    /// as used. Who `waits` for room comes before those who ask later.
    Reserve { ttl: u64, waits: bool },
    /// Ends it: it took the amounts of the parts. With `unsure`, whether it was ever carried out isn't
    /// known, and a late copy of it is refused.
    Settle { unsure: bool },
    /// Ends it: the request never left.
    Release { unsure: bool },
    /// Keeps it for so many more microseconds. With `restores`, one that isn't there any more and hasn't
    /// ended is put back by the amounts of the parts: what is in flight is held again, and all else
    /// counts as used already (it was restored, or taken at its expiry): of that nothing is given back.
    Renew { ttl: u64, restores: bool },
    /// Takes the amounts of the parts, whether there is room or not; once for this id.
    Charge,
    /// Settles the lease of this id, if there is one, by the amounts of the parts (`amounts`), holds what
    /// is in flight of it (`inflight`) and as much as there is of what is wanted (`wanted`), at least
    /// `least` of each or nothing, as one new lease under the same id, for `ttl` microseconds. A lease
    /// that isn't there (any more) is `Unknown`, if this isn't its first call and says that something
    /// was used or is in flight.
    Lease { ttl: u64 },
    /// Gives a lease back: settles it by the amounts of the parts, and holds nothing more.
    Return,
    /// Only looks.
    #[cfg(test)]
    Look,
    /// Forgets the parts' state, that of buckets which the call doesn't know as well; what is held stays
    /// held. Once for this id.
    Reset,
}

/// What a call is about: one key and its buckets.
#[derive(Debug, Clone)]
pub(in crate::cluster::shared) struct Part<'a> {
    /// The name of its state in the server, hash tag included.
    pub(in crate::cluster::shared) name: &'a [u8],
    /// One bucket each.
    pub(in crate::cluster::shared) rules: &'a [Rule],
    /// For each rule, what the verb says.
    pub(in crate::cluster::shared) amounts: Amounts,
    /// For each rule, of a lease only.
    pub(in crate::cluster::shared) lease: Option<&'a LeaseRequest>,
    /// What this process last knew of the key, if it did. Without figures it only says which state that
    /// was, and the answer is `Lost` if it is another by now; with them, what is lacking is taken.
    pub(in crate::cluster::shared) view: Option<&'a View>,
}

/// What is wanted of a lease.
#[derive(Debug, Clone, Default)]
pub(in crate::cluster::shared) struct LeaseRequest {
    /// The number of this call among those for this lease, from 1: one that was carried out already is
    /// answered as it was, and one that comes after a later one changes nothing.
    pub(in crate::cluster::shared) turn: u32,
    /// The number of the first call that told what was used: if it or a later one has been carried out,
    /// `amounts` are settled already.
    pub(in crate::cluster::shared) first_report: u32,
    pub(in crate::cluster::shared) inflight: Amounts,
    pub(in crate::cluster::shared) least: Amounts,
    pub(in crate::cluster::shared) wanted: Amounts,
}

pub(in crate::cluster::shared) type Amounts = SmallVec<[u64; 3]>;

/// What this process expects the server's clock to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::cluster::shared) struct ServerTime {
    /// What it said last, and what has passed since by this process's own clock; 0 where it has said
    /// nothing yet.
    pub(in crate::cluster::shared) expected: u64,
    /// Set once an answer has shown that the server's clock was set forward, by this much.
    pub(in crate::cluster::shared) jump: u64,
}

/// Amounts and rates are at most so large, so that sums of some of them are exact in the script: what
/// is above is told, and to be booked, as this.
pub(in crate::cluster::shared) const MAX_AMOUNT: u64 = 1 << 50;
