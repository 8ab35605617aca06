use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;

use super::lenient::{Text, lenient};

/// `headers` or `params`: a list of names and values.
#[derive(Default, Deserialize)]
pub(super) struct NameValueList(Vec<NameValue>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct NameValue {
    #[serde(deserialize_with = "lenient")]
    name: Text,
    #[serde(deserialize_with = "lenient")]
    value: Text,
}

impl NameValueList {
    /// Returns the headers, without HTTP/2 pseudo-headers such as `:status`.
    pub(super) fn into_map(self) -> HeaderMap {
        let mut map = HeaderMap::new();
        for NameValue { name, value } in self.0 {
            let Ok(name) = HeaderName::from_bytes(&name.0) else { continue };
            // Firefox and Safari join headers of the same name with line breaks.
            for value in value.0.split(|byte| *byte == b'\n') {
                if let Ok(value) = HeaderValue::from_bytes(value.trim_ascii()) {
                    // Fails beyond 32,768 headers.
                    let _ = map.try_append(name.clone(), value);
                }
            }
        }
        map
    }

    /// Returns the fields of a form, one per line. Uploaded files are not recorded.
    pub(super) fn into_form(self) -> Vec<u8> {
        let field = |NameValue { name, value }| [name.0, b"=".into(), value.0].concat();
        self.0.into_iter().map(field).collect::<Vec<_>>().join(&b'\n')
    }
}
