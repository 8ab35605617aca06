//! Charges by the rules that providers document, with their examples.

use paceline_limiter::quota::{Cost, Dimension, SettleAt, Usage};
use paceline_provider::{
    BASETEN, BEDROCK_MANTLE, Estimate, FIREWORKS, MINIMAX, MOONSHOT, OPENAI, Profile, Scanner, XAI,
};

/// "The number of input tokens in the request, plus the value of `max_tokens`, is checked against the
/// input-tokens-per-minute quota", "output tokens are counted against the output-tokens-per-minute quota",
/// "any unused portion of the initial input-token reservation (the difference between `max_tokens` and
/// the actual output) is replenished", "cached input tokens [...] do not count": docs.aws.amazon.com,
/// "Quotas for the bedrock-mantle endpoint".
#[test]
fn mantle_charges_prompt_and_unreturned_bound_to_input() {
    for (path, bound) in [
        ("/v1/chat/completions", "max_completion_tokens"),
        ("/v1/responses", "max_output_tokens"),
        ("/anthropic/v1/messages", "max_tokens"),
    ] {
        let body = format!(r#"{{"model":"openai.gpt-oss-120b","{bound}":500,{PROMPT}}}"#);
        let estimate = read(BEDROCK_MANTLE, path, &body);
        let [_, input, output] = amounts(&estimate.cost);
        assert_eq!((input, output), (6 + 500, 500), "{path}");
        assert!(!estimate.guesses_output(), "{path}: the bound is taken at admission");
        let usage = Usage {
            input: 1_000,
            output: 50,
            cache_read: 600,
            cache_write: 100,
            long_cache_write: 0,
        };
        let [_, input, output] = amounts(&BEDROCK_MANTLE.charge(&estimate.cost, &usage));
        assert_eq!((input, output), (400 + 50, 50), "{path}");
    }
}

#[test]
fn mantle_charges_output_without_a_bound_to_input_at_the_end() {
    let estimate = read(BEDROCK_MANTLE, CHAT, &format!("{{{PROMPT}}}"));
    assert!(estimate.guesses_output());
    assert_eq!(amounts(&estimate.cost), [6 + 1_024, 6, 1_024]);
    let usage = Usage { input: 6, output: 50, ..Usage::default() };
    assert_eq!(amounts(&BEDROCK_MANTLE.charge(&estimate.cost, &usage)), [56, 56, 50]);
    assert_eq!(amounts(&estimate.with_output(200).cost), [206, 6, 200]);
    // An embedding generates nothing.
    let embedding = read(BEDROCK_MANTLE, "/v1/embeddings", r#"{"input":"12345678"}"#);
    assert_eq!(amounts(&embedding.cost), [2, 2, 0]);
}

/// The multipliers of output apply to the other endpoint.
#[test]
fn mantle_counts_each_output_token_once() {
    let body = format!(r#"{{"model":"anthropic.claude-opus-4-8","max_tokens":500,{PROMPT}}}"#);
    assert_eq!(read(BEDROCK_MANTLE, "/anthropic/v1/messages", &body).terms.burn_down, 1);
}

/// "The number of tokens in your request plus the number of `max_completion_tokens` in your parameter,
/// regardless of the actual number of tokens generated": platform.kimi.ai/docs/introduction.
#[test]
fn moonshot_charges_the_bound_whatever_was_generated() {
    let body = format!(r#"{{"model":"kimi-k2.6","max_completion_tokens":500,{PROMPT}}}"#);
    let estimate = read(MOONSHOT, CHAT, &body);
    assert_eq!(estimate.cost.amount(&Dimension::Tokens), 9 + 500);
    for output in [1, 500] {
        let usage = Usage { input: 12, output, ..Usage::default() };
        let charge = MOONSHOT.charge(&estimate.cost, &usage);
        assert_eq!(charge.amount(&Dimension::Tokens), 12 + 500, "{output}");
        assert_eq!(charge.amount(&Dimension::OutputTokens), output);
    }
    assert_eq!(MOONSHOT.settles(&Dimension::Tokens), SettleAt::End);
}

/// "If your request does not include the `max_completion_tokens` parameter, we will use the default": of
/// Kimi K3, 131,072.
#[test]
fn moonshot_charges_the_default_of_the_model_without_a_bound() {
    for (model, bound) in [("kimi-k3", 131_072), ("kimi-k2.6", 1_024)] {
        let estimate = read(MOONSHOT, CHAT, &format!(r#"{{"model":"{model}",{PROMPT}}}"#));
        assert_eq!(estimate.cost.amount(&Dimension::Tokens), 9 + bound, "{model}");
    }
    let twice = format!(r#"{{"model":"kimi-k3","n":2,"max_tokens":10,{PROMPT}}}"#);
    assert_eq!(read(MOONSHOT, CHAT, &twice).cost.amount(&Dimension::Tokens), 9 + 20);
}

/// Three responses of xAI, as reported in public issues (github.com/Wei-Shaw/sub2api 5771,
/// github.com/vercel/ai 12425) and by its Responses API.
#[test]
fn xai_charges_reasoning_and_cached_tokens() {
    for (body, tokens) in [
        (
            r#"{"usage":{"prompt_tokens":10120,"completion_tokens":1499,"total_tokens":14428,
                "prompt_tokens_details":{"cached_tokens":128},
                "completion_tokens_details":{"reasoning_tokens":2809}}}"#,
            14_428,
        ),
        (
            r#"{"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":399,
                "completion_tokens_details":{"reasoning_tokens":386}}}"#,
            399,
        ),
        (
            r#"{"usage":{"input_tokens":35712,"input_tokens_details":{"cached_tokens":192},
                "output_tokens":851,"output_tokens_details":{"reasoning_tokens":568},
                "total_tokens":36563}}"#,
            36_563,
        ),
    ] {
        let charge = XAI.charge(&Cost::new(), &usage(XAI, body));
        assert_eq!(charge.amount(&Dimension::Tokens), tokens, "{body}");
    }
}

#[test]
fn reasoning_within_the_output_is_not_added() {
    let body = r#"{"usage":{"prompt_tokens":10,"completion_tokens":300,"total_tokens":310,
                   "completion_tokens_details":{"reasoning_tokens":256}}}"#;
    assert_eq!(usage(OPENAI, body).output, 300);
}

