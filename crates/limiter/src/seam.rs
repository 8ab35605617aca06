//! What the layer, the stores and the shared limits of paceline need of the limiter beyond the interface of its users.
//! Unstable: it may change in any version.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use compact_str::CompactString;

mod saved_parts;

pub use saved_parts::{LimitParts, QuotaParts, limit_of, limit_parts, quota_of, quota_parts};

pub use crate::answer::stats::LimitLevels;
pub use crate::backend::{LatencyRecorder, Precedence};
pub use crate::engine::parameters::Parameters;
pub use crate::event::Fault;
pub use crate::key::adapt::LONGEST_OF_RATE;
pub use crate::limiter::denied_sample::DeniedSample;
pub use crate::limiter::refusals::Hold;
pub use crate::limiter::standing::OwnStanding;
pub use crate::quota::dimension::USD;
pub use crate::quota::grid::Grid;
pub use crate::quota::limit::Counting;
pub use crate::timestamp::nanos;

use crate::engine::Rule;
use crate::limiter::{
    Acquire, AcquireError, Attached, Boot, BuildError, Builder, Decision, Event, Feedback, Gate,
    KeyChanges, Latency, LearnedLimit, Limiter, Measured, Measurement, NamedQuota, Permit, Quotas,
    RateLimited, Refused, Reservation, Reserved, Sleep, Ticket, Utilization,
};
use crate::quota::{Calendar, Cost, Dimension, Key, Period, Quota};
use crate::timestamp::Timestamp;

/// The dimensions that aren't custom.
pub const DIMENSIONS: [Dimension; 5] = Dimension::KNOWN;

/// Displays an amount: the number, or dollars for [`Dimension::usd`].
pub fn shown_amount(dimension: &Dimension, amount: u64) -> impl fmt::Display + use<> {
    dimension.amount(amount)
}

/// Sets the amount of a cost in a dimension, without a guess.
#[inline]
pub fn set_amount(cost: &mut Cost, dimension: &Dimension, amount: u64) {
    cost.set(dimension, amount);
}

/// Sets the prefix of keys that have the quota of the name after it, in buckets of their own, unless a quota has a
/// name with the prefix.
pub fn name_space(builder: Builder, prefix: &'static str) -> Builder {
    builder.name_space(prefix)
}

/// Returns whether a quota limits spending, so that requests need a price.
#[inline]
pub fn limits_spending(limiter: &Limiter) -> bool {
    limiter.limits_spending()
}

/// Checks whether [`Quotas::set`] would accept a quota.
///
/// # Errors
/// Those of [`Quotas::set`].
pub fn check_quota(limiter: &Limiter, name: &str, quota: &Quota) -> Result<(), BuildError> {
    limiter.quotas().check(name, quota)
}

/// Sets a quota as [`Quotas::set`] does, but marks it as configured: a store doesn't restore it once the configuration
/// no longer names it.
///
/// # Errors
/// Those of [`Quotas::set`].
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
/// Only changes by this limiter are recorded. Usage of others that response headers show ([`Permit::observe`]) and
/// [absorbed](crate::limiter::LimiterState::absorb) state are left out. Buckets that a
/// [`Backend`](crate::limiter::Backend) keeps don't change here.
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

/// Calls `listener` with every later event except those of single reservations ([`Event::Granted`], [`Event::Denied`],
/// [`Event::Waited`] and [`Event::Settled`]), so that it costs a reservation nothing.
/// [`totals`](crate::limiter::LimiterState::totals) counts those.
pub fn on_change(limiter: &Limiter, listener: impl Fn(&Event) + Send + Sync + 'static) {
    limiter.on_change(listener);
}

/// Returns `true` if a [`Backend`](crate::limiter::Backend) keeps the buckets of a permit.
pub fn is_remote(permit: &Permit) -> bool {
    permit.is_remote()
}

