use super::ApiError;

/// The error codes of a provider, in addition to the codes that are known for all providers.
///
/// Codes are compared with the `code`, the `type` and the `status` of an error body.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use paceline_provider::{Class, ErrorRules, Profile, Rules};
///
/// const ERRORS: ErrorRules = ErrorRules::new().account_codes(&["out_of_credits"]);
/// let acme = Profile::custom(Rules::new("acme").errors(ERRORS))?;
/// let body = br#"{"error": {"code": "out_of_credits", "message": "Top up"}}"#;
/// let class = acme.classify(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), body);
/// assert_eq!(class, Class::Terminal);
/// # Ok::<(), paceline_provider::InvalidProfile>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRules {
    pub(crate) account_codes: &'static [&'static str],
    pub(crate) request_codes: &'static [&'static str],
    pub(crate) transient_codes: &'static [&'static str],
    pub(crate) long_window_texts: &'static [&'static str],
    pub(crate) delay_fields: &'static [&'static str],
    pub(crate) day_zone: Option<&'static str>,
    pub(crate) charged_codes: &'static [&'static str],
    pub(crate) counted_statuses: &'static [u16],
    pub(crate) bills_failures: bool,
}

impl ErrorRules {
    /// Returns rules without codes of the provider's own.
    pub const fn new() -> Self {
        Self {
            account_codes: &[],
            request_codes: &[],
            transient_codes: &[],
            long_window_texts: &[],
            delay_fields: &[],
            day_zone: None,
            charged_codes: &[],
            counted_statuses: &[],
            bills_failures: true,
        }
    }

    /// Sets the codes of errors that every request of the account gets: no credit, a spending limit,
    /// an invalid key.
    #[must_use]
    pub const fn account_codes(self, codes: &'static [&'static str]) -> Self {
        Self { account_codes: codes, ..self }
    }

    /// Sets the codes of errors that recur if the request is repeated: invalid, too long, filtered.
    #[must_use]
    pub const fn request_codes(self, codes: &'static [&'static str]) -> Self {
        Self { request_codes: codes, ..self }
    }

    /// Sets the codes of errors that may not recur if the request is repeated, regardless of
    /// the status. They count before all other codes: `insufficient_quota` is transient at Alibaba.
    #[must_use]
    pub const fn transient_codes(self, codes: &'static [&'static str]) -> Self {
        Self { transient_codes: codes, ..self }
    }

    /// Sets the texts in messages that indicate a limit of a day or longer: ` per week`.
    #[must_use]
    pub const fn long_window_texts(self, texts: &'static [&'static str]) -> Self {
        Self { long_window_texts: texts, ..self }
    }

    /// Sets the fields of an error body that state the delay before a retry, as a Go duration
    /// (`1m30s`) or in seconds.
    #[must_use]
    pub const fn delay_fields(self, fields: &'static [&'static str]) -> Self {
        Self { delay_fields: fields, ..self }
    }

    /// Sets the time zone at whose midnight limits per day reset, for refusals that state no later reset:
    /// `America/Los_Angeles` (Gemini). Without the feature `zones`, only UTC is known.
    #[must_use]
    pub const fn days_reset_in(self, zone: &'static str) -> Self {
        Self { day_zone: Some(zone), ..self }
    }

    /// Sets the codes of errors with status 400 by which the provider charges the request: it was processed.
    /// A 400 whose error can't be read is then charged too.
    #[must_use]
    pub const fn charged_codes(self, codes: &'static [&'static str]) -> Self {
        Self { charged_codes: codes, ..self }
    }

    /// Sets the statuses of failures whose tokens count to the limits, although the provider doesn't bill them. 429 and
    /// 503 stand for all refusals of a rate and for lack of capacity, also inside a stream, but not for those of a request
    /// that never fits. A refused account is never counted. Default: none.
    #[must_use]
    pub const fn counted_statuses(self, statuses: &'static [u16]) -> Self {
        Self { counted_statuses: statuses, ..self }
    }

    /// States that the provider bills only successes. Default: a failure after which the request may have been
    /// processed costs its reservation.
    #[must_use]
    pub const fn unbilled_failures(self) -> Self {
        Self { bills_failures: false, ..self }
    }

    /// Returns true if a 400 with an error that can't be read may be charged.
    pub(crate) fn charges_unread(&self, error: Option<&ApiError>) -> bool {
        !self.charged_codes.is_empty() && error.is_none_or(|error| error.codes().next().is_none())
    }
}

impl Default for ErrorRules {
    fn default() -> Self {
        Self::new()
    }
}
