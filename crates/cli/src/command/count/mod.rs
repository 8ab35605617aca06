//! `paceline count`: counts the tokens of a text.

mod run;
mod text;
mod token_counter;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::CredentialArgs;
use super::batch::base_url;
use super::redacted_parser::RedactedParser;
use crate::batch::target::Base;
use paceline::provider::Profile;

pub(super) use run::count;

/// The arguments of `paceline count`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CountArgs {
    /// Model to count for
    #[arg(value_name = "MODEL", value_parser = model)]
    pub model: String,

    /// The text [default: standard input, also for `-`]
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,

    /// Counting method
    #[cfg_attr(
        feature = "tokenizer",
        doc = "[default: tokenizer if it knows the model, else estimate]"
    )]
    #[cfg_attr(not(feature = "tokenizer"), doc = "[default: estimate]")]
    #[arg(long, value_enum, value_name = "METHOD")]
    pub by: Option<CountBy>,

    /// Provider to ask with `--by provider`: openai, anthropic, gemini [default: detected from the
    /// model]
    #[arg(long, value_name = "NAME", value_parser = clap::value_parser!(Profile))]
    pub provider: Option<Profile>,

    /// Base URL to ask with `--by provider` [default: the provider's]
    #[arg(long, value_name = "URL", value_parser = RedactedParser(base_url))]
    pub base_url: Option<Base>,

    /// Credentials and other headers.
    #[command(flatten)]
    pub credentials: CredentialArgs,

    /// Print one JSON document, including the counting method
    #[arg(long)]
    pub json: bool,
}

/// The counting method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBy {
    /// Four bytes of UTF-8 per token, as reserved before a request is sent
    Estimate,
    /// Exact count with a built-in OpenAI vocabulary
    #[cfg_attr(not(feature = "tokenizer"), value(hide = true))]
    Tokenizer,
    /// Count of the provider's endpoint for a prompt with this text; sends one request
    Provider,
}

fn model(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("must not be empty; give the name of a model".to_owned()),
        name => Ok(name.to_owned()),
    }
}

pub(super) const ABOUT: &str = if cfg!(feature = "tokenizer") {
    "\
Count the tokens of a text.

Prints a single number. There are three methods: `estimate` assumes four bytes per token, as \
paceline does when it has no better count; `tokenizer` counts exactly, for OpenAI models whose \
vocabulary is built in; `provider` asks the provider's endpoint for token counts, which needs an \
API key. The first two count only the text. The provider counts a prompt with the text as its \
only message, so its number includes the few tokens around a message. Without --by, standard \
error shows which method was used.

Text from standard input must be UTF-8, at most 64 MiB."
} else {
    "\
Count the tokens of a text.

Prints a single number. There are two methods: `estimate` assumes four bytes per token, as \
paceline does when it has no better count; `provider` asks the provider's endpoint for token \
counts, which needs an API key. The estimate counts only the text. The provider counts a prompt \
with the text as its only message, so its number includes the few tokens around a message. \
Without --by, standard error shows which method was used. Exact counts without a request need a \
paceline built with the feature `tokenizer`.

Text from standard input must be UTF-8, at most 64 MiB."
};

const EXAMPLES: &str = "\
Examples:
  Count a text:
    paceline count gpt-4o 'Why is the sky blue?'

  Count a file:
    paceline count gpt-4o < prompt.txt

  Ask Anthropic:
    ANTHROPIC_API_KEY=... paceline count claude-sonnet-4-5 --by provider < prompt.txt

  Use the count in a script:
    paceline count gpt-4o --json 'Hi' | jq .tokens

JSON:
  one document: {\"model\": .., \"tokens\": .., \"by\": \"estimate|tokenizer|provider\", \"bytes\": ..}

Environment:
  OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY    API keys for --by provider

Exit codes:
  0    the tokens were counted
  2    wrong arguments, invalid UTF-8, or no count from the provider";
