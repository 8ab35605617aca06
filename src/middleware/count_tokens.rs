use std::fmt;

use bytes::Bytes;
use http::Request;

use crate::provider::count_tokens::{Answer, CountTokensError};

/// Sends a question for a count of tokens, and reads what comes back within the bounds of
/// [`Answer`]. The question is that of [`provider::count_tokens::request`], to which the caller has
/// added its key; it goes past any limiter.
///
/// ```no_run
/// use tollgate::middleware::count_tokens;
/// use tollgate::provider::{GEMINI, count_tokens as count};
///
/// # async fn example(key: http::HeaderValue) -> Result<(), Box<dyn std::error::Error>> {
/// let url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent";
/// let body = br#"{"contents": [{"parts": [{"text": "Hello"}]}]}"#;
/// let mut asked = count::request(GEMINI, url, body)?;
/// asked.headers_mut().insert("x-goog-api-key", key);
/// let tokens: u64 = count_tokens(&reqwest::Client::new(), asked).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`SendCountError`]: the client's own error, without the URL; or what the answer says instead of
/// a count.
///
/// # Cancel safety
/// Dropping the future gives the count up; the provider may have counted it as a request.
///
/// [`provider::count_tokens::request`]: crate::provider::count_tokens::request
pub async fn count_tokens(
    client: &reqwest::Client,
    asked: Request<Bytes>,
) -> Result<u64, SendCountError> {
    let asked = reqwest::Request::try_from(asked).map_err(sending)?;
    let mut response = client.execute(asked).await.map_err(sending)?;
    let mut answer = Answer::new(response.status());
    while !answer.is_full() {
        let Some(bytes) = response.chunk().await.map_err(sending)? else { break };
        answer.feed(&bytes).map_err(SendCountError::Answer)?;
    }
    answer.finish().map_err(SendCountError::Answer)
}

/// A URL may hold a key.
fn sending(error: reqwest::Error) -> SendCountError {
    SendCountError::Send(error.without_url())
}

/// Why a count of tokens didn't come.
#[derive(Debug)]
#[non_exhaustive]
pub enum SendCountError {
    /// The question could not be sent, or the answer not be read to its end.
    Send(reqwest::Error),
    /// The answer states no count.
    Answer(CountTokensError),
}

impl fmt::Display for SendCountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(_) => f.write_str("the question for the count of tokens was not answered"),
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
