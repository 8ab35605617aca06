use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::HeaderName;

use super::Check;
use super::quota::regex;
use super::urls::HTTP;
use crate::config::fields::{
    HeaderScope, KeyFields, ScopeName, ServeFields, TextOrMap, UpstreamFields,
};
use crate::config::tree::Steps;
use crate::config::value::{KeyLimit, Scope, Serve, Upstream};
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
            TextOrMap::Map(header) => self.header(&self.item(&root.key("scopes"), at), header),
        });
        let scopes = scopes.collect();
        let listen = self.listen(&root.key("listen"), &fields.listen);
        Serve { listen, keys, upstreams, scopes, mode: fields.mode }
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
        if let Some(millis) = fields.window_millis.filter(|millis| !WINDOW.contains(millis)) {
            let what = format!("must be from 10 to 3600000, not {millis}");
            self.wrong(&steps.key("window_millis"), what);
        }
        Some(KeyLimit {
            pattern: fields.key_pattern.clone(),
            regex,
            max_requests_per_window: fields.max_requests_per_window,
            max_requests_in_queue: fields.max_requests_in_queue,
            window: fields.window_millis.map(|millis| Duration::from_millis(millis.into())),
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
        }
        self.scheme(&steps.key("base_url"), &fields.base_url, HTTP);
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

    fn header(&mut self, steps: &Steps, fields: &HeaderScope) -> Option<Scope> {
        let Ok(name) = HeaderName::from_bytes(fields.header.as_bytes()) else {
            self.wrong(&steps.key("header"), "must be the name of a header, as x-tenant");
            return None;
        };
        Some(Scope::Header { name, prefix: fields.prefix.clone() })
    }
}

/// What GoCC allows.
const WINDOW: core::ops::RangeInclusive<u32> = 10..=3_600_000;
