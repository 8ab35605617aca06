//! Limits in response headers: one table of names for each provider, read by one function.

mod limit_header;
mod limit_headers;
mod limit_window;
mod reset_format;
mod tables;
mod texts;

pub use limit_header::LimitHeader;
pub use limit_headers::LimitHeaders;
pub use limit_window::LimitWindow;
pub use reset_format::ResetFormat;
