use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::medium::{Medium, MediumKind};
use super::request::Request;
use super::walk::{Walk, Walker};

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
