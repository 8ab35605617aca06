use std::borrow::Cow;
use std::sync::LazyLock;

use paceline_provider::Profile;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::human_duration::HumanDuration;
use super::secret_url::SecretUrl;

/// The name of a built-in profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProviderName(pub(crate) Profile);

/// A custom provider, or settings of a built-in one.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Provider")]
pub(crate) struct ProviderFields {
    /// The name of the provider.
    #[schemars(length(min = 1), example = &"my-vllm")]
    pub(crate) name: String,
    /// The built-in profile whose rules apply. Default: the profile of the same name, else `compatible`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) like: Option<ProviderName>,
    /// The base URL (http, https).
    #[schemars(extend("examples" = ["http://gpu-7:8000"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<SecretUrl>,
    /// The source of its limits: `provider` reads them from the provider's API for them, at the start and every
    /// `refresh`, with the admin key in the environment variable `OPENAI_ADMIN_KEY` or `ANTHROPIC_ADMIN_KEY`.
    /// Quotas of this configuration take precedence. Default: the built-in quotas, and response headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits_from: Option<LimitsSource>,
    /// The OpenAI project whose limits are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"proj_abc")]
    pub(crate) project: Option<String>,
    /// The Anthropic workspace whose limits are read. Default: those of the organization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), example = &"wrkspc_abc")]
    pub(crate) workspace: Option<String>,
    /// The time between two readings of the limits: from 10s to 1d. Default: 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh: Option<HumanDuration>,
}

/// The source of a provider's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LimitsSource {
    /// The provider's API for the limits of an account.
    Provider,
}

impl<'de> Deserialize<'de> for ProviderName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Profile::all().iter().find(|profile| profile.name() == name);
        found.copied().map(Self).ok_or_else(|| de::Error::unknown_variant(&name, &NAMES))
    }
}

impl Serialize for ProviderName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.name().serialize(serializer)
    }
}

impl JsonSchema for ProviderName {
    fn schema_name() -> Cow<'static, str> {
        "ProviderName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "A built-in profile.", "enum": *NAMES})
    }
}

static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Profile::all().iter().map(Profile::name).collect());
