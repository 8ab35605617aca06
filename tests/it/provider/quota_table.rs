//! The table of built-in quotas.

use serde_json::{Value, json};
use tollgate::provider::{COMPATIBLE, GEMINI, OPENAI, OPENROUTER, Profile, QuotaTable};

#[test]
fn table_rows_are_aligned_with_limits_and_month() {
    let custom = OPENAI.like("my-vllm", "http://gpu-7:8000").unwrap();
    let text = QuotaTable::of(&[OPENROUTER, COMPATIBLE, custom]).to_string();
    let expected = "\
PROVIDER    MODELS           RPM  RPD  UNTIL MIDNIGHT IN  ALGORITHM       AS OF
openrouter  *:free (shared)   20   50  UTC                sliding_window  2026-02
compatible  none built in                                 sliding_window
my-vllm     none built in                                 token_bucket

openrouter: an account that has bought no credits, 2026-02, by OpenRouter's page on limits";
    assert_eq!(text, expected);
}

#[test]
fn unlimited_model_differs_from_provider_without_quotas() {
    let text = QuotaTable::of(&[GEMINI]).to_string();
    let row = |model: &str| {
        let row = text.lines().find(|line| line.contains(model)).expect(model);
        row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("lite*"), "gemini-2.0-flash-lite* - - - token_bucket 2026-02");
    assert_eq!(row("flash-exp"), "gemini-2.0-flash-exp 150 1,000,000 - token_bucket 2026-02");
    let pro = "gemini-2.5-pro 150 1,000,000 1,000 America/Los_Angeles token_bucket 2026-02";
    assert_eq!(row("2.5-pro "), pro);
}

#[test]
fn every_profile_and_built_in_quota_has_a_row() {
    let text = QuotaTable::of(Profile::all()).to_string();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    let expected = Profile::all().iter().flat_map(|profile| {
        let patterns: Vec<_> = profile.quotas().iter().map(|quota| quota.pattern).collect();
        let patterns = if patterns.is_empty() { vec!["none"] } else { patterns };
        patterns.into_iter().map(|pattern| vec![profile.name(), pattern])
    });
    assert_eq!(rows, expected.collect::<Vec<_>>());
}

#[test]
fn table_serializes_to_json() {
    let custom = OPENAI.like("my-vllm", "http://gpu-7:8000").unwrap();
    let table = QuotaTable::of(&[OPENROUTER, custom]);
    assert_eq!(
        serde_json::to_value(&table).unwrap(),
        json!([
            {
                "provider": "openrouter",
                "algorithm": "sliding_window",
                "as_of": "2026-02",
                "tier": "an account that has bought no credits",
                "source": "OpenRouter's page on limits",
                "quotas": [{
                    "pattern": "*:free",
                    "limits": {"rpm": 20, "rpd": 50, "zone": "UTC", "shared": true},
                }],
            },
            {
                "provider": "my-vllm",
                "like": "openai",
                "base_url": "http://gpu-7:8000",
                "algorithm": "token_bucket",
                "quotas": [],
            },
        ]),
    );
}

#[test]
fn table_without_providers_is_empty() {
    let table = QuotaTable::of(&[]);
    assert_eq!(table.to_string(), "");
    assert_eq!(serde_json::to_value(&table).unwrap(), Value::Array(Vec::new()));
}
