//! Sections of the file that belong to others: what a server or a program of your own reads there.
//!
//! Whoever reads a [`Section`] registers it in [`Sections`], with which the file is then loaded
//! ([`LoadOptions::with_sections`](super::LoadOptions::with_sections)). From then on it is a section as
//! any other: what is wrong with it is told with line and column, together with all else that is wrong;
//! the environment and flags go over it; it is shown, and a changed file is only taken if it is right.
//!
//! The section `serve` is the server's. Where nobody has registered it, it may say anything and is not
//! read; any other name that nobody knows is an error.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use tollgate::config::Config;
//! use tollgate::config::section::{Check, Section, Sections, Steps};
//!
//! #[derive(Debug, Clone, PartialEq)]
//! struct Crawler {
//!     threads: u32,
//! }
//!
//! /// What the crawler does.
//! #[derive(Deserialize, Serialize, JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! struct CrawlerFields {
//!     /// How many threads it has: at least 1. Default: 4.
//!     threads: u32,
//! }
//!
//! impl Default for CrawlerFields {
//!     fn default() -> Self {
//!         Self { threads: 4 }
//!     }
//! }
//!
//! impl Section for Crawler {
//!     const NAME: &'static str = "crawler";
//!     type Fields = CrawlerFields;
//!
//!     fn check(fields: &CrawlerFields, steps: &Steps, check: &mut Check<'_>) -> Self {
//!         if fields.threads == 0 {
//!             check.wrong(&steps.key("threads"), "must be at least 1, not 0");
//!         }
//!         Self { threads: fields.threads }
//!     }
//! }
//!
//! let sections = Sections::new().with::<Crawler>();
//! let config = Config::parse_with("crawler: {threads: 8}", &sections)?;
//! assert_eq!(config.section::<Crawler>(), Some(&Crawler { threads: 8 }));
//! let error = Config::parse_with("crawler: {threads: 0}", &sections).unwrap_err();
//! assert_eq!(error.to_string(), "config:1:20: crawler.threads: must be at least 1, not 0");
//! # Ok::<(), tollgate::config::ConfigError>(())
//! ```

mod held;
mod said;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod section;
mod sections;

pub use super::check::{Check, regex};
pub use super::fields::{AlgorithmName, Ordered, Span, TextOrMap, length_of_time};
pub use super::json::quota_schema;
pub use super::tree::Steps;
pub use section::Section;
pub use sections::Sections;

pub(super) use held::HeldSections;
pub(super) use said::Said;
