use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::client_address::ClientAddress;
use paceline::Timestamp;
use paceline::limiter::Limiter;
use paceline_limiter::seam;

/// A cache of the responses to requests with an idempotency key, which are replayed to retries.
///
/// Its size is bounded: each response is kept for a minimum time, and then until its own lifetime ends or
/// the memory is needed. A client can use half of what the others leave: of a client that uses that, the oldest
/// responses are dropped first, and if all of them are younger, its new requests are refused, because it may still retry
/// the others.
pub(super) struct ResponseCache {
    entries: Mutex<Entries>,
    /// The minimum time for which a response is kept.
    min_age: Duration,
    /// The size of the cache in bytes.
    max_bytes: usize,
}

/// A SHA-256.
pub(super) type Digest = [u8; 32];

/// A stored response.
#[derive(Debug, Clone)]
pub(super) struct CachedResponse {
    pub(super) status: StatusCode,
    pub(super) content_type: Option<HeaderValue>,
    pub(super) location: Option<HeaderValue>,
    pub(super) body: Bytes,
}

/// The result of looking up a request.
#[derive(Debug)]
pub(super) enum Lookup {
    /// The key is new: execute the request.
    New(PendingRequest),
    /// The request was executed: replay the response.
    Stored(CachedResponse),
    /// The request is still in progress.
    InProgress,
    /// The key was used with another request.
    KeyReused,
    /// The cache is full.
    Full,
}

/// A request in progress. If it is dropped without storing a response, the next request with its key is
/// executed.
#[derive(Debug)]
pub(super) struct PendingRequest {
    cache: Arc<ResponseCache>,
    scope: Digest,
}

#[derive(Default)]
struct Entries {
    entries: HashMap<Digest, Entry>,
    /// Sorted by expiry time.
    due: BTreeSet<(Timestamp, Digest)>,
    /// Sorted by the time at which they were stored.
    oldest: BTreeSet<(Timestamp, Digest)>,
    oldest_of: BTreeSet<(ClientAddress, Timestamp, Digest)>,
    bytes: usize,
    bytes_of: HashMap<ClientAddress, usize>,
}

struct Entry {
    request: Digest,
    client: ClientAddress,
    /// `None` while the request is in progress.
    response: Option<StoredResponse>,
}

struct StoredResponse {
    response: CachedResponse,
    stored_at: Timestamp,
    until: Timestamp,
}

impl ResponseCache {
    /// Creates a cache that keeps responses for at least `min_age`, in about `max_bytes` bytes.
    pub(super) fn new(min_age: Duration, max_bytes: usize) -> Self {
        Self { entries: Mutex::default(), min_age, max_bytes }
    }

    /// Looks up a request, and marks it as in progress if its key is new. `scope` is a digest of the
    /// token, the operation and the key, `request` one of the content.
    pub(super) fn lookup(
        self: &Arc<Self>,
        scope: Digest,
        request: Digest,
        client: ClientAddress,
        now: Timestamp,
    ) -> Lookup {
        let mut entries = self.entries.lock();
        entries.drop_expired(now, &scope);
        if let Some(entry) = entries.entries.get(&scope) {
            return match &entry.response {
                _ if entry.request != request => Lookup::KeyReused,
                None => Lookup::InProgress,
                Some(stored) => Lookup::Stored(stored.response.clone()),
            };
        }
        if !entries.make_space(self.max_bytes, client, now - self.min_age) {
            return Lookup::Full;
        }
        entries.add_bytes(client, PER_ENTRY);
        entries.entries.insert(scope, Entry { request, client, response: None });
        Lookup::New(PendingRequest { cache: Arc::clone(self), scope })
    }

    /// Drops expired responses once a minute, as long as the cache exists.
    pub(super) async fn run(cache: Weak<Self>, limiter: Limiter, stopping: CancellationToken) {
        loop {
            let next = limiter.now() + MINUTE;
            tokio::select! {
                () = stopping.cancelled() => return,
                () = seam::sleep_until(&limiter, next) => {}
            }
            let Some(cache) = cache.upgrade() else { return };
            while cache.entries.lock().drop_batch(limiter.now()) {
                tokio::task::yield_now().await;
            }
        }
    }
}

