use std::time::Duration;

use crate::OnFailure;
use crate::SharingMode;
use crate::Tls;

/// The settings of shared limits.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) timeout: Duration,
    pub(super) on_failure: OnFailure,
    pub(super) mode: SharingMode,
    pub(super) spread: bool,
    pub(super) ttl: Duration,
    pub(super) lease: Duration,
    pub(super) tls: Tls,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(50),
            on_failure: OnFailure::default(),
            mode: SharingMode::default(),
            spread: false,
            ttl: Duration::from_secs(60),
            lease: Duration::from_secs(2),
            tls: Tls::default(),
        }
    }
}

/// Returns a duration in the script's unit, at most the largest that it represents exactly.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).min(MAX_EXACT)
}

/// The largest integer that the script's doubles represent exactly.
const MAX_EXACT: u64 = (1 << 53) - 1;
