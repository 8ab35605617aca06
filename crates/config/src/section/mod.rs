//! Sections of the configuration file that other crates define, such as `serve` of the server.
//!
//! A crate implements [`Section`] for the value of its section and registers it in [`Sections`]. If a
//! configuration is loaded with them
//! ([`LoadOptions::with_sections`](crate::LoadOptions::with_sections)), the section works like those of the
//! library: its errors are reported with line and column together with all others, the environment and
//! flags take precedence over it, `show` and the schema include it, and a changed file is refused if the
//! section is invalid.
//!
//! The name `serve` is reserved: without a registration, its content is neither read nor checked. Any
//! other unknown name is an error.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use paceline_config::Config;
//! use paceline_config::section::{Check, Section, Sections, FieldPath};
//!
//! #[derive(Debug, Clone, PartialEq)]
//! struct Crawler {
//!     threads: u32,
//! }
//!
//! /// Settings of the crawler.
//! #[derive(Deserialize, Serialize, JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! struct CrawlerFields {
//!     /// The number of threads, at least 1. Default: 4.
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
//!     fn check(fields: &CrawlerFields, path: &FieldPath, check: &mut Check<'_>) -> Self {
//!         if fields.threads == 0 {
//!             check.report(&path.key("threads"), "must be at least 1, not 0");
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
//! # Ok::<(), paceline_config::ConfigError>(())
//! ```

mod document;
#[expect(clippy::module_inception, reason = "the noun this folder is named after")]
mod section;
mod section_fields;
mod sections;
mod values;

pub use crate::check::{Check, regex};
pub use crate::fields::{HumanDuration, OrderedMap, PriorityText, TextOrMap};
pub use crate::json::quota_schema;
pub use crate::tree::FieldPath;
pub use section::Section;
pub use sections::Sections;

pub(super) use document::Document;
pub(super) use values::SectionValues;
