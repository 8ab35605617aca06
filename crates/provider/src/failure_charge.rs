use http::{HeaderMap, StatusCode};
use paceline_limiter::Timestamp;
use paceline_limiter::limiter::RefusalKind;
use paceline_limiter::quota::{Dimension, SettleAt};

use crate::Profile;
use crate::error::{ApiError, ErrorRules, codes};
use crate::refusal;

/// What a provider charges for a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureCharge {
    /// A request, and neither tokens nor money: it was refused before it was processed.
    Request,
    /// What was reserved, without money.
    Tokens,
    /// All that was reserved: the request may have been processed.
    Reserved,
}

impl FailureCharge {
    /// Returns the charge of a response with this status, from 300 on.
    ///
    /// - 429, 503, 529, and other statuses below 500 except for 408, 424 and 499, refuse a request before it is
    ///   processed.
    /// - A profile lists the statuses whose tokens the provider counts nevertheless, except where it refuses the account.
    ///   A 429, 503 or 529 of a request that never fits isn't counted either.
    /// - At a provider that charges tokens at admission, a request whose response states the remaining tokens
    ///   was admitted (recorded: a 400 of OpenAI has the tokens of the request taken from them, and the errors of
    ///   validation state none).
    /// - Errors by which a provider charges a request, such as Azure's `content_filter`, keep all of it.
    pub(super) fn of_response(
        profile: &Profile,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        let rules = &profile.rules().errors;
        let error = ApiError::read(body).map(|error| error.with_kind_from(headers));
        let refusal = || refusal::of_response(rules, status, headers, body, Timestamp::UNIX_EPOCH);
        let charge = match status.as_u16() {
            429 | 503 | 529 => {
                refusal().map_or(Self::Request, |refusal| Self::of_refusal(rules, refusal.kind))
            }
            400 if rules.charges_unread(error.as_ref()) => Self::Reserved,
            status if rules.counted_statuses.contains(&status) => match refusal() {
                Some(refusal) if refusal.kind == RefusalKind::Account => Self::Request,
                _ => Self::Tokens,
            },
            408 | 424 | 499 | 500.. => {
                refusal().map_or(Self::Reserved, |refusal| Self::of_refusal(rules, refusal.kind))
            }
            _ => match &error {
                Some(error) if codes::is_charged(error, rules) => Self::Reserved,
                _ if was_admitted(profile, headers) => Self::Tokens,
                _ => Self::Request,
            },
        };
        charge.as_billed(rules.bills_failures)
    }

    /// Returns the charge of an error in the body of a 200, before which nothing was generated.
    pub(super) fn of_error(profile: &Profile, error: &ApiError) -> Self {
        let rules = &profile.rules().errors;
        let status = error.code().and_then(|code| StatusCode::from_bytes(code.as_bytes()).ok());
        let refusal = refusal::of_error(rules, error, Timestamp::UNIX_EPOCH);
        let charge = match (status.map(|status| status.as_u16()), refusal) {
            _ if codes::is_charged(error, rules) => Self::Reserved,
            (_, Some(refusal)) => Self::of_refusal(rules, refusal.kind),
            (Some(400..=407 | 409..=423 | 425..=498), _) => Self::Request,
            _ if codes::is_request_error(error, rules) => Self::Request,
            _ => Self::Reserved,
        };
        charge.as_billed(rules.bills_failures)
    }

    fn of_refusal(rules: &ErrorRules, kind: RefusalKind) -> Self {
        let counted: &[u16] = match kind {
            RefusalKind::Rate | RefusalKind::Window => &[429],
            RefusalKind::Capacity => &[503, 529],
            RefusalKind::Request | RefusalKind::Account => &[],
            _ => &[429, 503, 529],
        };
        match counted.iter().any(|status| rules.counted_statuses.contains(status)) {
            true => Self::Tokens,
            false => Self::Request,
        }
    }

    fn as_billed(self, bills_failures: bool) -> Self {
        match self {
            Self::Reserved if !bills_failures => Self::Tokens,
            other => other,
        }
    }
}

fn was_admitted(profile: &Profile, headers: &HeaderMap) -> bool {
    profile.settles(&Dimension::Tokens) == SettleAt::Send
        && profile
            .limits(headers)
            .iter()
            .any(|limit| limit.dimension == Dimension::Tokens && limit.remaining.is_some())
}
