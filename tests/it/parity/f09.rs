//! f09: a stream of tasks whose rate the limiter bounds. Runs `examples/evaluate.rs`.

use std::time::Duration;

#[path = "../../../examples/evaluate.rs"]
#[expect(dead_code, reason = "its main function is not called here")]
mod evaluate;

/// Of 1,000 tasks, 600 are admitted immediately, the others one per 100 ms. The margin adds half a second
/// and 2 %.
#[tokio::test(start_paused = true)]
async fn f09_task_stream_takes_the_required_time_without_429() {
    for concurrency in [64, 1_000] {
        let result = evaluate::evaluate(1_000, concurrency).await.unwrap();
        assert_eq!((result.requests, result.refused), (1_000, 0), "concurrency {concurrency}");
        // Some responses are cut off at `max_tokens`, others aren't.
        assert!((1..1_000).contains(&result.right), "{} right", result.right);
        let demanded = Duration::from_secs(40)..Duration::from_secs(43);
        assert!(demanded.contains(&result.took), "{:?}, concurrency {concurrency}", result.took);
    }
}
