//! The requests whose streams are charged for what was received if they are cut off.

use paceline_provider::{
    ANTHROPIC, AZURE, BEDROCK, COMPATIBLE_USAGE, CutStreams, DEEPSEEK, GEMINI, GROQ, OPENAI,
    Profile, Rules, XAI,
};

fn is_charged_as_received(profile: Profile, model: &str, fields: &str) -> bool {
    let path = if profile == ANTHROPIC { "/v1/messages" } else { "/v1/chat/completions" };
    let body = format!(
        r#"{{"model": "{model}", {fields} "messages": [{{"role": "user", "content": "Hi"}}]}}"#
    );
    profile.read_request(path, body.as_bytes()).is_charged_as_received
}

const STREAM: &str = r#""stream": true,"#;

#[test]
fn cut_streams_are_charged_as_received_where_all_is_shown() {
    for (profile, model, expected) in [
        (OPENAI, "gpt-4o", true),
        (OPENAI, "gpt-4.1-2025-04-14", true),
        (OPENAI, "ft:gpt-4o-mini:acme::1", true),
        (OPENAI, "gpt-5", false),
        (OPENAI, "o4-mini", false),
        (AZURE, "gpt-4o", true),
        (AZURE, "our-deployment", false),
        (ANTHROPIC, "claude-3-5-haiku-20241022", true),
        (ANTHROPIC, "claude-sonnet-4-5", true),
        (ANTHROPIC, "claude-opus-4-8", true),
        (ANTHROPIC, "claude-opus-5", false),
        (ANTHROPIC, "claude-fable-5", false),
        (DEEPSEEK, "deepseek-reasoner", true),
        (XAI, "grok-4-fast-non-reasoning", true),
        (XAI, "grok-4", false),
        // These generate to the end.
        (GEMINI, "gemini-2.5-flash", false),
        (GROQ, "llama-3.3-70b-versatile", false),
        (BEDROCK, "anthropic.claude-sonnet-4-20250514-v1:0", false),
        (COMPATIBLE_USAGE, "gpt-4o", false),
    ] {
        assert_eq!(is_charged_as_received(profile, model, STREAM), expected, "{profile:?} {model}");
    }
}

#[test]
fn fields_of_the_request_turn_reasoning_on_and_off() {
    for (profile, model, fields, expected) in [
        (OPENAI, "gpt-5.4", r#""reasoning_effort": "none","#, true),
        (OPENAI, "gpt-5.4", r#""reasoning": {"summary": "auto", "effort": "none"},"#, true),
        (OPENAI, "gpt-5.4", r#""reasoning": {"summary": "auto"},"#, false),
        (OPENAI, "gpt-5.4", r#""reasoning_effort": null,"#, false),
        (OPENAI, "gpt-4o", r#""reasoning_effort": "low","#, false),
        (OPENAI, "gpt-4o", r#""reasoning_effort": null,"#, true),
        (OPENAI, "gpt-4o", r#""n": 1,"#, true),
        (OPENAI, "gpt-4o", r#""n": 2,"#, false),
        (ANTHROPIC, "claude-opus-5", r#""thinking": {"type": "disabled"},"#, true),
        (
            ANTHROPIC,
            "claude-opus-4-6",
            r#""thinking": {"budget_tokens": 9, "type": "enabled"},"#,
            false,
        ),
        (ANTHROPIC, "claude-opus-4-6", r#""tools": [{"name": "f", "input_schema": {}}],"#, true),
        (
            ANTHROPIC,
            "claude-opus-4-6",
            r#""tools": [{"type": "web_search_20250305", "name": "web_search"}],"#,
            false,
        ),
    ] {
        let fields = format!("{STREAM} {fields}");
        assert_eq!(is_charged_as_received(profile, model, &fields), expected, "{model} {fields}");
    }
    // A request without a stream.
    assert!(!is_charged_as_received(OPENAI, "gpt-4o", ""));
}

#[test]
fn custom_rules_set_the_charge_of_cut_streams() {
    let profile = |cut| Profile::custom(Rules::new("acme-cut").cut_streams(cut)).unwrap();
    for (cut, expected) in [
        (CutStreams::kept(), [false, false]),
        (CutStreams::stopping(), [true, true]),
        (CutStreams::stopping_for(&["small-*"]), [true, false]),
    ] {
        let charged = ["small-1", "big-1"].map(|m| is_charged_as_received(profile(cut), m, STREAM));
        assert_eq!(charged, expected);
    }
}
