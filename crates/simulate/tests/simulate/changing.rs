//! Limits over time: requests in flight, use by others, changes, and times of failure.

use std::time::Duration;

use paceline_simulate::{
    Cycle, Fault, FaultKind, LimitAlgorithm, LimitChange, OtherUse, Provider, Settings,
    SimulatedReply,
};
use paceline_testing::full::full_or;
use proptest::prelude::*;

use super::{SECOND, chat, object};

const MS: u64 = 1_000_000;

fn receive(provider: &mut Provider, now: u64) -> SimulatedReply {
    provider.receive(now, "/v1/chat/completions", chat("Hello").to_string().as_bytes())
}

fn cycle(active: u64, idle: u64) -> Cycle {
    Cycle { active: Duration::from_secs(active), idle: Duration::from_secs(idle) }
}

/// Sends one request every `gap` from the first to the last time, and returns the number admitted.
fn admitted(provider: &mut Provider, times: std::ops::Range<u64>, gap: u64) -> u64 {
    let times = (0..).map(|i| times.start + i * gap).take_while(|now| *now < times.end);
    times.map(|now| u64::from(provider.admit(now, "gpt-4o", 1, 0).is_ok())).sum()
}

/// 10 requests per second, with a burst of one second.
fn ten_per_second() -> Settings {
    Settings::default().with_rpm(600).with_burst(Duration::from_secs(1))
}

#[test]
fn requests_in_flight_are_limited_until_answered() {
    let second = Duration::from_secs(1);
    let settings = Settings::default().with_concurrency(2).with_latency(second, second);
    let mut provider = Provider::new(settings);
    assert_eq!(receive(&mut provider, 0).status, 200);
    assert_eq!(receive(&mut provider, SECOND / 2).status, 200);
    let refused = receive(&mut provider, SECOND - 1);
    assert_eq!((refused.status, refused.header("retry-after")), (429, None));
    let error = &object(&refused)["error"];
    assert_eq!(error["type"], "concurrency");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("on concurrent requests: Limit 2, Used 2"), "{message}");
    assert_eq!(receive(&mut provider, SECOND).status, 200);
    assert_eq!(receive(&mut provider, SECOND).status, 429);
}

#[test]
fn others_take_share_of_a_bucket() {
    let others = OtherUse { share: 0.75, cycle: None };
    let mut provider = Provider::new(ten_per_second().with_others(others));
    // The burst, and then a quarter of 10 per second.
    let admitted = admitted(&mut provider, 0..100 * SECOND, 50 * MS);
    assert!((250..=262).contains(&admitted), "{admitted}");
}

#[test]
fn others_take_share_of_windows() {
    for algorithm in
        [LimitAlgorithm::SlidingWindow, LimitAlgorithm::FixedWindow, LimitAlgorithm::ClockWindow]
    {
        let settings = Settings::default()
            .with_rpm(600)
            .with_window(Duration::from_secs(1))
            .with_algorithm(algorithm)
            .with_others(OtherUse { share: 0.5, cycle: None });
        let mut provider = Provider::new(settings);
        // One request every 200 ms leaves the others their half; one every 50 ms takes what they
        // have not used yet.
        let slow = admitted(&mut provider, 0..50 * SECOND, 200 * MS);
        assert_eq!(slow, 250, "{algorithm:?}");
        let fast = admitted(&mut provider, 50 * SECOND..100 * SECOND, 50 * MS);
        assert!((245..=500).contains(&fast), "{algorithm:?} {fast}");
    }
}

#[test]
fn others_come_and_go() {
    let others = OtherUse { share: 0.5, cycle: Some(cycle(20, 10)) };
    let mut provider = Provider::new(ten_per_second().with_others(others));
    let mut during =
        |from: u64, until: u64| admitted(&mut provider, from * SECOND..until * SECOND, 50 * MS);
    during(0, 5);
    assert!((74..=76).contains(&during(5, 20)));
    assert!((99..=101).contains(&during(20, 30)));
    assert!((99..=101).contains(&during(30, 50)));
    assert!((99..=101).contains(&during(50, 60)));
}

#[test]
fn others_are_caught_up_after_a_long_pause() {
    let others = OtherUse { share: 0.5, cycle: None };
    let mut provider = Provider::new(ten_per_second().with_others(others));
    for now in [0, u64::MAX / 2, u64::MAX] {
        assert!(provider.admit(now, "gpt-4o", 1, 0).is_ok(), "{now}");
    }
}

