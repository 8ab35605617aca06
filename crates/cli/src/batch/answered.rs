//! What the provider's answer means for its line.

use std::convert::Infallible;

use bytes::Bytes;
use http::response::Parts;
use http_body_util::BodyExt;

use super::client::Status;
use super::input::Line;
use super::outcome::{Answer, Failure, Outcome};
use super::secrets::Secrets;
use super::shared::Shared;
use super::stop::Halt;
use tollgate::middleware::Journey;
use tollgate::provider::{ApiError, Class, InvalidAnswer};

/// An answer that was received whole.
pub(super) struct Answered {
    /// Their extensions hold its place in flight: until it is judged, no other request takes it.
    parts: Parts,
    body: Bytes,
    /// An error in the body of a success.
    in_band: Option<ApiError>,
    /// Why the body of a success is no answer.
    invalid: Option<InvalidAnswer>,
}

impl Answered {
    /// Receives the rest of a response.
    pub(super) async fn receive<B>(
        response: http::Response<B>,
        journey: &Journey,
        shared: &Shared,
    ) -> Self
    where
        B: http_body::Body<Data = Bytes, Error = Infallible>,
    {
        let (mut parts, body) = response.into_parts();
        if let Some(Status(status)) = parts.extensions.remove() {
            parts.status = status;
        }
        let body = match body.collect().await {
            Ok(body) => shared.secrets.hide(body.to_bytes()),
            Err(never) => match never {},
        };
        let in_band = journey.facts().error;
        let invalid = match parts.status.is_success() {
            true => InvalidAnswer::check(&parts.headers, &body).err(),
            false => None,
        };
        Self { parts, body, in_band, invalid }
    }

    /// What becomes of the line. Stops the run where every other request would fail the same way.
    pub(super) fn judge(self, line: &Line, shared: &Shared) -> Outcome {
        let id = &line.custom_id;
        let class = self.class(shared);
        if class == Class::Ok && self.parts.status.is_success() {
            return Outcome::succeeded(id, self.into_answer(&shared.secrets));
        }
        let error = self.error();
        let mut failure = self.failure(&error, class, &shared.secrets);
        if shared.profile.is_account_wide(self.parts.status, &error) {
            shared.stop.halt(Halt::Failed(self.refused_account(failure.message())));
            failure = failure.retryable();
        }
        Outcome::failed(id, Some(self.into_answer(&shared.secrets)), failure)
    }

    fn class(&self, shared: &Shared) -> Class {
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
            "" if self.parts.status.is_redirection() => secrets.hide_in(self.elsewhere()),
            "" => format!("HTTP {}", self.parts.status),
            // That of a stream was read before its secrets were hidden.
            message => secrets.hide_in(message.to_owned()),
        };
        match self.in_band {
            Some(_) if class == Class::Terminal => Failure::new("in_band_error", message),
            Some(_) => Failure::new("in_band_error", message).retryable(),
            None => Failure::http(self.parts.status.as_u16(), message),
        }
    }

    /// Redirects are not followed: most turn a `POST` into a `GET`.
    fn elsewhere(&self) -> String {
        let place =
            self.parts.headers.get(http::header::LOCATION).and_then(|place| place.to_str().ok());
        let place = place.unwrap_or("elsewhere").split('?').next().unwrap_or_default();
        // Without a user name and a password.
        let place = match place.split_once("//") {
            Some((_, rest)) => rest.split_once('@').map_or(rest, |(_, host)| host),
            None => place,
        };
        format!(
            "HTTP {}: redirected to {place}; set the base URL of the API itself",
            self.parts.status
        )
    }

    fn refused_account(&self, message: &str) -> String {
        format!(
            "the provider rejects the account (HTTP {}): {message}; the remaining requests were not \
             sent: fix the account and run the same command again",
            self.parts.status.as_u16(),
        )
    }

    fn into_answer(self, secrets: &Secrets) -> Answer {
        let answer = Answer::new(self.parts.status.as_u16(), self.body);
        match self.parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()) {
            Some(id) => answer.with_request_id(secrets.hide_in(id.to_owned())),
            None => answer,
        }
    }
}
