use std::borrow::Cow;
use std::fmt;

use paceline_limiter::quota::{Period, Window};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::human_duration::HumanDuration;

/// The window of a limit as a user writes it: a duration, a day, week or month of a calendar, or `total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowText {
    Length(HumanDuration),
    Calendar(Period),
    /// The limit never resets.
    Total,
}

impl fmt::Display for WindowText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(span) => span.fmt(f),
            Self::Calendar(period) => f.write_str(period.as_str()),
            Self::Total => f.write_str("total"),
        }
    }
}

impl From<Window> for WindowText {
    fn from(window: Window) -> Self {
        match window.is_endless() {
            true => Self::Total,
            false => Self::Length(HumanDuration(window.as_duration())),
        }
    }
}

impl<'de> Deserialize<'de> for WindowText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = WindowText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 60s, or day, week, month or total")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<WindowText, E> {
                match text {
                    "day" => Ok(WindowText::Calendar(Period::Day)),
                    "week" => Ok(WindowText::Calendar(Period::Week)),
                    "month" => Ok(WindowText::Calendar(Period::Month)),
                    "total" => Ok(WindowText::Total),
                    _ => match HumanDuration::parse(text) {
                        Ok(span) => Ok(WindowText::Length(span)),
                        Err(message) => Err(E::custom(format!(
                            "{message}; or day, week or month with a `zone`, or total"
                        ))),
                    },
                }
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Serialize for WindowText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for WindowText {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration from 1ms to 366d, a day, week or month of a calendar in `zone`, or `total` for a limit that never resets.",
            "anyOf": [
                {"enum": ["day", "week", "month", "total"]},
                {"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d|w))+$"},
            ],
            "examples": ["60s", "1d", "day"],
        })
    }
}
