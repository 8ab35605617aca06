use http::{HeaderMap, StatusCode};

use super::reading::is_plain;
use super::refused_response::LONGEST_ERROR;
use crate::provider::{FailureCharge, Profile};

/// A response that failed, but isn't a refusal for a limit. Its body may show whether it is charged.
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

    pub(super) fn charge(&self) -> FailureCharge {
        self.profile.failure_charge(self.status, &self.headers, &self.body)
    }
}
