//! Reads recorded traffic from the folder `$PACELINE_CORPUS`.

use paceline_limiter::quota::Usage;
use paceline_provider::{Profile, Scanned, Scanner};
pub(crate) use paceline_testing::corpus::{Recording, all, entries};

/// Readings of a recorded exchange and the expected values.
pub(crate) trait Recorded {
    fn usage(&self) -> Option<Option<Usage>>;
    fn scan(&self, profile: Profile, piece: impl FnMut() -> usize) -> Scanned;
    /// Returns the profile for the URL.
    fn profile(&self) -> Profile;
    /// Reads the response with its headers.
    fn scan_as_sent(&self) -> Scanned;
}

impl Recorded for Recording {
    fn usage(&self) -> Option<Option<Usage>> {
        let usage = self.expected.get("usage")?;
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        Some((!usage.is_null()).then(|| Usage {
            input: count("input"),
            output: count("output"),
            cache_read: count("cache_read"),
            cache_write: count("cache_write"),
            long_cache_write: 0,
        }))
    }

    fn scan(&self, profile: Profile, piece: impl FnMut() -> usize) -> Scanned {
        scan(profile, &self.content_type, &self.response, piece)
    }

    fn profile(&self) -> Profile {
        Profile::find(&self.url)
    }

    fn scan_as_sent(&self) -> Scanned {
        let mut scanner = Scanner::of(self.profile(), &self.headers);
        scanner.feed(&self.response);
        scanner.finish()
    }
}

/// Feeds a body in chunks of these sizes.
pub(crate) fn scan(
    profile: Profile,
    content_type: &str,
    mut body: &[u8],
    mut piece: impl FnMut() -> usize,
) -> Scanned {
    let mut scanner = Scanner::new(profile, Some(content_type));
    while !body.is_empty() {
        let (head, tail) = body.split_at(piece().min(body.len()));
        scanner.feed(head);
        body = tail;
    }
    scanner.finish()
}
