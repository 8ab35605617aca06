//! Built-in profiles and the default quotas, as globs.

use paceline::limiter::Limiter;
use paceline::provider::{
    ANTHROPIC, BEDROCK, BEDROCK_MANTLE, COMPATIBLE, DEEPSEEK, GEMINI, MOONSHOT, OLLAMA, OPENAI,
    OPENROUTER, Profile, XAI,
};
use paceline::quota::Quota;

use super::rig::builder;
use paceline_testing::corpus;

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
    assert!(quotas.clone().count() > 90 && quotas.clone().all(|quota| !quota.source.is_empty()));
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
fn g09_recorded_current_claude_models_have_a_quota() {
    let Some(entries) = corpus::entries("anthropic.har") else { return };
    let limiter = limiter(ANTHROPIC);
    let models = entries
        .iter()
        .filter_map(|entry| ANTHROPIC.read_request(&entry.url, entry.request.as_bytes()).model);
    // Anthropic has retired Claude 3.
    let current: Vec<_> = models.filter(|model| !model.starts_with("claude-3")).collect();
    assert!(current.len() >= 150, "{}", current.len());
    for model in current {
        assert!(!amounts(&limiter, &model).is_empty(), "{model}");
    }
}

#[test]
fn g09_user_quota_overrides_built_in() {
    let limiter = builder().provider(GEMINI).quota("gemini-2.5-pro", Quota::new().rpm(5));
    assert_eq!(amounts(&limiter.build().unwrap(), "gemini-2.5-pro"), [5]);
}

/// The limits of each model.
const TABLE: &[(Profile, &str, &[u64])] = &[
    (GEMINI, "gemini-3.8-flash", &[1_000, 2_000_000, 10_000]),
    (GEMINI, "gemini-3-flash-preview", &[1_000, 2_000_000, 10_000]),
    (GEMINI, "gemini-3.1-pro-preview", &[25, 2_000_000, 250]),
    (GEMINI, "gemini-2.5-pro", &[150, 2_000_000, 1_000]),
    (GEMINI, "gemini-2.5-flash", &[1_000, 1_000_000, 10_000]),
    (GEMINI, "gemini-2.0-flash", &[2_000, 4_000_000]),
    (OPENAI, "gpt-6.1-sol", &[500, 500_000]),
    (OPENAI, "gpt-5.6", &[500, 500_000]),
    (OPENAI, "gpt-5", &[500, 500_000]),
    (OPENAI, "gpt-5-nano", &[500, 200_000]),
    (OPENAI, "gpt-4.1", &[500, 30_000]),
    (OPENAI, "gpt-4.1-mini", &[500, 200_000, 10_000]),
    (OPENAI, "gpt-4o", &[500, 30_000]),
    (OPENAI, "gpt-4o-mini", &[500, 200_000, 10_000]),
    (OPENAI, "gpt-4-turbo", &[500, 30_000]),
    (OPENAI, "o1", &[500, 30_000]),
    (OPENAI, "o3-mini", &[1_000, 100_000]),
    (OPENAI, "o4-mini", &[1_000, 100_000]),
    (ANTHROPIC, "claude-fable-5-1", &[1_000, 500_000, 100_000]),
    (ANTHROPIC, "claude-opus-5-5", &[1_000, 2_000_000, 400_000]),
    (ANTHROPIC, "claude-sonnet-5", &[1_000, 2_000_000, 400_000]),
    (ANTHROPIC, "claude-haiku-4-5", &[1_000, 2_000_000, 400_000]),
    (BEDROCK_MANTLE, "anthropic.claude-opus-4-7", &[20_000_000, 4_000_000]),
    (DEEPSEEK, "deepseek-v4-pro", &[500]),
    (MOONSHOT, "kimi-k3", &[1, 3, 500_000, 1_500_000]),
    (XAI, "grok-4.3", &[37, 10_000_000]),
];

/// Model names that occur in traffic.
const NAMES: &[(Profile, &str, &[u64])] = &[
    (OPENAI, "gpt-4o-2024-08-06", &[500, 30_000]),
    (OPENAI, "gpt-4o-mini-2024-07-18", &[500, 200_000, 10_000]),
    (OPENAI, "gpt-4o-audio-preview", &[]),
    (OPENAI, "gpt-5-2025-08-07", &[500, 500_000]),
    (OPENAI, "gpt-5-search-api", &[]),
    (ANTHROPIC, "claude-sonnet-4-20250514", &[1_000, 2_000_000, 400_000]),
    (ANTHROPIC, "claude-sonnet-4-5", &[1_000, 2_000_000, 400_000]),
    (ANTHROPIC, "claude-opus-4-8", &[1_000, 2_000_000, 400_000]),
    (ANTHROPIC, "claude-haiku-4-5-20251001", &[1_000, 2_000_000, 400_000]),
    (ANTHROPIC, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", &[]),
    (GEMINI, "gemini-2.5-pro-preview-tts", &[]),
    (GEMINI, "gemini-2.0-flash-001", &[2_000, 4_000_000]),
    (OPENROUTER, "google/gemini-2.0-flash-exp:free", &[20, 50]),
    (OPENROUTER, "google/gemini-2.5-flash", &[]),
];
