//! Rules and buckets that don't belong together admit nothing.

use paceline_limiter::engine::{self, Bucket, Rule, Wait};
use paceline_limiter::quota::{Algorithm, Cost, Dimension, Limit, Margin, SettleAt, Window};

use super::{S, at, fresh};

const NOW: u64 = 1_000_000 * S;

/// Returns a rule of each algorithm that admits ten requests.
fn rules() -> Vec<Rule> {
    let of = |dimension, algorithm, settle| {
        let limit = Limit::new(dimension, 10, Window::MINUTE).unwrap();
        Rule::new(&limit, algorithm, Margin::NONE, settle)
    };
    vec![
        of(Dimension::Requests, Algorithm::TokenBucket, SettleAt::Send),
        of(Dimension::Requests, Algorithm::SlidingWindow, SettleAt::Send),
        of(Dimension::Requests, Algorithm::FixedWindow, SettleAt::Send),
        of(Dimension::Requests, Algorithm::ClockWindow, SettleAt::Send),
        of(Dimension::Concurrency, Algorithm::TokenBucket, SettleAt::End),
    ]
}

#[test]
fn bucket_under_rule_of_other_algorithm_admits_nothing() {
    for (of, created_for) in rules().iter().enumerate() {
        for (with, rule) in rules().into_iter().enumerate() {
            let (rules, mut buckets) = ([rule], [Bucket::new(created_for)]);
            let before = buckets.clone();
            let fits = engine::fits(&rules, &buckets, &Cost::new(), at(NOW));
            let reserved = engine::reserve(&rules, &mut buckets, &Cost::new(), at(NOW));
            let level = before[0].level(&rules[0], at(NOW));
            if of == with {
                assert_eq!((reserved, level.available), (Ok(()), 10), "{of}");
                continue;
            }
            let waited = reserved.unwrap_err();
            assert_eq!((fits, waited.rule, waited.wait), (false, 0, Wait::Never), "{of} {with}");
            assert_eq!((level.available, &buckets), (0, &before), "{of} {with}");
            assert!(!before[0].is_fresh(&rules[0], at(NOW)), "{of} {with}");
        }
    }
}

#[test]
fn missing_or_excess_bucket_admits_nothing() {
    let rules = rules();
    let buckets = fresh(&rules);
    let never = |rules: &[Rule], buckets: &[Bucket], rule: usize| {
        let mut reserved = buckets.to_vec();
        assert!(!engine::fits(rules, buckets, &Cost::new(), at(NOW)));
        for result in [
            engine::check(rules, buckets, &Cost::new(), at(NOW)),
            engine::reserve(rules, &mut reserved, &Cost::new(), at(NOW)),
        ] {
            let short = result.unwrap_err();
            assert_eq!((short.rule, short.wait), (rule, Wait::Never));
        }
        assert_eq!(reserved, buckets);
    };
    never(&rules, &buckets[..3], 3);
    never(&rules, &[], 0);
    never(&rules[..3], &buckets, 2);
    never(&[], &buckets[..1], 0);
    assert!(engine::fits(&[], &[], &Cost::new(), at(NOW)));
    assert!(engine::check(&rules, &buckets, &Cost::new(), at(NOW)).is_ok());
}
