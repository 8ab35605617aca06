//! Built-in profiles and the default quotas of February 2026, as globs.

use tollgate::limiter::Limiter;
use tollgate::provider::{
    ANTHROPIC, BEDROCK, COMPATIBLE, GEMINI, OLLAMA, OPENAI, OPENROUTER, Profile,
};
use tollgate::quota::Quota;

use super::rig::builder;
use tollgate_testing::corpus;

fn limiter(profile: Profile) -> Limiter {
    builder().provider(profile).build().unwrap()
}

fn amounts(limiter: &Limiter, model: &str) -> Vec<u64> {
    limiter.stats(model).limits.iter().map(|limit| limit.limit).collect()
}

#[test]
fn g09_built_in_quotas_are_complete_and_dated() {
    for (profile, model, limits) in TABLE {
        assert_eq!(amounts(&limiter(*profile), model), *limits, "{model}");
    }
    let quotas = Profile::all().iter().flat_map(Profile::quotas);
    assert!(quotas.clone().count() > 20 && quotas.clone().all(|quota| quota.as_of == "2026-02"));
}

#[test]
fn g09_snapshots_and_families_match_quota_of_model() {
    for (profile, model, limits) in NAMES {
        assert_eq!(amounts(&limiter(*profile), model), *limits, "{model}");
    }
    for profile in [COMPATIBLE, OLLAMA, BEDROCK] {
        assert!(profile.quotas().is_empty(), "{profile:?} has no built-in quotas");
    }
}

#[test]
fn g09_recorded_claude_models_have_a_quota() {
    let Some(entries) = corpus::entries("anthropic.har") else { return };
    let limiter = limiter(ANTHROPIC);
    let limited = |entry: &&corpus::Recording| {
        let estimate = ANTHROPIC.read_request(&entry.url, entry.request.as_bytes());
        estimate.model.is_some_and(|model| !amounts(&limiter, &model).is_empty())
    };
    let limited = entries.iter().filter(limited).count();
    println!("{limited} of {} recorded requests have a built-in quota", entries.len());
    assert!(limited * 100 >= entries.len() * 95, "{limited} of {}", entries.len());
}

#[test]
fn g09_user_quota_overrides_built_in() {
    let limiter = builder().provider(GEMINI).quota("gemini-2.5-pro", Quota::new().rpm(5));
    assert_eq!(amounts(&limiter.build().unwrap(), "gemini-2.5-pro"), [5]);
}

/// The limits of each model: requests and tokens per minute, requests per day.
const TABLE: &[(Profile, &str, &[u64])] = &[
    (GEMINI, "gemini-3-pro-preview", &[150, 1_000_000, 1_000]),
    (GEMINI, "gemini-3-flash-preview", &[150, 1_000_000, 1_000]),
    (GEMINI, "gemini-2.5-pro", &[150, 1_000_000, 1_000]),
    (GEMINI, "gemini-2.0-flash", &[150, 1_000_000]),
    (GEMINI, "gemini-2.0-flash-lite", &[]),
    (OPENAI, "gpt-4o", &[500, 30_000]),
    (OPENAI, "gpt-4o-mini", &[500, 200_000]),
    (OPENAI, "gpt-4-turbo", &[500, 30_000]),
    (OPENAI, "o1", &[500, 30_000]),
    (OPENAI, "o1-mini", &[500, 200_000]),
    (OPENAI, "o3-mini", &[500, 200_000]),
    (ANTHROPIC, "claude-opus-4", &[50, 40_000]),
    (ANTHROPIC, "claude-sonnet-4", &[50, 40_000]),
    (ANTHROPIC, "claude-haiku-3.5", &[50, 50_000]),
];

/// Model names that occur in traffic.
const NAMES: &[(Profile, &str, &[u64])] = &[
    (OPENAI, "gpt-4o-2024-08-06", &[500, 30_000]),
    (OPENAI, "gpt-4o-mini-2024-07-18", &[500, 200_000]),
    (OPENAI, "gpt-4o-audio-preview", &[]),
    (OPENAI, "gpt-5", &[]),
    (ANTHROPIC, "claude-sonnet-4-20250514", &[50, 40_000]),
    (ANTHROPIC, "claude-sonnet-4-5", &[50, 40_000]),
    (ANTHROPIC, "claude-opus-4-1-20250805", &[50, 40_000]),
    (ANTHROPIC, "claude-3-5-haiku-latest", &[50, 50_000]),
    (ANTHROPIC, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", &[]),
    (GEMINI, "gemini-2.5-pro-preview-05-06", &[150, 1_000_000, 1_000]),
    (GEMINI, "gemini-2.5-pro-preview-tts", &[]),
    (GEMINI, "gemini-2.0-flash-001", &[150, 1_000_000]),
    (GEMINI, "gemini-2.0-flash-lite-001", &[]),
    (OPENROUTER, "google/gemini-2.0-flash-exp:free", &[20, 50]),
    (OPENROUTER, "google/gemini-2.5-flash", &[]),
];
