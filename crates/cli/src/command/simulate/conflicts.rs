use std::fmt;

use super::{ChargeRuleName, SimulateArgs};
use crate::command::AlgorithmName;

/// Arguments that have no effect together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConflictingLimits {
    /// The argument without effect.
    pub argument: &'static str,
    /// The reason.
    pub reason: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

impl SimulateArgs {
    /// Checks that every argument about limits has an effect.
    ///
    /// # Errors
    /// [`ConflictingLimits`] with the first argument that has none.
    pub fn check_limits(&self) -> Result<(), ConflictingLimits> {
        let rates = [self.limits.rpm, self.limits.tpm, Some(self.itpm), Some(self.otpm)];
        let has_minute = rates.into_iter().flatten().any(|limit| limit > 0);
        let has_tokens = [self.limits.tpm, Some(self.itpm), Some(self.otpm)]
            .into_iter()
            .flatten()
            .any(|n| n > 0);
        let (is_usd, has_usd) = (self.charge == ChargeRuleName::Usd, self.usd.is_some());
        let has_rate = has_minute || has_usd || self.limits.rpd.is_some_and(|limit| limit > 0);
        let is_bucket = matches!(self.limits.algorithm, None | Some(AlgorithmName::TokenBucket));
        let (burst, window) = (self.burst.is_some(), self.window.is_some());
        let conflicts = [
            (is_usd && !has_usd, "--charge usd", "there is no limit on spending", "add --usd"),
            (
                is_usd && has_tokens,
                "--charge usd",
                "tokens are not charged",
                "remove the token limits",
            ),
            (has_usd && !is_usd, "--usd", "money is not charged", "add --charge usd"),
            (
                self.prices.is_some() && !is_usd,
                "--prices",
                "money is not charged",
                "add --charge usd",
            ),
            (burst && !has_minute, "--burst", NO_MINUTE, ADD_MINUTE),
            (window && !has_minute && !has_usd, "--window", NO_MINUTE, ADD_MINUTE),
            (burst && !is_bucket, "--burst", "windows have no burst", "use --window"),
            (
                window && is_bucket && !has_usd,
                "--window",
                "a token bucket has no window",
                "add --algorithm sliding-window, fixed-window or clock-window, or use --burst",
            ),
            (
                self.others.is_some() && !has_rate,
                "--others",
                "there is no limit to share",
                "add --rpm, --tpm, --itpm, --otpm or --rpd",
            ),
            (
                !self.change.is_empty() && !has_rate && self.concurrency == 0,
                "--change",
                "there is no limit to change",
                "add --rpm, --tpm, --itpm, --otpm, --rpd or --concurrency",
            ),
        ];
        match conflicts.into_iter().find(|(applies, ..)| *applies) {
            Some((_, argument, reason, remedy)) => {
                Err(ConflictingLimits { argument, reason, remedy })
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for ConflictingLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argument, reason, remedy } = self;
        write!(f, "{argument}: {reason}; {remedy}")
    }
}

impl std::error::Error for ConflictingLimits {}

const NO_MINUTE: &str = "there is no limit per minute";
const ADD_MINUTE: &str = "add --rpm, --tpm, --itpm or --otpm";
