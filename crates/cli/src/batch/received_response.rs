//! The outcome of a line, judged by the response of the provider.

use bytes::Bytes;
use http::response::Parts;
use http_body_util::BodyExt;

use super::input::InputLine;
use super::job_context::JobContext;
use super::outcome::{BatchResponse, Failure, Outcome};
use super::secrets::Secrets;
use super::stop::Halt;
use paceline::middleware::Journey;
use paceline::provider::{ApiError, Class, InvalidAnswer, Refusal, RefusalKind};

/// A response with its whole body.
pub(super) struct ReceivedResponse {
    /// The extensions hold the in-flight permit until the response is judged.
    parts: Parts,
    body: Bytes,
    /// An error in the body of a success.
    in_band: Option<ApiError>,
    /// The reason why the body of a success is invalid.
    invalid: Option<InvalidAnswer>,
}

impl ReceivedResponse {
    /// Receives the rest of a response.
    ///
    /// # Errors
    /// The error that cut it off.
    pub(super) async fn receive<B>(
        response: http::Response<B>,
        journey: &Journey,
        shared: &JobContext,
    ) -> Result<Self, B::Error>
    where
        B: http_body::Body<Data = Bytes>,
    {
        let (parts, body) = response.into_parts();
        let body = shared.secrets.hide(body.collect().await?.to_bytes());
        let in_band = journey.facts().error;
        let invalid = match parts.status.is_success() {
            true => InvalidAnswer::check(&parts.headers, &body).err(),
            false => None,
        };
        Ok(Self { parts, body, in_band, invalid })
    }

    /// Returns the outcome of the line. Stops the run if every other request would fail the same
    /// way.
    pub(super) fn judge(self, line: &InputLine, shared: &JobContext) -> Outcome {
        let id = &line.custom_id;
        let class = self.class(shared);
        if class == Class::Ok && self.parts.status.is_success() {
            return Outcome::succeeded(id, self.into_response(&shared.secrets));
        }
        let error = self.error();
        let mut failure = self.failure(&error, class, &shared.secrets);
        // What isn't refused for the request itself may be accepted later, whatever its status.
        let kind = self.refusal(shared).map(|refusal| refusal.kind);
        failure = kind.into_iter().fold(failure, Failure::refused);
        match kind {
            Some(RefusalKind::Account) => {
                let status = Some(self.parts.status.as_u16());
                shared.stop.halt(account_rejected(status, failure.message()));
                failure = failure.retryable();
            }
            Some(RefusalKind::Request) | None => {}
            Some(_) => failure = failure.retryable(),
        }
        Outcome::failed(id, Some(self.into_response(&shared.secrets)), failure)
    }

    fn refusal(&self, shared: &JobContext) -> Option<Refusal> {
        let Parts { status, headers, .. } = &self.parts;
        let now = shared.limiter.now();
        match &self.in_band {
            Some(error) => shared.profile.refusal_in_band(error, now),
            None => shared.profile.refusal(*status, headers, &self.body, now),
        }
    }

    fn class(&self, shared: &JobContext) -> Class {
        match (&self.in_band, &self.invalid) {
            (Some(error), _) => shared.profile.classify_in_band(error),
            (None, Some(_)) => Class::Transient,
            _ => shared.profile.classify(self.parts.status, &self.parts.headers, &self.body),
        }
    }

    fn error(&self) -> ApiError {
        self.in_band.clone().or_else(|| ApiError::read(&self.body)).unwrap_or_default()
    }

    fn failure(&self, error: &ApiError, class: Class, secrets: &Secrets) -> Failure {
        if let (None, Some(invalid)) = (&self.in_band, &self.invalid) {
            let message = format!("HTTP {}, but {invalid}", self.parts.status.as_u16());
            return Failure::new("invalid_response", message).retryable();
        }
        let message = match error.message() {
            "" if self.parts.status.is_redirection() => secrets.hide_in(self.redirect_message()),
            "" => format!("HTTP {}", self.parts.status),
            // The message of a stream was read before its secrets were hidden.
            message => secrets.hide_in(message.to_owned()),
        };
        match self.in_band {
            Some(_) if class == Class::Terminal => Failure::new("in_band_error", message),
            Some(_) => Failure::new("in_band_error", message).retryable(),
            None => Failure::http(self.parts.status.as_u16(), message),
        }
    }

    /// Returns the message for a redirect. Redirects are not followed: most turn a `POST` into a
    /// `GET`.
    fn redirect_message(&self) -> String {
        let location =
            self.parts.headers.get(http::header::LOCATION).and_then(|value| value.to_str().ok());
        let location = location.unwrap_or("another URL").split('?').next().unwrap_or_default();
        // Without a user name and a password.
        let location = match location.split_once("//") {
            Some((_, rest)) => rest.split_once('@').map_or(rest, |(_, host)| host),
            None => location,
        };
        format!(
            "HTTP {}: redirected to {location}; set the base URL of the API itself",
            self.parts.status
        )
    }

    fn into_response(self, secrets: &Secrets) -> BatchResponse {
        let response = BatchResponse::new(self.parts.status.as_u16(), self.body);
        match self.parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()) {
            Some(id) => response.with_request_id(secrets.hide_in(id.to_owned())),
            None => response,
        }
    }
}

/// Returns the end of a run whose account the provider rejects.
pub(super) fn account_rejected(status: Option<u16>, message: &str) -> Halt {
    let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    Halt::Failed(format!(
        "the provider rejects the account{status}: {message}; the remaining requests were not \
         sent: fix the account and run the same command again"
    ))
}
