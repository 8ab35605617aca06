use std::fmt;

use clap::Args;
use serde::Serialize;

use super::shared_usage::SharedUsage;
use super::show::key_usage::{KeyUsage, Rfc3339};
use super::show::screen::Screen;
use super::show::table::KeyTable;
use super::stdout::Stdout;
use super::stored_state::StoredState;
use super::{Exit, StateArgs};
use crate::terminal::{HumanDuration, amount, printable};
use paceline::Timestamp;
use paceline::engine::Wait;
use paceline::limiter::{Code, Decision};
use paceline::quota::Cost;

/// The arguments of `paceline check`.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CheckArgs {
    /// The key, such as a model or a tenant
    #[arg(value_name = "KEY")]
    pub key: String,

    /// Tokens of the request
    #[arg(value_name = "TOKENS", allow_hyphen_values = true)]
    pub tokens: String,

    /// Number of requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub requests: u64,

    /// Input tokens, for separate input limits [default: TOKENS minus --output]
    #[arg(long, value_name = "N")]
    pub input: Option<u64>,

    /// Output tokens, for separate output limits
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub output: u64,

    /// The configuration and the store.
    #[command(flatten)]
    pub state: StateArgs,

    /// Print one JSON document on one line
    #[arg(long)]
    pub json: bool,
}

impl CheckArgs {
    /// Runs the command and prints its output.
    ///
    /// # Errors
    /// Returns an error of the configuration, the state or standard output.
    pub(super) async fn run(&self, out: &mut Stdout<'_>) -> Result<Exit, String> {
        let tokens = match self.tokens.parse() {
            Ok(tokens) => tokens,
            Err(_) => return self.invalid(out),
        };
        let check = async |shared: Option<&SharedUsage>| self.check(tokens, shared).await;
        let checked = SharedUsage::with(&self.state.config, check).await?;
        match self.json {
            true => out.json(&checked)?,
            false => out.write(&checked)?,
        }
        Ok(if checked.allowed { Exit::Success } else { Exit::Refused })
    }

    async fn check(
        &self,
        tokens: u64,
        shared: Option<&SharedUsage>,
    ) -> Result<CheckOutput, String> {
        let stored = StoredState::read(&self.state, shared)?;
        stored.refresh(&[&self.key]).await?;
        let input = self.input.unwrap_or(u64::saturating_sub(tokens, self.output));
        let cost = Cost::new().requests(self.requests).tokens(tokens);
        let cost = cost.input_tokens(input).output_tokens(self.output);
        let decision = stored.limiter.decide(&self.key, &cost);
        Ok(CheckOutput::new(&decision, stored.key(&self.key)))
    }

    fn invalid(&self, out: &mut Stdout<'_>) -> Result<Exit, String> {
        let reason = format!(
            "`{}` is not a number of tokens; give an integer from 0 to {}",
            printable(&self.tokens),
            u64::MAX
        );
        if self.json {
            out.json(&InvalidTokens {
                key: &self.key,
                allowed: false,
                code: INVALID,
                reason: &reason,
            })?;
        }
        Err(format!("{INVALID}: {reason}"))
    }
}

/// The decision as JSON. Field names are stable.
#[derive(Debug, Serialize)]
struct CheckOutput {
    allowed: bool,
    code: &'static str,
    /// The reason of a refusal.
    reason: Option<String>,
    /// The exceeded dimension.
    dimension: Option<String>,
    /// The amount that the request needs.
    need: Option<u64>,
    /// The capacity of the limit.
    capacity: Option<u64>,
    /// The time at which the request would be allowed, if known.
    retry_at: Option<Rfc3339>,
    /// The time until then, in seconds.
    retry_after_s: Option<f64>,
    /// The key and its limits.
    #[serde(flatten)]
    key: KeyUsage,
    #[serde(skip)]
    asked_at: Timestamp,
}

/// The JSON output for an invalid number of tokens.
#[derive(Debug, Serialize)]
struct InvalidTokens<'a> {
    key: &'a str,
    allowed: bool,
    code: &'a str,
    reason: &'a str,
}

