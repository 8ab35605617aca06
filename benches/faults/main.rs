//! Faults of a shared store and of the processes that share it, judged by an independent ledger:
//! `cargo bench --bench faults --features redis`. Runs for ten minutes; `-- --bench --once` runs each case
//! once. Starts `redis-server` and processes of its own.
//!
//! Each case prints its seed, the grants, those above the limit, and the longest time after the fault until
//! every client that can be served was served. Each member has a request in flight for three seconds. Exits with 1
//! if a grant was above the limit, the server counts more than was used and repeated, or a client waited for more than two
//! seconds. `-- --bench Flush lease` runs only the cases of these names.
//!
//! `-- --bench --fairness` runs three processes with flows of weights 1, 2 and 3 for half a minute instead. Exits with 1 if a
//! share is more than 5 % from its weight, or 1 of 100 interactive requests waits longer than the refill of a large
//! request and a second.

#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod fairness;
mod ledger;
mod matrix;
mod member;
mod proxy;

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use fairness::Fairness;
use matrix::{Case, MAX_WAIT};

fn main() -> ExitCode {
    if let Ok(spec) = std::env::var(MEMBER) {
        match spec.strip_prefix(fairness::MEMBER) {
            Some(spec) => fairness::run_member(spec),
            None => member::run(&spec),
        }
        return ExitCode::SUCCESS;
    }
    let has = |argument: &str| std::env::args().any(|other| other == argument);
    // `cargo test --benches` only checks that the benchmark starts.
    if !has("--bench") {
        return ExitCode::SUCCESS;
    }
    if has("--fairness") {
        let fairness = Fairness::measure(&start_member);
        println!("{fairness}");
        return if fairness.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    ledger::check_judge();
    let (begin, mut failures, mut seed) = (Instant::now(), 0, 1);
    loop {
        let is_named = |case: &Case| {
            let mut names = std::env::args().skip(1).filter(|name| !name.starts_with("--"));
            names.all(|name| format!("{case:?}").contains(&name))
        };
        for case in Case::all().into_iter().filter(is_named) {
            let result = case.run(seed, &start_member);
            println!("{result}");
            let is_late = result.wait.is_none_or(|wait| wait > MAX_WAIT);
            failures += usize::from(result.excess > 0 || result.counts_more() || is_late);
            seed += 1;
        }
        if has("--once") || begin.elapsed() > DURATION {
            break;
        }
    }
    println!("{} cases, {failures} failed, {:?}", seed - 1, begin.elapsed());
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the command of a member process.
fn start_member(spec: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of the bench"));
    command.env(MEMBER, spec);
    command
}

/// The environment variable with the settings of a member process.
const MEMBER: &str = "PACELINE_FAULTS_MEMBER";

const DURATION: Duration = Duration::from_secs(600);
