use http::Uri;

use crate::interned::Interned;
use crate::invalid_profile::InvalidProfile;

/// The name and base URL of a profile made by [`Profile::like`](crate::Profile::like).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alias {
    pub(super) name: Box<str>,
    /// Scheme, host, port and path, without a trailing slash.
    pub(super) base_url: Option<Box<str>>,
}

impl Alias {
    /// Returns the alias, which is kept once for the life of the process.
    ///
    /// # Errors
    /// [`InvalidProfile`] for an invalid name or base URL.
    pub(super) fn keep(
        name: &str,
        base_url: Option<&str>,
    ) -> Result<&'static Self, InvalidProfile> {
        check_name(name)?;
        let base_url = base_url.map(normalized).transpose()?.map(String::into_boxed_str);
        let alias = Self { name: name.into(), base_url };
        Ok(ALIASES.find_or_add(|kept| *kept == alias, || alias.clone()))
    }
}

/// Checks that a name can be part of paths, file names and metric labels.
pub(super) fn check_name(name: &str) -> Result<(), InvalidProfile> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(InvalidProfile::Name { name: name.to_owned() })
}

fn normalized(text: &str) -> Result<String, InvalidProfile> {
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

/// Returns a URL without user name, password, query and fragment, for an error.
fn without_secret(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    text.rsplit_once('@').map_or(text, |(_, host)| host).to_owned()
}

static ALIASES: Interned<Alias> = Interned::new();

/// The maximum length of a name.
pub(super) const MAX_NAME: usize = 64;
