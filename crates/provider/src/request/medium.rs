use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::Request;
use super::pixels::pixels;
use super::walk::{Walk, Walker};

/// An image, audio, a video or a file in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Medium {
    pub(crate) kind: MediumKind,
    /// The size; `None` if the medium is only linked.
    pub(crate) bytes: Option<u64>,
    /// Width and height of an image, if its first bytes state them.
    pub(crate) pixels: Option<(u64, u64)>,
    /// True if the medium has data or a link. An earlier audio answer is referenced by its `id` alone.
    has_source: bool,
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
    fn new(kind: MediumKind) -> Self {
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
    fn set_format(&mut self, format: &str) {
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
    fn set_source(&mut self, text: &str) {
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

/// Reads a medium, or the media of a list.
pub(super) struct Media<'a> {
    request: &'a mut Request,
    kind: MediumKind,
}

impl<'a> Media<'a> {
    /// Reads media of this kind, unless they state another.
    pub(super) fn new(request: &'a mut Request, kind: MediumKind) -> Self {
        Self { request, kind }
    }
}

impl<'de> Walk<'de> for Media<'_> {
    fn text(self, text: &str) {
        let mut medium = Medium::new(self.kind);
        medium.set_source(text);
        self.request.media.push(medium);
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Walker(Media::new(self.request, self.kind)))?.is_some() {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        let mut medium = Medium::new(self.kind);
        Source(&mut medium).object(object)?;
        if medium.has_source || medium.kind != MediumKind::Audio {
            self.request.media.push(medium);
        }
        Ok(())
    }
}

/// The object around a medium, and objects within it.
struct Source<'a>(&'a mut Medium);

impl<'de> Walk<'de> for Source<'_> {
    fn text(self, text: &str) {
        self.0.set_source(text);
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<Key>()? {
            match key {
                Key::Format => object.next_value_seed(Walker(Format(self.0)))?,
                Key::Detail => object.next_value_seed(Walker(Detail(self.0)))?,
                Key::Data => object.next_value_seed(Walker(Source(self.0)))?,
                Key::Other => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Format<'a>(&'a mut Medium);

impl Walk<'_> for Format<'_> {
    fn text(self, text: &str) {
        self.0.set_format(text);
    }
}

struct Detail<'a>(&'a mut Medium);

impl Walk<'_> for Detail<'_> {
    fn text(self, text: &str) {
        self.0.is_low_detail = text == "low";
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    #[serde(alias = "mimeType", alias = "mime_type", alias = "media_type", alias = "mediaType")]
    Format,
    Detail,
    #[serde(
        alias = "bytes",
        alias = "url",
        alias = "source",
        alias = "file_data",
        alias = "bytesBase64Encoded",
        alias = "fileUri",
        alias = "file_uri",
        alias = "s3Location",
        alias = "uri"
    )]
    Data,
    #[serde(other)]
    Other,
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
