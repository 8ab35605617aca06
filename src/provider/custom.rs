use std::fmt;
use std::sync::OnceLock;

use http::Uri;

/// What a profile made by [`Profile::like`](super::Profile::like) has of its own.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Custom {
    pub(super) name: Box<str>,
    /// Scheme, host, port and path; no slash at its end.
    pub(super) base_url: Option<Box<str>>,
}

impl Custom {
    /// Checks them, and keeps them for as long as the process runs; the same two are kept once.
    pub(super) fn keep(
        name: &str,
        base_url: Option<&str>,
    ) -> Result<&'static Self, InvalidProfile> {
        if !is_name(name) {
            return Err(InvalidProfile::Name { name: name.to_owned() });
        }
        let base_url = base_url.map(base).transpose()?.map(String::into_boxed_str);
        Ok(kept(&Self { name: name.into(), base_url }))
    }
}

/// Why a profile of this name or base URL can't be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidProfile {
    /// Names stand in paths, in files and on labels of metrics.
    Name {
        /// What was given.
        name: String,
    },
    /// Another built-in profile has this name.
    BuiltIn {
        /// Its name.
        name: &'static str,
    },
    /// No request can be sent there.
    BaseUrl {
        /// What was given, without user name, password, query or fragment.
        base_url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl fmt::Display for InvalidProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => write!(
                f,
                "`{}` can't be a provider's name: letters, digits, `-`, `_` and `.` can, {LONGEST} \
                 at most",
                name.escape_debug(),
            ),
            Self::BuiltIn { name } => {
                write!(
                    f,
                    "`{name}` is a built-in provider; one that is like another needs a name of its own"
                )
            }
            Self::BaseUrl { base_url, reason } => write!(
                f,
                "base URL `{}` {reason}; write it like http://gpu-7:8000/v1",
                base_url.escape_debug(),
            ),
        }
    }
}

impl std::error::Error for InvalidProfile {}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.len() <= LONGEST && name.bytes().all(allowed)
}

fn base(text: &str) -> Result<String, InvalidProfile> {
    let refused = |reason| Err(InvalidProfile::BaseUrl { base_url: without_secret(text), reason });
    let Ok(uri) = text.parse::<Uri>() else { return refused("is not a URL") };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return refused("has no scheme");
    };
    if !matches!(scheme, "http" | "https") {
        return refused("is neither http nor https");
    }
    if authority.as_str().contains('@') {
        return refused("holds a user name");
    }
    if authority.host().is_empty() {
        return refused("has no host");
    }
    if uri.query().is_some() || text.contains('#') {
        return refused("has a query or fragment");
    }
    Ok(format!("{scheme}://{authority}{}", uri.path().trim_end_matches('/')))
}

/// Passwords stand before an `@`, keys in queries: neither is repeated in an error.
fn without_secret(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    text.rsplit_once('@').map_or(text, |(_, host)| host).to_owned()
}

/// The one that is kept with the same content. A list that only grows, without a lock: profiles stay
/// values that are copied freely, and a configuration that is read again and again adds nothing.
fn kept(custom: &Custom) -> &'static Custom {
    let mut next = &KEPT;
    loop {
        let first = || Box::new(Kept { custom: custom.clone(), next: OnceLock::new() });
        let kept = next.get_or_init(first);
        if kept.custom == *custom {
            return &kept.custom;
        }
        next = &kept.next;
    }
}

struct Kept {
    custom: Custom,
    next: OnceLock<Box<Kept>>,
}

static KEPT: OnceLock<Box<Kept>> = OnceLock::new();

/// The most characters of a name.
const LONGEST: usize = 64;
