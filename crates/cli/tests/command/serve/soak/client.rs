use paceline::Timestamp;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use paceline::limiter::{Clock, SystemClock};

use super::key::{Key, Kind};
use paceline_testing::wire::Wire;

/// A client that requests random keys and sometimes disconnects before the response.
pub(super) struct Client {
    addr: SocketAddr,
    keys: Arc<Vec<Key>>,
    clock: Arc<SystemClock>,
    random: u64,
    wire: Option<Wire>,
}

impl Client {
    pub(super) fn new(
        addr: SocketAddr,
        keys: Arc<Vec<Key>>,
        clock: Arc<SystemClock>,
        seed: u64,
    ) -> Self {
        Self { addr, keys, clock, random: seed, wire: None }
    }

    pub(super) async fn run_until(mut self, end: Timestamp) {
        while self.clock.now() < end {
            let keys = self.keys.clone();
            let key = &keys[self.random_key()];
            let mut wire = match self.wire.take() {
                Some(wire) => wire,
                None => Wire::connect(self.addr).await.expect("a connection"),
            };
            match key.kind {
                Kind::Steady => self.request(key, &mut wire).await,
                Kind::Brisk => self.wait(key, &mut wire).await,
                Kind::Fickle => match self.wait_briefly(key, &mut wire).await {
                    true => {}
                    false if self.one_in(2) => {
                        wire.reset();
                        continue;
                    }
                    false => continue,
                },
            }
            self.wire = Some(wire);
        }
    }

    /// Requests a grant, and releases half of the grants.
    async fn request(&mut self, key: &Key, wire: &mut Wire) {
        if let Some(grant) = key.request(wire).await
            && self.one_in(2)
        {
            key.release(wire, &grant).await;
        }
    }

    /// Requests a grant, and waits until it is admitted.
    async fn wait(&mut self, key: &Key, wire: &mut Wire) {
        let requested = self.clock.now();
        let answer = wire.request("POST", &waiting(key)).await.expect("a response");
        if key.answered(answer).is_some() {
            key.granted_between(requested, self.clock.now());
        }
    }

    /// Requests a grant, and waits up to 50 ms. Returns true if the server responded.
    async fn wait_briefly(&mut self, key: &Key, wire: &mut Wire) -> bool {
        wire.send_head("POST", &waiting(key)).await.expect("the request is sent");
        let patience = Duration::from_micros(self.below(50_000));
        let Ok(answer) = tokio::time::timeout(patience, wire.read_response()).await else {
            key.abandoned();
            return false;
        };
        if let Some(grant) = key.answered(answer.expect("a response"))
            && self.one_in(2)
        {
            key.release(wire, &grant).await;
        }
        true
    }

    /// Returns a random key with a skewed distribution that covers all keys.
    fn random_key(&mut self) -> usize {
        let (most, part) = (self.keys.len() as u64, 1 << 16);
        let skewed = (most * self.below(part) / part) * self.below(part) / part;
        usize::try_from(skewed).expect("the index fits usize")
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Returns a random number below `end`: SplitMix64, deterministic for a seed.
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn waiting(key: &Key) -> String {
    format!("/rate/{}?canWait=true", key.name)
}
