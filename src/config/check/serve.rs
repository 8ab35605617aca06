use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::HeaderName;

use super::Check;
use super::quota::{algorithm, regex};
use super::urls::HTTP;
use crate::config::fields::{
    BoundsFields, KeyFields, LogFields, MOST_REQUESTS, ScopeFields, ScopeName, ServeFields,
    TextOrMap, UpstreamFields,
};
use crate::config::tree::Steps;
use crate::config::value::{Bounds, KeyLimit, Log, Scope, Serve, Upstream};
use crate::provider::{COMPATIBLE, Profile};

impl Check<'_> {
    pub(super) fn serve(&mut self, fields: &ServeFields, providers: &[Profile]) -> Serve {
        let root = Steps::to(["serve"]);
        let keys = fields.keys.iter().enumerate();
        let keys =
            keys.filter_map(|(at, key)| self.key_limit(&self.item(&root.key("keys"), at), key));
        let keys = keys.collect();
        let upstreams = fields.upstreams.0.iter().map(|(name, upstream)| {
            let steps = root.key("upstreams").key(name);
            self.upstream(&steps, name, upstream, providers)
        });
        let upstreams = upstreams.collect();
        let scopes = fields.scopes.iter().enumerate();
        let scopes = scopes.filter_map(|(at, scope)| match scope {
            TextOrMap::Text(ScopeName::Model) => Some(Scope::Model),
            TextOrMap::Text(ScopeName::ApiKey) => Some(Scope::ApiKey),
            TextOrMap::Map(own) => self.own_scope(&self.item(&root.key("scopes"), at), own),
        });
        let scopes = scopes.collect();
        self.rate(&root, fields);
        let ttl = fields.reservation_ttl.0;
        self.within(&root.key("reservation_ttl"), ttl, SECOND, LONGEST);
        self.within(&root.key("drain"), fields.drain.0, Duration::ZERO, LONGEST);
        Serve {
            listen: self.listen(&root.key("listen"), &fields.listen),
            allow_anonymous: fields.allow_anonymous,
            trusted_proxies: self.trusted_proxies(&root.key("trusted_proxies"), fields),
            max_requests: fields.max_requests,
            max_requests_in_queue: fields.max_requests_in_queue,
            window: Duration::from_millis(fields.window_millis.into()),
            algorithm: algorithm(fields.algorithm),
            requests_can_set_rate: fields.requests_can_set_rate,
            requests_can_mod_queue: fields.requests_can_mod_queue,
            keys,
            upstreams,
            scopes,
            mode: fields.mode,
            unread: fields.unread,
            reservation_ttl: ttl,
            drain: fields.drain.0,
            bounds: self.bounds(&root.key("bounds"), &fields.bounds),
            log: log(&fields.log),
        }
    }

    /// The limits of keys for which nothing else is said.
    fn rate(&mut self, root: &Steps, fields: &ServeFields) {
        let millis = fields.window_millis;
        if !WINDOW.contains(&millis) {
            let what = format!("must be from 10 to 3600000, not {millis}");
            self.wrong(&root.key("window_millis"), what);
        }
        let amounts = [
            ("max_requests", fields.max_requests, 1),
            ("max_requests_in_queue", fields.max_requests_in_queue, 0),
        ];
        for (name, amount, least) in amounts {
            if !(least..=MOST_REQUESTS).contains(&amount) {
                let what = format!("must be from {least} to {MOST_REQUESTS}, not {amount}");
                self.wrong(&root.key(name), what);
            }
        }
    }

    fn bounds(&mut self, root: &Steps, fields: &BoundsFields) -> Bounds {
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
                self.wrong(&root.key(name), format!("must be at least {least}, not {amount}"));
            }
        }
        if fields.buffered < fields.body {
            let what = "must be at least `body`, or no body of that length could ever pass";
            self.wrong(&root.key("buffered"), what);
        }
        let times = [
            ("head_timeout", fields.head_timeout.0),
            ("body_timeout", fields.body_timeout.0),
            ("upstream_timeout", fields.upstream_timeout.0),
            ("upstream_idle", fields.upstream_idle.0),
        ];
        for (name, time) in times {
            self.within(&root.key(name), time, Duration::from_millis(1), LONGEST);
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

    fn trusted_proxies(&mut self, steps: &Steps, fields: &ServeFields) -> Vec<IpAddr> {
        let read = |(at, text): (usize, &String)| {
            let what = "must be an IP address, as 127.0.0.1 or ::1";
            let address = text.parse::<IpAddr>().map(|address| address.to_canonical());
            address.map_err(|_| self.wrong(&self.item(steps, at), what)).ok()
        };
        fields.trusted_proxies.iter().enumerate().filter_map(read).collect()
    }

    fn listen(&mut self, steps: &Steps, text: &str) -> SocketAddr {
        text.parse().unwrap_or_else(|_| {
            let what = "must be an IP address and a port, as 127.0.0.1:8080 or [::]:8080";
            self.wrong(steps, what);
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
        })
    }

    fn key_limit(&mut self, steps: &Steps, fields: &KeyFields) -> Option<KeyLimit> {
        let pattern = steps.key("key_pattern");
        if fields.key_pattern.is_empty() {
            self.wrong(&pattern, "must not be empty");
        }
        let regex = match fields.key_pattern_is_regex {
            true => {
                Some(regex(&fields.key_pattern).map_err(|what| self.wrong(&pattern, what)).ok()?)
            }
            false => None,
        };
        if fields.max_requests_per_window == Some(0) {
            let what = "must be at least 1, not 0; leave it out for what is said elsewhere";
            self.wrong(&steps.key("max_requests_per_window"), what);
        }
        // As GoCC has it, 0 is no window of its own: it could be no other.
        let window = fields.window_millis.filter(|&millis| millis != 0);
        if let Some(millis) = window.filter(|millis| !WINDOW.contains(millis)) {
            let what = format!("must be from 10 to 3600000, not {millis}");
            self.wrong(&steps.key("window_millis"), what);
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
        &mut self,
        steps: &Steps,
        name: &str,
        fields: &UpstreamFields,
        providers: &[Profile],
    ) -> Upstream {
        let segment = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(segment) {
            let what = "must be a segment of a path: letters, digits, `-`, `_` and `.`";
            self.wrong_name(steps, what);
        } else if RESERVED.contains(&name) {
            self.wrong_name(steps, "is a path of the server's own; give it another name");
        }
        self.scheme(&steps.key("base_url"), &fields.base_url, HTTP);
        self.bare_url(&steps.key("base_url"), &fields.base_url);
        let profile = Profile::named_among(providers, &fields.provider).unwrap_or_else(|error| {
            let what = match fields.provider.contains("://") {
                true => "must be a name, not a URL".to_owned(),
                false => error.to_string(),
            };
            self.wrong(&steps.key("provider"), what);
            COMPATIBLE
        });
        Upstream { name: name.to_owned(), base_url: fields.base_url.clone(), profile }
    }

    fn own_scope(&mut self, steps: &Steps, fields: &ScopeFields) -> Option<Scope> {
        match (&fields.header, &fields.key) {
            (None, Some(key)) if !key.is_empty() && fields.prefix.is_empty() => {
                Some(Scope::Key(key.clone()))
            }
            (Some(header), None) => match HeaderName::from_bytes(header.as_bytes()) {
                Ok(name) => Some(Scope::Header { name, prefix: fields.prefix.clone() }),
                Err(_) => {
                    self.wrong(&steps.key("header"), "must be the name of a header, as x-tenant");
                    None
                }
            },
            _ => {
                self.wrong(steps, "must be {header, prefix}, or {key: NAME}");
                None
            }
        }
    }
}

fn log(fields: &LogFields) -> Log {
    let LogFields { format, level, log2xx, log4xx, log5xx } = *fields;
    Log { format, level, log2xx, log4xx, log5xx }
}

/// What GoCC allows.
const WINDOW: core::ops::RangeInclusive<u32> = 10..=3_600_000;

/// What hyper takes at least.
const LEAST_HEAD: u32 = 8_192;

const SECOND: Duration = Duration::from_secs(1);

const LONGEST: Duration = Duration::from_secs(3_600);

/// What the server itself answers below: no upstream can have these names.
const RESERVED: [&str; 8] =
    ["rate", "debug", "healthz", "readyz", "metrics", "v1", "live", "openapi.json"];
