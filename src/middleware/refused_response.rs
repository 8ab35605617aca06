use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::error_body::ErrorBody;
use super::response_guard::ResponseGuard;
use crate::Timestamp;
use crate::provider::{Class, Profile, Refusal, RefusalKind};
use paceline_limiter::seam::Hold;

/// A provider's refusal whose body is read before the limiter reacts, since only the body may contain
/// the reason. Until then the other requests of the key are held for the delay in its headers.
pub(super) struct RefusedResponse {
    profile: Profile,
    status: StatusCode,
    headers: HeaderMap,
    /// The beginning of its body.
    body: ErrorBody,
    answered_at: Timestamp,
    hold: Option<Hold>,
}

impl RefusedResponse {
    pub(super) fn new(
        guard: &ResponseGuard,
        profile: Profile,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Self {
        let answered_at = guard.now();
        let is_temporary = profile.classify(status, headers, b"") != Class::Terminal;
        let delay = || profile.retry_delay(headers, b"", answered_at).unwrap_or(UNTIL_READ);
        let hold = if is_temporary { guard.hold(delay().min(LONGEST_HOLD)) } else { None };
        let headers = headers.clone();
        Self { profile, status, headers, body: ErrorBody::default(), answered_at, hold }
    }

    /// Adds the next bytes of the body. Returns `true` if no more bytes are needed.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.body.add(bytes);
        self.body.is_full()
    }

    /// Reports the refusal to the limiter, in place of the hold. A request that isn't to be sent again for a limit or
    /// for lack of capacity says nothing about others.
    pub(super) fn end(self, guard: &mut ResponseGuard) {
        let Self { profile, status, headers, body, answered_at, hold } = self;
        guard.set_failed(profile, profile.failure_charge(status, &headers, body.bytes()));
        let is_final = profile.classify(status, &headers, body.bytes()) == Class::Terminal;
        let is_said = |refusal: &Refusal| {
            !is_final || matches!(refusal.kind, RefusalKind::Request | RefusalKind::Account)
        };
        let refusal = profile.refusal(status, &headers, body.bytes(), answered_at).filter(is_said);
        let Some(mut refusal) = refusal else {
            return hold.into_iter().for_each(|hold| guard.release_hold(hold));
        };
        let since = guard.now() - answered_at;
        refusal.delay = refusal.delay.map(|delay| delay.saturating_sub(since));
        guard.report_refusal(refusal, hold);
    }
}

/// The duration of a hold while the delay of the refusal is still unknown.
const UNTIL_READ: Duration = Duration::from_secs(1);

/// The longest hold: what the refusal concerns isn't known yet.
const LONGEST_HOLD: Duration = Duration::from_secs(5);
