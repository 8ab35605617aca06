//! A cost without a limit is an error of the caller, for every call.

use paceline::limiter::{Code, ManualClock};
use paceline::quota::{Cost, Dimension, Quota};

use super::rig::{builder, limit, tokens};

fn missing(cost: &Cost, limits: &Quota) -> Option<Dimension> {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    let decision = limiter.acquire("k", cost).limits(limits).decide();
    assert!(limiter.state().keys().is_empty(), "a decision adds no key");
    // Acquiring refuses the request before it waits.
    let waited =
        limiter.acquire("k", cost).limits(limits).arrive().expect("the request doesn't wait");
    match waited {
        Ok(_) => assert_eq!(decision.refused(), None),
        Err(error) => {
            assert_eq!(error.refused().map(|refused| refused.code), Some(Code::MissingLimit));
            assert_eq!(error.refused(), decision.refused().as_ref());
            assert!(limiter.stats("k").limits.is_empty(), "a refused request sets no limits");
        }
    }
    decision.dimension
}

#[test]
fn f03_cost_without_limit_is_an_error_naming_dimension() {
    let limits = Quota::new().rpm(10);
    let named = [
        (tokens(1), Dimension::Tokens),
        (Cost::new().input_tokens(1), Dimension::InputTokens),
        (Cost::new().output_tokens(1), Dimension::OutputTokens),
        (Cost::new().custom("images", 1), Dimension::custom("images")),
    ];
    for (cost, dimension) in named {
        assert_eq!(missing(&cost, &limits), Some(dimension));
    }
    let two = Cost::new().requests(2).tokens(1);
    assert_eq!(missing(&two, &Quota::new().tpm(10)), Some(Dimension::Requests));
}

#[test]
fn f03_custom_dimension_needs_a_limit_of_the_same_name() {
    let day = std::time::Duration::from_secs(86_400);
    let limits = Quota::new().limit(limit(Dimension::custom("pages"), 10, day));
    let cost = Cost::new().custom("pages", 1).custom("images", 1);
    assert_eq!(missing(&cost, &limits), Some(Dimension::custom("images")));
    assert_eq!(missing(&Cost::new().custom("pages", 1), &limits), None);
}

#[test]
fn f03_zero_cost_and_implicit_request_need_no_limit() {
    assert_eq!(missing(&tokens(9), &Quota::new().tpm(10)), None);
    assert_eq!(missing(&tokens(0).custom("images", 0), &Quota::new().rpm(10)), None);
    assert_eq!(missing(&Cost::new(), &Quota::new()), None);
}

#[test]
fn f03_missing_limit_error_names_the_dimension() {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    let acquire = limiter.acquire("k", &tokens(5)).limits(&Quota::new().rpm(1));
    let advice = "add such a limit, or state the cost in dimensions that are limited";
    let text = acquire.try_now().unwrap_err().to_string();
    assert_eq!(text, format!("k: no limit counts tokens; {advice}"));
}
