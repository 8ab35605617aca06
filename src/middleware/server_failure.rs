use super::unsent::{has_url, is_answered, is_connect_error, is_unsent_cause, outermost};
use crate::error_chain::causes;
use crate::limiter::RateLimited;
use paceline_limiter::seam::{self, Fault};

/// A failure of the server to answer a request.
///
/// See [`RateLimitLayer::wait_for_server`](super::RateLimitLayer::wait_for_server).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFailure {
    /// `true` if the server can't be reached. Otherwise the request may be the cause, so that its failures count once.
    pub is_unreachable: bool,
    /// The error in words, without a URL.
    pub text: Box<str>,
    status: Option<u16>,
}

impl ServerFailure {
    /// Creates the failure of a server that can't be reached.
    pub fn unreachable(text: impl Into<Box<str>>) -> Self {
        Self { is_unreachable: true, ..Self::unclear(text) }
    }

    /// Creates a failure of which the server or the request may be the cause.
    pub fn unclear(text: impl Into<Box<str>>) -> Self {
        Self { is_unreachable: false, text: text.into(), status: None }
    }

    /// Returns the failure that a 5xx shows.
    pub(super) fn of_status(status: http::StatusCode) -> Self {
        Self { status: Some(status.as_u16()), ..Self::unclear("") }
    }

    /// Returns what the error of a known client shows about the server: `None` if the request itself is at fault, or was
    /// not sent although the server can be reached.
    pub(super) fn of_error<E: 'static>(error: &E) -> Option<Self> {
        let error = outermost(error)?;
        // A URL's query may hold an API key, and the errors around the root repeat it.
        let root = causes(error).last().filter(|root| !has_url(*root)).map(ToString::to_string);
        let root = root.filter(|root| !root.contains("://"));
        let root = root.unwrap_or_else(|| "the connection failed".to_owned());
        if causes(error).any(is_connect_error) {
            return Some(Self::unreachable(format!("cannot connect: {root}")));
        }
        let is_own = causes(error).any(|cause| is_unsent_cause(cause) || is_answered(cause));
        (!is_own).then(|| Self::unclear(root))
    }

    pub(super) fn report(self) -> RateLimited {
        let fault = if self.is_unreachable { Fault::Unreachable } else { Fault::Unclear };
        seam::failure(fault, self.status, self.text)
    }
}