/// "TPM: the limit of input and output tokens per minute": platform.minimaxi.com/docs/guides/rate-limits, translated.
#[test]
fn minimax_charges_input_and_output() {
    let estimate = read(MINIMAX, "/v1/chat/completions", &format!("{{{PROMPT}}}"));
    assert!(estimate.guesses_output());
    let usage = Usage { input: 1_000, output: 50, cache_read: 600, ..Usage::default() };
    let [tokens, ..] = amounts(&MINIMAX.charge(&estimate.cost, &usage));
    assert_eq!(tokens, 1_050);
    let row = MINIMAX.quotas().iter().find(|quota| quota.pattern == "MiniMax-M3").unwrap();
    let limits = row.quota().unwrap();
    let limits: Vec<_> =
        limits.limits().iter().map(paceline_limiter::quota::Limit::amount).collect();
    assert_eq!(limits, [200, 10_000_000]);
}

/// "Total Prompt TPM — input tokens per minute (cached + uncached). Generated TPM — output tokens per minute":
/// docs.fireworks.ai/serverless/rate-limits.
#[test]
fn fireworks_charges_cached_prompts_and_generated_tokens() {
    let estimate = read(FIREWORKS, "/inference/v1/chat/completions", &format!("{{{PROMPT}}}"));
    assert!(estimate.guesses_output());
    let usage = Usage { input: 1_000, output: 50, cache_read: 600, ..Usage::default() };
    let [_, input, output] = amounts(&FIREWORKS.charge(&estimate.cost, &usage));
    assert_eq!((input, output), (1_000, 50));
}

/// "Maximum tokens processed per minute (input + output combined). Cached input tokens count at full weight":
/// docs.baseten.co/inference/model-apis/pricing-and-limits.
#[test]
fn baseten_charges_cached_input_in_full() {
    let estimate = read(BASETEN, CHAT, &format!("{{{PROMPT}}}"));
    assert!(estimate.guesses_output());
    let usage = Usage { input: 1_000, output: 50, cache_read: 600, ..Usage::default() };
    let [tokens, ..] = amounts(&BASETEN.charge(&estimate.cost, &usage));
    assert_eq!(tokens, 1_050);
}

fn read(profile: Profile, path: &str, body: &str) -> Estimate {
    profile.read_request(path, body.as_bytes())
}

fn usage(profile: Profile, body: &str) -> Usage {
    let mut scanner = Scanner::new(profile, Some("application/json"));
    scanner.feed(body.as_bytes());
    scanner.finish().usage.expect("a usage")
}

/// Returns tokens, input tokens and output tokens.
fn amounts(cost: &Cost) -> [u64; 3] {
    [Dimension::Tokens, Dimension::InputTokens, Dimension::OutputTokens].map(|d| cost.amount(&d))
}

const CHAT: &str = "/v1/chat/completions";

/// Two tokens of text, four around the message (one at Bedrock), three to begin the answer.
const PROMPT: &str = r#""messages":[{"role":"user","content":"12345678"}]"#;
