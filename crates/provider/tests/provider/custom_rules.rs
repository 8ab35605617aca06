//! Custom profiles: built-in ones rebuilt from public parts, and usage at a custom path.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use paceline_limiter::limiter::Limiter;
use paceline_limiter::quota::{Algorithm, Cost, Dimension, SettleAt, Usage};
use paceline_provider::{
    AdmissionCharge, Api, COHERE, Charge, Class, DefaultQuota, ErrorRules, GROQ, InvalidProfile,
    LimitHeader, LimitHeaders, LimitWindow, MISTRAL, Profile, PromptWeights, ResetFormat,
    ResponseField, Rules, Scanner, TokenCount, Unit,
};

use super::recordings::{Recorded, entries};

const GROQ_RULES: Rules = Rules::new("my-groq")
    .urls(&["api.groq.com"])
    .algorithm(Algorithm::TokenBucket)
    .weights(PromptWeights::OPENAI)
    .charge(Charge::at_admission(AdmissionCharge::new().per_message(4)))
    .units(&[Unit::AudioSeconds])
    .limits(LimitHeaders::new(
        &["x-ratelimit-"],
        &[
            LimitHeader::new("requests", "requests", LimitWindow::Seconds(86_400)),
            LimitHeader::new("tokens", "tokens", LimitWindow::Seconds(60)),
        ],
    ));

const MISTRAL_RULES: Rules = Rules::new("my-mistral")
    .urls(&["api.mistral.ai"])
    .weights(PromptWeights::OPENAI)
    .charge_header("x-ratelimit-tokens-query-cost")
    .limits(LimitHeaders::BY_NAME)
    .usage(&[
        ResponseField::whole(&["usage", "prompt_tokens"], TokenCount::Input),
        ResponseField::whole(&["usage", "completion_tokens"], TokenCount::PrimaryOutput),
        ResponseField::whole(&["usage", "total_tokens"], TokenCount::Total),
        ResponseField::count(
            &["usage", "prompt_tokens_details", "cached_tokens"],
            TokenCount::CachedInput,
        ),
    ]);

const COHERE_RULES: Rules = Rules::new("my-cohere")
    .urls(&["api.cohere.com", "api.cohere.ai"])
    .weights(PromptWeights::OPENAI.per_conversation(60).functions(1_000).schema_bytes_per_token(6))
    .units(&[Unit::Inputs, Unit::Images])
    .api(Api::bearer(&["CO_API_KEY"]).endpoint("/v2/chat"));

#[test]
fn rebuilt_profiles_read_recordings_as_built_in_profiles() {
    for (rules, built_in, file) in [
        (GROQ_RULES, GROQ, "groq.har"),
        (MISTRAL_RULES, MISTRAL, "mistral.har"),
        (COHERE_RULES, COHERE, "cohere.har"),
    ] {
        let custom = Profile::custom(rules).unwrap();
        let Some(entries) = entries(file) else { return };
        assert!(!entries.is_empty(), "{file}");
        for entry in &entries {
            let place = format!("{file} {}", entry.index);
            assert_eq!(Profile::find_among(&[custom], &entry.url), custom, "{place}");
            let request =
                |profile: Profile| profile.read_request(&entry.url, entry.request.as_bytes());
            let estimate = request(custom);
            assert_eq!(estimate, request(built_in), "{place}");
            let scan = |profile| {
                let mut scanner = Scanner::of(profile, &entry.headers);
                scanner.feed(&entry.response);
                scanner.finish()
            };
            assert_eq!(scan(custom), scan(built_in), "{place}");
            assert_eq!(entry.scan(custom, || 7), entry.scan(built_in, || 7), "{place}");
            assert_eq!(custom.limits(&entry.headers), built_in.limits(&entry.headers), "{place}");
            let in_head = |profile: Profile| profile.charged_in_head(&entry.headers);
            assert_eq!(in_head(custom), in_head(built_in), "{place}");
            let usage = scan(custom).usage.unwrap_or_default();
            let charge = |profile: Profile| profile.charge(&estimate.cost, &usage);
            assert_eq!(charge(custom), charge(built_in), "{place}");
        }
    }
}

