//! Estimated charges compared with the charges recorded from OpenAI.

use paceline_limiter::quota::{Cost, Dimension, SettleAt, Usage};
use paceline_provider::OPENAI;

use super::recordings::{Recorded, Recording, entries};

/// A recorded charge and its estimate.
struct RecordedCharge {
    endpoint: &'static str,
    recent: bool,
    text_only: bool,
    recorded: u64,
    estimated: u64,
}

impl RecordedCharge {
    fn error(&self) -> u64 {
        self.recorded.abs_diff(self.estimated)
    }

    fn is_near(&self) -> bool {
        self.error() <= 2 || self.error() * 50 <= self.recorded
    }
}

/// A summary of charge errors.
#[derive(Debug)]
struct ErrorSummary {
    count: usize,
    median: u64,
    p90: u64,
    worst: u64,
    near_percent: usize,
}

#[test]
fn recorded_text_requests_have_the_charge_of_openai() {
    let Some(charges) = charges() else { return };
    report(&charges);
    let summary =
        summary(charges.iter().filter(|c| c.recent && c.text_only && c.endpoint != "responses"));
    assert!(summary.count >= 60, "{summary:?}");
    assert!(summary.median <= 1, "{summary:?}");
    assert!(summary.near_percent >= 95, "{summary:?}");
}

#[test]
fn median_error_of_all_openai_charges_is_a_few_percent() {
    let Some(charges) = charges() else { return };
    let mut percent: Vec<_> = charges.iter().map(|c| c.error() * 100 / c.recorded.max(1)).collect();
    percent.sort_unstable();
    assert!(charges.len() >= 190 && percent[percent.len() / 2] < 5, "{percent:?}");
    let text = summary(charges.iter().filter(|c| c.text_only && c.endpoint != "responses"));
    assert!(text.count >= 100 && text.median <= 1 && text.near_percent >= 80, "{text:?}");
}

#[test]
fn charges_of_groq_and_mistral_match() {
    for (file, least) in [("groq.har", 5), ("mistral.har", 5)] {
        let Some(entries) = entries(file) else { return };
        let recorded = |entry: &&Recording| entry.expected["charged_tokens"].is_u64();
        let errors: Vec<_> = entries.iter().filter(recorded).map(final_error).collect();
        println!("{file}: off by {errors:?}");
        assert!(errors.iter().filter(|error| **error == 0).count() >= least, "{errors:?}");
    }
}

/// Returns the error of the charge after the response, which the headers state or the usage determines.
fn final_error(entry: &Recording) -> u64 {
    let recorded = entry.expected["charged_tokens"].as_u64().unwrap_or(0);
    let profile = entry.profile();
    let reserved = profile.read_request(&entry.url, entry.request.as_bytes()).cost;
    let usage = entry.scan_as_sent().usage.unwrap_or_default();
    let charged = profile.charge(&reserved, &usage).amount(&Dimension::Tokens);
    profile.charged_in_head(&entry.headers).unwrap_or(charged).abs_diff(recorded)
}

#[test]
fn recent_responses_api_charges_match_within_a_few_tokens() {
    let Some(charges) = charges() else { return };
    let summary = summary(charges.iter().filter(|c| c.recent && c.endpoint == "responses"));
    assert!(summary.count >= 15 && summary.median <= 2, "{summary:?}");
}

#[test]
fn most_text_prompts_are_estimated_within_a_few_tokens() {
    let Some(entries) = entries("openai.har") else { return };
    let plain = |entry: &&Recording| {
        let beyond = ["previous_response_id", "conversation", "\"type\": "];
        !EXTRAS.iter().chain(&beyond).any(|extra| entry.request.contains(extra))
    };
    let mut errors: Vec<_> = entries
        .iter()
        .filter(plain)
        .filter_map(|entry| {
            let usage = entry.usage()??;
            let estimate = OPENAI.read_request(entry.path(), entry.request.as_bytes());
            let tenth = usage.input / 10;
            let error = estimate.cost.amount(&Dimension::InputTokens).abs_diff(usage.input);
            Some((error.saturating_sub(tenth), error))
        })
        .collect();
    errors.sort_unstable();
    let near = errors.iter().filter(|(beyond, _)| *beyond <= 3).count();
    println!("prompts: {near} of {} within 3 tokens and 10 %", errors.len());
    assert!(errors.len() > 80 && near * 100 >= errors.len() * 75, "{errors:?}");
}

#[test]
fn tools_and_calls_in_a_chat_are_free() {
    let Some(charges) = charges() else { return };
    let tools = |c: &&RecordedCharge| c.recent && !c.text_only && c.endpoint == "chat";
    let summary = summary(charges.iter().filter(tools));
    assert!(summary.count >= 20 && summary.median <= 1, "{summary:?}");
}

