use std::fmt;

use http::{HeaderMap, StatusCode};
use tracing::Span;

use super::cut_stream::{CutStream, Received};
use super::failed_response::FailedResponse;
use super::refused_response::RefusedResponse;
use super::response_guard::ResponseGuard;
use super::response_head::{encoding, is_plain, is_refusal};
use super::server_failure::ServerFailure;
use crate::Timestamp;
use crate::provider::{ApiError, Class, Profile, Scanned, Scanner, seam as provider_seam};
use crate::quota::Usage;

/// A reader of a response body, for its usage or, if the provider refused the request, for the delay until
/// a retry. Dropping it ends the reservation.
///
/// It is large, since it holds the scanner in place: create it when the response arrives, and avoid
/// moves.
pub struct Reading {
    body: BodyState,
    guard: ResponseGuard,
    /// `true` until the first usage in the body has settled the dimensions that settle early.
    settles_early: bool,
    /// `true` until the request counts as accepted: a body may begin with an error, or be one.
    may_be_refused: bool,
    /// `true` if the body was read completely, and if reading it failed.
    whole: bool,
    is_broken: bool,
    /// The last time at which all that had arrived of a measured stream was read.
    caught_up_at: Option<Timestamp>,
}

/// The state of reading a body.
#[expect(clippy::large_enum_variant, reason = "not boxed, so that a response needs no allocation")]
enum BodyState {
    /// A successful response, scanned for its usage or an error.
    Success(Profile, Scanner),
    /// A refusal, with the beginning of its body.
    Refused(Box<RefusedResponse>),
    /// Another failure, with the beginning of its body.
    Failed(Box<FailedResponse>),
    /// A body that isn't read.
    Unread,
}