#[test]
fn change_applies_to_limits_and_headers() {
    let at = Duration::from_secs(150);
    let settings = ten_per_second()
        .with_tpm(6_000)
        .with_concurrency(100)
        .with_change(LimitChange { at: 2 * at, factor: 2.0 })
        .with_change(LimitChange { at, factor: 0.25 });
    let mut provider = Provider::new(settings);
    let start = 1_000 * SECOND;
    let stated = |provider: &mut Provider, now: u64| {
        let reply = receive(provider, now);
        ["requests", "tokens"].map(|name| {
            let header = reply.header(&format!("x-ratelimit-limit-{name}"));
            header.map(str::to_owned).expect("a limit")
        })
    };
    assert_eq!(stated(&mut provider, start), ["600", "6000"]);
    assert_eq!(stated(&mut provider, start + 150 * SECOND - 1), ["600", "6000"]);
    assert_eq!(stated(&mut provider, start + 150 * SECOND), ["150", "1500"]);
    let slow = admitted(&mut provider, start + 160 * SECOND..start + 200 * SECOND, 50 * MS);
    assert!((100..=103).contains(&slow), "{slow}");
    assert_eq!(stated(&mut provider, start + 300 * SECOND), ["1200", "12000"]);
    let fast = admitted(&mut provider, start + 310 * SECOND..start + 350 * SECOND, 25 * MS);
    assert!((800..=820).contains(&fast), "{fast}");
}

#[test]
fn change_lowers_requests_in_flight() {
    let minute = Duration::from_secs(60);
    let settings = Settings::default()
        .with_concurrency(4)
        .with_latency(minute, minute)
        .with_change(LimitChange { at: Duration::from_secs(10), factor: 0.5 });
    let mut provider = Provider::new(settings);
    let statuses =
        [0, 1, 2, 11, 60, 61, 62].map(|seconds| receive(&mut provider, seconds * SECOND).status);
    assert_eq!(statuses, [200, 200, 200, 429, 429, 200, 200]);
}

#[test]
fn storm_refuses_every_request_meanwhile() {
    let [from, until] = [10, 12].map(Duration::from_secs);
    let fault = Fault::between(from, until, FaultKind::Overloaded);
    let settings = Settings::default()
        .with_rpm(3)
        .with_error_latency(Duration::from_millis(500), Duration::from_millis(500))
        .with_fault(fault);
    let mut provider = Provider::new(settings);
    let start = 77 * SECOND;
    let at = [0, 10 * SECOND - 1, 10 * SECOND, 12 * SECOND - 1, 12 * SECOND, 12 * SECOND];
    let replies = at.map(|after| receive(&mut provider, start + after));
    let statuses = replies.each_ref().map(|reply| reply.status);
    assert_eq!(statuses, [200, 200, 503, 503, 200, 429]);
    let latencies = replies.each_ref().map(|reply| reply.latency.as_millis());
    assert_eq!(latencies, [0, 0, 500, 500, 0, 500]);
}

#[test]
fn share_of_requests_fails_in_times_that_repeat() {
    let fault = Fault::share(0.2, FaultKind::RateLimited).with_cycle(cycle(20, 40));
    let mut provider = Provider::new(Settings::default().with_fault(fault));
    let mut refused = |from: u64, until: u64| {
        let times = (from * SECOND..until * SECOND).step_by((20 * MS) as usize);
        times.filter(|now| receive(&mut provider, *now).status == 429).count()
    };
    assert!((150..250).contains(&refused(0, 20)));
    assert_eq!(refused(20, 60), 0);
    assert!((150..250).contains(&refused(60, 80)));
    assert_eq!(refused(80, 120), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(full_or(5_000, 500)))]

    /// Others leave at least the rest, and never more than the limit with its burst.
    #[test]
    fn others_leave_the_rest_of_a_bucket(
        rpm in 60..6_000_u64,
        burst_ms in 100..20_000_u64,
        share in 0.05..0.95_f64,
        gap_ms in 5..40_u64,
    ) {
        let burst = Duration::from_millis(burst_ms);
        let settings = Settings::default().with_rpm(rpm).with_burst(burst);
        let mut provider = Provider::new(settings.with_others(OtherUse { share, cycle: None }));
        let admitted = admitted(&mut provider, 0..60 * SECOND, gap_ms * MS) as f64;
        let rate = rpm as f64 / 60.0;
        let capacity = (rate * burst.as_secs_f64()).floor().max(1.0);
        let demand = 60_000_f64 / gap_ms as f64;
        let rest = (rate * (1.0 - share) * 60.0 + capacity).min(demand);
        // A step of 10 ms and a gap without a request may be lost: once, or for each request of a bucket of one.
        let lost = if capacity < 2.0 { rest * rate * (gap_ms + 10) as f64 / 1_000.0 } else { 0.0 };
        let slack = 2.0 + rate * 0.06 + capacity + lost;
        prop_assert!((admitted - rest).abs() <= slack, "{admitted} {rest} {slack}");
    }
}
