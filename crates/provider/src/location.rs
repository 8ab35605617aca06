use wildmatch::WildMatch;

/// The host, port and path of a URL.
pub(super) struct Location<'a> {
    host: &'a str,
    /// The host and the port.
    authority: &'a str,
    /// `None` for the default port of the scheme.
    port: Option<&'a str>,
    /// Starts with a slash, unless it is empty; has no query and no trailing slash.
    path: &'a str,
}

impl<'a> Location<'a> {
    /// Parses a URL, with or without a scheme; user name and query are ignored.
    pub(super) fn of(url: &'a str) -> Self {
        let (scheme, url) = url.split_once("://").unwrap_or(("", url));
        let url = url.split(['?', '#']).next().unwrap_or(url);
        let (authority, path) = url.split_at(url.find('/').unwrap_or(url.len()));
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        // An IPv6 address contains colons.
        let colon = authority.rfind(':').filter(|colon| !authority[*colon..].contains(']'));
        let (host, port) = authority.split_at(colon.unwrap_or(authority.len()));
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_default = |port: &&str| match *port {
            "" => true,
            "80" => scheme.eq_ignore_ascii_case("http"),
            "443" => scheme.eq_ignore_ascii_case("https"),
            _ => false,
        };
        let port = Some(port.trim_start_matches(':')).filter(|port| !is_default(port));
        Self { host, authority, port, path: path.trim_end_matches('/') }
    }

    /// Returns true if the location is `base` or below it, by http or https.
    pub(super) fn is_below(&self, base: &Location<'_>) -> bool {
        let rest = self.path.strip_prefix(base.path);
        self.host.eq_ignore_ascii_case(base.host)
            && self.port == base.port
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns true if a pattern matches the host, and the path if the pattern has one.
    pub(super) fn matches_host(&self, pattern: &str) -> bool {
        let (host, path) = split(pattern);
        let named = if host.contains(':') { self.authority } else { self.host };
        host != "*" && matches(host, named) && path.is_none_or(|path| matches(path, self.path))
    }

    /// Returns true if a pattern for any host matches the path, or its end.
    pub(super) fn matches_path(&self, pattern: &str) -> bool {
        let (host, path) = split(pattern);
        // A gateway may add a prefix.
        let ends = |path: &str| matches(path, self.path) || matches(&format!("*{path}"), self.path);
        host == "*" && path.is_some_and(ends)
    }

    /// Returns the first segment of the path.
    pub(super) fn first_segment(&self) -> Option<&'a str> {
        self.path.split('/').nth(1).filter(|segment| !segment.is_empty())
    }
}

/// Splits a pattern into host and path.
fn split(pattern: &str) -> (&str, Option<&str>) {
    match pattern.find('/') {
        Some(at) => (&pattern[..at], Some(&pattern[at..])),
        None => (pattern, None),
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    WildMatch::new_case_insensitive(pattern).matches(text)
}
