//! A cost without a limit is the caller's mistake, on every path.

use tollgate::limiter::{ManualClock, MissingLimit};
use tollgate::quota::{Cost, Dimension, Quota};

use super::rig::{builder, limit, tokens};

fn missing(cost: &Cost, limits: &Quota) -> Option<Dimension> {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    let checked = limiter.decide_limits("k", cost, limits).err();
    // The waiting path says so before it waits.
    let waited = limiter.acquire_limits("k", cost, limits).err();
    assert_eq!(checked, waited);
    assert!(limiter.keys().is_empty(), "nothing was taken, nothing was made");
    waited.map(|MissingLimit { dimension, .. }| dimension)
}

#[test]
fn f03_a_cost_in_a_dimension_without_a_limit_is_an_error_that_names_it() {
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
fn f03_of_custom_dimensions_only_the_one_that_was_given_counts() {
    let day = std::time::Duration::from_secs(86_400);
    let limits = Quota::new().limit(limit(Dimension::custom("pages"), 10, day));
    let cost = Cost::new().custom("pages", 1).custom("images", 1);
    assert_eq!(missing(&cost, &limits), Some(Dimension::custom("images")));
    assert_eq!(missing(&Cost::new().custom("pages", 1), &limits), None);
}

#[test]
fn f03_nothing_is_missing_for_what_costs_nothing_or_for_the_one_request() {
    assert_eq!(missing(&tokens(9), &Quota::new().tpm(10)), None);
    assert_eq!(missing(&tokens(0).custom("images", 0), &Quota::new().rpm(10)), None);
    assert_eq!(missing(&Cost::new(), &Quota::new()), None);
}

#[test]
fn f03_the_message_says_what_to_do() {
    let limiter = builder().clock(ManualClock::new()).build().unwrap();
    let error = limiter.acquire_limits("k", &tokens(5), &Quota::new().rpm(1)).unwrap_err();
    assert_eq!(error.to_string(), "the request costs tokens, but no limit on tokens was given");
}
