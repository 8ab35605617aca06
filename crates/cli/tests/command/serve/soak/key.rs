use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::Timestamp;

use tollgate_testing::wire::{Wire, WireResponse};

/// A key and the grants received by all clients.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Grants that were received and not given back.
    live: AtomicI64,
    granted: AtomicU64,
    given_back: AtomicU64,
    refused: AtomicU64,
    /// Clients that left before they were answered: each may have been granted something.
    vanished: AtomicU64,
    /// When each grant was asked for, and when it was received.
    grants: Mutex<Vec<(Timestamp, Timestamp)>>,
}

/// The behavior of clients towards a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Five an hour; clients stay until they are answered.
    Steady,
    /// Five an hour; clients wait, and leave before their turn.
    Fickle,
    /// Ten a second; clients wait.
    Brisk,
}

impl Kind {
    pub(super) const HOURLY: u64 = 5;
    const A_SECOND: usize = 10;
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
            given_back: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            vanished: AtomicU64::new(0),
            grants: Mutex::default(),
        }
    }

    /// Asks without waiting; the number of the grant, if it is one.
    pub(super) async fn ask(&self, wire: &mut Wire) -> Option<String> {
        let path = format!("/rate/{}", self.name);
        self.answered(wire.request("POST", &path).await.expect("an answer"))
    }

    /// Counts an answer; the number of the grant, if it is one.
    pub(super) fn answered(&self, answer: WireResponse) -> Option<String> {
        match answer.status {
            200 => {
                self.granted.fetch_add(1, Ordering::Relaxed);
                // A grant is received after it was granted, and given back before it is free again:
                // the server has at least as many out as are counted here.
                let live = self.live.fetch_add(1, Ordering::SeqCst) + 1;
                let most = i64::try_from(Kind::HOURLY).expect("it is small");
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

    pub(super) async fn give_back(&self, wire: &mut Wire, grant: &str) {
        self.live.fetch_sub(1, Ordering::SeqCst);
        self.given_back.fetch_add(1, Ordering::Relaxed);
        let path = format!("/rate/{}/{}", self.name, grant.trim());
        let answer = wire.request("DELETE", &path).await.expect("an answer");
        assert!(matches!(answer.status, 200 | 204), "{}: {answer:?}", self.name);
    }

    pub(super) fn left_behind(&self) {
        self.vanished.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes when a grant was asked for and received.
    pub(super) fn granted_between(&self, asked: Timestamp, received: Timestamp) {
        self.grants.lock().push((asked, received));
    }

    /// After everything was used up: what was received is what the limit allows.
    pub(super) fn check(&self) {
        let live =
            u64::try_from(self.live.load(Ordering::SeqCst)).expect("none is given back twice");
        match self.kind {
            Kind::Steady => assert_eq!(live, Kind::HOURLY, "{}", self.name),
            Kind::Fickle => {
                let lost = Kind::HOURLY - live;
                assert!(lost <= self.vanished(), "{}: {lost} grants are lost", self.name);
            }
            Kind::Brisk => self.check_windows(),
        }
    }

    /// A grant was made between its asking and its receipt. More of them within less than a second
    /// than the limit allows were made too fast, wherever in between. The clocks of two processes may
    /// run apart by a thousandth.
    fn check_windows(&self) {
        const WINDOW: Duration = Duration::from_millis(999);
        let mut grants = self.grants.lock();
        grants.sort_unstable();
        for (at, (start, _)) in grants.iter().enumerate() {
            let end = *start + WINDOW;
            let near = grants[at..].iter().take_while(|(asked, _)| *asked <= end);
            let within = near.filter(|(_, received)| *received <= end).count();
            assert!(within <= Kind::A_SECOND, "{}: {within} grants within a second", self.name);
        }
    }

    pub(super) fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    pub(super) fn given_back_count(&self) -> u64 {
        self.given_back.load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn vanished(&self) -> u64 {
        self.vanished.load(Ordering::Relaxed)
    }
}
