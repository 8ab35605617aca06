//! A custom provider, defined by rules: recognized by its URL, with a usage read from a stream at a custom
//! path.
//!
//! ```text
//! cargo run --example custom_provider
//! ```

use paceline::Limiter;
use paceline::provider::{
    Api, Charge, DefaultQuota, ErrorRules, LimitHeader, LimitHeaders, LimitWindow, Profile,
    ResponseField, Rules, Scanner, TokenCount,
};
use paceline::quota::{Algorithm, Dimension};

const ACME: Rules = Rules::new("acme")
    .urls(&["api.acme.example"])
    .api(Api::bearer(&["ACME_API_KEY"]).origin("https://api.acme.example"))
    .algorithm(Algorithm::TokenBucket)
    .charge(Charge::by_usage().without_cache_reads())
    .usage(&[
        ResponseField::count(&["meta", "billed", "prompt"], TokenCount::Input),
        ResponseField::count(&["meta", "billed", "cached"], TokenCount::CachedInput),
        ResponseField::count(&["meta", "billed", "tokens"], TokenCount::Output),
    ])
    .limits(LimitHeaders::new(
        &["x-acme-"],
        &[LimitHeader::new("units", "tokens", LimitWindow::Seconds(60))],
    ))
    .errors(ErrorRules::new().account_codes(&["out_of_credits"]))
    .quotas(&[DefaultQuota::new("acme-*", "2026-11").rpm(60).tpm(20_000)]);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let acme = Profile::custom(ACME)?;
    let limiter = Limiter::builder().provider(acme).build()?;
    println!("limits of acme-large: {}", limiter.stats("acme-large").limits.len());

    let url = "https://api.acme.example/v1/chat/completions";
    let profile = Profile::find_among(&[acme], url);
    let body = br#"{"model": "acme-large", "messages": [{"role": "user", "content": "Hello"}]}"#;
    let estimate = profile.read_request(url, body);
    println!("reserved: {} tokens", estimate.cost.amount(&Dimension::Tokens));

    let mut scanner = Scanner::new(profile, Some("text/event-stream"));
    scanner.feed(b"data: {\"text\": \"Hi\"}\n\n");
    scanner.feed(
        b"data: {\"meta\": {\"billed\": {\"prompt\": 90, \"cached\": 64, \"tokens\": 2}}}\n\n",
    );
    let usage = scanner.finish().usage.ok_or("the response states no usage")?;
    let charge = estimate.terms.apply(profile.charge(&estimate.cost, &usage), &usage);
    println!("charged: {} tokens", charge.amount(&Dimension::Tokens));
    Ok(())
}
