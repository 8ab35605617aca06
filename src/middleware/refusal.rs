use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::response_guard::ResponseGuard;
use crate::limiter::Hold;
use crate::provider::{ApiError, Class, Profile};
use crate::timestamp::Timestamp;

/// A refusal that is read before it is acted on: what it means may stand in its body alone. The
/// others of its key are held until then, for as long as its head says.
pub(super) struct Refusal {
    profile: Profile,
    status: StatusCode,
    headers: HeaderMap,
    /// The beginning of its body.
    body: Vec<u8>,
    answered_at: Timestamp,
    hold: Option<Hold>,
}

impl Refusal {
    pub(super) fn new(
        guard: &ResponseGuard,
        profile: Profile,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Self {
        let answered_at = guard.now();
        let waits = profile.classify(status, headers, b"") != Class::Terminal;
        let delay = || profile.retry_delay(headers, b"", answered_at).unwrap_or(UNTIL_READ);
        let hold = if waits { guard.hold(delay()) } else { None };
        let headers = headers.clone();
        Self { profile, status, headers, body: Vec::new(), answered_at, hold }
    }

    /// Whether that is as much as is read.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> bool {
        let room = LONGEST_ERROR.saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.body.len() >= LONGEST_ERROR
    }

    /// Acts on what was read. One that waiting doesn't help holds nobody and reduces nothing.
    pub(super) fn end(self, guard: &ResponseGuard) {
        let Self { profile, status, headers, body, answered_at, hold } = self;
        let class = profile.classify(status, &headers, &body);
        if class == Class::Terminal {
            return hold.into_iter().for_each(|hold| guard.let_go(hold));
        }
        let delay = profile.retry_delay(&headers, &body, answered_at);
        let since = guard.now() - answered_at;
        let dimension = ApiError::read(&body).and_then(|error| error.dimension());
        let delay = delay.map(|delay| delay.saturating_sub(since));
        guard.refused((delay, class, dimension), hold);
    }
}

/// How long a refusal holds that has yet to say for how long.
const UNTIL_READ: Duration = Duration::from_secs(1);

/// As much of an error's body as is read, in bytes.
pub(super) const LONGEST_ERROR: usize = 16 * 1_024;
