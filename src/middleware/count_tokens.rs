use std::fmt;

use bytes::Bytes;
use http::Request;

use crate::provider::count_tokens::{Answer, CountTokensError};

/// Sends a token-count request and returns the count, reading the response within the bounds of
/// [`Answer`]. Build the request with [`provider::count_tokens::request`] and add the API key to it.
/// The request isn't rate limited.
///
/// ```no_run
/// use paceline::middleware::count_tokens;
/// use paceline::provider::{GEMINI, count_tokens as count};
///
/// # async fn example(key: http::HeaderValue) -> Result<(), Box<dyn std::error::Error>> {
/// let url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent";
/// let body = br#"{"contents": [{"parts": [{"text": "Hello"}]}]}"#;
/// let mut request = count::request(GEMINI, url, body)?;
/// request.headers_mut().insert("x-goog-api-key", key);
/// let tokens: u64 = count_tokens(&reqwest::Client::new(), request).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns [`SendCountError::Send`] if the client failed, and [`SendCountError::Answer`] if the
/// response doesn't contain a count.
///
/// # Cancel safety
/// Dropping the future cancels the request; the provider may have received and counted it.
///
/// # Panics
/// Panics outside a tokio runtime with I/O and timers, which the client needs.
///
/// [`provider::count_tokens::request`]: crate::provider::count_tokens::request
pub async fn count_tokens(
    client: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<u64, SendCountError> {
    let request = reqwest::Request::try_from(request).map_err(send_error)?;
    let mut response = client.execute(request).await.map_err(send_error)?;
    let mut answer = Answer::new(response.status());
    while !answer.is_full() {
        let Some(bytes) = response.chunk().await.map_err(send_error)? else { break };
        answer.feed(&bytes).map_err(SendCountError::Answer)?;
    }
    answer.finish().map_err(SendCountError::Answer)
}

/// Removes the URL from the error, since a URL may contain an API key.
fn send_error(error: reqwest::Error) -> SendCountError {
    SendCountError::Send(error.without_url())
}

/// The error of [`count_tokens`].
#[derive(Debug)]
#[non_exhaustive]
pub enum SendCountError {
    /// The request could not be sent, or the response could not be read completely.
    Send(reqwest::Error),
    /// The response doesn't contain a count.
    Answer(CountTokensError),
}

impl fmt::Display for SendCountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(_) => f.write_str("token-count request failed"),
            Self::Answer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SendCountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Send(error) => Some(error),
            Self::Answer(_) => None,
        }
    }
}
