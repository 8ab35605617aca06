//! How often a limit must have fallen to explain refusals.

use proptest::prelude::*;

use super::super::levels::{Levels, Stretch};

/// Returns a stretch at this speed, of which the pause is a part of the time.
fn stretch(accepted: f64, speed: f64, pause: f64) -> Stretch {
    let busy = (accepted + 1.0) / speed;
    Stretch { accepted, seconds: busy + pause, busy, costs: (1.0, 1.0) }
}

#[test]
fn limit_that_refuses_ever_slower_requests_has_fallen() {
    let mut levels = Levels::default();
    let falls = [20.0, 15.0, 10.0, 5.0].map(|speed| levels.add(stretch(40.0, speed, 0.25)));
    assert_eq!(falls, [0, 1, 2, 3]);
    assert!((16.0..18.0).contains(&levels.take()));
}

#[test]
fn limit_that_accepts_more_again_has_not_fallen() {
    let mut levels = Levels::default();
    let falls = [20.0, 10.0, 20.0, 10.0].map(|speed| levels.add(stretch(40.0, speed, 0.25)));
    assert_eq!(falls, [0, 1, 0, 1]);
}

proptest! {
    /// A bucket of any size explains all of its refusals, whatever the speeds and pauses.
    #[test]
    fn refusals_of_one_bucket_show_no_fall(
        rate in 0.1..100.0_f64,
        capacity in 1.0..500.0_f64,
        stretches in prop::collection::vec((1.001..10.0_f64, 0.0..5.0_f64), 1..40),
    ) {
        let (mut levels, mut level) = (Levels::default(), 0.0_f64);
        for (factor, pause) in stretches {
            let (speed, mut accepted) = (rate * factor, 0.0);
            level = (level + pause * rate).min(capacity);
            loop {
                level = (level + rate / speed).min(capacity);
                if level < 1.0 {
                    break;
                }
                (level, accepted) = (level - 1.0, accepted + 1.0);
            }
            prop_assert_eq!(levels.add(stretch(accepted, speed, pause)), 0);
        }
    }
}
