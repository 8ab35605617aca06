//! `paceline count`: counts the tokens of a text.

mod text;
mod token_counter;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::batch::base_url;
use super::redacted_parser::RedactedParser;
use super::stdout::Stdout;
use super::{CredentialArgs, Exit};
use crate::batch::target::Base;
use crate::terminal::notify;
use paceline::provider::{OPENAI, Profile};
use paceline::quota::Dimension;
use token_counter::TokenCounter;

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

impl CountArgs {
    /// Runs the command and prints its output.
    ///
    /// # Errors
    /// Returns the reason why counting failed, or an error of standard output.
    pub(super) async fn run(&self, out: &mut Stdout<'_>) -> Result<Exit, String> {
        let text = text::read(self.text.as_deref())?;
        // Loading the vocabularies takes a while.
        let tokenizer = match self.by {
            None | Some(CountBy::Tokenizer) => tokenizer(),
            Some(CountBy::Estimate | CountBy::Provider) => None,
        };
        let tokenizer = tokenizer.filter(|profile| profile.tokenizes(&self.model));
        let by = self.by.unwrap_or(match tokenizer {
            Some(_) => CountBy::Tokenizer,
            None => CountBy::Estimate,
        });
        let tokens = match by {
            CountBy::Estimate => self.tokens(OPENAI, &text),
            CountBy::Tokenizer => {
                let profile = tokenizer.ok_or_else(|| self.no_vocabulary())?;
                text::pieces(&text).map(|piece| self.tokens(profile, piece)).sum()
            }
            CountBy::Provider => TokenCounter::new(self)?.tokens(&self.model, &text).await?,
        };
        self.print(tokens, by, &text, out)?;
        Ok(Exit::Success)
    }

    /// Counts the tokens of the text alone.
    fn tokens(&self, profile: Profile, text: &str) -> u64 {
        let body = json!({"model": self.model, "input": text}).to_string();
        let estimate = profile.read_request("/v1/embeddings", body.as_bytes());
        estimate.cost.amount(&Dimension::InputTokens)
    }

    fn print(
        &self,
        tokens: u64,
        by: CountBy,
        text: &str,
        out: &mut Stdout<'_>,
    ) -> Result<(), String> {
        if self.json {
            let (model, bytes) = (self.model.as_str(), text.len());
            return out.json(&CountOutput { model, tokens, by, bytes });
        }
        if self.by.is_none() {
            let how = match by {
                CountBy::Estimate => "estimated at four bytes per token",
                _ => "counted with the model's vocabulary",
            };
            notify(&format_args!("{how}; choose another method with --by"));
        }
        out.line(&tokens)
    }

    fn no_vocabulary(&self) -> String {
        match tokenizer() {
            Some(_) => format!(
                "{}: no built-in vocabulary for this model; use --by estimate or --by provider",
                self.model
            ),
            None => "tokenizer: not built in (cargo feature `tokenizer`); use \
                     --by estimate or --by provider"
                .to_owned(),
        }
    }
}

/// The JSON output. Field names are stable.
#[derive(Debug, Serialize)]
struct CountOutput<'a> {
    model: &'a str,
    tokens: u64,
    by: CountBy,
    bytes: usize,
}

/// Returns a profile with built-in vocabularies, if compiled in.
fn tokenizer() -> Option<Profile> {
    #[cfg(feature = "tokenizer")]
    return Some(OPENAI.with_tokenizer());
    #[cfg(not(feature = "tokenizer"))]
    None
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
