//! The cases: a mode, an algorithm and a fault.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paceline_testing::process::ChildGuard;
use paceline_testing::servers::Redis;

use super::ledger::{Grant, Pause, Promise, excess};
use super::member::{MAX_COST, now, used};
use super::proxy::Proxy;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    mode: &'static str,
    algorithm: &'static str,
    fault: Fault,
    members: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// `kill -9` of a server that has saved every write.
    Kill,
    /// `SIGSTOP` of the server.
    Freeze,
    /// `kill -9` of a server without persistence.
    EmptyRestart,
    /// `FLUSHALL` on a server that keeps running.
    Flush,
    /// All connections are cut, and no new ones are possible.
    Cut,
    /// Each direction takes longer than the timeout.
    Delay,
    MemberKilled,
    MemberFrozen,
}

/// What a case has shown.
#[derive(Debug)]
pub(crate) struct CaseResult {
    pub(crate) case: Case,
    pub(crate) seed: u64,
    pub(crate) grants: usize,
    /// The amount above the limit.
    pub(crate) excess: u64,
    /// What was used of the day, and what the server counts, after it has lost its data in exact mode.
    pub(crate) used: Option<(u64, u64)>,
    /// The time after the fault until all clients were served; `None` if one wasn't.
    pub(crate) wait: Option<Duration>,
}

/// Starts the process of a member with these settings.
pub(crate) type StartMember = dyn Fn(&str) -> Command + Sync;

struct Member {
    process: ChildGuard,
    reader: JoinHandle<()>,
}

impl CaseResult {
    /// Returns whether the server counts more than was used. A call whose answer was lost is repeated, and can
    /// count twice: at most one of each client.
    pub(crate) fn counts_more(&self) -> bool {
        let unanswered = (self.case.members * (CLIENTS + 1)) as u64 * MAX_COST;
        self.used.is_some_and(|(used, counted)| counted > used + unanswered)
    }
}

impl Case {
    #[allow(dead_code, reason = "for the bench")]
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for fault in FAULTS {
            for mode in ["exact", "lease"] {
                for algorithm in ALGORITHMS {
                    for &members in fault.members() {
                        all.push(Self { mode, algorithm, fault, members });
                    }
                }
            }
        }
        all
    }

    /// Returns one case for each fault, with each mode and algorithm in turn.
    #[allow(dead_code, reason = "for the tests")]
    pub(crate) fn some() -> Vec<Self> {
        let turn = |(at, fault): (usize, Fault)| Self {
            mode: ["exact", "lease"][at % 2],
            algorithm: ALGORITHMS[at % ALGORITHMS.len()],
            fault,
            members: fault.members()[0],
        };
        FAULTS.into_iter().enumerate().map(turn).collect()
    }

    /// Runs a server, members and the fault, and judges the grants.
    pub(crate) fn run(self, seed: u64, start: &StartMember) -> CaseResult {
        let saving = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut redis = Redis::with(if self.fault == Fault::Kill { &saving } else { &[] });
        let proxy = Proxy::start(redis.server().address);
        let grants = Arc::<Mutex<Vec<Grant>>>::default();
        let mut members: Vec<Member> = (0..self.members)
            .map(|member| {
                let spec = self.spec(&proxy, seed * 100 + member as u64 * 10);
                Member::start(member, &mut start(&spec), &grants)
            })
            .collect();
        // All clients are served, so that all members are known.
        let served = |since: u64, last: usize| {
            let grants = grants.lock().unwrap();
            let waiting = |(member, client)| {
                !grants.iter().any(|grant| {
                    (grant.member, grant.client) == (member, client)
                        && grant.granted > since
                        && grant.asked < grant.granted
                })
            };
            !clients(last).any(waiting)
        };
        let begin = now();
        assert!(
            wait_until(|| served(begin, self.members)).is_some(),
            "{self:?}: not served at first"
        );
        thread::sleep(Duration::from_millis(300 + seed * 37 % 300));
        let from = now();
        let victim = self.members - 1;
        let mut last = self.members;
        match self.fault {
            Fault::Kill | Fault::EmptyRestart => redis.server().kill(),
            Fault::Flush => flush(redis.server().address),
            Fault::Freeze => redis.server().freeze(),
            Fault::Cut => proxy.cut(),
            Fault::Delay => proxy.delay(300),
            Fault::MemberKilled => members[victim].process.signal("-KILL"),
            Fault::MemberFrozen => members[victim].process.signal("-STOP"),
        }
        let is_of_member = matches!(self.fault, Fault::MemberKilled | Fault::MemberFrozen);
        let mut wait = None;
        if is_of_member {
            // The others go on.
            last = victim;
            wait = wait_until(|| served(from, last));
        } else if self.fault != Fault::Flush {
            thread::sleep(FAULT);
        }
        match self.fault {
            Fault::Kill | Fault::EmptyRestart => redis.restart(),
            Fault::Freeze => redis.server().thaw(),
            Fault::Cut | Fault::Delay => proxy.mend(),
            Fault::MemberFrozen => {
                thread::sleep(FAULT);
                members[victim].process.signal("-CONT");
                last = self.members;
            }
            Fault::MemberKilled | Fault::Flush => {}
        }
        let until = now();
        let after = wait_until(|| served(until, last));
        let wait = if is_of_member { wait.zip(after).map(|(a, b)| a.max(b)) } else { after };
        // More than the limit's window, to see what comes after.
        thread::sleep(Duration::from_millis(1_200));
        members.into_iter().for_each(Member::stop);
        let until = if self.fault == Fault::MemberKilled { u64::MAX } else { until };
        let pauses = [Pause { member: victim, from, until }];
        let grants = grants.lock().unwrap();
        let pauses = if is_of_member { &pauses[..] } else { &[] };
        let excess = excess(self.promise(), self.amount(), &grants, pauses);
        // A lease that is renewed late counts as used, without a fault too.
        let is_loss = matches!(self.fault, Fault::EmptyRestart | Fault::Flush);
        let used = (is_loss && self.mode == "exact").then(|| {
            let counted = used(&redis.url(), self.algorithm, self.amount());
            (grants.iter().map(|grant| grant.used).sum(), counted)
        });
        CaseResult { case: self, seed, grants: grants.len(), excess, used, wait }
    }

    fn spec(self, proxy: &Proxy, seed: u64) -> String {
        let Self { mode, algorithm, .. } = self;
        let (address, amount) = (proxy.address, self.amount());
        // That of a dead process is waited for; others don't expire in an outage.
        let ttl = if self.fault == Fault::MemberKilled { 1 } else { 10 };
        format!("redis://{address} {mode} {algorithm} {amount} {CLIENTS} {ttl} {seed}")
    }

    fn promise(self) -> Promise {
        match self.algorithm {
            "sliding_window" => Promise::Sliding,
            "clock_window" => Promise::Clock,
            "concurrency" => Promise::Concurrent,
            _ => Promise::Bucket,
        }
    }

    fn amount(self) -> u64 {
        let in_flight = self.members as u64;
        if self.algorithm == "concurrency" { 3 + in_flight } else { 60 + 3 * in_flight }
    }
}

