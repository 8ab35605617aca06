//! Plain models of a provider, independent of the engine, as references of the property tests.

/// A model of a limit that counts every charge, and reports whether a charge would fit.
pub(super) trait Reference {
    fn take(&mut self, amount: u64, now: u64);
    fn used(&mut self, now: u64) -> u64;
    fn fits(&mut self, amount: u64, now: u64) -> bool;
}

/// A token bucket. A token has `window` units, and a nanosecond refills `amount` of them, so the level
/// is an exact rational number.
pub(super) struct TokenBucket {
    amount: i128,
    window: i128,
    full: i128,
    level: i128,
    at: u64,
}

impl TokenBucket {
    pub(super) fn new(amount: u64, window: u64, burst: u64) -> Self {
        let full = i128::from(burst) * i128::from(window);
        Self { amount: amount.into(), window: window.into(), full, level: full, at: 0 }
    }

    fn step(&mut self, now: u64) {
        let passed = i128::from(now) - i128::from(self.at);
        assert!(passed >= 0, "calls are in order of time");
        self.level = (self.level + passed * self.amount).min(self.full);
        self.at = now;
    }
}

impl Reference for TokenBucket {
    fn take(&mut self, amount: u64, now: u64) {
        self.step(now);
        self.level -= i128::from(amount) * self.window;
    }

    fn used(&mut self, now: u64) -> u64 {
        self.step(now);
        let missing = self.full - self.level;
        u64::try_from((missing + self.window - 1) / self.window).unwrap()
    }

    fn fits(&mut self, amount: u64, now: u64) -> bool {
        self.step(now);
        i128::from(amount) * self.window <= self.level
    }
}

/// A log of amounts with times. An entry at `s` counts while `now < s + window`.
pub(super) struct SlidingWindow {
    limit: u64,
    window: u64,
    log: Vec<(u64, u64)>,
}

impl SlidingWindow {
    pub(super) fn new(limit: u64, window: u64) -> Self {
        Self { limit, window, log: Vec::new() }
    }
}

impl Reference for SlidingWindow {
    fn take(&mut self, amount: u64, now: u64) {
        self.log.push((now, amount));
    }

    fn used(&mut self, now: u64) -> u64 {
        self.log.iter().filter(|(at, _)| now < at + self.window).map(|(_, amount)| amount).sum()
    }

    fn fits(&mut self, amount: u64, now: u64) -> bool {
        self.used(now) + amount <= self.limit
    }
}

/// One count per window, identified by its number since the epoch or by the local date in a time
/// zone.
pub(super) struct NamedWindow<N> {
    limit: u64,
    name: N,
    current: Option<(i64, i64)>,
    sum: u64,
}

impl<N: Fn(u64) -> (i64, i64)> NamedWindow<N> {
    pub(super) fn new(limit: u64, name: N) -> Self {
        Self { limit, name, current: None, sum: 0 }
    }
}

impl<N: Fn(u64) -> (i64, i64)> Reference for NamedWindow<N> {
    fn take(&mut self, amount: u64, now: u64) {
        self.sum = self.used(now) + amount;
    }

    fn used(&mut self, now: u64) -> u64 {
        let name = Some((self.name)(now));
        if self.current != name {
            (self.current, self.sum) = (name, 0);
        }
        self.sum
    }

    fn fits(&mut self, amount: u64, now: u64) -> bool {
        self.used(now) + amount <= self.limit
    }
}

/// A window that starts with the first charge, and again with the first charge after its end.
pub(super) struct FixedWindow {
    limit: u64,
    window: u64,
    start: Option<u64>,
    sum: u64,
}

impl FixedWindow {
    pub(super) fn new(limit: u64, window: u64) -> Self {
        Self { limit, window, start: None, sum: 0 }
    }
}

impl Reference for FixedWindow {
    fn take(&mut self, amount: u64, now: u64) {
        self.used(now);
        self.start.get_or_insert(now);
        self.sum += amount;
    }

    fn used(&mut self, now: u64) -> u64 {
        if self.start.is_some_and(|start| now >= start + self.window) {
            (self.start, self.sum) = (None, 0);
        }
        self.sum
    }

    fn fits(&mut self, amount: u64, now: u64) -> bool {
        self.used(now) + amount <= self.limit
    }
}
