use paceline::Timestamp;
use std::time::Duration;

use paceline::limiter::{BucketChanges, KeyChanges, Limiter, ManualClock, RateLimited, Reduction};
use paceline::provider::OPENAI;
use paceline::quota::{Algorithm, Cost, Dimension, Quota, Usage, Window};
use paceline_limiter::seam;

use super::{S, builder, manual, tokens};

pub(super) const START: Timestamp = ManualClock::START;

/// Returns the entries and the held amount of one dimension.
pub(super) fn of(
    changes: &[KeyChanges],
    dimension: &Dimension,
) -> Option<(Vec<(Timestamp, i64)>, u64)> {
    let [change] = changes else { return None };
    let bucket = change.buckets.iter().find(|bucket| bucket.dimension == *dimension)?;
    Some((bucket.taken.clone(), bucket.held))
}

pub(super) fn tracked(quota: Quota) -> (Limiter, ManualClock) {
    let (limiter, clock) = manual(quota);
    seam::track(&limiter);
    (limiter, clock)
}

pub(super) fn taken(
    key: &str,
    dimension: Dimension,
    entries: &[(Timestamp, i64)],
    held: u64,
) -> [KeyChanges; 1] {
    let mut change = KeyChanges::new(key);
    change.buckets = vec![BucketChanges::new(dimension, Window::MINUTE, entries.to_vec(), held)];
    [change]
}

pub(super) fn used_and_held(limiter: &Limiter, index: usize) -> (u64, u64) {
    let limit = &limiter.stats("k").limits[index];
    (limit.used, limit.held)
}

#[test]
fn untracked_limiter_collects_no_changes() {
    let (limiter, _) = manual(Quota::new().rpm(10));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    assert_eq!(seam::collect_changes(&limiter), []);
    seam::track(&limiter);
    assert_eq!(seam::collect_changes(&limiter), []);
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    assert_eq!(seam::collect_changes(&limiter).len(), 1);
    assert_eq!(seam::collect_changes(&limiter), []);
}

#[test]
fn held_amounts_are_reported_in_total_and_usage_at_settle() {
    let (limiter, clock) = tracked(Quota::new().rpm(10).tpm(1_000).concurrency(5));
    let first = limiter.try_acquire("k", &tokens(300)).unwrap();
    let second = limiter.try_acquire("k", &tokens(200)).unwrap();
    let changes = seam::collect_changes(&limiter);
    assert_eq!(of(&changes, &Dimension::Requests), Some((vec![(START, 2)], 0)));
    assert_eq!(of(&changes, &Dimension::Tokens), Some((vec![], 500)));
    assert_eq!(of(&changes, &Dimension::Concurrency), Some((vec![], 2)));

    clock.advance(Duration::from_secs(2));
    first.settle(&tokens(120));
    let changes = seam::collect_changes(&limiter);
    assert_eq!(of(&changes, &Dimension::Requests), None);
    assert_eq!(of(&changes, &Dimension::Tokens), Some((vec![(START + 2 * S, 120)], 200)));
    assert_eq!(of(&changes, &Dimension::Concurrency), Some((vec![], 1)));

    second.release();
    let changes = seam::collect_changes(&limiter);
    assert_eq!(of(&changes, &Dimension::Requests), Some((vec![(START, -1)], 0)));
    assert_eq!(of(&changes, &Dimension::Tokens), Some((vec![], 0)));
    assert_eq!(seam::collect_changes(&limiter), []);
}

#[test]
fn correction_of_uncollected_change_is_netted() {
    let clock = ManualClock::new();
    let quota = Quota::new().tpm(6_000);
    let limiter = builder().provider(OPENAI).quota("gpt-4o", quota).clock(clock.clone()).build();
    let limiter = limiter.unwrap();
    seam::track(&limiter);
    let netted = limiter.try_acquire("gpt-4o", &tokens(300)).unwrap();
    let late = limiter.try_acquire("gpt-4o", &tokens(100)).unwrap();
    netted.settle(&tokens(250));
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Tokens);
    assert_eq!(reported, Some((vec![(START, 350)], 0)));
    clock.advance(Duration::from_secs(10));
    late.settle(&tokens(140));
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Tokens);
    assert_eq!(reported, Some((vec![(START + 10 * S, 40)], 0)), "at the time of the correction");
}

