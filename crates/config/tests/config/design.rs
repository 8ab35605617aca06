use std::path::PathBuf;
use std::time::Duration;

use paceline::limiter::UnknownKey;
use paceline::quota::Dimension;
use paceline_cluster::{OnFailure, SharingMode};
use paceline_config::{BusServer, StoreFile};
use paceline_limiter::seam;

use super::{EXAMPLE, parse_valid};

#[test]
fn example_sections_are_all_read() {
    let config = parse_valid(EXAMPLE);
    let names: Vec<_> = config.providers.iter().map(|provider| provider.name()).collect();
    assert_eq!(names, ["openai", "anthropic", "my-vllm"]);
    let own = &config.providers[2];
    assert_eq!(own.base_url(), Some("http://gpu-7:8000"));

    let names: Vec<_> = config.quotas.iter().map(|quota| quota.keys.name()).collect();
    let order = ["gpt-4o", "claude-*", "gemini-2.5-pro", "tenant:*", "regex:user-[0-9]+", "team:*"];
    assert_eq!(names, order);
    assert_eq!(config.quotas[1].quota.limits().len(), 4);
    assert_eq!(config.unknown_key, UnknownKey::Allow);
    assert_eq!(config.waiting.max_waiting, 10_000);
    assert_eq!(config.waiting.max_wait, Some(Duration::from_secs(120)));
    assert_eq!(config.retry.attempts.get(), 3);

    let store = config.store.unwrap();
    assert_eq!(store.file, StoreFile::Sqlite(PathBuf::from("state.db")));
    assert_eq!(store.flush, Duration::from_secs(1));
    let bus = config.bus.unwrap();
    assert!(matches!(bus.server, BusServer::Nats(_)) && bus.agent_id.is_none());
    let cluster = config.cluster.unwrap();
    assert_eq!((cluster.mode, cluster.on_failure), (SharingMode::Exact, OnFailure::LocalShare));
    assert_eq!((cluster.account.as_str(), cluster.timeout.as_millis()), ("team-a", 50));
    assert!(!cluster.spread);
    assert_eq!((cluster.lease.as_secs(), cluster.reservation_ttl.as_secs()), (2, 60));
}

#[test]
fn example_builds_a_limiter() {
    let limiter = parse_valid(EXAMPLE).builder().build().unwrap();
    let quota = limiter.quotas().of("gemini-2.5-pro");
    let day = quota.limits().iter().find(|limit| limit.calendar().is_some()).unwrap();
    assert_eq!((day.dimension(), day.amount()), (&Dimension::Requests, 1_000));
    assert_eq!(day.calendar().unwrap().zone(), "America/Los_Angeles");
    assert_eq!(limiter.quotas().of("tenant:9").limits()[0].amount(), 100_000);
}

#[test]
fn file_without_settings_equals_defaults() {
    for text in ["{}", "# a comment\n{}\n", "quotas:\nwaiting: ~\n", "---\n{}\n"] {
        let config = parse_valid(text);
        // Only the server has keys of `/rate`.
        let defaults = seam::name_space(paceline::Limiter::builder(), paceline_config::RATE_PREFIX);
        let config = config.builder();
        assert_eq!(format!("{config:?}"), format!("{defaults:?}"), "{text:?}");
    }
}
