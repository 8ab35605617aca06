use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::HeaderName;

use super::fields::{
    BoundsFields, KeyFields, LogFields, MAX_REQUESTS, ScopeFields, ScopeName, ServeFields,
    UpstreamFields,
};
use super::value::{Bounds, KeyLimit, KeySource, Log, Serve, Upstream};
use crate::route::Route;
use paceline::provider::{COMPATIBLE, Profile};
use paceline_config::SecretUrl;
use paceline_config::section::{Check, FieldPath, Section, TextOrMap, regex};

impl Section for Serve {
    const NAME: &'static str = "serve";

    const MAP_FIELDS: &'static [&'static str] = &["upstreams"];

    type Fields = ServeFields;

    fn check(fields: &ServeFields, path: &FieldPath, check: &mut Check<'_>) -> Self {
        serve(check, path, fields)
    }

    /// Returns the previous section with the new limits of `/rate` and the new logged status classes; all
    /// other changes need a restart.
    fn followed_from(&self, previous: &Self) -> Self {
        let Log { format, level, .. } = previous.log;
        Self {
            max_requests: self.max_requests,
            max_requests_in_queue: self.max_requests_in_queue,
            window: self.window,
            algorithm: self.algorithm,
            requests_can_set_rate: self.requests_can_set_rate,
            requests_can_mod_queue: self.requests_can_mod_queue,
            keys: self.keys.clone(),
            log: Log { format, level, ..self.log },
            ..previous.clone()
        }
    }
}

fn serve(check: &mut Check<'_>, root: &FieldPath, fields: &ServeFields) -> Serve {
    let keys = fields.keys.iter().enumerate();
    let keys = keys.filter_map(|(at, key)| {
        let path = check.item(&root.key("keys"), at);
        key_limit(check, &path, key)
    });
    let keys = keys.collect();
    let upstreams = fields.upstreams.0.iter().map(|(name, fields)| {
        let path = root.key("upstreams").key(name);
        upstream(check, &path, name, fields)
    });
    let upstreams = upstreams.collect();
    let scopes = fields.scopes.iter().enumerate();
    let scopes = scopes.filter_map(|(at, scope)| match scope {
        TextOrMap::Text(ScopeName::Model) => Some(KeySource::Model),
        TextOrMap::Text(ScopeName::ApiKey) => Some(KeySource::ApiKey),
        TextOrMap::Map(own) => {
            let path = check.item(&root.key("scopes"), at);
            key_source(check, &path, own)
        }
    });
    let scopes: Vec<KeySource> = scopes.collect();
    check_prefixes(check, &root.key("scopes"), &scopes);
    rate(check, root, fields);
    let ttl = fields.reservation_ttl.0;
    check.require_range(&root.key("reservation_ttl"), ttl, SECOND, MAX_TIME);
    check.require_range(&root.key("drain"), fields.drain.0, Duration::ZERO, MAX_TIME);
    Serve {
        listen: listen(check, &root.key("listen"), &fields.listen),
        allow_anonymous: fields.allow_anonymous,
        trusted_proxies: trusted_proxies(check, &root.key("trusted_proxies"), fields),
        max_requests: fields.max_requests,
        max_requests_in_queue: fields.max_requests_in_queue,
        window: Duration::from_millis(fields.window_millis.into()),
        algorithm: fields.algorithm,
        requests_can_set_rate: fields.requests_can_set_rate,
        requests_can_mod_queue: fields.requests_can_mod_queue,
        keys,
        upstreams,
        scopes,
        priority_header: priority_header(check, &root.key("priority_header"), fields),
        mode: fields.mode,
        unread: fields.unread,
        reservation_ttl: ttl,
        drain: fields.drain.0,
        bounds: bounds(check, &root.key("bounds"), &fields.bounds),
        log: log(&fields.log),
    }
}

/// Checks the default limits of the rate-limit service.
fn rate(check: &mut Check<'_>, root: &FieldPath, fields: &ServeFields) {
    let millis = fields.window_millis;
    if !WINDOW.contains(&millis) {
        let message = format!("must be from 10 to 3600000, not {millis}");
        check.report(&root.key("window_millis"), message);
    }
    let amounts = [
        ("max_requests", fields.max_requests, 1),
        ("max_requests_in_queue", fields.max_requests_in_queue, 0),
    ];
    for (name, amount, least) in amounts {
        if !(least..=MAX_REQUESTS).contains(&amount) {
            let message = format!("must be from {least} to {MAX_REQUESTS}, not {amount}");
            check.report(&root.key(name), message);
        }
    }
}

