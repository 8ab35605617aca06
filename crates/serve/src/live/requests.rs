use std::sync::atomic::{AtomicU64, Ordering};

use crate::route::Route;

/// Requests that were answered, by route and by class of status: always as many figures, whatever is
/// asked for.
#[derive(Debug, Default)]
pub(crate) struct Requests([[AtomicU64; CLASSES.len()]; Route::ALL]);

impl Requests {
    #[inline]
    pub(crate) fn answered(&self, route: Route, status: u16) {
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        self.0[route.number()][class].fetch_add(1, Ordering::Relaxed);
    }

    /// The route, the class of status and the number of all that there were.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        Route::all().zip(&self.0).flat_map(|(route, counts)| {
            let counts = CLASSES.iter().zip(counts);
            counts.map(move |(class, count)| {
                (route.template(), *class, count.load(Ordering::Relaxed))
            })
        })
    }
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_for_their_route_and_class() {
        let requests = Requests::default();
        for (path, status) in
            [("/rate/a/b", 200), ("/rate/v1", 429), ("/v1/stats", 599), ("/", 200)]
        {
            requests.answered(Route::of(path), status);
        }
        requests.answered(Route::of("/openai/v1/chat"), 999);
        let told: Vec<_> = requests.all().filter(|(.., count)| *count > 0).collect();
        let expected = [
            ("/rate/{key}", "4xx", 1),
            ("/rate/{key}/{id}", "2xx", 1),
            ("/v1/stats", "5xx", 1),
            ("/", "2xx", 1),
            ("/{upstream}/...", "5xx", 1),
        ];
        assert_eq!(told, expected);
    }
}
