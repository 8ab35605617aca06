use paceline_limiter::limiter::Utilization;
use serde::{Deserialize, Serialize};

use super::text::Time;

/// The used part of a window of the account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredUtilization {
    pub(super) window: String,
    /// 1 if the window is used up.
    used: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resets_at: Option<Time>,
    pub(super) observed_at: Time,
}

/// Parts are compared, not ordered: one that isn't a number is written once more, and holds no request back.
impl Eq for StoredUtilization {}

impl StoredUtilization {
    pub(super) fn utilization(&self) -> Utilization {
        let mut utilization = Utilization::new(self.window.clone(), self.used);
        utilization.resets_at = self.resets_at.map(|at| at.0);
        utilization.observed_at = self.observed_at.0;
        utilization
    }
}

impl From<&Utilization> for StoredUtilization {
    fn from(window: &Utilization) -> Self {
        Self {
            window: window.window.clone(),
            used: window.used,
            resets_at: window.resets_at.map(Time),
            observed_at: Time(window.observed_at),
        }
    }
}
