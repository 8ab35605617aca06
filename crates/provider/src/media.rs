use crate::estimate::tokens;
use crate::request::{Medium, MediumKind};

/// The tokens of the images, audio, video and files in a prompt.
///
/// Durations and pages are estimated from sizes: 16 kB per second of audio (MP3 at 128 kbit/s; raw
/// samples are overestimated), 250 kB per second of video (2 Mbit/s), and 50 kB per page. A medium that
/// is only linked counts as one minute or one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaTokens {
    image: ImageTokens,
    audio_second: u64,
    video_second: u64,
    page: u64,
}

/// The tokens of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageTokens {
    /// 85, and 170 for each tile of 512 pixels of the image, shrunk to 2,048 pixels a side and to 768
    /// on the short side (OpenAI's page on images, for the 4o family); 85 with `"detail": "low"`. An
    /// image of unknown size counts as a square of four tiles, which was the charge for an image of
    /// 800 x 400 pixels that could not be loaded (recorded in 2026).
    OpenAiTiles,
    /// One token for 750 pixels of the image, shrunk to 1,568 pixels a side; 1,600 at most, and for an
    /// image of unknown size.
    AnthropicPixels,
    /// 258 for each tile of 768 pixels, and for an image of at most 384 pixels a side or of unknown
    /// size.
    GeminiTiles,
    /// The same number for each image.
    Fixed(u64),
}

impl MediaTokens {
    /// OpenAI: 10 tokens per second of audio, 1,000 per page. Video is estimated as at Google.
    pub const OPENAI: Self = Self::new(ImageTokens::OpenAiTiles, 10, 258, 1_000);

    /// Anthropic: 1,500 to 3,000 tokens per page. It accepts neither audio nor video.
    pub const ANTHROPIC: Self = Self::new(ImageTokens::AnthropicPixels, 32, 258, 2_250);

    /// Google: 32 tokens per second of audio, 263 per second of video, 258 per page.
    pub const GEMINI: Self = Self::new(ImageTokens::GeminiTiles, 32, 263, 258);

    /// Returns the tokens of images, and per second of audio, per second of video and per page.
    pub const fn new(image: ImageTokens, audio_second: u64, video_second: u64, page: u64) -> Self {
        Self { image, audio_second, video_second, page }
    }

    /// Returns the tokens of a medium.
    pub(super) fn of(&self, medium: &Medium) -> u64 {
        match medium.kind {
            MediumKind::Image => self.image.of(medium),
            MediumKind::Audio => seconds(medium, AUDIO).saturating_mul(self.audio_second),
            MediumKind::Video => seconds(medium, VIDEO).saturating_mul(self.video_second),
            MediumKind::Document => pages(medium).saturating_mul(self.page),
            MediumKind::Text => medium.bytes.map_or(1_000, tokens),
        }
    }
}

impl ImageTokens {
    fn of(self, image: &Medium) -> u64 {
        match self {
            Self::OpenAiTiles => openai(image),
            Self::AnthropicPixels => anthropic(image),
            Self::GeminiTiles => gemini(image),
            Self::Fixed(tokens) => tokens,
        }
    }
}

fn openai(image: &Medium) -> u64 {
    if image.is_low_detail {
        return 85;
    }
    let Some((width, height)) = image.pixels else { return 765 };
    let (width, height) = shrunk(width, height, width.max(height), 2_048);
    let (width, height) = shrunk(width, height, width.min(height), 768);
    85 + 170 * width.div_ceil(512) * height.div_ceil(512)
}

fn anthropic(image: &Medium) -> u64 {
    let Some((width, height)) = image.pixels else { return 1_600 };
    let (width, height) = shrunk(width, height, width.max(height), 1_568);
    (width * height).div_ceil(750).min(1_600)
}

fn gemini(image: &Medium) -> u64 {
    match image.pixels {
        Some((width, height)) if width.max(height) > 384 => {
            258 * width.div_ceil(768).min(16) * height.div_ceil(768).min(16)
        }
        _ => 258,
    }
}

/// Returns both sides, shrunk in proportion so that `side` is at most `limit`.
fn shrunk(width: u64, height: u64, side: u64, limit: u64) -> (u64, u64) {
    if side <= limit {
        return (width, height);
    }
    let shrink = |length: u64| (length.saturating_mul(limit) / side).max(1);
    (shrink(width), shrink(height))
}

/// Returns the duration at this many bytes per second, in seconds, rounded up.
fn seconds(medium: &Medium, rate: u64) -> u64 {
    medium.bytes.map_or(60, |bytes| bytes.div_ceil(rate))
}

fn pages(medium: &Medium) -> u64 {
    medium.bytes.unwrap_or(0).div_ceil(50_000).max(1)
}

/// Bytes per second of audio.
const AUDIO: u64 = 16_000;

/// Bytes per second of video.
const VIDEO: u64 = 250_000;
