//! Leases: amounts of a shared limit that a process holds in advance, to decide about requests
//! without a call to the store.
//!
//! A lease *holds* its amount on the server: other processes can't use it, and the bucket refills
//! as if the amount were unused. The server charges usage when the process reports it, never before
//! it happened. Algorithms that count from the time of use therefore never count less than the
//! actual usage, and never over-admit. The cost is that usage counts until one window after the
//! *report*, which is at most a third of a lease duration later while the server responds.
//!
//! [`KeyLease`] is a plain state machine: it takes the time as an argument, and does no I/O.

mod bucket_lease;
mod demand;
mod key_lease;
mod lease_call;
mod lease_debit;
mod leases;
mod maintain;

#[cfg(test)]
mod tests;

use key_lease::KeyLease;
use lease_call::{LeaseCall, LeaseLimits};
use lease_debit::LeaseDebit;
pub(super) use leases::Leases;
