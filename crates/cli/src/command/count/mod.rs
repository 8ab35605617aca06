//! `tollgate count`: the tokens of a text.

mod asked;
mod text;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::batch::base_url;
use super::output::Output;
use super::unechoed::Unechoed;
use super::{CredentialArgs, Exit};
use crate::batch::target::Base;
use crate::terminal::say;
use asked::Asked;
use tollgate::provider::{OPENAI, Profile};
use tollgate::quota::Dimension;

/// The arguments of `tollgate count`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CountArgs {
    /// The model that is to read the text
    #[arg(value_name = "MODEL", value_parser = model)]
    pub model: String,

    /// The text; `-`, or nothing, reads standard input
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,

    /// How tokens are counted
    #[cfg_attr(
        feature = "tokenizer",
        doc = "[default: tokenizer where it knows the model, else estimate]"
    )]
    #[cfg_attr(not(feature = "tokenizer"), doc = "[default: estimate]")]
    #[arg(long, value_enum, value_name = "HOW")]
    pub by: Option<CountBy>,

    /// Whom to ask, with `--by provider`: openai, anthropic, gemini [default: told by the model]
    #[arg(long, value_name = "NAME", value_parser = clap::value_parser!(Profile))]
    pub provider: Option<Profile>,

    /// The API to ask, with `--by provider` [default: the provider's]
    #[arg(long, value_name = "URL", value_parser = Unechoed(base_url))]
    pub base_url: Option<Base>,

    /// The key of the question, and its other headers.
    #[command(flatten)]
    pub credentials: CredentialArgs,

    /// Print one JSON document, which says how the tokens were counted
    #[arg(long)]
    pub json: bool,
}

/// How the tokens of a text are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountBy {
    /// Four bytes of UTF-8 a token: what is reserved before a request is sent
    Estimate,
    /// Exactly, for models of OpenAI's, by their vocabularies within this program
    #[cfg_attr(not(feature = "tokenizer"), value(hide = true))]
    Tokenizer,
    /// As the provider's own endpoint counts a prompt of this text; takes a request of its limits
    Provider,
}

impl CountArgs {
    /// # Errors
    /// Says why the tokens can't be counted, or the count not be printed.
    pub(super) async fn run(&self, out: &mut Output<'_>) -> Result<Exit, String> {
        let text = text::read(self.text.as_deref())?;
        let tokenizer = tokenizer().filter(|profile| profile.tokenizes(&self.model));
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
            CountBy::Provider => Asked::new(self)?.tokens(&self.model, &text).await?,
        };
        self.print(tokens, by, &text, out)?;
        Ok(Exit::Success)
    }

    /// The tokens of a bare text, as a request has it that puts nothing around it.
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
        out: &mut Output<'_>,
    ) -> Result<(), String> {
        if self.json {
            let (model, bytes) = (self.model.as_str(), text.len());
            return out.json(&Counted { model, tokens, by, bytes });
        }
        if self.by.is_none() {
            let how = match by {
                CountBy::Estimate => "estimated, at four bytes a token",
                _ => "counted by the model's vocabulary",
            };
            say(&format_args!("{how}; --by chooses another way"));
        }
        out.line(&tokens)
    }

    fn no_vocabulary(&self) -> String {
        match tokenizer() {
            Some(_) => format!(
                "the vocabulary of {} is not known here; use --by estimate or --by provider",
                self.model
            ),
            None => "this tollgate was built without its tokenizer (feature `tokenizer`); use \
                     --by estimate or --by provider"
                .to_owned(),
        }
    }
}

/// What is printed with `--json`. Names are a contract.
#[derive(Debug, Serialize)]
struct Counted<'a> {
    model: &'a str,
    tokens: u64,
    by: CountBy,
    bytes: usize,
}

/// A profile that counts by vocabularies, where they are built in.
fn tokenizer() -> Option<Profile> {
    #[cfg(feature = "tokenizer")]
    return Some(OPENAI.with_tokenizer());
    #[cfg(not(feature = "tokenizer"))]
    None
}

fn model(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("is empty; give a model's name".to_owned()),
        name => Ok(name.to_owned()),
    }
}

pub(super) const ABOUT: &str = if cfg!(feature = "tokenizer") {
    "\
Count the tokens of a text.

Prints one number. Three ways: `estimate`, four bytes a token, which is what tollgate reserves where \
it knows no better; `tokenizer`, exactly, for models of OpenAI's whose vocabulary is built in; \
`provider`, by asking the provider's endpoint for it, which needs an API key. The first two count the \
text alone. The provider counts a prompt of one message with this text, so its number holds the few \
tokens that it puts around a message. Where --by isn't given, standard error says which way was \
taken.

Text from standard input has to be UTF-8, and at most 64 MiB."
} else {
    "\
Count the tokens of a text.

Prints one number. Two ways: `estimate`, four bytes a token, which is what tollgate reserves where it \
knows no better, of the text alone; `provider`, by asking the provider's endpoint for it, which needs \
an API key. The provider counts a prompt of one message with this text, so its number holds the few \
tokens that it puts around a message. Where --by isn't given, standard error says which way was \
taken. Exact counts without a request are in a tollgate that is built with the feature `tokenizer`.

Text from standard input has to be UTF-8, and at most 64 MiB."
};

const EXAMPLES: &str = "\
Examples:
  A text:
    tollgate count gpt-4o 'Why is the sky blue?'

  A file:
    tollgate count gpt-4o < prompt.txt

  As Anthropic counts it:
    ANTHROPIC_API_KEY=... tollgate count claude-sonnet-4-5 --by provider < prompt.txt

  For a script:
    tollgate count gpt-4o --json 'Hi' | jq .tokens

JSON:
  one document: {\"model\": .., \"tokens\": .., \"by\": \"estimate|tokenizer|provider\", \"bytes\": ..}

Environment:
  OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY    keys, for --by provider

Exit codes:
  0    the tokens were counted
  2    wrong arguments, a text that is none, or a provider that didn't answer with a count";
