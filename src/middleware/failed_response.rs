use http::{HeaderMap, StatusCode};

use super::reading::is_plain;
use super::refused_response::LONGEST_ERROR;
use super::response_guard::ResponseGuard;
use super::server_failure::ServerFailure;
use crate::provider::{Class, FailureCharge, Profile};

/// A response that failed with a status other than 429, 503 and 529. Its body may show whether it is charged, and
/// whether the provider has refused the request.
pub(super) struct FailedResponse {
    profile: Profile,
    status: StatusCode,
    headers: HeaderMap,
    /// The beginning of its body, up to [`LONGEST_ERROR`]; empty if it is compressed.
    body: Vec<u8>,
}

impl FailedResponse {
    pub(super) fn new(profile: Profile, status: StatusCode, headers: &HeaderMap) -> Self {
        Self { profile, status, headers: headers.clone(), body: Vec::new() }
    }

    /// Adds the next bytes of the body.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if is_plain(&self.headers) {
            let remaining = LONGEST_ERROR.saturating_sub(self.body.len());
            self.body.extend_from_slice(&bytes[..remaining.min(bytes.len())]);
        }
    }

    pub(super) fn profile(&self) -> Profile {
        self.profile
    }

    /// Reports to the limiter what the response says about other requests.
    pub(super) fn report(&self, guard: &mut ResponseGuard) {
        let refusal = self.profile.refusal(self.status, &self.headers, &self.body, guard.now());
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
        self.profile.classify(self.status, &self.headers, &self.body)
    }

    pub(super) fn charge(&self) -> FailureCharge {
        self.profile.failure_charge(self.status, &self.headers, &self.body)
    }
}
