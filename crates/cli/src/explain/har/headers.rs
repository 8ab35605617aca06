use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;

use super::lenient::{Text, lenient};

/// `headers` or `params`: a list of names and values.
#[derive(Default, Deserialize)]
pub(super) struct Pairs(Vec<Pair>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pair {
    #[serde(deserialize_with = "lenient")]
    name: Text,
    #[serde(deserialize_with = "lenient")]
    value: Text,
}

impl Pairs {
    /// The headers. HTTP/2's `:status` and the like are no header names, and left out.
    pub(super) fn into_map(self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for Pair { name, value } in self.0 {
            let Ok(name) = HeaderName::from_bytes(&name.0) else { continue };
            // Firefox and Safari write headers of one name as one, with line breaks between them.
            for value in value.0.split(|byte| *byte == b'\n') {
                if let Ok(value) = HeaderValue::from_bytes(value.trim_ascii()) {
                    // Fails past 32,768 headers.
                    let _ = map.try_append(name.clone(), value);
                }
            }
        }
        map
    }

    /// A form's fields, one a line. What files it carried is not recorded.
    pub(super) fn into_form(self) -> Vec<u8> {
        let field = |Pair { name, value }| [name.0, b"=".into(), value.0].concat();
        self.0.into_iter().map(field).collect::<Vec<_>>().join(&b'\n')
    }
}