impl Reading {
    pub(super) fn new(
        mut guard: ResponseGuard,
        profile: Profile,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Self {
        let body = match () {
            () if is_refusal(status) => {
                let refusal = RefusedResponse::new(&guard, profile, status, headers);
                match is_plain(headers) {
                    true => BodyState::Refused(Box::new(refusal)),
                    // The body is compressed: only the head can be read.
                    false => {
                        refusal.end(&mut guard);
                        BodyState::Unread
                    }
                }
            }
            () if status.as_u16() >= 300 => {
                BodyState::Failed(Box::new(FailedResponse::new(profile, status, headers)))
            }
            // A stored response states its usage, or why it failed, once more.
            () if guard.is_free() => BodyState::Unread,
            () if is_plain(headers) => {
                let mut scanner = Scanner::of(profile, headers);
                if guard.measures_output(profile) {
                    scanner = scanner.measuring_output();
                }
                BodyState::Success(profile, scanner)
            }
            () => {
                if let Some(encoding) = encoding(headers) {
                    guard.on_unread_body(encoding);
                }
                BodyState::Unread
            }
        };
        let may_be_refused = matches!(body, BodyState::Success(..));
        if !may_be_refused && status.as_u16() < 400 {
            guard.on_accepted();
        }
        let settles_early = provider_seam::settled_early(&profile).next().is_some();
        Self {
            body,
            guard,
            settles_early,
            may_be_refused,
            whole: false,
            is_broken: false,
            caught_up_at: None,
        }
    }

    /// Reads the next bytes of the body.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match &mut self.body {
            BodyState::Success(profile, scanner) => {
                scanner.feed(bytes);
                if self.settles_early
                    && let Some(usage) = scanner.usage()
                {
                    self.guard.settle_early(*profile, &usage);
                    self.settles_early = false;
                }
                if self.may_be_refused
                    && matches!(provider_seam::first_event(scanner), Some(Ok(())))
                {
                    self.on_accepted();
                }
            }
            BodyState::Refused(refusal) => {
                if refusal.bytes(bytes) {
                    self.finish();
                }
            }
            BodyState::Failed(failed) => failed.bytes(bytes),
            BodyState::Unread => {}
        }
    }

    /// Returns what the first event of a successful stream is: data, or an error.
    pub(super) fn first_event(&self) -> Option<Result<(), &ApiError>> {
        match &self.body {
            BodyState::Success(_, scanner) => provider_seam::first_event(scanner),
            _ => Some(Ok(())),
        }
    }

    /// Returns the span of the request, if it has one.
    pub(super) fn span(&self) -> Option<Span> {
        self.guard.span()
    }

    /// Records that all that has arrived of the body was read, and more is awaited. Without these calls, a
    /// stream that is cut off may have been unread for its whole duration, and is charged more.
    pub fn awaits_more(&mut self) {
        if matches!(&self.body, BodyState::Success(_, scanner) if provider_seam::measures_output(scanner))
        {
            self.caught_up_at = Some(self.guard.now());
        }
    }

    /// Marks the body as complete. If this isn't called before the drop, the body is treated as
    /// truncated: usage that isn't final is a lower bound, and isn't used to predict later requests.
    pub fn ended(&mut self) {
        self.whole = true;
    }

    /// Marks the body as cut off by a failure of the connection.
    pub(super) fn broken(&mut self) {
        self.is_broken = true;
    }

    /// Ends the reservation and returns the error in the body of a successful response.
    pub(super) fn end(reading: &mut Option<Self>) -> Option<Box<ApiError>> {
        // Ended in place, since it is large.
        let error = reading.as_mut().and_then(Self::finish);
        *reading = None;
        error
    }

    /// Finishes reading. A refusal holds the key before the reservation ends, since the end of the
    /// reservation may admit the next request.
    fn finish(&mut self) -> Option<Box<ApiError>> {
        let body = match &mut self.body {
            BodyState::Success(profile, scanner) => {
                let (profile, scanned) = (*profile, provider_seam::end(scanner));
                self.body = BodyState::Unread;
                return self.on_success(profile, scanned);
            }
            BodyState::Unread => return None,
            body => std::mem::replace(body, BodyState::Unread),
        };
        match body {
            BodyState::Refused(refusal) => {
                refusal.end(&mut self.guard);
                None
            }
            BodyState::Failed(failed) => {
                failed.report(&mut self.guard);
                self.guard.set_failed(failed.profile(), failed.charge());
                None
            }
            BodyState::Success(..) | BodyState::Unread => None,
        }
    }

    fn on_success(&mut self, profile: Profile, scanned: Scanned) -> Option<Box<ApiError>> {
        // The usage of a stream that failed is incomplete, like that of a truncated one.
        if let Some(error) = scanned.error.as_ref().filter(|_| !scanned.has_generated) {
            self.guard.set_failed(profile, profile.failure_charge_in_band(error));
        }
        let is_complete = self.whole && scanned.is_whole && scanned.error.is_none();
        match &scanned.usage {
            Some(usage) if scanned.is_final || is_complete => self.guard.set_usage(profile, usage),
            usage => self.on_cut(profile, *usage, &scanned),
        }
        let error = scanned.error.clone().map(Box::new);
        match &error {
            Some(error) => self.on_error_in_body(profile, error),
            None if self.is_broken => {
                if self.may_be_refused {
                    self.guard.report_failure(ServerFailure::unclear("the response was cut off"));
                }
            }
            None => self.on_accepted(),
        }
        self.guard.on_body(scanned);
        error
    }

    /// Handles a response without a final usage.
    fn on_cut(&mut self, profile: Profile, usage: Option<Usage>, scanned: &Scanned) {
        let received = scanned.output_bytes.map(|bytes| {
            let caught_up_at = self.guard.read_until.or(self.caught_up_at);
            let since = caught_up_at.or(self.guard.granted_at()).unwrap_or_default();
            let unread = (!scanned.is_whole).then(|| self.guard.now() - since);
            Received { bytes, unread }
        });
        if usage.is_some() || received.is_some() {
            self.guard.set_cut(profile, &CutStream { usage, received });
        }
    }

    fn on_error_in_body(&mut self, profile: Profile, error: &ApiError) {
        let refusal = profile.refusal_in_band(error, self.guard.now());
        match refusal {
            Some(refusal) => self.guard.report_refusal(refusal, None),
            None if profile.classify_in_band(error) == Class::Terminal => self.on_accepted(),
            None => {}
        }
    }

    fn on_accepted(&mut self) {
        if std::mem::take(&mut self.may_be_refused) {
            self.guard.on_accepted();
        }
    }
}

impl ResponseGuard {
    /// Reads the status and the headers of a response, and returns a [`Reading`] for its body.
    #[must_use = "dropping it ends the reservation"]
    pub fn head(mut self, profile: Profile, status: StatusCode, headers: &HeaderMap) -> Reading {
        self.read_head(profile, status, headers);
        Reading::new(self, profile, status, headers)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.finish();
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("guard", &self.guard).finish_non_exhaustive()
    }
}
