use http::{HeaderMap, StatusCode};

use super::error_body::ErrorBody;
use super::response_guard::ResponseGuard;
use super::response_head::is_plain;
use super::server_failure::ServerFailure;
use crate::provider::{Class, FailureCharge, Profile};

/// A response that failed with a status other than 429, 503 and 529. Its body may show whether it is charged, and
/// whether the provider has refused the request.
pub(super) struct FailedResponse {
    profile: Profile,
    status: StatusCode,
    headers: HeaderMap,
    /// The beginning of its body; empty if it is compressed.
    body: ErrorBody,
}

impl FailedResponse {
    pub(super) fn new(profile: Profile, status: StatusCode, headers: &HeaderMap) -> Self {
        Self { profile, status, headers: headers.clone(), body: ErrorBody::default() }
    }

    /// Adds the next bytes of the body.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if is_plain(&self.headers) {
            self.body.add(bytes);
        }
    }

    pub(super) fn profile(&self) -> Profile {
        self.profile
    }

    /// Reports to the limiter what the response says about other requests.
    pub(super) fn report(&self, guard: &mut ResponseGuard) {
        let refusal =
            self.profile.refusal(self.status, &self.headers, self.body.bytes(), guard.now());
        match refusal {
            Some(refusal) => guard.report_refusal(refusal, None),
            None if self.status.is_client_error() => guard.on_accepted(),
            None if self.class() == Class::Transient => {
                guard.report_failure(ServerFailure::of_status(self.status));
            }
            None => {}
        }
    }

    fn class(&self) -> Class {
        self.profile.classify(self.status, &self.headers, self.body.bytes())
    }

    pub(super) fn charge(&self) -> FailureCharge {
        self.profile.failure_charge(self.status, &self.headers, self.body.bytes())
    }
}
