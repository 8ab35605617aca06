//! Processes that hold leases and are killed.

use paceline::quota::Cost;

use super::lease::{admit_all, hourly, limiter};
use paceline_testing::full::full_or;
use paceline_testing::process::{InteractiveProcess, print_message, test_command};
use paceline_testing::servers::Redis;

/// The environment variable with requests per hour and server for a lease holder.
const HOLDER: &str = "PACELINE_TEST_LEASE_HOLDER";

/// The process that other tests start; does nothing as a test. It prints for each request whether
/// it was admitted.
#[test]
fn holder() {
    let Ok(arguments) = std::env::var(HOLDER) else { return };
    let (amount, url) = arguments.split_once(' ').unwrap();
    let (limiter, _shared) = limiter(url, hourly(amount.parse().unwrap()));
    print_message("ready");
    for line in std::io::stdin().lines() {
        let most: usize = line.unwrap().parse().unwrap();
        for _ in 0..most {
            let granted = limiter.try_acquire("k", &Cost::new()).is_ok();
            print_message(if granted { "yes" } else { "no" });
        }
        print_message("done");
    }
}

struct Holder(InteractiveProcess);

impl Holder {
    fn start(url: &str, amount: u64) -> Self {
        let arguments = format!("{amount} {url}");
        let mut process = InteractiveProcess::start(&mut test_command(
            module_path!(),
            "holder",
            HOLDER,
            arguments,
        ));
        assert_eq!(process.read_message().unwrap(), "ready");
        Self(process)
    }

    /// Makes the holder send this many requests, and returns the number admitted.
    fn take(&mut self, most: u64) -> u64 {
        self.0.write_line(&most.to_string());
        let mut count = 0;
        while let Some(line) = self.0.read_message().filter(|line| line != "done") {
            count += u64::from(line == "yes");
        }
        count
    }

    /// Makes the holder send requests endlessly, kills it after this many responses, and returns the
    /// number admitted, including responses written before the kill.
    fn take_and_kill(mut self, after: u64) -> u64 {
        self.0.write_line(&u32::MAX.to_string());
        let (mut count, mut responses) = (0, 0);
        while let Some(line) = self.0.read_message() {
            count += u64::from(line == "yes");
            responses += 1;
            if responses == after {
                self.0.kill();
            }
        }
        count
    }
}

#[test]
fn killed_lease_holders_never_exceed_the_limit() {
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
        admitted += victim.take_and_kill(1 + (random >> 58));
        admitted += steady.take(20);
    }
    drop(steady);
    // The leases of killed holders have expired when no request is admitted for three lease times.
    let (last, _shared) = limiter(&url, hourly(AMOUNT));
    admitted += admit_all(&last);
    let level = &last.stats("k").limits[0];
    assert!(admitted <= AMOUNT, "{admitted} of {AMOUNT}");
    // A holder may have been killed between admitting a request and printing it.
    assert_eq!((level.used, level.held), (AMOUNT, 0), "the whole amount is accounted for");
    println!(
        "{kills} killed: {admitted} of {AMOUNT} admitted, the rest was leased by killed holders"
    );
}
