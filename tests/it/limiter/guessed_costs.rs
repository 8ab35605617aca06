//! Costs with estimated parts: an estimate never causes the refusal of a request that could be sent.

use paceline::limiter::{Code, Limiter, ManualClock, UnknownKey};
use paceline::provider::{ANTHROPIC, Estimate, Profile};
use paceline::quota::{Algorithm, Cost, Dimension, Quota, Share};
use proptest::prelude::*;

use super::{builder, manual, paused, settle_down, tokens};
use paceline_testing::full::full_or;

const CHAT: &str = "/v1/chat/completions";

fn body(text: usize, max_tokens: Option<u64>) -> Vec<u8> {
    let messages = serde_json::json!([{"role": "user", "content": "x".repeat(text)}]);
    let mut body = serde_json::json!({"model": "m", "messages": messages});
    if let Some(most) = max_tokens {
        body["max_tokens"] = most.into();
    }
    body.to_string().into_bytes()
}

fn guessed(known: u64, guess: u64) -> Cost {
    tokens(known + guess).guessed_tokens(guess)
}

fn used_and_held(limiter: &Limiter, key: &str) -> Vec<(u64, u64)> {
    limiter.stats(key).limits.iter().map(|limit| (limit.used, limit.held)).collect()
}

#[test]
fn guessed_output_fits_small_limits_for_every_provider() {
    for &profile in Profile::all() {
        let quota = Quota::new().tpm(1_000).otpm(1_000);
        let limiter = builder().provider(profile).quota("m", quota).build().unwrap();
        let cost = profile.read_request(CHAT, &body(40, None)).cost;
        let permit = limiter.try_acquire("m", &cost);
        assert!(permit.is_ok(), "{}: {permit:?}", profile.name());
    }
}

#[test]
fn uncharged_output_bound_fits_small_limits() {
    for &profile in Profile::all() {
        let estimate = profile.read_request(CHAT, &body(40, Some(8_000)));
        let known = match estimate.guesses_output() {
            true => estimate.terms.floor,
            false => estimate.cost.amount(&Dimension::Tokens),
        };
        let limiter = |quota| builder().provider(profile).quota("m", quota).build().unwrap();
        let output = limiter(Quota::new().otpm(1_000)).try_acquire("m", &estimate.cost);
        assert!(output.is_ok(), "{}: {output:?}", profile.name());
        let all = limiter(Quota::new().tpm(1_000)).try_acquire("m", &estimate.cost);
        assert_eq!(all.is_ok(), known <= 1_000, "{}: {all:?}", profile.name());
    }
}

#[test]
fn known_part_above_limit_is_refused_with_amount() {
    let (limiter, _) = manual(Quota::new().tpm(1_000));
    let refused = limiter.try_acquire("k", &guessed(1_001, 500)).unwrap_err();
    assert_eq!(
        (refused.code, refused.need.map(|need| (need.amount, need.limit))),
        (Code::ExceedsCapacity, Some((1_001, 1_000)))
    );
}

#[test]
fn guessed_input_above_limit_reserves_what_fits() {
    let (limiter, _) = manual(Quota::new().itpm(1_000));
    let cost = Cost::new().input_tokens(5_000);
    let refused = limiter.try_acquire("k", &cost).unwrap_err();
    assert_eq!(refused.code, Code::ExceedsCapacity);
    let _permit = limiter.try_acquire("k", &cost.guessed_input_tokens()).unwrap();
    assert_eq!(used_and_held(&limiter, "k"), [(0, 1_000)]);
}