impl Fault {
    /// Returns the numbers of members to test.
    fn members(self) -> &'static [usize] {
        if matches!(self, Self::EmptyRestart | Self::Flush) { &[2, 8] } else { &[3] }
    }
}

impl Member {
    fn start(member: usize, command: &mut Command, grants: &Arc<Mutex<Vec<Grant>>>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = ChildGuard::start(command);
        let output = process.get_mut().stdout.take().unwrap();
        let grants = Arc::clone(grants);
        let reader = thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(line) = line.strip_prefix('#') {
                    record(member, line, &mut grants.lock().unwrap());
                }
            }
        });
        Self { process, reader }
    }

    fn stop(mut self) {
        drop(self.process.get_mut().stdin.take());
        // A member that doesn't end by itself is killed.
        let mut ended = || self.process.get_mut().try_wait().unwrap().is_some();
        wait_until(&mut ended);
        drop(self.process);
        self.reader.join().unwrap();
    }
}

/// Records a line of a member.
fn record(member: usize, line: &str, grants: &mut Vec<Grant>) {
    let mut parts = line.split(' ');
    let kind = parts.next();
    // The last line of a killed member may be incomplete.
    let numbers: Vec<u64> = parts.map_while(|part| part.parse().ok()).collect();
    match (kind, &numbers[..]) {
        (Some("grant"), &[client, asked, granted, cost]) => {
            let client = client as usize;
            let ended = None;
            grants.push(Grant { member, client, asked, granted, ended, used: cost });
        }
        (Some("end"), &[client, at, used]) => {
            let is_open = |grant: &&mut Grant| {
                (grant.member, grant.client) == (member, client as usize) && grant.ended.is_none()
            };
            if let Some(grant) = grants.iter_mut().rev().find(is_open) {
                (grant.ended, grant.used) = (Some(at), used);
            }
        }
        _ => {}
    }
}

fn flush(server: SocketAddr) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.write_all(b"FLUSHALL\r\n").unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), "+OK\r\n".len());
}

/// Returns the clients of the first `last` members.
fn clients(last: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..last).flat_map(|member| (0..CLIENTS).map(move |client| (member, client)))
}

/// Returns the time until the condition holds, or `None` after [`PATIENCE`].
fn wait_until(mut condition: impl FnMut() -> bool) -> Option<Duration> {
    let begin = now();
    loop {
        let passed = Duration::from_nanos(now() - begin);
        if condition() {
            return Some(passed);
        }
        if passed > PATIENCE {
            return None;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { mode, algorithm, fault, members } = self.case;
        let Self { seed, grants, excess, .. } = self;
        write!(
            f,
            "{fault:?} {mode} {algorithm} {members} members, seed {seed}: {grants} grants, "
        )?;
        write!(f, "excess {excess}, ")?;
        if let Some((used, counted)) = self.used {
            write!(f, "used {used}, counted {counted}, ")?;
        }
        match self.wait {
            Some(wait) if wait <= MAX_WAIT => write!(f, "all served after {} ms", wait.as_millis()),
            Some(wait) => write!(f, "LATE: all served after {} ms", wait.as_millis()),
            None => write!(f, "NOT SERVED within {PATIENCE:?}"),
        }
    }
}

const FAULTS: [Fault; 8] = [
    Fault::Kill,
    Fault::Freeze,
    Fault::EmptyRestart,
    Fault::Flush,
    Fault::Cut,
    Fault::Delay,
    Fault::MemberKilled,
    Fault::MemberFrozen,
];
const ALGORITHMS: [&str; 4] = ["token_bucket", "sliding_window", "clock_window", "concurrency"];

const CLIENTS: usize = 3;

/// The length of a fault.
const FAULT: Duration = Duration::from_millis(1_500);

/// The longest time after a fault until all clients are served.
#[allow(dead_code, reason = "a bound of the bench; tests have none on wall time")]
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);

const PATIENCE: Duration = Duration::from_secs(40);
