//! Groq: charges as OpenAI does.

use super::profile::Rules;
use super::{Profile, openai};

/// Groq, `api.groq.com`.
pub const GROQ: Profile =
    Profile::new(&Rules { name: "groq", urls: &["api.groq.com"], ..openai::RULES });
