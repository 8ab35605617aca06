use std::sync::atomic::{AtomicU64, Ordering};

use crate::route::Route;

/// The number of requests by route and status class. The number of counters is constant.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts([[AtomicU64; CLASSES.len()]; Route::COUNT]);

impl RequestCounts {
    #[inline]
    pub(crate) fn record(&self, route: Route, status: u16) {
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        self.0[route.index()][class].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the path of the route, the status class and the count of all counters.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        Route::all().zip(&self.0).flat_map(|(route, counts)| {
            let counts = CLASSES.iter().zip(counts);
            counts.map(move |(class, count)| (route.path(), *class, count.load(Ordering::Relaxed)))
        })
    }
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_and_status_class() {
        let requests = RequestCounts::default();
        for (path, status) in
            [("/rate/a/b", 200), ("/rate/v1", 429), ("/v1/stats", 599), ("/", 200)]
        {
            requests.record(Route::of(path), status);
        }
        requests.record(Route::of("/openai/v1/chat"), 999);
        let counted: Vec<_> = requests.all().filter(|(.., count)| *count > 0).collect();
        let expected = [
            ("/rate/{key}", "4xx", 1),
            ("/rate/{key}/{id}", "2xx", 1),
            ("/v1/stats", "5xx", 1),
            ("/", "2xx", 1),
            ("/{upstream}/...", "5xx", 1),
        ];
        assert_eq!(counted, expected);
    }
}
