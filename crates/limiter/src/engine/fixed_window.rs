use super::Wait;
use super::packed::Packed;
use crate::timestamp::Timestamp;

/// A window that starts at the first use, and again at the first use after its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) limit: u64,
    pub(super) window: u64,
    /// The maximum delay between the start of this window and that of the provider. No request is admitted
    /// within it before and after the end of the window.
    pub(super) margin: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    start: Packed,
    used: Packed,
    /// The maximum delay of the provider's window after `start`, if the request that started this window was
    /// never sent; in steps of [`LATE_STEP`] nanoseconds, rounded up.
    late: u32,
    started: bool,
    /// `true` if the window before this one ended less than a window before `start`.
    follows: bool,
}

impl State {
    /// Creates a window with earlier usage, oldest first. Each part of it may have started the provider's window.
    pub(super) fn with_usage(spec: &Spec, taken: &[(Timestamp, u64)], now: Timestamp) -> Self {
        let length = spec.window.saturating_add(spec.margin);
        let past = taken.partition_point(|(at, _)| at.add_nanos(length) <= now);
        let counted = &taken[past..];
        let ([(start, _), ..], [.., (last, _)]) = (counted, counted) else {
            return Self::default();
        };
        let used = counted.iter().fold(0, |used: u64, (_, amount)| used.saturating_add(*amount));
        let late = steps(last.nanos_since(*start));
        Self { start: (*start).into(), used: used.into(), late, started: true, follows: past > 0 }
    }

    /// Returns the usage, each part at the latest time at which it can have been used.
    pub(super) fn usage(&self, spec: &Spec, now: Timestamp) -> [(Timestamp, u64); 2] {
        let before = if self.follows { spec.limit } else { 0 };
        [(self.start().min(now), before), (self.end(spec).min(now), self.used.value())]
    }

    pub(super) fn check(&self, spec: &Spec, cost: u64, now: Timestamp) -> Result<(), Wait> {
        if cost > spec.limit {
            return Err(Wait::Never);
        }
        if self.is_over(spec, now) {
            return Ok(());
        }
        let closes = spec.window.saturating_sub(spec.margin);
        let open = now.nanos_since(self.start.time()) < closes || now <= self.start.time();
        if open && self.used.value().checked_add(cost).is_some_and(|sum| sum <= spec.limit) {
            return Ok(());
        }
        Err(Wait::At(self.end(spec)))
    }

    pub(super) fn take(&mut self, spec: &Spec, amount: u64, now: Timestamp) {
        if self.is_over(spec, now) {
            let is_near = now < self.end(spec).add_nanos(spec.window);
            let follows = (self.started || self.follows) && is_near;
            *self =
                Self { start: now.into(), used: amount.into(), late: 0, started: true, follows };
        } else {
            self.used = (self.used.value().saturating_add(amount)).into();
        }
    }

    /// Takes an amount that another bucket of the same limit took at `at`. The window then starts at `at` if
    /// that is earlier. Amounts of an earlier window are ignored.
    pub(super) fn join(&mut self, spec: &Spec, amount: u64, at: Timestamp) {
        let start = self.start.time();
        if self.started && at < start {
            if start.nanos_since(at) >= spec.window {
                return;
            }
            self.start = at.into();
        }
        self.take(spec, amount, at);
    }

    /// Corrects the amount of a request of this window. A request of an earlier window is ignored.
    pub(super) fn correct(&mut self, sent: Timestamp, taken: u64, actual: u64) {
        if self.started && sent >= self.start.time() {
            self.used = (self.used.value().saturating_sub(taken).saturating_add(actual)).into();
        }
    }

    /// Refunds the amount of a request that was never sent. If the request may have started the window, the
    /// provider's window starts with a later request, at the latest now. It is unknown which one, so no
    /// request is admitted between the earliest and the latest end of that window.
    pub(super) fn refund(&mut self, spec: &Spec, amount: u64, sent: Timestamp, now: Timestamp) {
        self.correct(sent, amount, 0);
        let first = self.start.time()..=self.start.time().add_nanos(self.late());
        if self.is_over(spec, now) || !first.contains(&sent) {
            return;
        }
        self.started = self.used.value() > 0;
        let late = now.nanos_since(self.start.time()).min(spec.window);
        self.late = steps(late).max(self.late);
    }

    pub(super) fn used(&self, spec: &Spec, now: Timestamp) -> u64 {
        if self.is_over(spec, now) { 0 } else { self.used.value() }
    }

    /// Returns the earliest start of the next window.
    fn end(&self, spec: &Spec) -> Timestamp {
        let start = self.start.time().add_nanos(self.late());
        start.add_nanos(spec.window).add_nanos(spec.margin)
    }

    /// Returns the time at which the usage is zero.
    pub(super) fn fresh_at(&self, spec: &Spec) -> Timestamp {
        if self.started { self.end(spec) } else { Timestamp::UNIX_EPOCH }
    }

    pub(super) fn start(&self) -> Timestamp {
        self.start.time()
    }

    pub(super) fn rebase(&mut self, back: u64) {
        self.start = self.start.time().sub_nanos(back).into();
    }

    fn is_over(&self, spec: &Spec, now: Timestamp) -> bool {
        !self.started || now >= self.end(spec)
    }

    fn late(&self) -> u64 {
        u64::from(self.late) * LATE_STEP
    }
}

/// Returns a delay in steps, rounded up.
fn steps(late: u64) -> u32 {
    u32::try_from(late.div_ceil(LATE_STEP)).unwrap_or(u32::MAX)
}

/// 8.4 ms: the longest window has less than 2^32 of them.
const LATE_STEP: u64 = 1 << 23;
