//! Providers in virtual time that enforce their limits. Times are seconds since the start of a run.

use std::collections::VecDeque;

/// The factor of a limit over time: two values in turns of equal length, for a change or for others who come
/// and go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) seconds: f64,
    pub(super) factors: [f64; 2],
}

impl Load {
    pub(super) const NONE: Self = Self { seconds: f64::INFINITY, factors: [1.0; 2] };

    fn at(&self, time: f64) -> f64 {
        self.factors[(time / self.seconds) as usize % 2]
    }
}

/// A limit that a provider enforces.
#[derive(Debug, Clone)]
pub(super) enum ProviderLimit {
    Bucket(Bucket),
    Window(Window),
}

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    rate: f64,
    capacity: f64,
    load: Load,
    level: f64,
    at: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowKind {
    Sliding,
    FromFirstUse,
    Aligned,
}

#[derive(Debug, Clone)]
pub(super) struct Window {
    amount: f64,
    kind: WindowKind,
    length: f64,
    log: VecDeque<(f64, f64)>,
    used: f64,
    start: Option<f64>,
}

impl ProviderLimit {
    /// Returns the seconds until an amount fits, 0 if it fits now.
    pub(super) fn wait(&mut self, at: f64, amount: f64) -> f64 {
        match self {
            Self::Bucket(bucket) => bucket.wait(at, amount),
            Self::Window(window) => window.wait(at, amount),
        }
    }

    pub(super) fn take(&mut self, at: f64, amount: f64) {
        match self {
            Self::Bucket(bucket) => bucket.level -= amount,
            Self::Window(window) => {
                window.used += amount;
                window.log.push_back((at, amount));
            }
        }
    }

    /// Returns the amount that the limit allows per second in the long run before a time.
    pub(super) fn mean_rate(&self, until: f64) -> f64 {
        match self {
            Self::Bucket(bucket) => (self.allows(until) - bucket.capacity) / until,
            Self::Window(window) => window.amount / window.length,
        }
    }

    /// Returns the amount that the limit allows until a time.
    pub(super) fn allows(&self, until: f64) -> f64 {
        match self {
            Self::Bucket(bucket) => {
                let part = |i: u32| bucket.load.at(until * (f64::from(i) + 0.5) / 2000.0);
                bucket.capacity + bucket.rate * (0..2000).map(part).sum::<f64>() * until / 2000.0
            }
            Self::Window(window) => {
                let whole = (until / window.length).ceil();
                let cut = f64::from(u8::from(window.kind == WindowKind::Aligned));
                window.amount * (whole + cut)
            }
        }
    }
}

/// Returns a bucket of a rate per second and a burst in seconds of it, of at least `least`.
pub(super) fn bucket(rate: f64, burst: f64, least: f64) -> ProviderLimit {
    loaded(rate, burst, least, Load::NONE)
}

pub(super) fn loaded(rate: f64, burst: f64, least: f64, load: Load) -> ProviderLimit {
    let capacity = (rate * burst).max(least).max(1.0);
    ProviderLimit::Bucket(Bucket { rate, capacity, load, level: capacity, at: 0.0 })
}

/// Returns a window of a minute.
pub(super) fn window(amount: f64, kind: WindowKind) -> ProviderLimit {
    let start = (kind == WindowKind::Aligned).then_some(23.0 - 60.0);
    let log = VecDeque::new();
    ProviderLimit::Window(Window { amount, kind, length: 60.0, log, used: 0.0, start })
}

impl Bucket {
    fn wait(&mut self, at: f64, amount: f64) -> f64 {
        let load = self.load.at(at);
        let rate = self.rate * load;
        let capacity = self.capacity * load.max(1.0);
        self.level = capacity.min(self.level + (at - self.at).max(0.0) * rate);
        self.at = self.at.max(at);
        ((amount - self.level) / rate).max(0.0)
    }
}

impl Window {
    fn wait(&mut self, at: f64, amount: f64) -> f64 {
        if self.kind == WindowKind::Sliding {
            while let Some(&(sent, taken)) =
                self.log.front().filter(|(sent, _)| *sent <= at - self.length)
            {
                let _ = sent;
                self.used -= taken;
                self.log.pop_front();
            }
        }
        let start = if self.kind == WindowKind::Sliding {
            self.log.front().map_or(at, |(sent, _)| *sent)
        } else {
            let start = self.start.get_or_insert(at);
            if at >= *start + self.length {
                *start += self.length * ((at - *start) / self.length).floor();
                self.used = 0.0;
            }
            *start
        };
        if self.used + amount <= self.amount { 0.0 } else { start + self.length - at }
    }
}