/// The provider reads the marked part from its cache, and doesn't charge it.
#[test]
fn prompt_with_marked_cache_above_limit_is_not_refused() {
    let text = "word ".repeat(8_000);
    let request = |marked: &str| {
        let body = format!(
            r#"{{"model":"k","max_tokens":5,"messages":[{{"role":"user","content":[{{"type":"text","text":"{text}"{marked}}}]}}]}}"#
        );
        paceline::provider::ANTHROPIC.read_request("/v1/messages", body.as_bytes()).cost
    };
    let is_admitted = |cost| manual(Quota::new().itpm(5_000)).0.try_acquire("k", &cost).is_ok();
    assert!(!is_admitted(request("")));
    assert!(is_admitted(request(r#","cache_control":{"type":"ephemeral"}"#)));
    let tools = r#"}]}],"tools":[{"name":"t","cache_control":{"type":"ephemeral"}},{"a":[{"b":1"#;
    assert!(is_admitted(request(tools)));
    // As a text of the prompt.
    assert!(!is_admitted(request(r#","name":"\"cache_control\":""#)));
}

#[test]
fn fitting_guess_is_reserved_whole() {
    let (limiter, _) = manual(Quota::new().tpm(1_000));
    let permit = limiter.try_acquire("k", &guessed(10, 500)).unwrap();
    assert_eq!((permit.cost(), used_and_held(&limiter, "k")), (&tokens(510), vec![(0, 510)]));
}

#[test]
fn clipped_guess_waits_for_as_much_as_the_limit_holds() {
    let (limiter, clock) = manual(Quota::new().tpm(600));
    limiter.try_acquire("k", &tokens(10)).unwrap().settle(&tokens(10));
    let refused = limiter.try_acquire("k", &guessed(5, 9_000)).unwrap_err();
    assert_eq!(refused.retry_after(), Some(std::time::Duration::from_secs(1)));
    clock.advance(std::time::Duration::from_secs(1));
    let permit = limiter.try_acquire("k", &guessed(5, 9_000)).unwrap();
    assert_eq!(used_and_held(&limiter, "k"), [(0, 600)]);
    permit.settle(&tokens(25));
    assert_eq!(used_and_held(&limiter, "k"), [(25, 0)]);
}

#[test]
fn each_key_clips_a_guess_to_own_limits() {
    let quotas = |limiter: paceline::limiter::Builder| {
        let quota = |amount| Quota::new().tpm(amount).with_algorithm(Algorithm::TokenBucket);
        limiter.quota("tenant", quota(1_000)).quota("account", quota(100_000))
    };
    let limiter = quotas(builder()).clock(ManualClock::new()).build().unwrap();
    let acquire = || limiter.acquire_all(&["tenant", "account"], &guessed(10, 5_000)).try_now();
    let all = || (used_and_held(&limiter, "tenant")[0], used_and_held(&limiter, "account")[0]);

    let permit = acquire().unwrap();
    assert_eq!(all(), ((0, 1_000), (0, 5_010)));
    permit.release();
    assert_eq!(all(), ((0, 0), (0, 0)));

    acquire().unwrap().settle(&tokens(300));
    assert_eq!(all(), ((300, 0), (300, 0)));
    limiter.reset_all();

    // A permit dropped without usage is charged the reservation.
    drop(acquire().unwrap());
    assert_eq!(all(), ((1_000, 0), (5_010, 0)));
    limiter.reset_all();

    acquire().unwrap().settle(&tokens(5_010));
    assert_eq!(all(), ((5_010, 0), (5_010, 0)));
}

#[test]
fn limits_changed_in_flight_leave_zero_held() {
    for (before, after) in [(1_000, 200), (200, 1_000)] {
        let (limiter, clock) = manual(Quota::new().tpm(before));
        let permit = limiter.try_acquire("k", &guessed(10, 5_000)).unwrap();
        limiter
            .quotas()
            .set("k", &Quota::new().tpm(after).with_algorithm(Algorithm::TokenBucket))
            .unwrap();
        permit.settle(&tokens(20));
        assert_eq!(used_and_held(&limiter, "k"), [(20, 0)]);
        clock.advance(std::time::Duration::from_secs(60));
        assert!(limiter.try_acquire("k", &tokens(after)).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_request_follows_shrinking_limits() {
    let limiter = paused(Quota::new().tpm(6_000));
    let held = limiter.acquire("k", &tokens(6_000)).await.unwrap();
    let acquire = limiter.acquire("k", &guessed(10, 1_024));
    let waiting = tokio::spawn(acquire);
    settle_down().await;
    limiter
        .quotas()
        .set("k", &Quota::new().tpm(600).with_algorithm(Algorithm::TokenBucket))
        .unwrap();
    held.settle(&tokens(0));
    let permit = waiting.await.unwrap().unwrap();
    assert_eq!(permit.cost(), &tokens(600));
}

#[test]
fn limits_learned_from_headers_do_not_refuse_a_guess() {
    let limiter = builder().provider(ANTHROPIC).unknown_key(UnknownKey::Learn).build().unwrap();
    let mut headers = http::HeaderMap::new();
    for (name, value) in [
        ("anthropic-ratelimit-output-tokens-limit", "800"),
        ("anthropic-ratelimit-output-tokens-remaining", "800"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    limiter.feedback().learn("m", &ANTHROPIC.limits(&headers));
    assert_eq!(limiter.quotas().of("m").limits()[0].amount(), 800);
    let cost = ANTHROPIC.read_request("/v1/messages", &body(40, None)).cost;
    assert!(limiter.try_acquire("m", &cost).is_ok());
}

/// A request, the known output of its key, and the limits of its key and of a second scope.
#[derive(Debug, Clone)]
struct Setup {
    profile: Profile,
    text: usize,
    max_tokens: Option<u64>,
    learned: Option<u64>,
    quotas: [[u64; 4]; 2],
    share: u8,
}

impl Setup {
    fn estimate(&self) -> Estimate {
        let estimate = self.profile.read_request(CHAT, &body(self.text, self.max_tokens));
        match self.learned {
            Some(output) => estimate.with_output(output),
            None => estimate,
        }
    }

    /// Returns the known charge of the provider by dimension: that of a request without output,
    /// unless the output bound is charged.
    fn known(&self) -> [(Dimension, u64); 3] {
        let whole = self.profile.read_request(CHAT, &body(self.text, self.max_tokens));
        let none = self.profile.read_request(CHAT, &body(self.text, Some(0)));
        let floor = whole.terms.floor;
        let is_charged = self.max_tokens.is_some() && !whole.guesses_output();
        let known = if is_charged { whole.cost } else { none.cost };
        let tokens = known.amount(&Dimension::Tokens).max(floor);
        let input = known.amount(&Dimension::InputTokens);
        [(Dimension::Tokens, tokens), (Dimension::InputTokens, input), (Dimension::OutputTokens, 0)]
    }

    fn quota(&self, scope: usize) -> Quota {
        let [tpm, itpm, otpm, tpd] = self.quotas[scope];
        Quota::new().tpm(tpm).itpm(itpm).otpm(otpm).tpd(tpd)
    }

    fn limiter(&self) -> Limiter {
        let builder = builder().provider(self.profile).share(Share::percent(self.share).unwrap());
        let builder = builder.quota("m", self.quota(0)).quota("tenant", self.quota(1));
        builder.clock(ManualClock::new()).build().unwrap()
    }

    fn can_be_sent(&self) -> bool {
        let known = self.known();
        let quotas = [self.quota(0), self.quota(1)];
        let mut limits = quotas.iter().flat_map(Quota::limits);
        limits.all(|limit| {
            let part = known.iter().find(|(dimension, _)| dimension == limit.dimension());
            part.is_none_or(|(_, amount)| *amount <= limit.amount())
        })
    }
}

fn setups() -> impl Strategy<Value = Setup> {
    let amount =
        prop_oneof![2 => Just(0), 3 => 1..60_u64, 3 => 60..3_000_u64, 1 => 3_000..90_000_u64];
    let amount = amount.boxed();
    let amounts = || [amount.clone(), amount.clone(), amount.clone(), amount.clone()];
    let output = || proptest::option::of(prop_oneof![0..20_u64, 20..20_000_u64, Just(u64::MAX)]);
    let profile = proptest::sample::select(Profile::all());
    let share = prop_oneof![Just(100_u8), 1..=100_u8];
    (profile, 0..6_000_usize, output(), output(), [amounts(), amounts()], share).prop_map(
        |(profile, text, max_tokens, learned, quotas, share)| Setup {
            profile,
            text,
            max_tokens,
            learned,
            quotas,
            share,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(full_or(20_000, 2_000))
    })]

    /// A request whose known part fits every limit is admitted immediately while no capacity is
    /// used; one with a larger known part is refused permanently. After it ends, the held amount is
    /// zero.
    #[test]
    fn request_is_admitted_iff_known_part_fits(setup in setups()) {
        let (limiter, cost) = (setup.limiter(), setup.estimate().cost);
        let granted = limiter.acquire_all(&["tenant", "m"], &cost).try_now();
        prop_assert_eq!(granted.is_ok(), setup.can_be_sent(), "{:?} of {:?}", granted, cost);
        match granted {
            Ok(permit) => permit.settle(&cost),
            Err(refused) => prop_assert_eq!(refused.code, Code::ExceedsCapacity),
        }
        for key in ["tenant", "m"] {
            let held: u64 = used_and_held(&limiter, key).iter().map(|(_, held)| held).sum();
            prop_assert_eq!(held, 0);
        }
    }
}

#[test]
fn guess_filling_limit_is_admitted_one_at_a_time() {
    let (limiter, clock) = manual(Quota::new().tpm(60));
    let begin = limiter.now();
    for _ in 0..5 {
        loop {
            match limiter.try_acquire("k", &guessed(2, 1_024)) {
                Ok(permit) => break permit.settle(&tokens(10)),
                Err(refused) => clock.advance(refused.retry_after().unwrap()),
            }
        }
    }
    assert_eq!((limiter.now() - begin).as_secs(), 40);
}
