//! Failures that have nothing to do with a limit, to try a client with.

use super::rejection::Rejection;

/// Every `every`th request that is received fails, before the limits are asked: it takes
/// nothing. 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// 1 fails each request, 2 every second one, ...
    pub every: u64,
    /// How it fails.
    pub failure: Failure,
}

/// A failure, in OpenAI's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// 500, `server_error`.
    ServerError,
    /// 503, `server_is_overloaded`.
    Overloaded,
    /// 401, `invalid_api_key`.
    Unauthorized,
    /// 429, `insufficient_quota`, without `retry-after`: waiting does not help.
    InsufficientQuota,
}

impl Fault {
    /// Whether the `nth` request (from 1) is one that fails.
    pub(super) fn hits(&self, nth: u64) -> bool {
        self.every > 0 && nth.is_multiple_of(self.every)
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::ServerError => Self::new(500, SERVER_ERROR).of_type("server_error"),
            Failure::Overloaded => {
                Self::new(503, OVERLOADED).of_type("server_error").with_code("server_is_overloaded")
            }
            Failure::Unauthorized => Self::new(401, UNAUTHORIZED).with_code("invalid_api_key"),
            Failure::InsufficientQuota => Self::new(429, NO_QUOTA)
                .of_type("insufficient_quota")
                .with_code("insufficient_quota"),
        }
    }
}

const SERVER_ERROR: &str =
    "The server had an error while processing your request. Sorry about that!";
const OVERLOADED: &str = "The server is currently overloaded with other requests. \
    Sorry about that! You can retry your request.";
const UNAUTHORIZED: &str = "Incorrect API key provided: sk-****gate. \
    You can find your API key at https://platform.openai.com/account/api-keys.";
const NO_QUOTA: &str = "You exceeded your current quota, please check your plan and billing \
    details. For more information on this error, read the docs: \
    https://platform.openai.com/docs/guides/error-codes/api-errors.";
