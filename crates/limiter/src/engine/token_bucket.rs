use alloc::vec::Vec;

use super::Wait;
use super::packed::Packed;
use crate::quota::{Margin, Window};
use crate::timestamp::Timestamp;

/// The constants of a token bucket in *units*: a token has `per_token` units, and `per_nano` units refill
/// per nanosecond, so every rate is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    burst: u64,
    per_nano: u32,
    per_token: u64,
    /// The units of a full bucket of the provider, and the part of them that is left unused.
    full: u128,
    margin: u128,
    /// The usable units, and the same saturated to 64 bits.
    usable: u128,
    usable_64: u64,
}

impl Spec {
    pub(super) fn new(amount: u64, window: Window, burst: u64, margin: Margin) -> Self {
        let (per_nano, per_token) = rate(amount, window.as_nanos());
        let full = wide(burst, per_token);
        let share = full / 100 * u128::from(margin.percent());
        let margin = share.max(wide(margin.lag_nanos(), u64::from(per_nano)));
        let usable = full.saturating_sub(margin);
        // One less than the maximum, so that a saturated product never fits.
        let usable_64 = narrow_wide(usable).min(u64::MAX - 1);
        Self { burst, per_nano, per_token, full, margin, usable, usable_64 }
    }

    pub(super) fn burst(&self) -> u64 {
        self.burst
    }

    /// Returns the units per nanosecond, the units of a token, and the units that are left unused.
    pub(super) fn rate(&self) -> (u32, u64, u128) {
        (self.per_nano, self.per_token, self.margin)
    }

    /// Returns half of the margin in tokens.
    pub(super) fn slack(&self) -> u64 {
        narrow_wide((self.margin / 2).div_ceil(u128::from(self.per_token)))
    }

    fn units(&self, tokens: u64) -> u128 {
        wide(tokens, self.per_token)
    }

    fn refill(&self, nanos: u64) -> u128 {
        wide(nanos, u64::from(self.per_nano))
    }
}

/// The time at which the bucket is full again if nothing more is taken. Refilling therefore needs no update,
/// and a bucket in debt has a later time than an empty bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    full_at: Packed,
    held: Packed,
    /// The fraction of a nanosecond in addition to `full_at`, in 1 / `per_nano`.
    fraction: u32,
}

impl State {
    /// Checks in 64-bit arithmetic that a cost fits within the margin. `false` means unknown.
    #[inline]
    pub(super) fn fits(&self, spec: &Spec, cost: u64, now: Timestamp) -> bool {
        let wanted = self.held.value().saturating_add(cost);
        let Some(early) = spec.usable_64.checked_sub(wanted.saturating_mul(spec.per_token)) else {
            return false;
        };
        let full_at = self.full_at.time();
        if full_at < now {
            return true;
        }
        let missing = full_at.nanos_since(now).saturating_mul(u64::from(spec.per_nano));
        missing.saturating_add(u64::from(self.fraction)) <= early
    }

    /// Checks that a cost fits. A cost between the usable and the full burst is admitted once the bucket has
    /// been full for as long as the missing part takes to refill. It then leaves a debt of that part, which
    /// restores the margin.
    pub(super) fn check(&self, spec: &Spec, cost: u64, now: Timestamp) -> Result<(), Wait> {
        if self.fits(spec, cost, now) {
            return Ok(());
        }
        let (full_at, held) = (self.full_at.time(), self.held.value());
        if cost > spec.burst {
            return Err(Wait::Never);
        }
        let due = spec.units(cost).saturating_add(spec.margin).saturating_add(spec.units(held));
        if held > 0 && due > spec.full {
            return Err(Wait::Unknown);
        }
        let due = due.saturating_add(u128::from(self.fraction));
        let time = if spec.full >= due {
            let early = divide(spec.full - due, spec.per_nano).0;
            full_at.sub_nanos(early)
        } else {
            let (nanos, rest) = divide(due - spec.full, spec.per_nano);
            full_at.add_nanos(nanos).add_nanos(u64::from(rest > 0))
        };
        if time <= now { Ok(()) } else { Err(Wait::At(time)) }
    }

    #[inline]
    pub(super) fn take(&mut self, spec: &Spec, amount: u64, now: Timestamp) {
        if self.full_at.time() < now {
            self.full_at = now.into();
            self.fraction = 0;
        }
        let (nanos, rest) = divide(spec.units(amount), spec.per_nano);
        let fraction = u64::from(self.fraction) + rest;
        let carry = u64::from(fraction >= u64::from(spec.per_nano));
        self.full_at = self.full_at.time().add_nanos(nanos).add_nanos(carry).into();
        self.fraction = narrow(fraction - carry * u64::from(spec.per_nano));
    }

    /// Refunds an amount that was taken at `sent`, minus the refill since then, which would have been lost if
    /// the bucket had been full.
    pub(super) fn refund(&mut self, spec: &Spec, amount: u64, sent: Timestamp, now: Timestamp) {
        let refilled = spec.refill(now.nanos_since(sent));
        let units = spec.units(amount).saturating_sub(refilled);
        let missing = match self.missing(spec, now) {
            0 => return,
            missing => missing.saturating_sub(units),
        };
        let (nanos, rest) = divide(missing, spec.per_nano);
        self.full_at = now.add_nanos(nanos).into();
        self.fraction = narrow(rest);
    }

    pub(super) fn hold(&mut self, amount: u64) {
        self.held = (self.held.value().saturating_add(amount)).into();
    }

    pub(super) fn drop_hold(&mut self, amount: u64) {
        self.held = (self.held.value().saturating_sub(amount)).into();
    }

    pub(super) fn held(&self) -> u64 {
        self.held.value()
    }

