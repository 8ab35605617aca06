use wildmatch::WildMatch;

/// Where a URL points to: its host and its path.
pub(super) struct Place<'a> {
    host: &'a str,
    /// The host and the port behind it.
    authority: &'a str,
    /// Unless it is the scheme's own.
    port: Option<&'a str>,
    /// From the first slash on, without a query.
    path: &'a str,
}

impl<'a> Place<'a> {
    /// Of a whole URL, or of one without a scheme; user and query are left out.
    pub(super) fn of(url: &'a str) -> Self {
        let (scheme, url) = url.split_once("://").unwrap_or(("", url));
        let url = url.split(['?', '#']).next().unwrap_or(url);
        let (authority, path) = url.split_at(url.find('/').unwrap_or(url.len()));
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        // An IPv6 address has colons of its own.
        let colon = authority.rfind(':').filter(|colon| !authority[*colon..].contains(']'));
        let (host, port) = authority.split_at(colon.unwrap_or(authority.len()));
        let host = host.strip_suffix('.').unwrap_or(host);
        let own = |port: &&str| match *port {
            "" => true,
            "80" => scheme.eq_ignore_ascii_case("http"),
            "443" => scheme.eq_ignore_ascii_case("https"),
            _ => false,
        };
        let port = Some(port.trim_start_matches(':')).filter(|port| !own(port));
        Self { host, authority, port, path: path.trim_end_matches('/') }
    }

    /// Whether it is `base` or lies below it; how it is reached, by http or https, plays no part.
    pub(super) fn is_below(&self, base: &Place<'_>) -> bool {
        let rest = self.path.strip_prefix(base.path);
        self.host.eq_ignore_ascii_case(base.host)
            && self.port == base.port
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether a pattern owns the host (and the path behind it, where it has one).
    pub(super) fn is_host(&self, pattern: &str) -> bool {
        let (host, path) = split(pattern);
        let named = if host.contains(':') { self.authority } else { self.host };
        host != "*" && is(host, named) && path.is_none_or(|path| is(path, self.path))
    }

    /// Whether a pattern owns the path on whatever host.
    pub(super) fn is_path(&self, pattern: &str) -> bool {
        let (host, path) = split(pattern);
        // A gateway may put something in front.
        let ends = |path: &str| is(path, self.path) || is(&format!("*{path}"), self.path);
        host == "*" && path.is_some_and(ends)
    }

    /// The first part of the path.
    pub(super) fn first_segment(&self) -> Option<&'a str> {
        self.path.split('/').nth(1).filter(|segment| !segment.is_empty())
    }
}

/// The host and the path of a pattern.
fn split(pattern: &str) -> (&str, Option<&str>) {
    match pattern.find('/') {
        Some(at) => (&pattern[..at], Some(&pattern[at..])),
        None => (pattern, None),
    }
}

fn is(pattern: &str, text: &str) -> bool {
    WildMatch::new_case_insensitive(pattern).matches(text)
}
