use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::HeaderName;

use super::fields::{
    BoundsFields, KeyFields, LogFields, MOST_REQUESTS, ScopeFields, ScopeName, ServeFields,
    UpstreamFields,
};
use super::value::{Bounds, KeyLimit, Log, Scope, Serve, Upstream};
use tollgate::config::SecretUrl;
use tollgate::config::section::{Check, FieldPath, Section, TextOrMap, regex};
use tollgate::provider::{COMPATIBLE, Profile};

impl Section for Serve {
    const NAME: &'static str = "serve";

    const MAP_FIELDS: &'static [&'static str] = &["upstreams"];

    type Fields = ServeFields;

    fn check(fields: &ServeFields, steps: &FieldPath, check: &mut Check<'_>) -> Self {
        serve(check, steps, fields)
    }

    /// Takes over the limits of `/rate` and which responses are logged; the rest needs a restart.
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
        let steps = check.item(&root.key("keys"), at);
        key_limit(check, &steps, key)
    });
    let keys = keys.collect();
    let upstreams = fields.upstreams.0.iter().map(|(name, fields)| {
        let steps = root.key("upstreams").key(name);
        upstream(check, &steps, name, fields)
    });
    let upstreams = upstreams.collect();
    let scopes = fields.scopes.iter().enumerate();
    let scopes = scopes.filter_map(|(at, scope)| match scope {
        TextOrMap::Text(ScopeName::Model) => Some(Scope::Model),
        TextOrMap::Text(ScopeName::ApiKey) => Some(Scope::ApiKey),
        TextOrMap::Map(own) => {
            let steps = check.item(&root.key("scopes"), at);
            own_scope(check, &steps, own)
        }
    });
    let scopes = scopes.collect();
    rate(check, root, fields);
    let ttl = fields.reservation_ttl.0;
    check.require_range(&root.key("reservation_ttl"), ttl, SECOND, LONGEST);
    check.require_range(&root.key("drain"), fields.drain.0, Duration::ZERO, LONGEST);
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
        mode: fields.mode,
        unread: fields.unread,
        reservation_ttl: ttl,
        drain: fields.drain.0,
        bounds: bounds(check, &root.key("bounds"), &fields.bounds),
        log: log(&fields.log),
    }
}

/// The limits of keys for which nothing else is said.
fn rate(check: &mut Check<'_>, root: &FieldPath, fields: &ServeFields) {
    let millis = fields.window_millis;
    if !WINDOW.contains(&millis) {
        let what = format!("must be from 10 to 3600000, not {millis}");
        check.report(&root.key("window_millis"), what);
    }
    let amounts = [
        ("max_requests", fields.max_requests, 1),
        ("max_requests_in_queue", fields.max_requests_in_queue, 0),
    ];
    for (name, amount, least) in amounts {
        if !(least..=MOST_REQUESTS).contains(&amount) {
            let what = format!("must be from {least} to {MOST_REQUESTS}, not {amount}");
            check.report(&root.key(name), what);
        }
    }
}

