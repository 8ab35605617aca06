//! Providers whose streams have a usage only if the request asks for it.

use paceline_provider::{
    ANTHROPIC, AZURE, COMPATIBLE, DASHSCOPE, DEEPSEEK, GROQ, MISTRAL, OPENAI, Profile, Rules, VLLM,
};

#[test]
fn usage_of_chat_streams_is_stated_on_request() {
    for (profile, query, expected) in [
        (OPENAI, None, true),
        (VLLM, None, true),
        (DASHSCOPE, None, true),
        (AZURE, None, true),
        (AZURE, Some("x=y&api-version=2024-09-01-preview"), true),
        (AZURE, Some("api-version=2025-01-01-preview"), true),
        (AZURE, Some("api-version=preview"), true),
        (AZURE, Some("api-version=2024-06-01"), false),
        // These state it in any case, or may refuse the option.
        (DEEPSEEK, None, false),
        (GROQ, None, false),
        (MISTRAL, None, false),
        (ANTHROPIC, None, false),
        (COMPATIBLE, None, false),
    ] {
        assert_eq!(profile.states_usage_on_request(query), expected, "{profile:?} {query:?}");
    }
    let acme = Profile::custom(Rules::new("acme-usage").usage_on_request()).unwrap();
    assert!(acme.states_usage_on_request(None));
}