impl PendingRequest {
    /// Stores the response for at least the cache's minimum age, and for `ttl` if memory permits.
    pub(super) fn store(self, response: CachedResponse, now: Timestamp, ttl: Duration) {
        let until = now + self.cache.min_age.max(ttl);
        let mut entries = self.cache.entries.lock();
        let entries = &mut *entries;
        if let Some(entry) = entries.entries.get_mut(&self.scope) {
            let (client, bytes) = (entry.client, response.body.len());
            entry.response = Some(StoredResponse { response, stored_at: now, until });
            entries.add_bytes(client, bytes);
            entries.due.insert((until, self.scope));
            entries.oldest.insert((now, self.scope));
            entries.oldest_of.insert((client, now, self.scope));
        }
    }
}

impl Drop for PendingRequest {
    /// Releases the key, unless a response was stored.
    fn drop(&mut self) {
        let mut entries = self.cache.entries.lock();
        let open = |entry: &Entry| entry.response.is_none();
        if entries.entries.get(&self.scope).is_some_and(open) {
            entries.remove(&self.scope);
        }
    }
}

impl Entries {
    /// Drops the response of this scope if it has expired, and a bounded number of other expired ones,
    /// so that the lock is not held for long.
    fn drop_expired(&mut self, now: Timestamp, scope: &Digest) {
        let stored = self.entries.get(scope).and_then(|entry| entry.response.as_ref());
        if stored.is_some_and(|stored| stored.until <= now) {
            self.remove(scope);
        }
        self.drop_batch(now);
    }

    /// Drops a bounded number of expired responses; returns true if there may be more.
    fn drop_batch(&mut self, now: Timestamp) -> bool {
        for _ in 0..BATCH {
            match self.due.first() {
                Some(&(until, scope)) if until <= now => self.remove(&scope),
                _ => return false,
            }
        }
        true
    }

    /// Returns true if another response of a client fits, after dropping the oldest of those stored at or before
    /// `stored_at` as needed, the client's own first.
    fn make_space(
        &mut self,
        max_bytes: usize,
        client: ClientAddress,
        stored_at: Timestamp,
    ) -> bool {
        while self.bytes + self.bytes_of.get(&client).unwrap_or(&0) >= max_bytes {
            let own = self.oldest_of.range((client, Timestamp::UNIX_EPOCH, [0; 32])..).next();
            let own = own.filter(|(of, ..)| *of == client).map(|&(_, at, scope)| (at, scope));
            let mut oldest = own.into_iter().chain(self.oldest.first().copied());
            match oldest.find(|(at, _)| *at <= stored_at) {
                Some((_, scope)) => self.remove(&scope),
                None => return false,
            }
        }
        true
    }

    fn add_bytes(&mut self, client: ClientAddress, bytes: usize) {
        self.bytes += bytes;
        *self.bytes_of.entry(client).or_default() += bytes;
    }

    fn subtract_bytes(&mut self, client: ClientAddress, bytes: usize) {
        self.bytes -= bytes;
        if let Some(held) = self.bytes_of.get_mut(&client) {
            *held -= bytes;
            if *held == 0 {
                self.bytes_of.remove(&client);
            }
        }
    }

    fn remove(&mut self, scope: &Digest) {
        let Some(Entry { client, response, .. }) = self.entries.remove(scope) else { return };
        self.subtract_bytes(client, PER_ENTRY);
        if let Some(StoredResponse { response, stored_at, until }) = response {
            self.subtract_bytes(client, response.body.len());
            self.due.remove(&(until, *scope));
            self.oldest.remove(&(stored_at, *scope));
            self.oldest_of.remove(&(client, stored_at, *scope));
        }
    }
}

impl fmt::Debug for ResponseCache {
    /// Omits the responses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries.lock().entries.len();
        f.debug_struct("ResponseCache").field("entries", &entries).finish_non_exhaustive()
    }
}

/// The approximate size of an entry without its body, in bytes.
const PER_ENTRY: usize = 500;

const MINUTE: Duration = Duration::from_secs(60);

