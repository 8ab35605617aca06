//! f09: a stream of tasks slowed by the limiter: `examples/evaluate.rs`, as it is.

use std::time::Duration;

#[path = "../../../examples/evaluate.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod evaluate;

/// 600 of the thousand are let in at once, the others one in 100 ms; the margin gives up half a
/// second and 2 %.
#[tokio::test(start_paused = true)]
async fn f09_a_stream_of_tasks_takes_what_the_limits_demand_and_no_429() {
    for at_once in [64, 1_000] {
        let result = evaluate::evaluate(1_000, at_once).await.unwrap();
        assert_eq!((result.asked, result.refused), (1_000, 0), "{at_once} at once");
        // Some answers are cut off at `max_tokens`, and some aren't.
        assert!((1..1_000).contains(&result.right), "{} right", result.right);
        let demanded = Duration::from_secs(40)..Duration::from_secs(43);
        assert!(demanded.contains(&result.took), "{:?}, {at_once} at once", result.took);
    }
}
