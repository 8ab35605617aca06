use paceline_limiter::quota::Dimension;

/// A quantity other than requests and tokens that a provider limits.
///
/// A profile with [`Rules::units`](crate::Rules::units) reads its amount from each request. It is charged
/// when the request is sent, in the custom dimension of its name. A key whose limits don't count it admits
/// the request as if it weren't there.
///
/// ```
/// use paceline_provider::{OPENAI, Unit};
/// let body = br#"{"model": "gpt-image-2", "prompt": "A gate", "n": 3}"#;
/// let estimate = OPENAI.read_request("/v1/images/generations", body);
/// assert_eq!(estimate.cost.amount(&Unit::Images.dimension()), 3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Images that are asked for (`n`, or 1), or images in a request for embeddings. The dimension `images`.
    Images,
    /// Seconds of audio in an upload to be transcribed, rounded up. The dimension `audio_seconds`.
    ///
    /// The header of a WAV or FLAC file states them. Other formats state no length at a fixed place: one second
    /// is assumed for 16,000 bytes of the upload, the size of audio at 128 kbit/s. That is a guess.
    AudioSeconds,
    /// Inputs in a request for embeddings, without images. The dimension `inputs`.
    Inputs,
}

impl Unit {
    /// Returns the name of the dimension.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::AudioSeconds => "audio_seconds",
            Self::Inputs => "inputs",
        }
    }

    /// Returns the dimension.
    pub fn dimension(self) -> Dimension {
        Dimension::custom(self.as_str())
    }
}
