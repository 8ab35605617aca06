use std::time::Duration;

use paceline::engine::Wait;
use paceline::limiter::{Code, Event, Limiter, TokioClock};
use paceline::provider::{ANTHROPIC, OPENAI};
use paceline::quota::{Cost, Dimension, Quota, Usage};

use super::{S, builder, manual, settle_down, tokens};

#[test]
fn refusal_names_dimension_and_exact_time() {
    let (limiter, clock) = manual(Quota::new().rpm(10).tpm(6_000));
    drop(limiter.try_acquire("k", &tokens(6_000)).unwrap());
    let refused = limiter.try_acquire("k", &tokens(100)).unwrap_err();
    assert_eq!(
        (refused.code, refused.dimension.clone()),
        (Code::TpmExceeded, Some(Dimension::Tokens))
    );
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
    clock.advance(S - Duration::from_nanos(1));
    assert!(limiter.try_acquire("k", &tokens(100)).is_err());
    clock.advance(Duration::from_nanos(1));
    assert!(limiter.try_acquire("k", &tokens(100)).is_ok());
}

#[test]
fn permit_dropped_keeps_charge_and_frees_concurrency() {
    let (limiter, _) = manual(Quota::new().tpm(100).concurrency(1));
    let permit = limiter.try_acquire("k", &tokens(60)).unwrap();
    let second = limiter.try_acquire("k", &tokens(10)).unwrap_err();
    assert_eq!((second.code, second.wait), (Code::ConcurrencyExceeded, Wait::Unknown));
    drop(permit);
    let stats = limiter.stats("k");
    assert_eq!((stats.limits[0].used, stats.limits[0].held, stats.limits[1].held), (60, 0, 0));
}

#[test]
fn settle_charges_actual_usage_and_release_refunds() {
    let (limiter, _) = manual(Quota::new().rpm(5).tpm(100));
    limiter.try_acquire("k", &tokens(60)).unwrap().settle(&tokens(25));
    let used: Vec<_> = limiter.stats("k").limits.iter().map(|l| l.used).collect();
    assert_eq!(used, [1, 25]);
    limiter.try_acquire("k", &tokens(60)).unwrap().release();
    let used: Vec<_> = limiter.stats("k").limits.iter().map(|l| l.used).collect();
    assert_eq!(used, [1, 25]);
}

#[test]
fn usage_above_reservation_becomes_debt() {
    let (limiter, clock) = manual(Quota::new().tpm(60));
    limiter.try_acquire("k", &tokens(1)).unwrap().settle(&tokens(120));
    let refused = limiter.try_acquire("k", &tokens(1)).unwrap_err();
    assert_eq!(refused.wait, Wait::At(limiter.now() + 61 * S));
    clock.advance(Duration::from_secs(61));
    assert!(limiter.try_acquire("k", &tokens(1)).is_ok());
}

#[test]
fn cost_above_limit_is_refused_permanently() {
    let (limiter, _) = manual(Quota::new().tpm(8_000));
    let refused = limiter.try_acquire("k", &tokens(9_000)).unwrap_err();
    assert_eq!(refused.code, Code::ExceedsCapacity);
    let text = "k: the request needs 9000 tokens, the limit allows at most 8000; \
                make the request smaller or raise the limit";
    assert_eq!(refused.to_string(), text);
    assert_eq!(refused.retry_after(), None);
}

#[test]
fn decide_reserves_zero_and_record_always_charges() {
    let (limiter, _) = manual(Quota::new().rpm(2).tpm(100));
    for _ in 0..5 {
        assert!(limiter.decide("k", &tokens(90)).is_allowed());
    }
    for _ in 0..3 {
        limiter.record("k", &Usage { input: 30, output: 20, ..Usage::default() });
    }
    let decision = limiter.decide("k", &tokens(1));
    assert_eq!((decision.code, decision.stats.limits[0].used), (Code::RpmExceeded, 3));
    assert_eq!(decision.stats.limits[1].used, 150);
}

#[test]
fn events_report_grant_denial_settlement_and_quota() {
    let (limiter, _) = manual(Quota::new().rpm(1));
    let mut events = limiter.subscribe();
    let permit = limiter.try_acquire("k", &Cost::new()).unwrap();
    limiter.try_acquire("k", &Cost::new()).unwrap_err();
    permit.settle(&Cost::new());
    limiter.quotas().set("k", &Quota::new().rpm(7)).unwrap();
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        seen.push(event);
    }
    let (key, cost) = ("k".into(), Cost::new());
    assert_eq!(seen[0], Event::Granted { key, cost, metadata: None });
    assert_eq!(
        seen[1],
        Event::Denied { key: "k".into(), dimension: Some(Dimension::Requests), metadata: None }
    );
    assert!(matches!(&seen[2], Event::Settled { charged: Some(_), .. }));
    assert!(matches!(&seen[3], Event::QuotaChanged { .. }));
    assert_eq!(seen.len(), 4);
}