#[test]
fn rebuilt_profiles_settle_as_built_in_profiles() {
    for (rules, built_in) in [(GROQ_RULES, GROQ), (MISTRAL_RULES, MISTRAL), (COHERE_RULES, COHERE)]
    {
        let custom = Profile::custom(rules).unwrap();
        assert_eq!(custom.algorithm(), built_in.algorithm());
        for dimension in [Dimension::Requests, Dimension::Tokens, Dimension::InputTokens] {
            assert_eq!(custom.settles(&dimension), built_in.settles(&dimension), "{built_in:?}");
        }
    }
}

const BILLED: &[ResponseField] = &[
    ResponseField::count(&["meta", "billed", "prompt"], TokenCount::Input),
    ResponseField::count(&["meta", "billed", "tokens"], TokenCount::Output),
];

#[test]
fn usage_at_custom_path_is_read_in_every_framing() {
    let acme = Profile::custom(Rules::new("acme-framing").usage(BILLED)).unwrap();
    let last = r#"{"usage":{"prompt_tokens":1,"completion_tokens":1},"meta":{"billed":{"prompt":7,"tokens":3}}}"#;
    let text = r#"{"text":"the \"tokens\":9 in a text","meta":null}"#;
    let expected = Usage { input: 7, output: 3, ..Usage::default() };
    for (content_type, body) in [
        ("application/json", last.to_owned()),
        ("application/x-ndjson", format!("{text}\n{last}\n")),
        ("application/json", format!("[{text},{last}]")),
        ("text/event-stream", format!("data: {text}\n\ndata: {last}\n\ndata: [DONE]\n\n")),
    ] {
        for size in [1, 5, usize::MAX] {
            let mut scanner = Scanner::new(acme, Some(content_type));
            body.as_bytes().chunks(size).for_each(|piece| scanner.feed(piece));
            assert_eq!(scanner.finish().usage, Some(expected), "{content_type}, by {size}: {body}");
        }
    }
}

#[test]
fn usage_at_custom_path_is_found_in_a_long_stream() {
    let acme = Profile::custom(Rules::new("acme-stream").usage(BILLED)).unwrap();
    let mut body = "data: {\"text\":\"Hello\",\"usage\":{\"prompt_tokens\":1}}\n\n".repeat(5_000);
    body.push_str("data: {\"meta\":{\"billed\":{\"prompt\":7,\"tokens\":3}}}\n\n");
    let mut scanner = Scanner::new(acme, Some("text/event-stream"));
    scanner.feed(body.as_bytes());
    assert_eq!(scanner.finish().usage.map(|usage| usage.total()), Some(10));
}

const ACME: Rules = Rules::new("acme-rules")
    .charge(
        Charge::by_usage()
            .reserving_max_output()
            .without_cache_reads()
            .settling_input_early()
            .output_factors(&[("acme-5*", 5)]),
    )
    .usage_headers(&[("x-acme-input", TokenCount::Input), ("x-acme-output", TokenCount::Output)])
    .limits(
        LimitHeaders::new(
            &["x-acme-"],
            &[LimitHeader::new("calls", "calls", LimitWindow::RenewalPeriod).rounded_to(10)],
        )
        .reset(ResetFormat::SecondsOrMillis)
        .overdrawn(),
    )
    .errors(
        ErrorRules::new()
            .account_codes(&["no_credits"])
            .transient_codes(&["warming_up"])
            .long_window_texts(&["this week"])
            .delay_fields(&["come_back_in"]),
    )
    .quotas(&[DefaultQuota::new("acme-5*", "2026-11").rpm(60).tpm(1_000).rpd(50).zone("UTC")]);

