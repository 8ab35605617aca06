//! What the layer, the stores and the shared limits of paceline need of the limiter beyond the interface of its users.
//! Unstable: it may change in any version.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use compact_str::CompactString;

mod kept_state;
mod saved_parts;

pub use kept_state::{
    apply_changes, attach, boot, check_quota, collect_changes, configure, count_as_model,
    is_limit_current, is_utilization_current, measurements, quotas_version, restore_quotas,
    return_ticket, sample_denied, track,
};
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
    Acquire, AcquireError, Builder, Decision, Event, Feedback, Gate, Latency, Limiter, Measured,
    Permit, Quotas, RateLimited, Refused, Reservation, Reserved, Sleep,
};
use crate::quota::{Calendar, Cost, Dimension, Key, Period};
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