#[test]
fn permit_end_emits_one_settled_event() {
    for quota in [Quota::new().concurrency(9), Quota::new().rpm(9)] {
        let (limiter, _) = manual(quota);
        let mut events = limiter.subscribe();
        let charged: [fn(paceline::limiter::Permit); 3] =
            [drop, |p| p.settle(&Cost::new()), paceline::limiter::Permit::release];
        for end in charged {
            end(limiter.try_acquire("k", &Cost::new()).unwrap());
            assert!(matches!(events.try_recv(), Ok(Event::Granted { .. })));
            assert!(matches!(events.try_recv(), Ok(Event::Settled { .. })));
            assert!(events.try_recv().is_err());
        }
    }
}

/// Returns a limiter with 100 input and 100 output tokens per minute, of a provider that counts
/// input first.
fn in_and_out() -> Limiter {
    let quota = Quota::new().itpm(100).otpm(100);
    builder().provider(ANTHROPIC).quota("k", quota).clock(TokioClock::new()).build().unwrap()
}

fn both(input: u64, output: u64) -> Cost {
    Cost::new().input_tokens(input).output_tokens(output)
}

/// Returns the used and held amounts of input and output.
fn used_and_held(limiter: &Limiter) -> [(u64, u64); 2] {
    let limits = limiter.stats("k").limits;
    [0, 1].map(|at: usize| (limits[at].used, limits[at].held))
}

#[tokio::test(start_paused = true)]
async fn settle_early_releases_held_amount_of_dimension() {
    let limiter = in_and_out();
    let mut permit = limiter.try_acquire("k", &both(60, 40)).unwrap();
    assert_eq!(used_and_held(&limiter), [(0, 60), (0, 40)]);
    permit.settle_early(&Dimension::InputTokens, 25);
    permit.settle_early(&Dimension::InputTokens, 99);
    assert_eq!(used_and_held(&limiter), [(25, 0), (0, 40)], "the first amount counts");
    assert_eq!(permit.cost(), &both(60, 40));
    permit.settle(&both(25, 10));
    assert_eq!(used_and_held(&limiter), [(25, 0), (10, 0)]);
}

#[tokio::test(start_paused = true)]
async fn settle_early_applies_to_every_end_of_a_permit() {
    for (ended, input) in [(0, 25), (1, 25), (2, 30), (3, 25)] {
        let limiter = in_and_out();
        let mut permit = limiter.try_acquire("k", &both(60, 40)).unwrap();
        permit.settle_early(&Dimension::InputTokens, 25);
        match ended {
            0 => permit.release(),
            1 => permit.settle(&both(20, 0)),
            3 => permit.settle(&Cost::new().output_tokens(0)),
            _ => permit.settle(&both(30, 0)),
        }
        assert_eq!(used_and_held(&limiter), [(input, 0), (0, 0)], "end {ended}");
    }
    let limiter = in_and_out();
    let mut permit = limiter.try_acquire("k", &both(60, 40)).unwrap();
    permit.settle_early(&Dimension::InputTokens, 25);
    drop(permit);
    assert_eq!(used_and_held(&limiter), [(60, 0), (40, 0)], "the reservation is the charge");
}

#[tokio::test(start_paused = true)]
async fn settle_early_admits_next_waiter() {
    let limiter = in_and_out();
    let mut permit = limiter.try_acquire("k", &both(60, 40)).unwrap();
    let begun = limiter.now();
    let waiting = tokio::spawn(limiter.acquire("k", &both(70, 40)));
    settle_down().await;
    permit.settle_early(&Dimension::InputTokens, 25);
    waiting.await.unwrap().unwrap();
    assert_eq!(limiter.now(), begun);
}

#[test]
fn settle_early_of_amount_charged_at_send_is_ignored() {
    let quota = Quota::new().tpm(100);
    let limiter = builder().provider(OPENAI).quota("gpt-4o", quota).build().unwrap();
    let mut permit = limiter.try_acquire("gpt-4o", &tokens(60)).unwrap();
    permit.settle_early(&Dimension::Tokens, 5);
    assert_eq!(limiter.stats("gpt-4o").limits[0].used, 60);
    drop(permit);
    assert_eq!(limiter.stats("gpt-4o").limits[0].used, 60);
}
