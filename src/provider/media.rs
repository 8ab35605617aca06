//! What images, sounds, videos and files come to, in tokens.

use super::estimate::tokens;
use super::request::{Kind, Medium};

/// As OpenAI counts: an image by its tiles, a PDF by its pages, sound at ten tokens a second.
pub(super) fn openai(medium: &Medium) -> u64 {
    match medium.kind {
        Kind::Image => openai_image(medium),
        Kind::Audio => seconds(medium, SOUND) * 10,
        Kind::Video => seconds(medium, FILM) * 258,
        Kind::Document => pages(medium) * 1_000,
        Kind::Text => text(medium),
    }
}

/// As Anthropic counts: pixels / 750 of an image of at most 1,568 pixels a side, and 1,500 to 3,000 a
/// page. It takes neither sound nor film.
pub(super) fn anthropic(medium: &Medium) -> u64 {
    match medium.kind {
        Kind::Image => anthropic_image(medium),
        Kind::Audio => seconds(medium, SOUND) * 32,
        Kind::Video => seconds(medium, FILM) * 258,
        Kind::Document => pages(medium) * 2_250,
        Kind::Text => text(medium),
    }
}

/// As Google counts: 258 for a page, a small image or a tile of 768 pixels; sound at 32 tokens a
/// second, film at 263.
pub(super) fn gemini(medium: &Medium) -> u64 {
    match medium.kind {
        Kind::Image => gemini_image(medium),
        Kind::Audio => seconds(medium, SOUND) * 32,
        Kind::Video => seconds(medium, FILM) * 263,
        Kind::Document => pages(medium) * 258,
        Kind::Text => text(medium),
    }
}

/// 85 and 170 for each tile of 512 pixels, once it is shrunk to 2,048 pixels a side and to 768 on the
/// short one (OpenAI's page on images, for the 4o family). An image of unknown size counts as the
/// four tiles of a square; so was one of 800 x 400 charged that could not even be loaded (recorded in
/// 2026).
fn openai_image(image: &Medium) -> u64 {
    if image.is_coarse {
        return 85;
    }
    let Some((width, height)) = image.pixels else { return 765 };
    let (width, height) = shrunk(width, height, width.max(height), 2_048);
    let (width, height) = shrunk(width, height, width.min(height), 768);
    85 + 170 * width.div_ceil(512) * height.div_ceil(512)
}

fn anthropic_image(image: &Medium) -> u64 {
    let Some((width, height)) = image.pixels else { return 1_600 };
    let (width, height) = shrunk(width, height, width.max(height), 1_568);
    (width * height).div_ceil(750).min(1_600)
}

fn gemini_image(image: &Medium) -> u64 {
    match image.pixels {
        Some((width, height)) if width.max(height) > 384 => {
            258 * width.div_ceil(768).min(16) * height.div_ceil(768).min(16)
        }
        _ => 258,
    }
}

/// Both sides, in proportion, so that `side` is at most `most`.
fn shrunk(width: u64, height: u64, side: u64, most: u64) -> (u64, u64) {
    if side <= most {
        return (width, height);
    }
    let shrink = |length: u64| (length.saturating_mul(most) / side).max(1);
    (shrink(width), shrink(height))
}

/// The length of a sound or a film with so many bytes a second; a minute where it is only linked.
fn seconds(medium: &Medium, rate: u64) -> u64 {
    medium.bytes.map_or(60, |bytes| bytes.div_ceil(rate))
}

/// The pages of a PDF of 50 kB each; one where it is only linked.
fn pages(medium: &Medium) -> u64 {
    medium.bytes.unwrap_or(0).div_ceil(50_000).max(1)
}

fn text(medium: &Medium) -> u64 {
    medium.bytes.map_or(1_000, tokens)
}

/// Bytes of a second of MP3 at 128 kbit/s; plain samples are several times that, and are
/// overestimated.
const SOUND: u64 = 16_000;

/// Bytes of a second of film at 2 Mbit/s.
const FILM: u64 = 250_000;
