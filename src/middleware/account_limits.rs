use std::fmt;

use http::{HeaderName, StatusCode};
use reqwest::{Client, Url};

use crate::limiter::{Limiter, WeakLimiter};
use crate::provider::account_limits::{AccountLimits, InvalidPage, ModelLimits};

/// Reads the limits of an account from its provider, with an admin key. Requests of this kind count to no limit
/// of models. Apply the result with [`Quotas::follow_provider`](crate::limiter::Quotas::follow_provider).
///
/// ```no_run
/// use paceline::Limiter;
/// use paceline::middleware::fetch_account_limits;
/// use paceline::provider::ANTHROPIC;
/// use paceline::provider::account_limits::AccountLimits;
///
/// # async fn example(limiter: &Limiter, admin_key: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let account = AccountLimits::new(ANTHROPIC, None)?;
/// let limits = fetch_account_limits(&reqwest::Client::new(), &account, admin_key).await?;
/// limiter.quotas().follow_provider(ANTHROPIC, &limits);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`AccountLimitsError`] if the provider can't be reached, refuses the key, or answers in another format.
///
/// # Cancel safety
/// Dropping the future cancels the request, which changes nothing at the provider.
///
/// # Panics
/// Panics outside a tokio runtime with I/O and timers, which the client needs.
pub async fn fetch_account_limits(
    client: &Client,
    account: &AccountLimits,
    admin_key: &str,
) -> Result<Vec<ModelLimits>, AccountLimitsError> {
    let mut all = Vec::new();
    for url in account.urls() {
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let body = fetch(client, account, &url, cursor.as_deref(), admin_key).await?;
            let page = account.read(&body).map_err(AccountLimitsError::Invalid)?;
            ModelLimits::merge(&mut all, page.limits);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(all)
}

/// Keeps the quotas of a limiter as its provider states them: reads them at once and then every
/// [`refresh`](AccountLimits::refresh), until the limiter is dropped. An error is logged, and the quotas stay as
/// they are until the next reading.
///
/// # Cancel safety
/// Dropping the future ends it; quotas stay as they were read last.
///
/// # Panics
/// Panics outside a tokio runtime with timers.
pub async fn follow_account_limits(
    client: Client,
    account: AccountLimits,
    admin_key: String,
    limiter: WeakLimiter,
) {
    loop {
        let provider = account.profile().name();
        match fetch_account_limits(&client, &account, &admin_key).await {
            Ok(limits) => {
                let Some(limiter) = limiter.upgrade() else { return };
                apply(&limiter, &account, &limits);
            }
            Err(error) => tracing::warn!(provider, %error, "limits of the account not read"),
        }
        tokio::time::sleep(account.refresh).await;
        if limiter.upgrade().is_none() {
            return;
        }
    }
}

fn apply(limiter: &Limiter, account: &AccountLimits, limits: &[ModelLimits]) {
    let provider = account.profile().name();
    let changed = limiter.quotas().follow_provider(account.profile(), limits);
    if changed > 0 {
        tracing::info!(provider, models = changed, "limits of the account read from the provider");
    }
}

async fn fetch(
    client: &Client,
    account: &AccountLimits,
    url: &str,
    cursor: Option<&str>,
    admin_key: &str,
) -> Result<Vec<u8>, AccountLimitsError> {
    let mut url = Url::parse(url).map_err(|_| AccountLimitsError::InvalidUrl)?;
    if let Some(cursor) = cursor {
        url.query_pairs_mut().append_pair(account.cursor_parameter(), cursor);
    }
    let api = account.profile().api();
    let (name, value) = api.credential(admin_key).map_err(|_| AccountLimitsError::InvalidKey)?;
    let mut request = client.get(url).header(name, value);
    for (name, value) in api.constant_headers {
        request = request.header(HeaderName::from_static(name), *value);
    }
    let send_error = |error: reqwest::Error| AccountLimitsError::Send(error.without_url());
    let mut response = request.send().await.map_err(send_error)?;
    if !response.status().is_success() {
        return Err(AccountLimitsError::Refused { status: response.status() });
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(send_error)? {
        body.extend_from_slice(&bytes);
        if body.len() > LONGEST_PAGE {
            return Err(AccountLimitsError::TooLong);
        }
    }
    Ok(body)
}

/// The error of [`fetch_account_limits`].
#[derive(Debug)]
#[non_exhaustive]
pub enum AccountLimitsError {
    /// The base URL of the provider is invalid.
    InvalidUrl,
    /// The key can't be sent in a header.
    InvalidKey,
    /// The request could not be sent, or the response could not be read completely.
    Send(reqwest::Error),
    /// The provider refused the request.
    Refused {
        /// The status of the response.
        status: StatusCode,
    },
    /// The response is too long.
    TooLong,
    /// The response has another format.
    Invalid(InvalidPage),
}

impl fmt::Display for AccountLimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUrl => f.write_str("the base URL of the provider is invalid"),
            Self::InvalidKey => f.write_str("the admin key has characters that no header can have"),
            Self::Send(_) => f.write_str("the request for the limits of the account failed"),
            Self::Refused { status } if status.is_client_error() => write!(
                f,
                "the provider answered {status}; check the admin key, and the project or workspace"
            ),
            Self::Refused { status } => write!(f, "the provider answered {status}"),
            Self::TooLong => write!(f, "the response is longer than {LONGEST_PAGE} bytes"),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AccountLimitsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Send(error) => Some(error),
            _ => None,
        }
    }
}

/// More pages than any account has, so that a cursor that never ends is no endless loop.
const MOST_PAGES: usize = 100;

/// More than the limits of all models take.
const LONGEST_PAGE: usize = 4 << 20;
