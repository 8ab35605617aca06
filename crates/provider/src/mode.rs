use compact_str::CompactString;

use crate::limits::LimitHeaders;

/// A mode of a provider whose requests count to limits of their own, beside those of the model.
///
/// Requests in it have the key `MODEL:NAME`. Modes that share the limits of their model have no entry: OpenAI's
/// `fast` and `priority` ("the rate limit is shared between Standard and Priority processing",
/// developers.openai.com/api/docs/guides/priority-processing), Bedrock's `priority` and `flex` ("on-demand quota [...]
/// is shared", docs.aws.amazon.com/bedrock/latest/userguide/service-tiers-inference.html), and Gemini's `priority`,
/// which is downgraded instead of refused (ai.google.dev/gemini-api/docs/priority-inference). Read in November 2026.
///
/// ```
/// use paceline_provider::ANTHROPIC;
///
/// let body = br#"{"model": "claude-opus-5", "speed": "fast", "max_tokens": 50, "messages": []}"#;
/// let estimate = ANTHROPIC.read_request("/v1/messages", body);
/// assert_eq!(estimate.model.as_deref(), Some("claude-opus-5"));
/// assert_eq!(estimate.key().as_deref(), Some("claude-opus-5:fast"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    pub(super) name: &'static str,
    field: ModeField,
    value: &'static str,
    /// `None` if its headers are those of other requests.
    pub(super) limits: Option<LimitHeaders>,
}

/// The field of a request that names a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModeField {
    /// `speed`.
    Speed,
    /// `service_tier`.
    ServiceTier,
}

/// The modes that a request names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedModes {
    pub(super) speed: Option<CompactString>,
    pub(super) service_tier: Option<CompactString>,
    /// The region in which the model runs (Anthropic).
    pub(super) inference_geo: Option<CompactString>,
}

impl NamedModes {
    /// Returns the mode of the price: the settings that aren't standard, with `:` between them. `None` if there are
    /// none.
    pub(super) fn of_price(&self) -> Option<Box<str>> {
        fn of<'v>(value: &'v Option<CompactString>, standard: &[&str]) -> Option<&'v str> {
            value.as_deref().filter(|value| !standard.contains(value))
        }
        let settings = [
            of(&self.speed, &["standard"]),
            of(&self.service_tier, &["auto", "default", "on_demand", "standard", "standard_only"]),
            of(&self.inference_geo, &["global"]),
        ];
        if settings == [None; 3] {
            return None;
        }
        let settings: Vec<_> = settings.into_iter().flatten().collect();
        Some(settings.join(":").into())
    }
}

impl Mode {
    /// Returns the mode of this name that requests with this value of a field have.
    pub const fn new(name: &'static str, field: ModeField, value: &'static str) -> Self {
        Self { name, field, value, limits: None }
    }

    /// Sets the response headers that state its limits. Default: those of other requests.
    #[must_use]
    pub const fn limits(self, limits: LimitHeaders) -> Self {
        Self { limits: Some(limits), ..self }
    }

    pub(super) fn is_named(&self, named: &NamedModes) -> bool {
        let value = match self.field {
            ModeField::Speed => &named.speed,
            ModeField::ServiceTier => &named.service_tier,
        };
        value.as_deref() == Some(self.value)
    }
}