/// The maximum number of responses dropped under one lock.
const BATCH: usize = 1_000;

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use paceline::limiter::ManualClock;

    fn digest(n: u8) -> Digest {
        [n; 32]
    }

    fn response() -> CachedResponse {
        let body = Bytes::from_static(&[0; 500]);
        CachedResponse { status: StatusCode::OK, content_type: None, location: None, body }
    }

    /// Executes a request and stores its response; returns false if the cache is full.
    fn execute(cache: &Arc<ResponseCache>, n: u8, second: u64, ttl: u64) -> bool {
        execute_for(ClientAddress::NONE, cache, n, second, ttl)
    }

    fn execute_for(
        client: ClientAddress,
        cache: &Arc<ResponseCache>,
        n: u8,
        second: u64,
        ttl: u64,
    ) -> bool {
        let now = Timestamp::from_unix_secs(second);
        match cache.lookup(digest(n), digest(0), client, now) {
            Lookup::New(pending) => {
                pending.store(response(), now, Duration::from_secs(ttl));
                true
            }
            Lookup::Full => false,
            lookup => panic!("{lookup:?}"),
        }
    }

    fn is_stored(cache: &Arc<ResponseCache>, n: u8, second: u64) -> bool {
        let now = Timestamp::from_unix_secs(second);
        matches!(cache.lookup(digest(n), digest(0), ClientAddress::NONE, now), Lookup::Stored(_))
    }

    #[test]
    fn responses_beyond_minimum_age_are_evicted_oldest_first() {
        // Three responses are half of the cache.
        let cache = Arc::new(ResponseCache::new(MINUTE, 6_000));
        for n in 1..=3 {
            assert!(execute(&cache, n, u64::from(n), 3_600));
        }
        assert!(!execute(&cache, 4, 60, 3_600));
        assert!(is_stored(&cache, 1, 60));
        // Only as many as necessary are dropped, oldest first.
        assert!(execute(&cache, 4, 61, 3_600));
        let stored = |n| is_stored(&cache, n, 61);
        assert_eq!([1, 2, 3, 4].map(stored), [false, true, true, true]);
        assert!(!is_stored(&cache, 2, 3_602));
    }

    #[test]
    fn client_that_fills_the_cache_leaves_room_for_others() {
        let cache = Arc::new(ResponseCache::new(MINUTE, 16_000));
        let [flooding, other, third] = [1, 2, 3].map(|n| ClientAddress::of([10, 0, 0, n].into()));
        for n in 1..=8 {
            assert!(execute_for(flooding, &cache, n, 100, 3_600));
        }
        assert!(!execute_for(flooding, &cache, 9, 101, 3_600));
        for n in 11..=14 {
            assert!(execute_for(other, &cache, n, 101, 3_600));
        }
        assert!(!execute_for(other, &cache, 15, 101, 3_600));
        assert!(execute_for(third, &cache, 21, 101, 3_600));
        // Each client's own oldest responses go first.
        assert!(execute_for(other, &cache, 15, 161, 3_600));
        assert!((1..=8).all(|n| is_stored(&cache, n, 161)));
        assert!(!is_stored(&cache, 11, 161) && is_stored(&cache, 12, 161));
        // One that has none waits for nobody: old responses of others go.
        for n in 31..=34 {
            assert!(execute_for(ClientAddress::NONE, &cache, n, 162, 3_600));
        }
        assert!(!is_stored(&cache, 1, 162));
    }

    #[test]
    fn dropped_responses_free_memory() {
        let cache = Arc::new(ResponseCache::new(MINUTE, 6_000));
        for round in 1..9 {
            for n in 1..=3 {
                assert!(execute(&cache, n, round * 60, 0));
            }
            assert!(!execute(&cache, 4, round * 60, 0));
        }
        assert!(!is_stored(&cache, 1, 9 * 60));
        let entries = cache.entries.lock();
        assert_eq!((entries.bytes, entries.entries.len()), (0, 0));
        assert!(entries.due.is_empty() && entries.oldest.is_empty());
        assert!(entries.oldest_of.is_empty() && entries.bytes_of.is_empty());
    }

    #[tokio::test]
    async fn expired_responses_are_dropped_without_new_requests() {
        let clock = ManualClock::new();
        let limiter = Limiter::builder().clock(clock.clone()).build().unwrap();
        let cache = Arc::new(ResponseCache::new(MINUTE, usize::MAX));
        let now = limiter.now();
        for n in 0..2_500_u32 {
            let scope: Digest = Sha256::digest(n.to_be_bytes()).into();
            let Lookup::New(pending) = cache.lookup(scope, digest(0), ClientAddress::NONE, now)
            else {
                panic!("{n}")
            };
            pending.store(response(), now, Duration::ZERO);
        }
        let (weak, stopping) = (Arc::downgrade(&cache), CancellationToken::new());
        let task = tokio::spawn(ResponseCache::run(weak, limiter, stopping.clone()));
        let bytes = || cache.entries.lock().bytes;
        tokio::task::yield_now().await;
        assert!(bytes() > 2_500 * 600);
        clock.advance(Duration::from_secs(60));
        while bytes() > 0 {
            tokio::task::yield_now().await;
        }
        stopping.cancel();
        task.await.unwrap();
        let entries = cache.entries.lock();
        assert_eq!([entries.entries.len(), entries.due.len(), entries.oldest.len()], [0; 3]);
    }
}
