use super::pixels::pixels;

/// An image, audio, a video or a file in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Medium {
    pub(crate) kind: MediumKind,
    /// The size; `None` if the medium is only linked.
    pub(crate) bytes: Option<u64>,
    /// Width and height of an image, if its first bytes state them.
    pub(crate) pixels: Option<(u64, u64)>,
    /// True if the medium has data or a link. An earlier audio answer is referenced by its `id` alone.
    pub(super) has_source: bool,
    /// True if the request asks for low detail (OpenAI's `detail`).
    pub(crate) is_low_detail: bool,
    /// The bytes of its data in the body, if that is binary in Base64.
    encoded: u64,
    /// True if the request states the format.
    has_format: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediumKind {
    Image,
    Audio,
    Video,
    /// A PDF, or a file of unknown type.
    Document,
    /// A text file.
    Text,
}

impl Medium {
    pub(super) fn new(kind: MediumKind) -> Self {
        Self {
            kind,
            bytes: None,
            pixels: None,
            has_source: false,
            is_low_detail: false,
            encoded: 0,
            has_format: false,
        }
    }

    /// Returns the bytes of the body that are the data of an image, a sound, a video or a file of a stated format other
    /// than text. All else may be read as text.
    pub(super) fn binary_bytes(&self) -> u64 {
        match self.kind {
            MediumKind::Image | MediumKind::Audio | MediumKind::Video => self.encoded,
            MediumKind::Document if self.has_format => self.encoded,
            MediumKind::Document | MediumKind::Text => 0,
        }
    }

    /// Sets the kind from a format: `image/png`, `png`, `video/mp4`, `wav`.
    pub(super) fn set_format(&mut self, format: &str) {
        self.has_format = true;
        let (major, minor) = format.split_once('/').unwrap_or(("", format));
        self.kind = match (major, minor) {
            ("image", _) | (_, "png" | "jpeg" | "jpg" | "gif" | "webp") => MediumKind::Image,
            ("audio", _) | (_, "wav" | "mp3" | "flac" | "ogg" | "opus" | "pcm16") => {
                MediumKind::Audio
            }
            ("video", _) | (_, "mp4" | "mov" | "webm" | "mkv") => MediumKind::Video,
            (_, "pdf") => MediumKind::Document,
            ("text", _) | (_, "txt" | "md" | "csv" | "html" | "json") => MediumKind::Text,
            _ => self.kind,
        };
    }

    /// Sets the source: a link, a data URL, or bare Base64.
    pub(super) fn set_source(&mut self, text: &str) {
        self.has_source = true;
        let data = match text.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
            Some((head, data)) => {
                self.set_format(head.split(';').next().unwrap_or(head));
                data
            }
            None if is_link(text) => return,
            None => text,
        };
        self.bytes = Some(data.len() as u64 / 4 * 3);
        self.encoded = if is_base64(data) { data.len() as u64 } else { 0 };
        self.measure(data);
    }

    /// Sets width and height, if the data is an image.
    fn measure(&mut self, data: &str) {
        self.pixels = self.pixels.or_else(|| pixels(data));
        if self.pixels.is_some() {
            self.kind = MediumKind::Image;
        }
    }
}

fn is_link(text: &str) -> bool {
    text.contains("://") || text.len() < SHORTEST_DATA
}

/// Returns true if a text starts as Base64 does, without the spaces of a text.
fn is_base64(data: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    data.as_bytes()[..data.len().min(SHORTEST_DATA)].iter().all(is_digit)
}

/// The minimum length of data, in bytes; a shorter text is the name of a file.
const SHORTEST_DATA: usize = 64;