fn bounds(check: &mut Check<'_>, root: &FieldPath, fields: &BoundsFields) -> Bounds {
    let at_least = [
        ("connections", fields.connections, 1),
        ("streams", fields.streams, 2),
        ("head", fields.head, MIN_HEAD),
        ("key", fields.key, 1),
        ("keys", fields.keys, 1),
        ("rate_keys", fields.rate_keys.unwrap_or(1), 1),
        ("api_keys", fields.api_keys.unwrap_or(1), 1),
        ("proxy_keys", fields.proxy_keys.unwrap_or(1), 1),
    ];
    for (name, amount, least) in at_least {
        if amount < least {
            check.report(&root.key(name), format!("must be at least {least}, not {amount}"));
        }
    }
    if fields.buffered < fields.body.saturating_mul(2) {
        let message = "must be at least twice `body`, so that the longest body of one client leaves room for others";
        check.report(&root.key("buffered"), message);
    }
    let times = [
        ("head_timeout", fields.head_timeout.0),
        ("body_timeout", fields.body_timeout.0),
        ("upstream_timeout", fields.upstream_timeout.0),
        ("upstream_idle", fields.upstream_idle.0),
    ];
    for (name, time) in times {
        check.require_range(&root.key(name), time, Duration::from_millis(1), MAX_TIME);
    }
    let part = |own: Option<u32>, of: u32| own.unwrap_or((fields.keys / of).max(1)) as usize;
    Bounds {
        connections: fields.connections as usize,
        body: usize::try_from(fields.body).unwrap_or(usize::MAX),
        buffered: usize::try_from(fields.buffered).unwrap_or(usize::MAX),
        streams: fields.streams as usize,
        head: fields.head as usize,
        key: fields.key as usize,
        keys: fields.keys as usize,
        rate_keys: part(fields.rate_keys, 2),
        api_keys: part(fields.api_keys, 4),
        proxy_keys: part(fields.proxy_keys, 4),
        waiting: fields.waiting as usize,
        reservations: fields.reservations as usize,
        head_timeout: fields.head_timeout.0,
        body_timeout: fields.body_timeout.0,
        upstream_timeout: fields.upstream_timeout.0,
        upstream_idle: fields.upstream_idle.0,
    }
}

fn trusted_proxies(check: &mut Check<'_>, path: &FieldPath, fields: &ServeFields) -> Vec<IpAddr> {
    let read = |(at, text): (usize, &String)| {
        let message = "must be an IP address, such as 127.0.0.1 or ::1";
        let address = text.parse::<IpAddr>().map(|address| address.to_canonical());
        address.map_err(|_| check.report(&check.item(path, at), message)).ok()
    };
    fields.trusted_proxies.iter().enumerate().filter_map(read).collect()
}

fn priority_header(
    check: &mut Check<'_>,
    path: &FieldPath,
    fields: &ServeFields,
) -> Option<HeaderName> {
    let name = fields.priority_header.as_ref()?;
    let name = name.parse().map_err(|_| check.report(path, "must be the name of a header"));
    name.ok()
}

fn listen(check: &mut Check<'_>, path: &FieldPath, text: &str) -> SocketAddr {
    text.parse().unwrap_or_else(|_| {
        let message = "must be an IP address and a port, such as 127.0.0.1:8080 or [::]:8080";
        check.report(path, message);
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    })
}

fn key_limit(check: &mut Check<'_>, path: &FieldPath, fields: &KeyFields) -> Option<KeyLimit> {
    let pattern = path.key("key_pattern");
    if fields.key_pattern.is_empty() {
        check.report(&pattern, "must not be empty");
    }
    let regex = match fields.key_pattern_is_regex {
        true => Some(
            regex(&fields.key_pattern).map_err(|message| check.report(&pattern, message)).ok()?,
        ),
        false => None,
    };
    if fields.max_requests_per_window == Some(0) {
        let message = "must be at least 1, not 0; omit it to inherit the limit";
        check.report(&path.key("max_requests_per_window"), message);
    }
    // As in GoCC, 0 means that the entry sets no window.
    let window = fields.window_millis.filter(|&millis| millis != 0);
    if let Some(millis) = window.filter(|millis| !WINDOW.contains(millis)) {
        let message = format!("must be from 10 to 3600000, not {millis}");
        check.report(&path.key("window_millis"), message);
    }
    Some(KeyLimit {
        pattern: fields.key_pattern.clone(),
        regex,
        max_requests_per_window: fields.max_requests_per_window,
        max_requests_in_queue: fields.max_requests_in_queue,
        window: window.map(|millis| Duration::from_millis(millis.into())),
    })
}

