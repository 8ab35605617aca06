//! Groq: charges as OpenAI does.

use super::profile::Rules;
use super::{Profile, limits, openai};

/// Groq, `api.groq.com`.
pub const GROQ: Profile = Profile::new(&Rules {
    name: "groq",
    urls: &["api.groq.com"],
    limits: |headers| limits::GROQ.read(headers),
    ..openai::RULES
});
