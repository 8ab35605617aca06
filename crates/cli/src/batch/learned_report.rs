use serde::{Deserialize, Serialize};

use paceline::Timestamp;
use paceline::limiter::LearnedLimit;
use paceline::quota::Dimension;

/// A limit that was measured by the provider's answers. Field names are stable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedReport {
    /// The key.
    pub key: String,
    /// The dimension.
    pub dimension: String,
    /// The amount per second; for `concurrency`, requests in flight.
    pub amount: f64,
    /// The amount per second of the quota; `None` if it doesn't limit the dimension.
    pub configured: Option<f64>,
    /// The limit, with the number and the age of its measurements, in words.
    pub text: String,
    /// The option that starts another run with the limit, in words; `None` if there is none.
    pub advice: Option<String>,
}

impl LearnedReport {
    /// Reports a limit of a key at a time.
    pub(super) fn new(key: &str, limit: &LearnedLimit, now: Timestamp) -> Self {
        Self {
            key: key.to_owned(),
            dimension: limit.dimension.to_string(),
            amount: limit.amount,
            configured: limit.configured,
            text: format!("learned {limit}, {}", limit.provenance(now)),
            advice: advice(limit),
        }
    }
}

/// Returns the option that states a limit.
fn advice(limit: &LearnedLimit) -> Option<String> {
    let option = match limit.dimension {
        Dimension::Requests => "rpm",
        Dimension::Tokens => "tpm",
        _ => return None,
    };
    let per_minute = (limit.amount * 60.0).round().max(1.0);
    Some(format!("set --{option} {per_minute:.0} to start the next run at this rate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learned_limit_is_reported_with_option() {
        let now = Timestamp::from_unix_secs(100);
        let mut limit = LearnedLimit::new(Dimension::Requests, 19.99, now, 3);
        limit.configured = Some(40.0);
        let report = LearnedReport::new("m", &limit, Timestamp::from_unix_secs(112));
        let text = "learned 20 requests/s (told 40), measured 3 times, last 12s ago";
        assert_eq!(report.text, text);
        let advice = "set --rpm 1199 to start the next run at this rate";
        assert_eq!(report.advice.as_deref(), Some(advice));
        let in_flight = LearnedLimit::new(Dimension::Concurrency, 8.0, now, 1);
        let report = LearnedReport::new("m", &in_flight, now);
        assert_eq!(report.text, "learned 8 requests in flight, a first estimate, 0s ago");
        assert_eq!(report.advice, None);
    }
}
