use paceline_config::{self as config, Config};
use serde_json::Value;

use super::EXAMPLE;

fn valid(validator: &jsonschema::Validator, text: &str) -> bool {
    let value: Value = serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    validator.is_valid(&value)
}

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::options()
        .should_validate_formats(true)
        .build(&config::schema())
        .unwrap()
}

#[test]
fn schema_is_draft_2020_12_and_describes_every_field() {
    let schema = config::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    let mut objects = vec![("root".to_owned(), &schema)];
    objects
        .extend(schema["$defs"].as_object().unwrap().iter().map(|(name, def)| (name.clone(), def)));
    for (name, object) in objects {
        let Some(properties) = object["properties"].as_object() else { continue };
        assert_eq!(object["additionalProperties"], false, "{name}");
        for (field, schema) in properties {
            assert!(schema["description"].is_string(), "{name}.{field} has no description");
        }
    }
}

#[test]
fn schema_accepts_files_accepted_by_reader() {
    let validator = validator();
    for text in [
        EXAMPLE,
        "{}",
        "quotas: ~",
        "quotas: {a: {}}",
        "unknown_key: {rpm: 60}",
        "unknown_key: learn",
        "store: {yaml: s.yaml}",
        "store: {yaml: s.yaml, sqlite: ~}",
        "bus: {redis: 'rediss://u:p@h:1/0'}",
        "bus: {nats: ~, redis: 'redis://h'}",
        "bus: {redis: 'redis://h', agent_id: worker-7}",
        "cluster: {redis: 'redis-cluster://h:1,[::1]:2', account: a, mode: lease, spread: true}",
        "cluster: {redis: 'redis-sentinel://u:p@h:1,h:2/main', account: a, on_failure: open}",
        "quotas: {a: {limits: [{dimension: images, limit: 0, window: 1h30m, burst: 1}]}}",
        "share: 1",
        "waiting: {bands: {a: batch, 'b*': -7, 'c': 127}, fair_by: tenant, weights: {a: 1}}",
        "quotas: {a: {weight: 3}}",
        "waiting: {max_wait: unlimited}",
        "waiting: {max_wait: 5m}",
        "quotas: {a: {max_wait: 10s, mode: wait}, b: {mode: reject}}",
        "margin: {percent: 0, lag: 0s}",
        "serve: {scopes: [], keys: [{key_pattern: a}]}",
        "reduction: {enabled: false, spread: 0s}",
    ] {
        assert!(Config::parse(text).is_ok(), "{text}: {}", Config::parse(text).unwrap_err());
        let value: Value = serde_yaml::from_str(text).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
    }
}

#[test]
fn schema_refuses_files_refused_by_reader() {
    let validator = validator();
    for text in [
        "[]",
        "quota: {}",
        "quotas: []",
        "quotas: {a: ~}",
        "quotas: {'': {}}",
        "quotas: {a: {rmp: 5}}",
        "quotas: {a: {rpm: -5}}",
        "quotas: {a: {rpm: 1.5}}",
        "quotas: {a: {rpm: '5'}}",
        "quotas: {a: {share: 0}}",
        "quotas: {a: {limits: [{limit: 5, window: 1m}]}}",
        "quotas: {a: {limits: [{dimension: tokens, limit: 5, window: 5}]}}",
        "quotas: {a: {limits: [{dimension: tokens, limit: 5, window: 5x}]}}",
        "quotas: {a: {limits: [{dimension: tokens, limit: 5, window: 5m, burst: 0}]}}",
        "quotas: {a: {limits: [{dimension: tokens, limit: 5, window: 5m, algorithm: x}]}}",
        "unknown_key: deny",
        "unknown_key: 5",
        "providers: [open-ai]",
        "providers: [{like: openai}]",
        "waiting: {max_wait: 1.5s}",
        "waiting: {bands: {a: urgent}}",
        "waiting: {bands: {a: 128}}",
        "waiting: {bands: {'': batch}}",
        "waiting: {fair_by: ''}",
        "waiting: {max_starvation: 30}",
        "quotas: {a: {weight: 0}}",
        "waiting: {max_waiting: 4294967296}",
        "reduction: {factor: 1}",
        "reduction: {recovery_factor: 1}",
        "retry: {attempts: 0}",
        "margin: {percent: 100}",
        "share: 1.5",
        "store: {}",
        "store: {sqlite: a, yaml: b}",
        "bus: {}",
        "bus: {redis: nowhere}",
        "cluster: {redis: 'redis://h'}",
        "cluster: {redis: 'redis://h', account: ''}",
        "cluster: {redis: 'redis://h', account: a, mode: both}",
        "cluster: {redis: 'redis://h', account: a, lease: 2}",
        "cluster: {redis: 'redis-cluster:// h:1', account: a}",
        "bus: {redis: 'redis://h', agent_id: ''}",
    ] {
        assert!(Config::parse(text).is_err(), "the reader accepts {text}");
        assert!(!valid(&validator, text), "the schema accepts {text}");
    }
}
