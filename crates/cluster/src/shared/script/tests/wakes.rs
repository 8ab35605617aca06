//! Messages to waiting requests.

use paceline_limiter::quota::{Algorithm, Dimension};
use redis::Connection;

use super::super::{Operation, Order, Outcome, wake_channel};
use super::fixture::{Fixture, S};
use super::server::Server;

const WAITS: Operation = Operation::Reserve { ttl: 10 * S, waits: true, order: Order::ARRIVAL };

/// A key, and all messages about it.
struct Key {
    fixture: Fixture,
    messages: Connection,
}

impl Key {
    /// Runs a test with and without the fast path of the script.
    fn each(limits: &[(Dimension, u64, Algorithm)], test: impl Fn(&mut Self)) {
        for server in [Server::start(), Server::without_fast_path()] {
            let mut messages = server.connect();
            messages
                .send_packed_command(
                    &redis::cmd("PSUBSCRIBE").arg("paceline:*").get_packed_command(),
                )
                .unwrap();
            messages.recv_response().unwrap();
            test(&mut Self { fixture: Fixture { server, ..Fixture::with(limits) }, messages });
        }
    }

    fn wait(&mut self, id: u8, amount: u64) -> bool {
        self.fixture.call(WAITS, id, &[amount]).outcome == Outcome::Done
    }

    /// Returns the ids that were woken since the last call.
    fn woken(&mut self) -> Vec<u8> {
        let end = redis::cmd("PUBLISH").arg("paceline:end").arg("").to_owned();
        end.query::<()>(self.fixture.server.connection()).unwrap();
        let mut woken = Vec::new();
        loop {
            let message = self.messages.recv_response().unwrap();
            let message = redis::Msg::from_owned_value(message).unwrap();
            let Some(id) = message.get_payload_bytes().first() else { return woken };
            let process = u64::from_le_bytes([*id; 8]);
            assert_eq!(message.get_channel_name(), wake_channel(process));
            assert_eq!(message.get_payload_bytes(), [*id; 16]);
            woken.push(*id);
        }
    }
}

const NOBODY: [u8; 0] = [];
const SLOTS: &[(Dimension, u64, Algorithm)] =
    &[(Dimension::Concurrency, 2, Algorithm::TokenBucket)];

#[test]
fn each_end_wakes_the_first_waiting_request() {
    Key::each(SLOTS, |key| {
        assert_eq!([1, 2, 3, 4].map(|id| key.wait(id, 1)), [true, true, false, false]);
        assert_eq!(key.woken(), NOBODY);
        key.fixture.settle(1, 1);
        assert_eq!(key.woken(), [3]);
        assert!(key.wait(3, 1));
        key.woken();
        key.fixture.release(2);
        assert_eq!(key.woken(), [4]);
        assert!(key.wait(4, 1));
        key.fixture.release(3);
        assert_eq!(key.woken(), NOBODY, "nobody waits");
    });
}

#[test]
fn request_that_gives_up_wakes_the_next() {
    Key::each(SLOTS, |key| {
        assert_eq!([1, 2, 3, 4].map(|id| key.wait(id, 1)), [true, true, false, false]);
        key.fixture.release(3);
        assert_eq!(key.woken(), [4]);
        key.fixture.release(4);
        assert_eq!(key.woken(), NOBODY);
    });
}

#[test]
fn granted_request_wakes_the_next() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        Key::each(&[(Dimension::Requests, 10, algorithm)], |key| {
            assert_eq!([1, 2, 3].map(|id| key.wait(id, 8)), [true, false, false]);
            key.fixture.settle(1, 4);
            assert_eq!(key.woken(), [2]);
            let granted = (0..30).find(|_| {
                assert_eq!(key.woken(), NOBODY);
                key.fixture.now += S / 2;
                key.wait(2, 8) || key.wait(3, 8)
            });
            assert!(granted.is_some());
            assert_eq!(key.woken(), [3]);
        });
    }
}

#[test]
fn dead_waiting_request_wakes_the_next() {
    Key::each(SLOTS, |key| {
        assert_eq!([1, 2, 3, 4].map(|id| key.wait(id, 1)), [true, true, false, false]);
        key.fixture.release(1);
        assert_eq!(key.woken(), [3]);
        key.fixture.now += S / 2;
        assert!(!key.wait(4, 1));
        key.fixture.now += S / 2;
        key.fixture.read_state();
        key.fixture.reserve(5, 1);
        assert_eq!(key.woken(), [4]);
    });
}