/// Returns a tracked limiter that charges tokens when they are sent.
fn charging(algorithm: Algorithm) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let quota = Quota::new().tpm(6_000).with_algorithm(algorithm);
    let limiter = builder().provider(OPENAI).quota("gpt-4o", quota).clock(clock.clone()).build();
    let limiter = limiter.unwrap();
    seam::track(&limiter);
    (limiter, clock)
}

#[test]
fn refund_after_fixed_window_ends_leaves_next_window_alone() {
    for collected in [true, false] {
        let (limiter, clock) = charging(Algorithm::FixedWindow);
        clock.advance(Duration::from_millis(500));
        limiter.try_acquire("gpt-4o", &tokens(1)).unwrap().settle(&tokens(1));
        clock.advance(Duration::from_millis(59_800));
        let late = limiter.try_acquire("gpt-4o", &tokens(20)).unwrap();
        if collected {
            seam::collect_changes(&limiter);
        }
        clock.advance(Duration::from_millis(300));
        limiter.try_acquire("gpt-4o", &tokens(30)).unwrap().settle(&tokens(30));
        late.settle(&tokens(0));
        let (reported, _) = of(&seam::collect_changes(&limiter), &Dimension::Tokens).unwrap();
        assert_eq!(
            reported.last(),
            Some(&(START + Duration::from_millis(60_600), 30)),
            "{reported:?}"
        );
    }
}

#[test]
fn uncollected_refund_in_an_older_window_is_netted() {
    let (limiter, clock) = charging(Algorithm::FixedWindow);
    limiter.try_acquire("gpt-4o", &tokens(1)).unwrap().settle(&tokens(1));
    seam::collect_changes(&limiter);
    clock.advance(Duration::from_secs(15));
    limiter.try_acquire("gpt-4o", &tokens(5)).unwrap().settle(&tokens(0));
    assert_eq!(of(&seam::collect_changes(&limiter), &Dimension::Tokens), None);
}

#[test]
fn refund_of_collected_usage_keeps_original_time() {
    let (limiter, clock) = charging(Algorithm::SlidingWindow);
    let [more, less] = [100, 700].map(|cost| limiter.try_acquire("gpt-4o", &tokens(cost)).unwrap());
    seam::collect_changes(&limiter);
    clock.advance(Duration::from_millis(500));
    let later = limiter.try_acquire("gpt-4o", &tokens(1)).unwrap();
    seam::collect_changes(&limiter);
    more.settle(&tokens(101));
    less.settle(&tokens(0));
    later.settle(&tokens(1));
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Tokens);
    assert_eq!(reported, Some((vec![(START, 1), (START, -700)], 0)));
}

#[test]
fn usage_within_part_of_window_is_one_entry() {
    let (limiter, clock) = tracked(Quota::new().rpm(1_000));
    for _ in 0..100 {
        drop(limiter.try_acquire("k", &Cost::new()).unwrap());
        clock.advance(Duration::from_millis(1));
    }
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Requests);
    assert_eq!(reported, Some((vec![(START + Duration::from_millis(99), 100)], 0)));
}

#[test]
fn uncollected_changes_stay_bounded_and_complete() {
    let (limiter, clock) = tracked(Quota::new().rpm(1_000));
    for _ in 0..1_000 {
        limiter.record("k", &Usage::default());
        clock.advance(Duration::from_secs(1));
    }
    let (entries, _) = of(&seam::collect_changes(&limiter), &Dimension::Requests).unwrap();
    assert!(entries.len() <= 128, "{}", entries.len());
    assert_eq!(entries.iter().map(|(_, amount)| amount).sum::<i64>(), 1_000);
    assert!(entries.is_sorted());
}