    /// Creates a bucket with the usage of the last window. At most so much is missing that nothing is admitted for a
    /// window.
    pub(super) fn with_usage(
        spec: &Spec,
        window: u64,
        usage: &[(Timestamp, u64)],
        now: Timestamp,
    ) -> Self {
        let mut state = Self::default();
        for &(at, amount) in usage.iter().filter(|(at, _)| at.add_nanos(window) > now) {
            state.take(spec, amount, at.min(now));
        }
        let most = spec.full.saturating_add(spec.refill(window));
        if state.missing(spec, now) > most {
            let (nanos, rest) = divide(most, spec.per_nano);
            (state.full_at, state.fraction) = (now.add_nanos(nanos).into(), narrow(rest));
        }
        state
    }

    /// Returns the usage until `now` at the latest times at which it can have been used: the missing amount now,
    /// and before that the amount that has refilled within two windows.
    pub(super) fn usage(&self, spec: &Spec, window: u64, now: Timestamp) -> Vec<(Timestamp, u64)> {
        let end = self.full_at().min(now);
        let length = end.nanos_since(now.sub_nanos(window.saturating_mul(2)));
        let part = length.div_ceil(USAGE_PARTS);
        let refilled = |nanos| spec.refill(nanos).div_ceil(u128::from(spec.per_token));
        let amount = |index: u64| {
            let from = index.saturating_mul(part).min(length);
            let to = from.saturating_add(part).min(length);
            let amount = refilled(to) - refilled(from);
            (end.sub_nanos(from), narrow_wide(amount))
        };
        let taken = (0..USAGE_PARTS).rev().map(amount);
        taken.chain([(now, self.used(spec, now))]).filter(|(_, amount)| *amount > 0).collect()
    }

    /// Converts the state to another spec. The missing amount stays the same, including fractions of a
    /// token.
    pub(super) fn carry(&self, old: &Spec, new: &Spec, now: Timestamp) -> Self {
        let missing = self.missing(old, now);
        if missing == 0 {
            return self.clone();
        }
        let (from, to) = (u128::from(old.per_token), u128::from(new.per_token));
        let part = (missing % from * to).div_ceil(from);
        let missing = (missing / from).saturating_mul(to).saturating_add(part);
        let (nanos, rest) = divide(missing, new.per_nano);
        let full_at = now.add_nanos(nanos).into();
        Self { full_at, fraction: narrow(rest), ..self.clone() }
    }

    /// Converts the state to a spec with another burst and rate. The available tokens are kept, up to the new
    /// burst.
    pub(super) fn resize(&self, old: &Spec, new: &Spec, now: Timestamp) -> Self {
        let carried = self.carry(old, new, now);
        let missing = carried.missing(new, now).saturating_add(new.full);
        let missing = missing.saturating_sub(new.units(old.burst));
        let full_at = carried.full_at.time().min(now);
        if missing == 0 {
            return Self { full_at: full_at.into(), fraction: 0, ..carried };
        }
        let (nanos, rest) = divide(missing, new.per_nano);
        let full_at = now.add_nanos(nanos).into();
        Self { full_at, fraction: narrow(rest), ..carried }
    }

    /// Returns the tokens that are missing from a full bucket at `now`, rounded up.
    pub(super) fn used(&self, spec: &Spec, now: Timestamp) -> u64 {
        narrow_wide(self.missing(spec, now).div_ceil(u128::from(spec.per_token)))
    }

    /// Returns the largest cost that is admitted at `now`, in tokens, rounded down.
    pub(super) fn available(&self, spec: &Spec, now: Timestamp) -> u64 {
        let gone = self.missing(spec, now).saturating_add(spec.units(self.held.value()));
        narrow_wide(spec.usable.saturating_sub(gone) / u128::from(spec.per_token))
    }

    pub(super) fn full_at(&self) -> Timestamp {
        self.full_at.time().add_nanos(u64::from(self.fraction > 0))
    }

    /// Returns `true` if nothing is missing, and a cost that needs the margin doesn't have to wait.
    pub(super) fn is_fresh(&self, spec: &Spec, now: Timestamp) -> bool {
        let rested = spec.refill(now.nanos_since(self.full_at()));
        let whole = now >= self.full_at() && rested >= spec.margin;
        *self == Self::default() || (self.held() == 0 && whole)
    }

    pub(super) fn rebase(&mut self, back: u64) {
        self.full_at = self.full_at.time().sub_nanos(back).into();
    }

    fn missing(&self, spec: &Spec, now: Timestamp) -> u128 {
        if self.full_at.time() < now {
            return 0;
        }
        spec.refill(self.full_at.time().nanos_since(now)).saturating_add(u128::from(self.fraction))
    }
}

/// The number of parts of usage whose times are unknown.
const USAGE_PARTS: u64 = 64;

/// Returns amount / window in lowest terms. A rate that exceeds 32 bits is rounded down, never up.
fn rate(amount: u64, nanos: u64) -> (u32, u64) {
    let common = gcd(amount, nanos);
    let (mut per_nano, mut per_token) = (amount / common, nanos / common);
    while per_nano > u64::from(u32::MAX) {
        per_nano /= 2;
        per_token = per_token.div_ceil(2);
    }
    (narrow(per_nano), per_token)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn wide(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Returns whole nanoseconds and the remainder. 128-bit division is slow, and rarely needed.
#[inline]
fn divide(units: u128, per_nano: u32) -> (u64, u64) {
    let by = u64::from(per_nano);
    match u64::try_from(units) {
        Ok(units) if by == 1 => (units, 0),
        Ok(units) => (units / by, units % by),
        Err(_) => (narrow_wide(units / u128::from(by)), narrow_wide(units % u128::from(by))),
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn narrow_wide(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
