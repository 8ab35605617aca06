use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use paceline::Timestamp;
use parking_lot::Mutex;

use paceline_testing::wire::{Wire, WireResponse};

/// A key and the grants received by all clients.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Grants that were received and not released.
    live: AtomicI64,
    granted: AtomicU64,
    released: AtomicU64,
    refused: AtomicU64,
    /// Clients that disconnected before the response. Each may have been granted a request.
    vanished: AtomicU64,
    /// The times at which each grant was requested and received.
    grants: Mutex<Vec<(Timestamp, Timestamp)>>,
}

/// The behavior of clients towards a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Five per hour; clients wait for the response.
    Steady,
    /// Five per hour; clients wait in the queue, and some disconnect.
    Fickle,
    /// Ten per second; clients wait in the queue.
    Brisk,
}

impl Kind {
    pub(super) const PER_HOUR: u64 = 5;
    const PER_SECOND: usize = 10;
}

impl Key {
    pub(super) fn all(count: u64) -> Vec<Self> {
        (0..count).map(Self::new).collect()
    }

    fn new(number: u64) -> Self {
        let (kind, name) = match number % 3 {
            0 => (Kind::Steady, "steady"),
            1 => (Kind::Fickle, "fickle"),
            _ => (Kind::Brisk, "brisk"),
        };
        Self {
            name: format!("{name}-{number}"),
            kind,
            live: AtomicI64::new(0),
            granted: AtomicU64::new(0),
            released: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            vanished: AtomicU64::new(0),
            grants: Mutex::default(),
        }
    }

    /// Requests a grant without waiting. Returns its id, if granted.
    pub(super) async fn request(&self, wire: &mut Wire) -> Option<String> {
        let path = format!("/rate/{}", self.name);
        self.answered(wire.request("POST", &path).await.expect("a response"))
    }

    /// Counts a response. Returns the id of the grant, if granted.
    pub(super) fn answered(&self, answer: WireResponse) -> Option<String> {
        match answer.status {
            200 => {
                self.granted.fetch_add(1, Ordering::Relaxed);
                // A grant is received after it was granted, and released before it is available again:
                // the server has at least as many grants as are counted here.
                let live = self.live.fetch_add(1, Ordering::SeqCst) + 1;
                let most = i64::try_from(Kind::PER_HOUR).expect("the limit is small");
                assert!(self.kind == Kind::Brisk || live <= most, "{}: {live} live", self.name);
                Some(answer.body)
            }
            429 => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                None
            }
            _ => panic!("{}: {answer:?}", self.name),
        }
    }

    pub(super) async fn release(&self, wire: &mut Wire, grant: &str) {
        self.live.fetch_sub(1, Ordering::SeqCst);
        self.released.fetch_add(1, Ordering::Relaxed);
        let path = format!("/rate/{}/{}", self.name, grant.trim());
        let answer = wire.request("DELETE", &path).await.expect("a response");
        assert!(matches!(answer.status, 200 | 204), "{}: {answer:?}", self.name);
    }

    pub(super) fn abandoned(&self) {
        self.vanished.fetch_add(1, Ordering::Relaxed);
    }

    /// Records when a grant was requested and received.
    pub(super) fn granted_between(&self, requested: Timestamp, received: Timestamp) {
        self.grants.lock().push((requested, received));
    }

    /// Checks, after the limit is exhausted, that the received grants equal the limit.
    pub(super) fn check(&self) {
        let live =
            u64::try_from(self.live.load(Ordering::SeqCst)).expect("no grant is released twice");
        match self.kind {
            Kind::Steady => assert_eq!(live, Kind::PER_HOUR, "{}", self.name),
            Kind::Fickle => {
                let lost = Kind::PER_HOUR - live;
                assert!(lost <= self.vanished(), "{}: {lost} grants are lost", self.name);
            }
            Kind::Brisk => self.check_windows(),
        }
    }

    /// Checks that no window of a second has more grants than the limit.
    ///
    /// A grant was made at some time between its request and its receipt, so only grants that were
    /// requested and received within the window count. The clocks of two processes may differ by a
    /// thousandth.
    fn check_windows(&self) {
        const WINDOW: Duration = Duration::from_millis(999);
        let mut grants = self.grants.lock();
        grants.sort_unstable();
        for (at, (start, _)) in grants.iter().enumerate() {
            let end = *start + WINDOW;
            let near = grants[at..].iter().take_while(|(requested, _)| *requested <= end);
            let within = near.filter(|(_, received)| *received <= end).count();
            assert!(within <= Kind::PER_SECOND, "{}: {within} grants within a second", self.name);
        }
    }

    pub(super) fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    pub(super) fn released(&self) -> u64 {
        self.released.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn vanished(&self) -> u64 {
        self.vanished.load(Ordering::Relaxed)
    }
}