fn upstream(
    check: &mut Check<'_>,
    path: &FieldPath,
    name: &str,
    fields: &UpstreamFields,
) -> Upstream {
    let segment = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(segment) {
        let message = "must be a path segment: letters, digits, `-`, `_` and `.`";
        check.report_name(path, message);
    } else if Route::is_reserved(name) {
        check.report_name(path, "is reserved for a route of the server; choose another name");
    }
    check.scheme(&path.key("base_url"), &fields.base_url, HTTP);
    check_bare_url(check, &path.key("base_url"), &fields.base_url);
    let profile =
        Profile::named_among(check.providers(), &fields.provider).unwrap_or_else(|error| {
            let message = match fields.provider.contains("://") {
                true => "must be the name of a provider, not a URL".to_owned(),
                false => error.to_string(),
            };
            check.report(&path.key("provider"), message);
            COMPATIBLE
        });
    if fields.default_model.as_ref().is_some_and(String::is_empty) {
        check.report(&path.key("default_model"), "must not be empty");
    }
    Upstream {
        name: name.to_owned(),
        base_url: fields.base_url.clone(),
        profile,
        default_model: fields.default_model.clone(),
    }
}

fn key_source(check: &mut Check<'_>, path: &FieldPath, fields: &ScopeFields) -> Option<KeySource> {
    let ScopeFields { header, prefix, default, key } = fields;
    match (header, key) {
        (None, Some(key)) if !key.is_empty() && prefix.is_empty() && default.is_none() => {
            Some(KeySource::Key(key.clone()))
        }
        (Some(header), None) => match HeaderName::from_bytes(header.as_bytes()) {
            Ok(name) => {
                if NEEDED_BY_PROVIDERS.contains(&name.as_str()) {
                    let message = "is needed by the provider, and the header of a scope isn't \
                                   forwarded; choose another, or `api_key` for the key of the API";
                    check.report(&path.key("header"), message);
                }
                if default.as_ref().is_some_and(String::is_empty) {
                    check.report(&path.key("default"), "must not be empty");
                }
                let (prefix, default) = (prefix.clone(), default.clone());
                Some(KeySource::Header { name, prefix, default })
            }
            Err(_) => {
                check.report(&path.key("header"), "must be a header name, such as x-tenant");
                None
            }
        },
        _ => {
            check.report(path, "must be {header, prefix, default}, or {key: NAME}");
            None
        }
    }
}

/// Reports scopes whose keys can't be told apart: those of the same prefix, where the model has none.
fn check_prefixes(check: &mut Check<'_>, path: &FieldPath, scopes: &[KeySource]) {
    for (at, scope) in scopes.iter().enumerate() {
        let KeySource::Header { prefix, .. } = scope else { continue };
        let is_same = |other: &KeySource| other.prefix() == Some(&**prefix) && other != scope;
        if scopes[..at].iter().chain(&scopes[at + 1..]).any(is_same) {
            let message = match prefix.is_empty() {
                true => "must not be empty beside another scope without a prefix, such as `model`",
                false => "must not be the prefix of another scope",
            };
            check.report(&check.item(path, at).key("prefix"), message);
        }
    }
}

/// Reports an error for a URL with a user name, a query or a fragment, or of an endpoint.
fn check_bare_url(check: &mut Check<'_>, path: &FieldPath, url: &SecretUrl) {
    let text = url.expose();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        check.report(path, "must not contain a user name; clients send their own credentials");
    } else if rest.contains(['?', '#']) {
        check.report(path, "must not contain a query or a fragment");
    } else if let Some(endpoint) = rest.find('/').and_then(|start| endpoint_of(&rest[start..])) {
        let message = format!(
            "must end before the endpoint, which requests add; remove `{endpoint}` from its end"
        );
        check.report(path, message);
    }
}

/// Returns the endpoint at the end of a path, if there is one.
fn endpoint_of(path: &str) -> Option<&str> {
    let path = path.trim_end_matches('/');
    let named = ENDPOINTS.iter().find(|endpoint| path.ends_with(*endpoint));
    // Gemini's methods: `/models/NAME:generateContent`.
    let method = || path.rfind("/models/").filter(|&at| path[at..].contains(':'));
    named.map(|endpoint| path.len() - endpoint.len()).or_else(method).map(|at| &path[at..])
}

fn log(fields: &LogFields) -> Log {
    let LogFields { format, level, log2xx, log4xx, log5xx } = *fields;
    Log { format, level, log2xx, log4xx, log5xx }
}

/// The endpoints that a copied URL may end in.
const ENDPOINTS: &[&str] = &[
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/embeddings",
    "/moderations",
    "/images/generations",
    "/audio/speech",
    "/audio/transcriptions",
    "/rerank",
    "/api/chat",
    "/api/generate",
];

/// Headers without which a provider can't read a request.
const NEEDED_BY_PROVIDERS: &[&str] = &[
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "content-type",
    "content-encoding",
    "content-length",
    "transfer-encoding",
    "host",
];

/// The schemes of an upstream's URL.
const HTTP: &[&str] = &["http", "https"];

/// The window of a key in milliseconds, as in GoCC.
const WINDOW: core::ops::RangeInclusive<u32> = 10..=3_600_000;

/// The smallest limit that hyper accepts, in bytes.
const MIN_HEAD: u32 = 8_192;

const SECOND: Duration = Duration::from_secs(1);

const MAX_TIME: Duration = Duration::from_secs(3_600);
