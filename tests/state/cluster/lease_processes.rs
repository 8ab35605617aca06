//! Processes that hold leases and are killed.

use tollgate::quota::Cost;

use super::lease::{all, hourly, limiter};
use tollgate_testing::full::full_or;
use tollgate_testing::process::{Talking, role, say};
use tollgate_testing::servers::Redis;

/// Names the server and the requests an hour to a process that is to be a holder.
const HOLDER: &str = "TOLLGATE_TEST_LEASE_HOLDER";

/// The process that others of these tests start; does nothing among them. It says of each request
/// whether it was let in.
#[test]
fn holder() {
    let Ok(told) = std::env::var(HOLDER) else { return };
    let (amount, url) = told.split_once(' ').unwrap();
    let (limiter, _shared) = limiter(url, hourly(amount.parse().unwrap()));
    say("there");
    for line in std::io::stdin().lines() {
        let most: usize = line.unwrap().parse().unwrap();
        for _ in 0..most {
            let let_in = limiter.try_acquire("k", &Cost::new()).is_ok();
            say(if let_in { "yes" } else { "no" });
        }
        say("done");
    }
}

struct Holder(Talking);

impl Holder {
    fn start(url: &str, amount: u64) -> Self {
        let told = format!("{amount} {url}");
        let mut process = Talking::start(&mut role((module_path!(), "holder"), HOLDER, told));
        assert_eq!(process.hear().unwrap(), "there");
        Self(process)
    }

    /// Has it ask so often: how many were let in.
    fn take(&mut self, most: u64) -> u64 {
        self.0.tell(&most.to_string());
        let mut count = 0;
        while let Some(said) = self.0.hear().filter(|said| said != "done") {
            count += u64::from(said == "yes");
        }
        count
    }

    /// Has it ask for ever, and kills it after so many answers: how many were let in, with those it
    /// had no time to be stopped at.
    fn take_and_die(mut self, after: u64) -> u64 {
        self.0.tell(&u32::MAX.to_string());
        let (mut count, mut answers) = (0, 0);
        while let Some(said) = self.0.hear() {
            count += u64::from(said == "yes");
            answers += 1;
            if answers == after {
                self.0.kill();
            }
        }
        count
    }
}

#[test]
fn holders_that_are_killed_never_let_in_more_than_there_is_and_strand_what_they_held() {
    const AMOUNT: u64 = 50_000;
    let kills = full_or(200, 20);
    let redis = Redis::start();
    let url = redis.url();
    let mut steady = Holder::start(&url, AMOUNT);
    let (mut admitted, mut random) = (0, 0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..kills {
        let victim = Holder::start(&url, AMOUNT);
        admitted += steady.take(20);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        admitted += victim.take_and_die(1 + (random >> 58));
        admitted += steady.take(20);
    }
    drop(steady);
    // The leases of the dead have run out when the last has nothing for three lease times.
    let (last, _shared) = limiter(&url, hourly(AMOUNT));
    admitted += all(&last);
    let level = &last.stats("k").limits[0];
    assert!(admitted <= AMOUNT, "{admitted} of {AMOUNT}");
    // Each may have been killed after it let one in, and before it said so.
    assert_eq!((level.used, level.held), (AMOUNT, 0), "all of it is accounted for");
    println!("{kills} killed: {admitted} of {AMOUNT} let in, the rest was held by the dead");
}