#[test]
fn custom_rules_are_applied() {
    let acme = Profile::custom(ACME).unwrap();

    assert_eq!(acme.settles(&Dimension::InputTokens), SettleAt::FirstUsage);
    let body = br#"{"model": "acme-5-large", "max_tokens": 100, "messages": []}"#;
    let estimate = acme.read_request("/v1/chat/completions", body);
    let usage =
        Usage { input: 50, output: 10, cache_read: 20, cache_write: 0, long_cache_write: 0 };
    let charge = estimate.terms.apply(acme.charge(&Cost::new(), &usage), &usage);
    assert_eq!(charge.amount(&Dimension::Tokens), 30 + 5 * 10);
    assert_eq!(charge.amount(&Dimension::InputTokens), 30);
    assert!(!estimate.guesses_output(), "`max_tokens` is reserved in full");

    let headers = headers(&[
        ("x-acme-input", "5"),
        ("x-acme-output", "6"),
        ("x-acme-limit-calls", "100"),
        ("x-acme-remaining-calls", "-5"),
        ("x-acme-renewalperiod-calls", "10"),
    ]);
    let usage = Scanner::of(acme, &headers).finish().usage;
    assert_eq!(usage.map(|usage| (usage.input, usage.output)), Some((5, 6)));
    let reading = &acme.limits(&headers)[0];
    assert_eq!(reading.dimension, Dimension::custom("calls"));
    assert_eq!((reading.remaining, reading.granularity), (Some(0), 10));
    assert_eq!(reading.window.as_duration(), Duration::from_secs(10));

    let classify = |status: u16, body: &str| {
        acme.classify(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.as_bytes())
    };
    assert_eq!(classify(429, r#"{"error": {"code": "no_credits"}}"#), Class::Terminal);
    assert_eq!(classify(400, r#"{"error": {"code": "warming_up"}}"#), Class::Transient);
    assert_eq!(classify(429, r#"{"error": {"message": "all of this week"}}"#), Class::UntilReset);

    let limiter = Limiter::builder().provider(acme).build().unwrap();
    assert_eq!(limiter.stats("acme-5-large").limits.len(), 3);
}

#[test]
fn rules_derived_from_built_in_profile_are_kept() {
    let acme = Profile::custom(GROQ.rules_as("acme-groq").urls(&["*.acme.example"])).unwrap();
    assert_eq!((acme.name(), acme.built_in(), acme.base_url()), ("acme-groq", GROQ, None));
    assert_eq!(acme.algorithm(), GROQ.algorithm());
    assert_eq!(acme.key_variables(), ["ACME_GROQ_API_KEY"]);
    assert!(acme.is_at("https://eu.acme.example/v1") && !acme.is_at("https://api.groq.com/v1"));
    assert_eq!(Profile::find_among(&[acme], "https://eu.acme.example/v1"), acme);
    let moved = acme.like("acme-groq", "http://proxy:8080").unwrap();
    assert_eq!((moved.name(), moved.built_in()), ("acme-groq", GROQ));
    assert_eq!(Profile::named_among(&[acme], "ACME-GROQ"), Ok(acme));
}

#[test]
fn profiles_with_equal_rules_are_equal() {
    let make = || Profile::custom(Rules::new("acme-again").usage(BILLED)).unwrap();
    assert_eq!(make(), make());
    assert_ne!(make(), Profile::custom(Rules::new("acme-again")).unwrap());
}

#[test]
fn invalid_rules_are_refused_with_the_rule() {
    const DEEP: &[ResponseField] =
        &[ResponseField::count(&["a", "b", "c", "d", "e", "f"], TokenCount::Output)];
    const NO_KEY: &[ResponseField] = &[ResponseField::count(&["a", ""], TokenCount::Output)];
    const QUOTE: &[ResponseField] = &[ResponseField::count(&["a\"b"], TokenCount::Output)];
    const LONG: &[ResponseField] =
        &[ResponseField::count(&["a_key_that_is_longer_than_32_bytes"], TokenCount::Output)];
    const MANY: &[ResponseField] = &[BILLED[0]; 21];
    let rules = Rules::new("acme-invalid");
    for (rules, start) in [
        (rules.usage(DEEP), "usage: path"),
        (rules.usage(NO_KEY), "usage: path"),
        (rules.usage(QUOTE), "usage: path"),
        (rules.usage(LONG), "usage: path"),
        (rules.usage(MANY), "usage: 21 fields; at most 20"),
        (rules.charge_header("X-Cost"), "charge_header: \"X-Cost\" is not a header name"),
        (rules.usage_headers(&[("a b", TokenCount::Input)]), "usage_headers: \"a b\""),
        (rules.api(Api::bearer(&[]).key_header("")), "api: \"\" is not a header name"),
        (rules.limits(LimitHeaders::new(&["X-"], &[])), "limits: \"X-\" is not a header prefix"),
    ] {
        let error = Profile::custom(rules).unwrap_err();
        assert!(matches!(error, InvalidProfile::Rule { .. }), "{error:?}");
        assert!(error.to_string().starts_with(start), "{error}");
    }
    let named = |name| Profile::custom(Rules::new(name)).unwrap_err();
    assert!(matches!(named("OpenAI"), InvalidProfile::BuiltIn { name: "openai" }));
    assert!(matches!(named("a b"), InvalidProfile::Name { .. }));
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &'static str)| {
        (name.parse().unwrap(), value.parse().unwrap())
    };
    pairs.iter().map(pair).collect()
}
