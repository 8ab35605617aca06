//! The state that stores keep and other programs share.

use std::sync::Arc;

use super::DeniedSample;
use crate::limiter::{
    Attached, Boot, BuildError, KeyChanges, LearnedLimit, Limiter, Measurement, NamedQuota, Ticket,
    Utilization,
};
use crate::quota::{Cost, Quota};
use crate::timestamp::Timestamp;

/// Checks whether [`Quotas::set`](crate::limiter::Quotas::set) would accept a quota.
///
/// # Errors
/// Those of [`Quotas::set`](crate::limiter::Quotas::set).
pub fn check_quota(limiter: &Limiter, name: &str, quota: &Quota) -> Result<(), BuildError> {
    limiter.quotas().check(name, quota)
}

/// Sets a quota as [`Quotas::set`](crate::limiter::Quotas::set) does, but marks it as configured: a store doesn't restore
/// it once the configuration no longer names it.
///
/// # Errors
/// Those of [`Quotas::set`](crate::limiter::Quotas::set).
pub fn configure(limiter: &Limiter, name: &str, quota: &Quota) -> Result<(), BuildError> {
    limiter.quotas().configure(name, quota)
}

/// Returns a counter that increases whenever a quota is set, learned or removed.
pub fn quotas_version(limiter: &Limiter) -> u64 {
    limiter.quotas().version()
}

/// Restores quotas of an earlier run that were set or learned while it ran, with their origin.
///
/// A quota that already exists under the same name stays, so configured quotas take precedence over stored ones. Stored
/// quotas with the origin [`Configured`](crate::limiter::QuotaOrigin::Configured) are skipped, since the current
/// configuration replaces them.
pub fn restore_quotas(limiter: &Limiter, stored: &[NamedQuota]) {
    limiter.quotas().restore(stored);
}

/// Records changes from now on, until they are collected: for each bucket the usage with its times, and the amount held.
///
/// Only changes by this limiter are recorded. Usage of others that response headers show
/// ([`Permit::observe`](crate::limiter::Permit::observe)) and [absorbed](crate::limiter::LimiterState::absorb) state are
/// left out. Buckets that a [`Backend`](crate::limiter::Backend) keeps don't change here.
pub fn track(limiter: &Limiter) {
    limiter.state().track();
}

/// Returns the changes since the last call, sorted by key. Returns none unless the limiter [`track`]s changes.
///
/// Usage that isn't collected is kept for any length of time; entries of about the same age are merged.
pub fn collect_changes(limiter: &Limiter) -> Vec<KeyChanges> {
    limiter.state().collect_changes()
}

/// Applies changes by other limiters of the same store: their usage counts here too, and the amount they hold counts as
/// held until the next call that states it. These changes are not collected here.
///
/// Their usage is first offset against usage of others that response headers have shown since the last two collections,
/// since both cover the same requests. A cool-down that ends later than the key's own replaces it, and one that isn't in
/// the future ends it. A reset clears usage and cool-down, except changes recorded here since then and not yet collected;
/// the usage that comes with a reset is all usage since.
pub fn apply_changes(limiter: &Limiter, others: &[KeyChanges]) {
    limiter.state().apply_changes(others);
}

/// Returns the first denial since the last call. Only the first denial between two calls is recorded; the first call
/// starts the recording.
pub fn sample_denied(limiter: &Limiter) -> Option<DeniedSample> {
    limiter.state().sample_denied()
}

/// Attaches a component that is closed with the limiter.
pub fn attach(limiter: &Limiter, attached: Arc<dyn Attached>) {
    limiter.state().attach(attached);
}

/// Returns the values that the backend, the stores and the buses report to the metrics.
pub fn measurements(limiter: &Limiter) -> Vec<Measurement> {
    limiter.state().measurements()
}

/// Returns the quota that a permit of this key and cost took and that was detached as this ticket. Returns `false` if
/// the key has been idle since and was dropped. A window that the permit started continues.
///
/// Use a ticket once: a second time would return the quota of another request.
pub fn return_ticket(limiter: &Limiter, key: &str, cost: &Cost, ticket: Ticket) -> bool {
    limiter.state().return_ticket(key, cost, ticket)
}

/// Counts a key as a model that the provider of this name has read from a request, as the layer does.
pub fn count_as_model(limiter: &Limiter, key: &str, provider: &'static str) {
    limiter.state().count_as_model(key, provider);
}

/// Returns the clock's information about the current boot of the machine.
pub fn boot(limiter: &Limiter) -> Option<Boot> {
    limiter.state().boot()
}

/// Returns whether a measured limit is recent enough to start another run with.
pub fn is_limit_current(limit: &LearnedLimit, now: Timestamp) -> bool {
    limit.is_current(now)
}

/// Returns whether the window of a utilization hasn't started again. One without a known reset counts for a day.
pub fn is_utilization_current(utilization: &Utilization, now: Timestamp) -> bool {
    utilization.is_current(now)
}