#[test]
fn prune_keeps_key_until_changes_are_collected() {
    let (limiter, clock) = tracked(Quota::new().rpm(1_000));
    drop(limiter.try_acquire("k", &Cost::new()).unwrap());
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(limiter.state().prune(), 0);
    assert_eq!(seam::collect_changes(&limiter).len(), 1);
    assert_eq!(limiter.state().prune(), 1);
}

#[test]
fn keys_of_shared_quota_report_changes_under_pattern() {
    let (limiter, _) = tracked(Quota::new().rpm(1));
    limiter.quotas().set("m-*", &Quota::new().rpm(10).shared()).unwrap();
    drop(limiter.try_acquire("m-1", &Cost::new()).unwrap());
    drop(limiter.try_acquire("m-2", &Cost::new()).unwrap());
    let changes = seam::collect_changes(&limiter);
    assert_eq!(changes[0].key, "m-*");
    assert_eq!(of(&changes, &Dimension::Requests), Some((vec![(START, 2)], 0)));
    seam::apply_changes(&limiter, &taken("m-*", Dimension::Requests, &[(START, 5)], 0));
    assert_eq!(limiter.stats("m-3").limits[0].used, 7);
}

#[test]
fn quota_changed_in_flight_counts_usage_once() {
    let (limiter, _) = tracked(Quota::new().rpm(10).tpm(1_000));
    seam::apply_changes(&limiter, &taken("k", Dimension::Tokens, &[], 70));
    let permit = limiter.try_acquire("k", &tokens(100)).unwrap();
    seam::collect_changes(&limiter);
    limiter.quotas().set("k", &Quota::new().rpm(20).tpm(2_000)).unwrap();
    assert_eq!(used_and_held(&limiter, 1), (0, 170));
    permit.settle(&tokens(60));
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Tokens);
    assert_eq!(reported, Some((vec![(START, 60)], 0)));
    assert_eq!(used_and_held(&limiter, 1), (60, 70));
    seam::apply_changes(&limiter, &taken("k", Dimension::Tokens, &[], 0));
    assert_eq!(used_and_held(&limiter, 1), (60, 0));
}

#[test]
fn held_amount_of_removed_limit_counts_as_used() {
    let (limiter, _) = tracked(Quota::new().rpm(10).tpm(1_000).concurrency(4));
    let permit = limiter.try_acquire("k", &tokens(100)).unwrap();
    seam::collect_changes(&limiter);
    seam::apply_changes(&limiter, &taken("k", Dimension::Tokens, &[], 30));
    limiter.quotas().set("k", &Quota::new().rpm(10)).unwrap();
    let reported = seam::collect_changes(&limiter);
    assert_eq!(of(&reported, &Dimension::Tokens), Some((vec![(START, 100)], 0)));
    assert_eq!(of(&reported, &Dimension::Concurrency), Some((vec![], 0)));
    permit.settle(&tokens(40));
    assert_eq!(seam::collect_changes(&limiter), []);
    limiter.quotas().set("k", &Quota::new().rpm(10).tpm(500)).unwrap();
    assert_eq!(used_and_held(&limiter, 1), (0, 30), "amounts held by other instances stay");
}

#[test]
fn reduction_does_not_change_reported_usage() {
    let clock = ManualClock::new();
    let quota = Quota::new().tpm(1_000);
    let limiter = Limiter::builder().reduction(Reduction::new()).quota("k", quota);
    let limiter = limiter.clock(clock.clone()).build().unwrap();
    seam::track(&limiter);
    seam::apply_changes(&limiter, &taken("k", Dimension::Tokens, &[], 30));
    let permit = limiter.try_acquire("k", &tokens(100)).unwrap();
    limiter.feedback().rate_limited("k", &RateLimited::new(Some(Duration::from_secs(1))));
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Tokens);
    assert_eq!(reported, Some((vec![], 100)));
    clock.advance(Duration::from_secs(3_600));
    permit.settle(&tokens(90));
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Tokens);
    assert_eq!(reported, Some((vec![(START + 3_600 * S, 90)], 0)));
    assert_eq!(limiter.stats("k").limits[0].held, 30);
}

