use serde::Serialize;
use serde_json::json;

use super::token_counter::TokenCounter;
use super::{CountArgs, CountBy, text};
use crate::command::Exit;
use crate::command::stdout::Stdout;
use crate::terminal::notify;
use paceline::provider::{OPENAI, Profile};
use paceline::quota::Dimension;

/// Counts the tokens of the text and prints their number.
///
/// # Errors
/// Returns the reason why counting failed, or an error of standard output.
pub(crate) async fn count(args: &CountArgs, out: &mut Stdout<'_>) -> Result<Exit, String> {
    let model = args.model.as_str();
    let text = text::read(args.text.as_deref())?;
    // Loading the vocabularies takes a while.
    let tokenizer = match args.by {
        None | Some(CountBy::Tokenizer) => tokenizer(),
        Some(CountBy::Estimate | CountBy::Provider) => None,
    };
    let tokenizer = tokenizer.filter(|profile| profile.tokenizes(model));
    let by = args.by.unwrap_or(match tokenizer {
        Some(_) => CountBy::Tokenizer,
        None => CountBy::Estimate,
    });
    let tokens = match by {
        CountBy::Estimate => count_alone(model, OPENAI, &text),
        CountBy::Tokenizer => {
            let profile = tokenizer.ok_or_else(|| no_vocabulary(model))?;
            text::pieces(&text).map(|piece| count_alone(model, profile, piece)).sum()
        }
        CountBy::Provider => TokenCounter::new(args)?.tokens(model, &text).await?,
    };
    let output = CountOutput { model, tokens, by, bytes: text.len() };
    output.print(args, out)?;
    Ok(Exit::Success)
}

/// Counts the tokens of the text alone.
fn count_alone(model: &str, profile: Profile, text: &str) -> u64 {
    let body = json!({"model": model, "input": text}).to_string();
    let estimate = profile.read_request("/v1/embeddings", body.as_bytes());
    estimate.cost.amount(&Dimension::InputTokens)
}

fn no_vocabulary(model: &str) -> String {
    match tokenizer() {
        Some(_) => format!(
            "{model}: no built-in vocabulary for this model; use --by estimate or --by provider"
        ),
        None => "tokenizer: not built in (cargo feature `tokenizer`); use \
                 --by estimate or --by provider"
            .to_owned(),
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

impl CountOutput<'_> {
    fn print(&self, args: &CountArgs, out: &mut Stdout<'_>) -> Result<(), String> {
        if args.json {
            return out.json(self);
        }
        if args.by.is_none() {
            let how = match self.by {
                CountBy::Estimate => "estimated at four bytes per token",
                _ => "counted with the model's vocabulary",
            };
            notify(&format_args!("{how}; choose another method with --by"));
        }
        out.line(&self.tokens)
    }
}

/// Returns a profile with built-in vocabularies, if compiled in.
fn tokenizer() -> Option<Profile> {
    #[cfg(feature = "tokenizer")]
    return Some(OPENAI.with_tokenizer());
    #[cfg(not(feature = "tokenizer"))]
    None
}
