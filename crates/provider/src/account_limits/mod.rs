//! Limits of an account that a provider states by an API of its own: Anthropic and OpenAI.
//!
//! [`AccountLimits`] names what to read, and [`Page`] reads a response. Neither sends anything:
//! `middleware::fetch_account_limits` does so with reqwest, and
//! [`Quotas::follow_provider`](paceline_limiter::limiter::Quotas::follow_provider) applies the limits.
//!
//! Sources, read in November 2026: "Rate Limits API" (platform.claude.com/docs/en/manage-claude/rate-limits-api) and
//! "List project rate limits" (developers.openai.com/api/reference). Both need an admin key. Groq, Mistral, Gemini and
//! others state limits only on pages for people.

mod page;

use std::fmt;
use std::time::Duration;

pub use page::{InvalidPage, Page};

use crate::{ANTHROPIC, OPENAI, Profile};
pub use paceline_limiter::limiter::ModelLimits;

/// An account whose limits its provider states.
///
/// ```
/// use paceline_provider::OPENAI;
/// use paceline_provider::account_limits::AccountLimits;
///
/// let limits = AccountLimits::new(OPENAI, Some("proj_abc"))?;
/// assert_eq!(limits.key_variable(), "OPENAI_ADMIN_KEY");
/// assert_eq!(
///     limits.urls(),
///     ["https://api.openai.com/v1/organization/projects/proj_abc/rate_limits"],
/// );
/// # Ok::<(), paceline_provider::account_limits::NoAccountLimits>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountLimits {
    profile: Profile,
    format: Format,
    /// The project or the workspace.
    part: Option<String>,
    /// The time between two readings.
    pub refresh: Duration,
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Anthropic,
    OpenAi,
}

impl AccountLimits {
    /// Returns the limits of an account, read every ten minutes.
    ///
    /// `part` is the project at OpenAI (`proj_...`), which has the limits there; at Anthropic the workspace
    /// (`wrkspc_...`) whose limits replace those of the organization, if there is one.
    ///
    /// # Errors
    /// [`NoAccountLimits`] if the provider has no such API, or if the part is missing or isn't an identifier.
    pub fn new(profile: Profile, part: Option<&str>) -> Result<Self, NoAccountLimits> {
        let format = match profile.built_in() {
            built_in if built_in == ANTHROPIC => Format::Anthropic,
            built_in if built_in == OPENAI => Format::OpenAi,
            built_in => return Err(NoAccountLimits::NoApi { provider: built_in.name() }),
        };
        let is_id = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        match part {
            None if format == Format::OpenAi => Err(NoAccountLimits::NoProject),
            Some(part) if !is_id(part) => Err(NoAccountLimits::InvalidPart),
            part => Ok(Self { profile, format, part: part.map(str::to_owned), refresh: REFRESH }),
        }
    }

    /// Returns the profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the environment variable that holds the admin key, by the provider's documentation.
    pub fn key_variable(&self) -> &'static str {
        match self.format {
            Format::Anthropic => "ANTHROPIC_ADMIN_KEY",
            Format::OpenAi => "OPENAI_ADMIN_KEY",
        }
    }

    /// Returns the URLs to read, in this order: limits of a later one replace those of an earlier one.
    pub fn urls(&self) -> Vec<String> {
        let origin = self.profile.base_url().or(self.profile.api().origin).unwrap_or_default();
        let origin = origin.strip_suffix("/v1").unwrap_or(origin);
        match (self.format, &self.part) {
            (Format::OpenAi, part) => {
                let project = part.as_deref().unwrap_or_default();
                vec![format!("{origin}/v1/organization/projects/{project}/rate_limits")]
            }
            (Format::Anthropic, part) => {
                let organization = format!("{origin}/v1/organizations");
                let of_part = |part| format!("{organization}/workspaces/{part}/rate_limits");
                let all = format!("{organization}/rate_limits");
                std::iter::once(all).chain(part.as_ref().map(of_part)).collect()
            }
        }
    }

    /// Returns the parameter of the query for the page after a cursor.
    pub fn cursor_parameter(&self) -> &'static str {
        match self.format {
            Format::Anthropic => "page",
            Format::OpenAi => "after",
        }
    }

    /// Reads the body of a response.
    ///
    /// # Errors
    /// [`InvalidPage`] if it has another format.
    pub fn read(&self, body: &[u8]) -> Result<Page, InvalidPage> {
        match self.format {
            Format::Anthropic => Page::of_anthropic(body),
            Format::OpenAi => Page::of_openai(body),
        }
    }
}

/// The error of an account whose limits can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoAccountLimits {
    /// The provider states its limits by no API.
    NoApi {
        /// The profile's name.
        provider: &'static str,
    },
    /// OpenAI's limits are those of a project.
    NoProject,
    /// The project or workspace isn't an identifier.
    InvalidPart,
}

impl fmt::Display for NoAccountLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoApi { provider } => write!(
                f,
                "provider {provider}: no API states the limits of an account; only Anthropic and OpenAI have one"
            ),
            Self::NoProject => {
                f.write_str("OpenAI states the limits of a project; set `project: proj_...`")
            }
            Self::InvalidPart => {
                f.write_str("must be an identifier such as proj_abc or wrkspc_abc")
            }
        }
    }
}

impl std::error::Error for NoAccountLimits {}

/// The default time between two readings.
const REFRESH: Duration = Duration::from_secs(600);
