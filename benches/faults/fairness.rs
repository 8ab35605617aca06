//! Three processes with flows of different weights share a limit, each with interactive requests beside them.

use std::fmt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use paceline::Limiter;
use paceline::cluster::Shared;
use paceline::limiter::{Priority, WaitPolicy};
use paceline::quota::{Cost, Dimension, Limit, Margin, Quota, Window};
use paceline_testing::servers::Redis;
use tokio::task::JoinSet;

use super::matrix::StartMember;

/// The requests that were granted.
pub(crate) struct Fairness {
    /// The granted requests of each flow.
    granted: Vec<u32>,
    /// The waits of the interactive requests, in order.
    waits: Vec<Duration>,
}

impl Fairness {
    /// Runs a server and the processes.
    pub(crate) fn measure(start: &StartMember) -> Self {
        let redis = Redis::start();
        let start = |(flow, _)| {
            let mut command: Command = start(&format!("{MEMBER}{} {flow}", redis.url()));
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        let (mut granted, mut waits) = (Vec::new(), Vec::new());
        for process in FLOWS.map(start) {
            let output = process.wait_with_output().unwrap().stdout;
            let output = String::from_utf8(output).unwrap();
            let line = output.lines().find_map(|line| line.strip_prefix('#')).unwrap();
            let mut numbers = line.split(' ').map(|number| number.parse::<u32>().unwrap());
            granted.extend(numbers.next());
            waits.extend(numbers.map(|micros| Duration::from_micros(micros.into())));
        }
        waits.sort_unstable();
        Self { granted, waits }
    }

    /// Returns how far the share of each flow is from its weight, in percent of the share that is due.
    fn deviations(&self) -> Vec<f64> {
        let weights: u32 = FLOWS.iter().map(|(_, weight)| weight).sum();
        let all: u32 = self.granted.iter().sum();
        let deviation = |(granted, (_, weight)): (&u32, &(&str, u32))| {
            let due = f64::from(all * weight) / f64::from(weights);
            (f64::from(*granted) / due - 1.0) * 100.0
        };
        self.granted.iter().zip(&FLOWS).map(deviation).collect()
    }

    fn p99(&self) -> Duration {
        self.waits[self.waits.len() * 99 / 100]
    }

    /// Returns whether the shares are the weights, and interactive requests pass those of the flows.
    pub(crate) fn holds(&self) -> bool {
        let refill = Duration::from_secs(COST) / u32::try_from(RATE).unwrap();
        let is_near = |deviation: &f64| deviation.abs() <= 5.0;
        self.deviations().iter().all(is_near) && self.p99() <= refill + Duration::from_secs(1)
    }
}

impl fmt::Display for Fairness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { granted, waits } = self;
        write!(f, "Fairness: flows of weights 1, 2 and 3 got {granted:?} requests (")?;
        for deviation in self.deviations() {
            write!(f, "{deviation:+.1} % ")?;
        }
        let (count, p99) = (waits.len(), self.p99());
        write!(f, "of their shares), 99 % of {count} interactive ones waited {p99:?} at most")
    }
}

/// Runs a process until its time is over, and prints its grants and the waits. `spec` is the URL and the flow.
pub(crate) fn run_member(spec: &str) {
    let (url, flow) = spec.split_once(' ').unwrap();
    let flow = FLOWS.into_iter().find(|(name, _)| *name == flow).unwrap().0;
    let limit = Limit::new(Dimension::Tokens, RATE, Window::SECOND).unwrap();
    let quota = Quota::new().limit(limit.with_burst(2 * COST));
    let policy = WaitPolicy::new();
    let policy = FLOWS.iter().fold(policy, |policy, &(name, weight)| policy.weight(name, weight));
    let shared = Shared::builder(url, "fairness").connect().unwrap();
    let builder = Limiter::builder().margin(Margin::NONE).quota("k", quota).wait_policy(policy);
    let limiter = builder.backend(shared).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (granted, end) = (Arc::<AtomicU32>::default(), Instant::now() + LENGTH);
    let waits = runtime.block_on(async {
        let mut working = JoinSet::new();
        for _ in 0..CLIENTS {
            let (limiter, granted) = (limiter.clone(), Arc::clone(&granted));
            working.spawn(async move {
                let cost = Cost::new().tokens(COST);
                while Instant::now() < end {
                    let permit = limiter.acquire("k", &cost).flow(flow).await.unwrap();
                    granted.fetch_add(u32::from(Instant::now() < end), Ordering::Relaxed);
                    permit.settle(&cost);
                }
            });
        }
        let (cost, mut waits) = (Cost::new().tokens(1), Vec::new());
        while Instant::now() < end {
            tokio::time::sleep(PAUSE).await;
            let asked = Instant::now();
            let permit = limiter.acquire("k", &cost).priority(Priority::INTERACTIVE).await.unwrap();
            waits.push(asked.elapsed().as_micros().to_string());
            permit.settle(&cost);
        }
        working.shutdown().await;
        limiter.close().await;
        waits
    });
    println!("\n#{} {}", granted.load(Ordering::Relaxed), waits.join(" "));
}

/// The start of the settings of a process.
pub(crate) const MEMBER: &str = "fairness ";

/// The flows, one in each process, and their weights.
const FLOWS: [(&str, u32); 3] = [("one", 1), ("two", 2), ("three", 3)];

/// The tokens per second, and those of a request.
const RATE: u64 = 100;
const COST: u64 = 5;

const CLIENTS: usize = 4;

/// The time between two interactive requests of a process.
const PAUSE: Duration = Duration::from_millis(250);

const LENGTH: Duration = Duration::from_secs(24);