fn bounds(check: &mut Check<'_>, root: &FieldPath, fields: &BoundsFields) -> Bounds {
    let at_least = [
        ("connections", fields.connections, 1),
        ("head", fields.head, LEAST_HEAD),
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
    if fields.buffered < fields.body {
        let what = "must be at least `body`, or no body of that length could ever pass";
        check.report(&root.key("buffered"), what);
    }
    let times = [
        ("head_timeout", fields.head_timeout.0),
        ("body_timeout", fields.body_timeout.0),
        ("upstream_timeout", fields.upstream_timeout.0),
        ("upstream_idle", fields.upstream_idle.0),
    ];
    for (name, time) in times {
        check.require_range(&root.key(name), time, Duration::from_millis(1), LONGEST);
    }
    let part = |own: Option<u32>, of: u32| own.unwrap_or((fields.keys / of).max(1)) as usize;
    Bounds {
        connections: fields.connections as usize,
        body: usize::try_from(fields.body).unwrap_or(usize::MAX),
        buffered: usize::try_from(fields.buffered).unwrap_or(usize::MAX),
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

fn trusted_proxies(check: &mut Check<'_>, steps: &FieldPath, fields: &ServeFields) -> Vec<IpAddr> {
    let read = |(at, text): (usize, &String)| {
        let what = "must be an IP address, as 127.0.0.1 or ::1";
        let address = text.parse::<IpAddr>().map(|address| address.to_canonical());
        address.map_err(|_| check.report(&check.item(steps, at), what)).ok()
    };
    fields.trusted_proxies.iter().enumerate().filter_map(read).collect()
}

fn listen(check: &mut Check<'_>, steps: &FieldPath, text: &str) -> SocketAddr {
    text.parse().unwrap_or_else(|_| {
        let what = "must be an IP address and a port, as 127.0.0.1:8080 or [::]:8080";
        check.report(steps, what);
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    })
}

fn key_limit(check: &mut Check<'_>, steps: &FieldPath, fields: &KeyFields) -> Option<KeyLimit> {
    let pattern = steps.key("key_pattern");
    if fields.key_pattern.is_empty() {
        check.report(&pattern, "must not be empty");
    }
    let regex = match fields.key_pattern_is_regex {
        true => Some(regex(&fields.key_pattern).map_err(|what| check.report(&pattern, what)).ok()?),
        false => None,
    };
    if fields.max_requests_per_window == Some(0) {
        let what = "must be at least 1, not 0; leave it out for what is said elsewhere";
        check.report(&steps.key("max_requests_per_window"), what);
    }
    // As GoCC has it, 0 is no window of its own: it could be no other.
    let window = fields.window_millis.filter(|&millis| millis != 0);
    if let Some(millis) = window.filter(|millis| !WINDOW.contains(millis)) {
        let what = format!("must be from 10 to 3600000, not {millis}");
        check.report(&steps.key("window_millis"), what);
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
    steps: &FieldPath,
    name: &str,
    fields: &UpstreamFields,
) -> Upstream {
    let segment = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(segment) {
        let what = "must be a segment of a path: letters, digits, `-`, `_` and `.`";
        check.report_name(steps, what);
    } else if RESERVED.contains(&name) {
        check.report_name(steps, "is a path of the server's own; give it another name");
    }
    check.scheme(&steps.key("base_url"), &fields.base_url, HTTP);
    bare_url(check, &steps.key("base_url"), &fields.base_url);
    let profile =
        Profile::named_among(check.providers(), &fields.provider).unwrap_or_else(|error| {
            let what = match fields.provider.contains("://") {
                true => "must be a name, not a URL".to_owned(),
                false => error.to_string(),
            };
            check.report(&steps.key("provider"), what);
            COMPATIBLE
        });
    Upstream { name: name.to_owned(), base_url: fields.base_url.clone(), profile }
}

fn own_scope(check: &mut Check<'_>, steps: &FieldPath, fields: &ScopeFields) -> Option<Scope> {
    match (&fields.header, &fields.key) {
        (None, Some(key)) if !key.is_empty() && fields.prefix.is_empty() => {
            Some(Scope::Key(key.clone()))
        }
        (Some(header), None) => match HeaderName::from_bytes(header.as_bytes()) {
            Ok(name) => Some(Scope::Header { name, prefix: fields.prefix.clone() }),
            Err(_) => {
                check.report(&steps.key("header"), "must be the name of a header, as x-tenant");
                None
            }
        },
        _ => {
            check.report(steps, "must be {header, prefix}, or {key: NAME}");
            None
        }
    }
}

/// Reports a URL with a user name, a query or a fragment.
fn bare_url(check: &mut Check<'_>, steps: &FieldPath, url: &SecretUrl) {
    let text = url.expose();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        check.report(steps, "must have no user name: clients send credentials of their own");
    } else if rest.contains(['?', '#']) {
        check.report(steps, "must have no query: that of a request is its client's");
    }
}

fn log(fields: &LogFields) -> Log {
    let LogFields { format, level, log2xx, log4xx, log5xx } = *fields;
    Log { format, level, log2xx, log4xx, log5xx }
}

/// The schemes of an upstream's URL.
const HTTP: &[&str] = &["http", "https"];

/// The bounds of GoCC.
const WINDOW: core::ops::RangeInclusive<u32> = 10..=3_600_000;

/// The least that hyper accepts.
const LEAST_HEAD: u32 = 8_192;

const SECOND: Duration = Duration::from_secs(1);

const LONGEST: Duration = Duration::from_secs(3_600);

/// What the server itself answers below: no upstream can have these names.
const RESERVED: [&str; 8] =
    ["rate", "debug", "healthz", "readyz", "metrics", "v1", "live", "openapi.json"];
