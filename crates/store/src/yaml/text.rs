//! The text forms of times, durations and dimensions in a state file.

use jiff::SignedDuration;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

use paceline_limiter::Timestamp;
use paceline_limiter::limiter::RefusalKind;
use paceline_limiter::quota::{Dimension, Window};
use paceline_limiter::seam;

/// A time, as RFC 3339 in UTC with nine digits of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(pub(super) Timestamp);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(self.0.as_nanos().into()) {
            Ok(time) => write!(f, "{time:.9}"),
            // Every `u64` is in the range of a timestamp.
            Err(_) => Err(fmt::Error),
        }
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(|_| {
            D::Error::custom(format!(
                "invalid time `{text}`; expected RFC 3339, such as 2026-02-20T14:32:01.123456789Z"
            ))
        })?;
        let time = u64::try_from(time.as_nanosecond()).map(Timestamp::from_nanos);
        time.map(Time).map_err(|_| {
            D::Error::custom(format!("time `{text}` out of range; expected 1970 to 2554"))
        })
    }
}

/// The kind of a refusal, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredKind(pub(super) RefusalKind);

impl Serialize for StoredKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for StoredKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let unknown = || D::Error::custom(format!("`{text}` is no kind of refusal"));
        RefusalKind::named(&text).map(StoredKind).ok_or_else(unknown)
    }
}

/// A map from times to amounts, one line each: `2026-02-20T14:32:01.123456789Z: 1500`.
pub(super) mod entries {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        entries: &[(Timestamp, u64)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(entries.len()))?;
        for (at, amount) in entries {
            map.serialize_entry(&Time(*at), amount)?;
        }
        map.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(Timestamp, u64)>, D::Error> {
        deserializer.deserialize_map(Entries)
    }

    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(Timestamp, u64)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map from times to amounts")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some((Time(at), amount)) = map.next_entry()? {
                entries.push((at, amount));
            }
            entries.sort_unstable();
            Ok(entries)
        }
    }
}

/// The name of a dimension; `custom:NAME` for a custom one.
pub(super) mod dimension {
    use super::*;
    use crate::dimension as names;

    pub(crate) fn serialize<S: Serializer>(
        dimension: &Dimension,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&names::write(dimension))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Dimension, D::Error> {
        let text = String::deserialize(deserializer)?;
        names::read(&text).ok_or_else(|| {
            let known = seam::DIMENSIONS.map(|known| known.as_str().to_owned()).join(", ");
            D::Error::custom(format!("unknown dimension `{text}`; expected {known} or custom:NAME"))
        })
    }
}

/// The length of a window: `1m`, `24h`, `1m 500ms`, or `total`.
pub(super) mod window {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        window: &Window,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_window(*window))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Window, D::Error> {
        parse_window(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Formats the length of a window.
pub(super) fn format_window(window: Window) -> String {
    if window.is_endless() {
        return TOTAL.to_owned();
    }
    // Windows are at most 366 days, which fits.
    let nanos = i64::try_from(window.as_nanos()).unwrap_or(i64::MAX);
    format!("{:#}", SignedDuration::from_nanos(nanos))
}

/// Parses the length of a window.
pub(super) fn parse_window(text: &str) -> Result<Window, String> {
    if text == TOTAL {
        return Ok(Window::ENDLESS);
    }
    let length = text.parse::<SignedDuration>().ok().and_then(|length| length.try_into().ok());
    let length = length
        .ok_or_else(|| format!("invalid duration `{text}`; expected one such as 1m or 24h"))?;
    Window::new(length).map_err(|error| error.to_string())
}

/// The window of a limit that never resets.
const TOTAL: &str = "total";
