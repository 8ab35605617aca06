use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tollgate::Timestamp;

use tollgate::limiter::{Clock, SystemClock};

use super::key::{Key, Kind};
use tollgate_testing::wire::Wire;

/// Somebody who asks for one key after the other, and does not always stay for the answer.
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
            let key = &keys[self.some_key()];
            let mut wire = match self.wire.take() {
                Some(wire) => wire,
                None => Wire::connect(self.addr).await.expect("a connection"),
            };
            match key.kind {
                Kind::Steady => self.come(key, &mut wire).await,
                Kind::Brisk => self.wait(key, &mut wire).await,
                Kind::Fickle => match self.wait_a_while(key, &mut wire).await {
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

    /// Asks; half of what is granted is given back.
    async fn come(&mut self, key: &Key, wire: &mut Wire) {
        if let Some(grant) = key.ask(wire).await
            && self.one_in(2)
        {
            key.give_back(wire, &grant).await;
        }
    }

    /// Asks, and waits for its turn.
    async fn wait(&mut self, key: &Key, wire: &mut Wire) {
        let asked = self.clock.now();
        let answer = wire.request("POST", &waiting(key)).await.expect("an answer");
        if key.answered(answer).is_some() {
            key.granted_between(asked, self.clock.now());
        }
    }

    /// Asks, and waits for a moment; says whether it was answered.
    async fn wait_a_while(&mut self, key: &Key, wire: &mut Wire) -> bool {
        wire.send_head("POST", &waiting(key)).await.expect("it is sent");
        let patience = Duration::from_micros(self.below(50_000));
        let Ok(answer) = tokio::time::timeout(patience, wire.read_response()).await else {
            key.left_behind();
            return false;
        };
        if let Some(grant) = key.answered(answer.expect("an answer"))
            && self.one_in(2)
        {
            key.give_back(wire, &grant).await;
        }
        true
    }

    /// Some keys are asked for far more often than others, and all of them at some time.
    fn some_key(&mut self) -> usize {
        let (most, part) = (self.keys.len() as u64, 1 << 16);
        let skewed = (most * self.below(part) / part) * self.below(part) / part;
        usize::try_from(skewed).expect("it is below the number of keys")
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// The same numbers for the same seed: SplitMix64.
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
