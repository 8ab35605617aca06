//! Modes that providers count apart from the other requests of a model.

use http::HeaderMap;
use paceline_limiter::quota::Dimension;
use paceline_provider::{ANTHROPIC, BEDROCK, GEMINI, GROQ, OPENAI, Profile};

fn key(profile: Profile, fields: &str) -> String {
    let body = format!(r#"{{"model": "m", {fields}, "messages": []}}"#);
    profile.read_request("/v1/chat/completions", body.as_bytes()).key().unwrap().to_string()
}

/// "Fast mode has a dedicated rate limit that is separate from standard Opus": platform.claude.com, "Fast mode";
/// "10x higher rate limits compared to on-demand processing": console.groq.com, "Flex processing".
#[test]
fn modes_with_limits_of_their_own_have_a_key_of_their_own() {
    assert_eq!(key(ANTHROPIC, r#""speed": "fast""#), "m:fast");
    assert_eq!(key(ANTHROPIC, r#""speed": "standard""#), "m");
    assert_eq!(key(GROQ, r#""service_tier": "flex""#), "m:flex");
    assert_eq!(key(GROQ, r#""service_tier": "on_demand""#), "m");
    assert_eq!(key(GROQ, r#""speed": "fast", "service_tier": ["flex"]"#), "m");
    let nested = r#""metadata": {"service_tier": "flex"}"#;
    assert_eq!(key(GROQ, nested), "m");
}

/// "The rate limit is shared between Standard and Priority processing": developers.openai.com, "Priority
/// processing". "The on-demand quota is shared across the Priority, Default and Flex service tiers":
/// docs.aws.amazon.com, "Service tiers". Gemini's priority is downgraded beyond its limit: ai.google.dev.
#[test]
fn modes_that_share_the_limits_of_the_model_have_its_key() {
    for tier in ["priority", "fast", "flex", "default"] {
        for profile in [OPENAI, BEDROCK, GEMINI] {
            assert_eq!(key(profile, &format!(r#""service_tier": "{tier}""#)), "m", "{tier}");
        }
    }
}

/// The headers of platform.claude.com, "Fast mode".
#[test]
fn limits_of_fast_mode_have_headers_of_their_own() {
    let headers: HeaderMap = [
        ("anthropic-fast-input-tokens-limit", "200000"),
        ("anthropic-fast-input-tokens-remaining", "199000"),
        ("anthropic-fast-output-tokens-limit", "40000"),
        ("anthropic-ratelimit-input-tokens-limit", "10000000"),
    ]
    .iter()
    .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
    .collect();
    let read = |mode| {
        let readings = ANTHROPIC.limits_in_mode(mode, &headers);
        readings.iter().map(|read| (read.dimension.clone(), read.limit)).collect::<Vec<_>>()
    };
    let fast = [(Dimension::InputTokens, Some(200_000)), (Dimension::OutputTokens, Some(40_000))];
    assert_eq!(read(Some("fast")), fast);
    assert_eq!(read(None), [(Dimension::InputTokens, Some(10_000_000))]);
}
