//! The remaining time of a job at its limits.

use std::collections::HashMap;
use std::time::Duration;

/// The send times of a job's requests at its limits, by model, from the start of the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Forecast {
    models: HashMap<String, Sends>,
}

/// The send times of a model: of every request, or of every second, fourth, ... if there are many.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sends {
    times: Vec<Duration>,
    every: usize,
    count: usize,
    last: Duration,
}

impl Forecast {
    /// Adds the next request of a model.
    pub(super) fn add(&mut self, model: &str, at: Duration) {
        match self.models.get_mut(model) {
            Some(sends) => sends.add(at),
            None => drop(self.models.insert(model.to_owned(), Sends::starting(at))),
        }
    }

    /// Returns the time until the last request is sent, given the number of finished requests of
    /// each model.
    pub(super) fn left(&self, finished: impl Fn(&str) -> usize) -> Duration {
        let left = self.models.iter().map(|(model, sends)| sends.left(finished(model)));
        left.max().unwrap_or_default()
    }
}

impl Sends {
    fn starting(at: Duration) -> Self {
        Self { times: vec![at], every: 1, count: 1, last: at }
    }

    fn add(&mut self, at: Duration) {
        if self.count.is_multiple_of(self.every) {
            self.times.push(at);
        }
        (self.count, self.last) = (self.count + 1, at);
        if self.times.len() > MOST {
            let mut index = 0;
            self.times.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
    }

    fn left(&self, finished: usize) -> Duration {
        let Some(last_finished) = finished.checked_sub(1) else { return self.last };
        if finished >= self.count {
            return Duration::ZERO;
        }
        let at = self.times.get(last_finished / self.every).unwrap_or(&self.last);
        self.last.saturating_sub(*at)
    }
}

/// The maximum number of times kept per model.
const MOST: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_equals_slowest_model() {
        let mut forecast = Forecast::default();
        for second in 0..10 {
            forecast.add("fast", Duration::from_secs(second));
            forecast.add("slow", Duration::from_secs(10 * second));
        }
        let left = |fast, slow| forecast.left(|model| if model == "fast" { fast } else { slow });
        assert_eq!(left(0, 0), Duration::from_secs(90));
        assert_eq!(left(1, 5), Duration::from_secs(50));
        assert_eq!(left(1, 10), Duration::from_secs(9));
        assert_eq!(left(11, 10), Duration::ZERO);
        assert_eq!(Forecast::default().left(|_| 0), Duration::ZERO);
    }

    #[test]
    fn long_jobs_keep_few_times_with_small_error() {
        let mut forecast = Forecast::default();
        for second in 0..100_000 {
            forecast.add("m", Duration::from_secs(second));
        }
        assert!(forecast.models["m"].times.len() <= MOST);
        assert_eq!(forecast.left(|_| 0), Duration::from_secs(99_999));
        for finished in [1, 777, 50_000, 99_999] {
            let left = forecast.left(|_| finished).as_secs();
            let exact = 100_000 - finished as u64;
            assert!((exact..exact + 32).contains(&left), "{finished}: {left}");
        }
    }
}