/// Returns the decision of each key of a request, in the order of the keys.
pub fn decisions(acquire: &Acquire) -> impl Iterator<Item = Decision> + '_ {
    acquire.decisions()
}

/// Returns a future that is ready when the limiter's time has reached `time`.
pub fn sleep_until(limiter: &Limiter, time: Timestamp) -> Sleep {
    limiter.sleep_until(time)
}

/// Returns whether a key is that of a mode of a provider of the limiter.
pub fn knows_mode(limiter: &Limiter, key: &str) -> bool {
    limiter.knows_mode(key)
}

/// Returns the name of a quota that limits spending and covers a model of this provider, so that a request whose model is
/// unknown may be one of its own. `patterns` are those of the provider's default quotas. Models are the names with a price:
/// `any_priced` finds one that fulfils a condition.
pub fn budget_of_models(
    limiter: &Limiter,
    provider: &str,
    patterns: &[&str],
    has_price: impl Fn(&str) -> bool,
    any_priced: impl Fn(&dyn Fn(&str) -> bool) -> bool,
) -> Option<Key> {
    limiter.budget_of_models(provider, patterns, has_price, any_priced)
}

/// Returns whether there may be a subscriber of events.
#[inline]
pub fn is_watched(limiter: &Limiter) -> bool {
    limiter.is_watched()
}

/// Sends an event of another component to subscribers.
pub fn send_event(limiter: &Limiter, event: impl FnOnce() -> Event) {
    limiter.send_event(event);
}

/// Returns the gate of a service for these keys. [`call_arrival`] and [`end_turn`] enclose the calls of the service.
///
/// # Errors
/// [`Refused`] for a key that is refused.
pub fn gate_of_service<K: AsRef<str>>(
    limiter: &Limiter,
    keys: &[K],
    own: Option<&OwnStanding>,
) -> Result<Gate, Refused> {
    limiter.gate_of(keys, own).map(Gate::leaving_claims)
}

/// Returns the arrival number for a call that follows immediately after the gate's turn has come.
#[inline]
pub fn call_arrival(gate: &Gate) -> Option<u64> {
    gate.call_arrival()
}

/// Ends the turn of a gate after its service was called.
#[inline]
pub fn end_turn(gate: &mut Gate) {
    gate.end_turn();
}

/// Reserves immediately if the fast path can: the key has an entry, the cost fits and no request waits. `None` means that
/// the slow path has to decide. `is_model` is `true` if a provider has read the key as a model, `is_answered` if the answers
/// of the provider are reported.
#[inline]
pub fn try_fast(
    limiter: &Limiter,
    key: &str,
    cost: &Cost,
    is_model: bool,
    is_answered: bool,
) -> Option<Permit> {
    limiter.try_fast(key, cost, is_model, is_answered)
}

/// Reserves under keys, each with the name of the provider that has read it as a model.
#[inline]
pub fn acquire_scopes<'k>(
    limiter: &Limiter,
    keys: impl Iterator<Item = (&'k str, Option<&'static str>)>,
    cost: &Cost,
) -> Acquire {
    limiter.acquire_scopes(keys, cost)
}

/// Marks a request that a provider answers: its answers test the limits of the first key.
#[inline]
pub fn answered_by_provider(acquire: Acquire, is_answered: bool) -> Acquire {
    acquire.answered_by_provider(is_answered)
}

/// Puts a request that the provider refused before all new requests.
#[inline]
pub fn after_refusal(acquire: Acquire) -> Acquire {
    acquire.after_refusal()
}

/// Sets the arrival number of a request that takes the turn of its service's gate.
#[inline]
pub fn with_arrival(acquire: Acquire, arrival: Option<u64>) -> Acquire {
    acquire.with_arrival(arrival)
}

/// Sets the priority and the flow that a layer or an HTTP request has, and whether refusals carry the keys' levels.
#[inline]
pub fn of_layer(acquire: Acquire, own: Option<OwnStanding>, with_levels: bool) -> Acquire {
    acquire.of_layer(own, with_levels)
}

