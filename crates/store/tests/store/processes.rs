//! Several processes that share a database, and processes that are killed.

use std::path::Path;
use std::time::Duration;

use paceline_limiter::{Cost, Limiter, Quota};
use paceline_store::{Persistence, Sqlite};
use rusqlite::Connection;

use super::sqlite::folder;
use super::sqlite_owners::total;
use paceline_testing::full::full_or;
use paceline_testing::process::{InteractiveProcess, print_message, test_command};

/// The environment variable with flush interval (milliseconds), requests per day and database for a
/// worker process.
const WORKER: &str = "PACELINE_TEST_WORKER";

/// The worker process that other tests start; does nothing as a test.
#[test]
fn worker() {
    let Ok(arguments) = std::env::var(WORKER) else { return };
    let arguments: Vec<&str> = arguments.splitn(3, ' ').collect();
    let quota = Quota::new().rpd(arguments[1].parse().unwrap());
    let limiter = Limiter::builder().quota("k", quota).build().unwrap();
    let flush = Duration::from_millis(arguments[0].parse().unwrap());
    let persistence = Persistence::start(&limiter, Sqlite::new(arguments[2]), flush).unwrap();
    print_message(&format!("used {}", used(&limiter)));
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("used", _) => print_message(&format!("used {}", used(&limiter))),
            ("admit", most) => {
                print_message(&format!("admitted {}", admit(&limiter, most.parse().unwrap())))
            }
            ("flush", _) => {
                persistence.flush_now().unwrap();
                print_message("flushed");
            }
            ("report", _) => admit_and_report(&limiter, &persistence),
            _ => return,
        }
    }
}

fn admit(limiter: &Limiter, most: usize) -> usize {
    let cost = Cost::new();
    (0..most).take_while(|_| limiter.try_acquire("k", &cost).is_ok()).count()
}

fn used(limiter: &Limiter) -> u64 {
    limiter.stats("k").limits[0].used
}

/// Admits requests endlessly. For each, prints its time and the time up to which all are written.
fn admit_and_report(limiter: &Limiter, persistence: &Persistence) {
    loop {
        let kept_at = persistence.status().kept_at.unwrap_or_default().as_nanos();
        assert_eq!(admit(limiter, 1), 1);
        print_message(&format!("at {} {kept_at}", limiter.now().as_nanos()));
    }
}

struct Worker {
    process: InteractiveProcess,
    /// The usage that the worker read from the database at the start.
    initial_usage: u64,
}

impl Worker {
    fn start(path: &Path, flush: u64, limit: u64) -> Self {
        let arguments = format!("{flush} {limit} {}", path.display());
        let process = InteractiveProcess::start(&mut test_command(
            module_path!(),
            "worker",
            WORKER,
            arguments,
        ));
        let mut worker = Self { process, initial_usage: 0 };
        worker.initial_usage = worker.read_number();
        worker
    }

    fn read_number(&mut self) -> u64 {
        let line = self.process.read_message().unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn request(&mut self, line: &str) -> u64 {
        self.process.write_line(line);
        self.read_number()
    }

    fn end(mut self) {
        self.process.write_line("end");
        assert!(self.process.output().status.success());
    }
}

#[test]
fn two_processes_see_usage_of_each_other() {
    let (_folder, path) = folder();
    let mut one = Worker::start(&path, 20, 10);
    let mut two = Worker::start(&path, 20, 10);
    assert_eq!(one.request("admit 3"), 3);
    while two.request("used") < 3 {}
    assert_eq!(two.request("admit 100"), 7);
    while one.request("used") < 10 {}
    assert_eq!(one.request("admit 1"), 0);
    one.end();
    two.end();
    assert_eq!(total(&path, "k"), 10);
    let mut third = Worker::start(&path, 20, 10);
    assert_eq!(third.initial_usage, 10);
    assert_eq!(third.request("admit 1"), 0);
}

#[test]
fn processes_exceed_limit_only_by_unflushed_batches() {
    const WORKERS: u64 = 4;
    const LIMIT: u64 = 400;
    const BATCH: u64 = 5;
    let (_folder, path) = folder();
    let workers: Vec<_> = (0..WORKERS).map(|_| Worker::start(&path, 20, LIMIT)).collect();
    let race = |mut worker: Worker| {
        let mut admitted = 0;
        loop {
            let more = worker.request(&format!("admit {BATCH}"));
            worker.process.write_line("flush");
            worker.process.read_message().unwrap();
            admitted += more;
            if more == 0 {
                worker.end();
                return admitted;
            }
        }
    };
    let threads = workers.into_iter().map(|worker| std::thread::spawn(move || race(worker)));
    let threads: Vec<_> = threads.collect();
    let admitted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(total(&path, "k").unsigned_abs(), admitted);
    assert!((LIMIT..=LIMIT + (WORKERS - 1) * BATCH).contains(&admitted), "{admitted}");
}

#[test]
fn killed_process_loses_only_unflushed_usage() {
    const FLUSH: u64 = 20;
    let (_folder, path) = folder();
    let (mut stored, mut losses, mut random) = (0, Vec::new(), 0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..full_or(50, 10) {
        let worker = Worker::start(&path, FLUSH, 1_000_000_000);
        assert_eq!(worker.initial_usage, stored, "the day continues with the stored usage");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (times, kept_at) = kill_after(worker, random >> 51);
        let db = Connection::open(&path).unwrap();
        let check: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let written = total(&path, "k").unsigned_abs() - stored;
        stored += written;
        // One request may have been admitted and written, but not printed.
        let written = usize::try_from(written).unwrap();
        assert!(written <= times.len() + 1, "{written} of {}", times.len());
        let flushed = times.partition_point(|at| *at < kept_at);
        assert!(written >= flushed, "{written} of {flushed} flushed");
        let since = times.get(written).map_or(0, |at| times[times.len() - 1] - at);
        losses.push((times.len().saturating_sub(written), since / 1_000));
    }
    losses.sort_unstable();
    println!("lost (admissions, microseconds of them): {losses:?}");
}

/// Kills a worker after this many admissions or slightly more; returns the times of admissions, and
/// the time up to which they were known to be written.
fn kill_after(worker: Worker, admitted: u64) -> (Vec<u64>, u64) {
    let mut process = worker.process;
    process.write_line("report");
    let (mut times, mut kept_at, mut count) = (Vec::new(), 0, 0);
    while let Some(line) = process.read_message() {
        let mut words = line.split(' ').skip(1).map(|word| word.parse().unwrap());
        times.push(words.next().unwrap());
        kept_at = words.next().unwrap();
        count += 1;
        if count == admitted.max(1) {
            process.kill();
        }
    }
    (times, kept_at)
}