#[test]
fn dimension_settled_early_is_reported_once() {
    let (limiter, _) = tracked(Quota::new().itpm(1_000).otpm(1_000));
    let cost = Cost::new().input_tokens(100).output_tokens(50);
    let mut permit = limiter.try_acquire("k", &cost).unwrap();
    permit.settle_early(&Dimension::InputTokens, 80);
    let reported = seam::collect_changes(&limiter);
    assert_eq!(of(&reported, &Dimension::InputTokens), Some((vec![(START, 80)], 0)));
    assert_eq!(of(&reported, &Dimension::OutputTokens), Some((vec![], 50)));
    permit.settle(&Cost::new().input_tokens(80).output_tokens(20));
    let reported = seam::collect_changes(&limiter);
    assert_eq!(of(&reported, &Dimension::InputTokens), None);
    assert_eq!(of(&reported, &Dimension::OutputTokens), Some((vec![(START, 20)], 0)));
}

#[test]
fn changes_collected_while_threads_reserve_are_exact() {
    let clock = ManualClock::new();
    let quota = Quota::new().rpm(1_000_000).tpm(100_000_000).concurrency(64);
    let limiter = builder().quota("*", quota).clock(clock).build().unwrap();
    seam::track(&limiter);
    let running = std::sync::atomic::AtomicUsize::new(3);
    let (mut requests, mut tokens_taken) = (0, 0);
    let mut add = |changes: Vec<KeyChanges>| {
        for bucket in changes.iter().flat_map(|change| &change.buckets) {
            let sum = bucket.taken.iter().map(|(_, amount)| amount).sum::<i64>();
            match bucket.dimension {
                Dimension::Requests => requests += sum,
                Dimension::Tokens => tokens_taken += sum,
                _ => assert_eq!(sum, 0),
            }
        }
        changes
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (limiter, running) = (&limiter, &running);
            scope.spawn(move || {
                for i in 0..20_000_u64 {
                    let key = ["a", "b", "c"][((i + thread) % 3) as usize];
                    let permit = limiter.try_acquire(key, &tokens(10)).unwrap();
                    if i % 5 == 0 { permit.release() } else { permit.settle(&tokens(i % 7)) }
                }
                running.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        while running.load(std::sync::atomic::Ordering::SeqCst) > 0 {
            add(seam::collect_changes(&limiter));
        }
    });
    let last = add(seam::collect_changes(&limiter));
    assert!(last.iter().flat_map(|change| &change.buckets).all(|bucket| bucket.held == 0));
    let each: u64 = (0..20_000).filter(|i| i % 5 != 0).map(|i| i % 7).sum();
    assert_eq!((requests, tokens_taken), (3 * 16_000, 3 * i64::try_from(each).unwrap()));
}
#[test]
fn usage_before_tracking_is_neither_reported_nor_refunded() {
    let (limiter, clock) = manual(Quota::new().rpm(10).tpm(1_000));
    let permit = limiter.try_acquire("k", &tokens(10)).unwrap();
    clock.advance(Duration::from_secs(1));
    seam::track(&limiter);
    let reported = of(&seam::collect_changes(&limiter), &Dimension::Tokens);
    assert_eq!(reported, Some((vec![], 10)));
    permit.release();
    let reported = seam::collect_changes(&limiter);
    assert_eq!(of(&reported, &Dimension::Requests), None);
    assert_eq!(of(&reported, &Dimension::Tokens), Some((vec![], 0)));
}