/// The same as [`Acquire::arrive`], for a new request that the fast path has just not admitted.
#[inline]
pub fn arrive_after_try(acquire: &mut Acquire) -> Option<Result<Permit, AcquireError>> {
    acquire.arrive_after_try()
}

/// Returns a future that is ready at a time, or as soon as the limiter is closed.
pub fn sleep_unless_closed(limiter: &Limiter, time: Timestamp) -> Sleep {
    limiter.sleep_unless_closed(time)
}

/// Returns the limits of a key with their current levels.
pub fn limit_levels(limiter: &Limiter, key: &str) -> LimitLevels {
    limiter.limit_levels(key)
}

/// Returns the levels that a refusal carries for a server's response.
pub fn levels(refused: &Refused) -> Option<&[LimitLevels]> {
    refused.levels()
}

/// Reports that the provider has accepted the request, which tests the limits of the first key. It counts even if the test
/// began after the grant.
#[inline]
pub fn accepted(permit: &Permit) {
    permit.accepted();
}

/// Reports that the request was sent and its call dropped before an answer, which shows nothing.
pub fn unanswered(permit: &Permit) {
    permit.unanswered();
}

/// Returns the expected output of a request of this key, and whether a part of its prompt may be read from a cache, as one
/// of the last 64 was.
pub fn expected_usage(feedback: Feedback<'_>, key: &str) -> (Option<u64>, bool) {
    feedback.expected_usage(key)
}

/// Records the number of output tokens of a request of this key, and whether a part of its prompt was read from a cache.
pub fn usage_seen(feedback: Feedback<'_>, key: &str, output: u64, reads_cache: bool) {
    feedback.usage_seen(key, output, reads_cache);
}

/// Stops requests of a key for `delay`, or until the reason of its refusal is known. Returns `None` if the key already cools
/// down for that long, or is refused as unknown.
pub fn hold(feedback: Feedback<'_>, key: &str, delay: Duration) -> Option<Hold> {
    feedback.hold(key, delay)
}

/// Ends a hold, for a refusal that waiting doesn't resolve.
pub fn release_hold(feedback: Feedback<'_>, key: &str, hold: Hold) {
    feedback.release_hold(key, hold);
}

/// Reports a refusal as [`Feedback::rate_limited`] does, in place of a hold: no request is sent in between. The refusal of a
/// request of a known cost tests the limits.
pub fn refused(
    feedback: Feedback<'_>,
    hold: Option<Hold>,
    key: &str,
    refused: &RateLimited,
    cost: Option<&Cost>,
) {
    feedback.refused(hold, key, refused, cost);
}

/// Returns whether a request has to wait alone before it is sent again, since its refusal holds back no other one.
pub fn waits_alone(feedback: Feedback<'_>, key: &str, request: u64) -> bool {
    feedback.waits_alone(key, request)
}

/// Returns a number for a request that may be sent several times.
pub fn request_number(feedback: Feedback<'_>) -> u64 {
    feedback.request_number()
}

/// Creates a report of a failure that isn't a refusal.
pub fn failure(fault: Fault, status: Option<u16>, text: impl Into<Box<str>>) -> RateLimited {
    RateLimited::of_failure(fault, status, text)
}

/// Sets the number of the refused request, whether an earlier attempt has failed, and the time at which it was sent.
pub fn of_request(
    refused: RateLimited,
    number: u64,
    has_failed: bool,
    sent_at: Option<Timestamp>,
) -> RateLimited {
    refused.of_request(number, has_failed, sent_at)
}

/// Returns a name of a model as a quota names it exactly, else a spelling that a pattern covers; `None` if that is the name
/// itself.
pub fn spelling_of(
    quotas: Quotas<'_>,
    model: &str,
    names: impl FnOnce() -> Vec<String>,
    spellings: impl FnOnce() -> Vec<String>,
) -> Option<Key> {
    quotas.spelling_of(model, names, spellings)
}

