//! c08: limits by key. `serve::command` tests reloading of their files.

use crate::rig::Rig;

#[tokio::test]
async fn c08_matching_entries_merge_in_order() {
    let rig = Rig::new(
        "keys: [
        {key_pattern: '^user-', key_pattern_is_regex: true, max_requests_per_window: 4, max_requests_in_queue: 1},
        {key_pattern: user-abc, key_pattern_is_regex: false, max_requests_per_window: 1, window_millis: 0}]",
    )
    .await;
    assert_eq!(rig.count_granted(9, "/rate/user-1").await, 4);
    assert_eq!(rig.count_granted(9, "/rate/user-abc").await, 1);
    let config = rig.get("/debug/user-abc").await.json()["Config"].clone();
    let merged = serde_json::json!({
        "WindowMillis": 1000, "MaxRequestsPerWindow": 1, "MaxRequestsInQueue": 1,
    });
    assert_eq!(config, merged);
}

#[tokio::test]
async fn c08_zero_limit_is_unset_and_zero_queue_disables_waiting() {
    let zero = "serve: {keys: [{key_pattern: k, max_requests_per_window: 0}]}";
    let error = paceline_serve::parse(zero).unwrap_err().to_string();
    let expected = "serve.keys[0].max_requests_per_window: must be at least 1, not 0";
    assert!(error.contains(expected), "{error}");
    let rig = Rig::new("max_requests: 1, keys: [{key_pattern: k, max_requests_in_queue: 0}]").await;
    assert_eq!(rig.count_granted(1, "/rate/k?canWait=true").await, 1);
    assert_eq!(rig.post("/rate/k?canWait=true").await.status, 429);
}