impl CheckOutput {
    fn new(decision: &Decision, key: KeyUsage) -> Self {
        let at = match decision.wait {
            Some(Wait::At(at)) => Some(at),
            _ => None,
        };
        let after = at.map(|at| at - decision.asked_at);
        Self {
            allowed: decision.is_allowed(),
            code: decision.code.as_str(),
            reason: decision.wait.map(|wait| reason(decision, wait)),
            dimension: decision.dimension.as_ref().map(ToString::to_string),
            need: decision.need.map(|need| need.amount),
            capacity: decision.need.map(|need| need.limit),
            retry_at: at.map(Rfc3339),
            retry_after_s: after.map(|after| after.as_secs_f64()),
            key,
            asked_at: decision.asked_at,
        }
    }
}

/// Returns the cause of a refusal and the time to retry.
fn reason(decision: &Decision, wait: Wait) -> String {
    let dimension = decision.dimension.as_ref().map(|name| printable(name.as_str()));
    let cause = match &dimension {
        Some(dimension) => format!("not enough {dimension} left"),
        None => "the key is paused".to_owned(),
    };
    match (wait, decision.need) {
        (Wait::At(at), _) => match HumanDuration::between(decision.asked_at, at) {
            Some(span) => format!("{cause}; retry in {span}"),
            None => format!("{cause}; retry now"),
        },
        (Wait::Unknown, _) => format!("{cause}; retry when a request in flight finishes"),
        (Wait::Never, Some(need)) => {
            let dimension = dimension.unwrap_or_default();
            let (needed, most) = (amount(&dimension, need.amount), amount(&dimension, need.limit));
            if decision.code == Code::TotalExceeded {
                return format!(
                    "the request needs {needed} {dimension}, less is left of the total of {most}; \
                     it never resets"
                );
            }
            format!("the request needs {needed} {dimension}, the limit allows at most {most}")
        }
        (Wait::Never, None) if decision.code == Code::UnknownPrice => {
            "a quota limits spending, and this command knows no price of the request".to_owned()
        }
        (Wait::Never, None) => "no quota matches the key, and unknown keys are refused".to_owned(),
    }
}

impl fmt::Display for CheckOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            None => writeln!(f, "allowed ({})", self.code)?,
            Some(reason) => writeln!(f, "refused ({}): {reason}", self.code)?,
        }
        let Screen { width, colors, .. } = Screen::stdout();
        KeyTable::new(std::slice::from_ref(&self.key), self.asked_at, width, colors).fmt(f)
    }
}

const INVALID: &str = "invalid_tokens";

pub(super) const ABOUT: &str = "\
Check whether a request would be allowed now, without consuming quota.

Decides by the limits of the configuration and the state in the store, as a program that shares \
the state would. That program may also have queued requests, and usage that is not written yet. \
The usage of limits that are shared between machines (`cluster`) is read from their store. Prints \
the decision and its code, the exceeded dimension, the time to wait, and the limits of the key.

Codes: ok, unlimited, unknown_model, rpm_exceeded, rpd_exceeded, tpm_exceeded, tpd_exceeded, \
itpm_exceeded, otpm_exceeded, concurrency_exceeded, limit_exceeded, exceeds_capacity, \
total_exceeded, unknown_price, cooling_down; invalid_tokens if TOKENS is not a number.";

const EXAMPLES: &str = "\
Examples:
  Would a request of 1,200 tokens be allowed?
    paceline check gpt-4o 1200

  Wait in a script:
    until paceline check gpt-4o 1200 >/dev/null; do sleep 1; done

  Print the time to wait, in seconds:
    paceline check gpt-4o 1200 --json | jq .retry_after_s

  Check separate limits for input and output tokens:
    paceline check claude-sonnet-4-5 1500 --input 1000 --output 500

JSON:
  one document on one line: {\"allowed\", \"code\", \"reason\", \"dimension\", \"need\", \"capacity\",
  \"retry_at\", \"retry_after_s\"} and the fields of a key in `show --json`

Exit codes:
  0    the request would be allowed
  1    the request would be refused
  2    wrong arguments (invalid_tokens included), an unreadable configuration or state, or an
       unavailable store of shared limits";
