//! Reservations for unknown servers, compared with recorded usage.

use paceline_limiter::quota::Dimension;
use paceline_provider::COMPATIBLE;

use super::recordings::{Recorded, entries};

#[test]
fn reservation_covers_usage_of_most_recorded_chats() {
    let (mut covered, mut count, mut reserved_tokens, mut used) = (0, 0, 0, 0);
    for file in FILES {
        let Some(entries) = entries(file) else { return };
        for entry in entries.iter().filter(|e| e.url.contains("chat/completions")) {
            let Some(Some(usage)) = entry.usage() else { continue };
            let cost = COMPATIBLE.read_request(entry.path(), entry.request.as_bytes()).cost;
            let reserved = cost.amount(&Dimension::Tokens);
            covered += usize::from(reserved >= usage.total());
            count += 1;
            reserved_tokens += reserved;
            used += usage.total();
        }
    }
    println!("{covered} of {count} covered, {reserved_tokens} reserved for {used} used");
    assert!(count > 200 && covered * 100 >= count * 90, "{covered} of {count}");
}

#[test]
fn usage_of_openai_compatible_providers_is_read() {
    for file in FILES {
        let Some(entries) = entries(file) else { return };
        for entry in entries.iter().filter(|e| e.url.contains("chat/completions")) {
            let Some(expected) = entry.usage() else { continue };
            let scanned = entry.scan(COMPATIBLE, || usize::MAX);
            assert_eq!(scanned.usage, expected, "{file}, entry {}", entry.index);
        }
    }
}

/// Recordings of providers with OpenAI's response format.
const FILES: &[&str] = &[
    "openai.har",
    "groq.har",
    "deepseek.har",
    "openrouter.har",
    "mistral.har",
    "together.har",
    "cerebras.har",
    "local.har",
    "huggingface.har",
    "zai.har",
    "crusoe.har",
];
