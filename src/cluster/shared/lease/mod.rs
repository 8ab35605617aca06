//! Leases: what a process has fetched of a shared limit for later, to decide out of it at local
//! speed.
//!
//! A lease *holds* its amount on the server: nobody else can have it, and the bucket goes on as if
//! nothing had been taken. What is used of it is taken there when it is told, never before it was
//! used. So for every algorithm that counts from the time of use, what the server counts is at
//! least what was used, at every moment: over-admission is 0. The cost: what was used counts until a
//! whole window after it was *told*, which is a third of a lease time later at most while the
//! server answers.
//!
//! It doesn't queue and asks nobody itself: [`KeyLease`] is a value to which time is an argument.

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
