//! Processes that hold leases and are killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tollgate::quota::Cost;

use super::lease::{all, hourly, limiter};
use super::servers::Redis;

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

/// One line, past what the test harness holds back.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n#{line}").and_then(|()| out.flush()).unwrap();
}

struct Holder {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Holder {
    fn start(url: &str, amount: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "cluster::lease_processes::holder", "--nocapture"]);
        command.env(HOLDER, format!("{amount} {url}"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut holder = Self { child, to, from: BufReader::new(from) };
        assert_eq!(holder.hear().unwrap(), "there");
        holder
    }

    /// What it says next; `None` when it has ended.
    fn hear(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(said) = line.strip_prefix('#').and_then(|line| line.strip_suffix('\n')) {
                return Some(said.to_owned());
            }
        }
    }

    /// Has it ask so often: how many were let in.
    fn take(&mut self, most: u64) -> u64 {
        writeln!(self.to, "{most}").unwrap();
        let mut count = 0;
        while let Some(said) = self.hear().filter(|said| said != "done") {
            count += u64::from(said == "yes");
        }
        count
    }

    /// Has it ask for ever, and kills it after so many answers: how many were let in, with those it
    /// had no time to be stopped at.
    fn take_and_die(mut self, after: u64) -> u64 {
        writeln!(self.to, "{}", u32::MAX).unwrap();
        let (mut count, mut answers) = (0, 0);
        while let Some(said) = self.hear() {
            count += u64::from(said == "yes");
            answers += 1;
            if answers == after {
                self.child.kill().unwrap();
            }
        }
        count
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn holders_that_are_killed_never_let_in_more_than_there_is_and_strand_what_they_held() {
    const AMOUNT: u64 = 50_000;
    const KILLS: usize = 200;
    let redis = Redis::start();
    let url = redis.url();
    let mut steady = Holder::start(&url, AMOUNT);
    let (mut admitted, mut random) = (0, 0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..KILLS {
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
    println!("{KILLS} killed: {admitted} of {AMOUNT} let in, the rest was held by the dead");
}
