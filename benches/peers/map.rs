use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A hand-written limiter: three buckets per key, as floats, in a map behind a lock.
pub(crate) struct Map {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<String, [(f64, Instant); 3]>>,
}

impl Map {
    pub(crate) fn new(burst: f64) -> Self {
        Self { per_second: burst / 60.0, burst, buckets: Mutex::new(HashMap::new()) }
    }

    pub(crate) fn take(&self, key: &str, tokens: f64) -> Result<(), Duration> {
        let now = Instant::now();
        let mut all = self.buckets.lock().expect("not poisoned");
        let fresh = || [(self.burst, now); 3];
        let buckets = match all.get_mut(key) {
            Some(buckets) => buckets,
            None => all.entry(key.to_owned()).or_insert_with(fresh),
        };
        let costs = [1.0, tokens, 1.0];
        let mut longest = 0.0_f64;
        for ((level, at), cost) in buckets.iter_mut().zip(costs) {
            let refilled = now.duration_since(*at).as_secs_f64() * self.per_second;
            *level = (*level + refilled).min(self.burst);
            *at = now;
            longest = longest.max((cost - *level) / self.per_second);
        }
        if longest > 0.0 {
            return Err(Duration::from_secs_f64(longest));
        }
        buckets.iter_mut().zip(costs).for_each(|((level, _), cost)| *level -= cost);
        Ok(())
    }

    /// Returns unused tokens. Reads the clock and takes the lock a second time.
    pub(crate) fn settle(&self, key: &str, unused: f64) {
        let now = Instant::now();
        let mut all = self.buckets.lock().expect("not poisoned");
        if let Some([_, (level, at), _]) = all.get_mut(key) {
            let refilled = now.duration_since(*at).as_secs_f64() * self.per_second;
            *level = (*level + refilled + unused).min(self.burst);
            *at = now;
        }
    }
}