/// Returns whether an amount of money was set, even 0.
#[inline]
pub fn states_usd(cost: &Cost) -> bool {
    cost.states_usd()
}

/// Sets the amount of a custom dimension that needs no limit that counts it. An amount that the caller set still needs one.
pub fn set_optional(cost: &mut Cost, name: &str, amount: u64) {
    cost.set_optional(name, amount);
}

/// Returns a key of this text, which isn't copied.
#[inline]
pub const fn key_of(text: CompactString) -> Key {
    Key::from_text(text)
}

/// Returns the calendar of periods of UTC.
pub fn utc(period: Period) -> Calendar {
    Calendar::utc(period)
}

/// Returns the index of a dimension in a [`Cost`]; above all others for custom dimensions.
#[inline]
pub const fn column(dimension: &Dimension) -> usize {
    dimension.column()
}

/// Returns the parameters of a rule's algorithm.
pub fn parameters(rule: &Rule) -> Parameters<'_> {
    rule.parameters()
}

/// Returns whether the limit of a rule never resets.
pub fn is_total(rule: &Rule) -> bool {
    rule.is_total()
}

/// Returns whether the window of a rule starts at its first use.
pub fn is_anchored(rule: &Rule) -> bool {
    rule.is_anchored()
}

/// Returns the time for which an amount occupies a limit, in nanoseconds: amount / rate. It is 0 if the limit has no rate.
pub fn service_time(rule: &Rule, amount: u64) -> u64 {
    rule.service_time(amount)
}

/// Returns the amount that must be available to admit a request of this amount.
pub fn needed(rule: &Rule, amount: u64) -> u64 {
    rule.needed(amount)
}

/// Returns the order of a reservation among those that wait.
#[inline]
pub const fn precedence(reservation: &Reservation) -> &Precedence {
    &reservation.precedence
}

/// Returns whether the request counts to the key's limits on spending alone.
#[inline]
pub const fn is_spending_key(reserved: &Reserved) -> bool {
    reserved.is_spending_key
}

/// Returns the value that the backend keeps until the reservation ends; initially 0.
#[inline]
pub const fn note(reserved: &Reserved) -> &AtomicU64 {
    &reserved.note
}

/// Returns the number and the mean duration, in seconds, of the calls in each range since an earlier state. Ranges without
/// calls are left out.
pub fn means_since(latency: &Latency, earlier: &Latency) -> impl Iterator<Item = (u64, f64)> {
    latency.means_since(earlier)
}

/// Returns the value of two components together; the first if the values are of different kinds.
pub fn measured_together(value: Measured, other: Measured) -> Measured {
    value.with(other)
}

/// Returns whether a measured limit is recent enough to start another run with.
pub fn is_limit_current(limit: &LearnedLimit, now: Timestamp) -> bool {
    limit.is_current(now)
}

/// Returns whether the window of a utilization hasn't started again. One without a known reset counts for a day.
pub fn is_utilization_current(utilization: &Utilization, now: Timestamp) -> bool {
    utilization.is_current(now)
}

/// Returns the time this many nanoseconds later, at most [`Timestamp::MAX`].
#[inline]
pub const fn add_nanos(time: Timestamp, nanos: u64) -> Timestamp {
    time.add_nanos(nanos)
}

/// Returns the time this many nanoseconds earlier, at least [`Timestamp::UNIX_EPOCH`].
#[inline]
pub const fn sub_nanos(time: Timestamp, nanos: u64) -> Timestamp {
    time.sub_nanos(nanos)
}

/// Returns the nanoseconds since an earlier time; 0 if it is later.
#[inline]
pub const fn nanos_since(time: Timestamp, earlier: Timestamp) -> u64 {
    time.nanos_since(earlier)
}