#[test]
fn charge_of_openai_ignores_usage() {
    let reserved = Cost::new().tokens(100).input_tokens(50).output_tokens(50).custom("images", 2);
    let usage = Usage { input: 7, output: 9, cache_read: 3, cache_write: 0, long_cache_write: 0 };
    let charge = OPENAI.charge(&reserved, &usage);
    assert_eq!(charge, reserved.input_tokens(7).output_tokens(9));
    for dimension in [Dimension::Requests, Dimension::Tokens, Dimension::OutputTokens] {
        assert_eq!(OPENAI.settles(&dimension), SettleAt::Send);
    }
}

fn charges() -> Option<Vec<RecordedCharge>> {
    Some(entries("openai.har")?.iter().filter_map(charge).collect())
}

fn charge(entry: &Recording) -> Option<RecordedCharge> {
    let recorded = entry.expected["charged_tokens"].as_u64()?;
    let estimate = OPENAI.read_request(entry.path(), entry.request.as_bytes());
    let endpoint = match entry.path() {
        path if path.ends_with("chat/completions") => "chat",
        path if path.ends_with("completions") => "completions",
        path if path.ends_with("embeddings") => "embeddings",
        path if path.ends_with("responses") => "responses",
        _ => "other",
    };
    Some(RecordedCharge {
        endpoint,
        recent: entry.year.is_some_and(|year| year >= 2_025),
        text_only: !EXTRAS.iter().any(|extra| entry.request.contains(extra)),
        recorded,
        estimated: estimate.cost.amount(&Dimension::Tokens),
    })
}

fn report(charges: &[RecordedCharge]) {
    let show = |name: &str, keep: &dyn Fn(&&RecordedCharge) -> bool| {
        let ErrorSummary { count, median, p90, worst, near_percent } =
            summary(charges.iter().filter(keep));
        println!(
            "{name:<36} {count:>4}: off by {median} in the median, {p90} at p90, {worst} at worst; \
             {near_percent} % within max(2, 2 %)"
        );
    };
    show("all", &|_| true);
    show("2025 and later", &|c| c.recent);
    show("2025 and later, text, no responses", &|c| {
        c.recent && c.text_only && c.endpoint != "responses"
    });
    for endpoint in ["chat", "completions", "embeddings", "responses"] {
        show(endpoint, &|c| c.endpoint == endpoint);
        show(&format!("{endpoint}, 2025 and later"), &|c| c.endpoint == endpoint && c.recent);
    }
    for c in charges.iter().filter(|c| c.recent && !c.is_near()) {
        println!("far: {} recorded {} estimated {}", c.endpoint, c.recorded, c.estimated);
    }
}

fn summary<'a>(charges: impl Iterator<Item = &'a RecordedCharge>) -> ErrorSummary {
    let charges: Vec<_> = charges.collect();
    let mut errors: Vec<_> = charges.iter().map(|c| c.error()).collect();
    errors.sort_unstable();
    let at = |percent: usize| errors.get(errors.len() * percent / 100).copied().unwrap_or(0);
    let near = charges.iter().filter(|c| c.is_near()).count();
    ErrorSummary {
        count: errors.len(),
        median: at(50),
        p90: at(90),
        worst: errors.last().copied().unwrap_or(0),
        near_percent: near * 100 / errors.len().max(1),
    }
}

/// Texts in the body of a request that contains more than text.
const EXTRAS: &[&str] =
    &["\"tools\": [{", "\"functions\"", "\"tool_calls\"", "image_url", "response_format"];

/// The providers whose recordings state charges, with the charges that were near before November 2026.
const NEAR_BEFORE: [(&str, usize); 3] = [("groq.har", 5), ("mistral.har", 5), ("openai.har", 154)];

#[test]
fn charges_of_each_provider_are_no_worse_than_before() {
    let Some(entries) = super::recordings::all() else { return };
    println!("provider        charges  near  median error");
    for (file, before) in NEAR_BEFORE {
        let recorded = entries.iter().filter(|entry| entry.file == file);
        let recorded = recorded.filter(|entry| entry.expected["charged_tokens"].is_u64());
        let errors = recorded.map(|entry| {
            let charge = entry.expected["charged_tokens"].as_u64().unwrap_or(0);
            (final_error(entry), charge)
        });
        let mut errors: Vec<_> = errors.collect();
        errors.sort_unstable();
        let near = errors.iter().filter(|(error, of)| *error <= 2 || error * 50 <= *of).count();
        let median = errors[errors.len() / 2].0;
        println!("{file:<15} {:>7}  {near:>4}  {median:>12}", errors.len());
        assert!(near >= before, "{file}: {near} near, {before} before");
    }
}
