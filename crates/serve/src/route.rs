/// A route of the server.
///
/// The router, the OpenAPI document, the labels of logs and metrics, and the reserved
/// names of upstreams all come from this table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Rate,
    RateGrant,
    Reserve,
    Reservation,
    Settle,
    Release,
    Renew,
    Decide,
    Stats,
    KeyStats,
    Quotas,
    Quota,
    Reset,
    UnknownApi,
    Page,
    LiveEvents,
    Metrics,
    Health,
    Ready,
    Debug,
    DebugKey,
    OpenApi,
    Proxy,
}

impl Route {
    /// The number of routes.
    pub(super) const COUNT: usize = TABLE.len();

    /// Returns the route of a request path.
    #[inline]
    pub(super) fn of(path: &str) -> Self {
        let found = TABLE.iter().find(|(_, template)| matches(template, path));
        found.map_or(Self::Proxy, |(route, _)| *route)
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(route, _)| *route)
    }

    /// Returns the index of the route, less than [`COUNT`](Self::COUNT).
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Returns the path of the route as a template without client data, like OpenTelemetry's
    /// `http.route`. A final `...` stands for any number of segments.
    pub(super) fn path(self) -> &'static str {
        TABLE[self.index()].1
    }

    /// Returns true if one of the server's own routes starts with this path segment.
    pub(super) fn is_reserved(segment: &str) -> bool {
        TABLE.iter().any(|(_, template)| template.split('/').nth(1) == Some(segment))
    }
}

/// The path of a request to `/rate` without a key.
pub(super) const RATE_WITHOUT_KEY: &str = "/rate/";

/// The path of the return of a grant without its id.
pub(super) const RATE_GRANT_WITHOUT_ID: &str = "/rate/{key}/";

/// The paths of [`Route::UnknownApi`], as the router spells them.
pub(super) const UNKNOWN_API: &str = "/v1/{*rest}";

/// The paths of [`Route::Proxy`], as the router spells them.
pub(super) const PROXY: [&str; 3] = ["/{upstream}", "/{upstream}/", "/{upstream}/{*path}"];

/// Returns true if the path matches the template, segment by segment.
fn matches(template: &str, path: &str) -> bool {
    // Short texts are split faster by bytes than by a search for a character.
    let is_slash = |byte: &u8| *byte == b'/';
    let mut segments = path.as_bytes().split(is_slash);
    for expected in template.as_bytes().split(is_slash) {
        match (expected, segments.next()) {
            (b"...", Some(_)) => return true,
            ([b'{', ..], Some(_)) => {}
            (_, Some(segment)) if segment == expected => {}
            _ => return false,
        }
    }
    segments.next().is_none()
}

/// The routes in the order of their declaration. A path has the first route that matches; the most
/// frequent route comes first.
const TABLE: [(Route, &str); 23] = [
    (Route::Rate, "/rate/{key}"),
    (Route::RateGrant, "/rate/{key}/{id}"),
    (Route::Reserve, "/v1/reserve"),
    (Route::Reservation, "/v1/reservations/{id}"),
    (Route::Settle, "/v1/reservations/{id}/settle"),
    (Route::Release, "/v1/reservations/{id}/release"),
    (Route::Renew, "/v1/reservations/{id}/renew"),
    (Route::Decide, "/v1/decide"),
    (Route::Stats, "/v1/stats"),
    (Route::KeyStats, "/v1/stats/{key}"),
    (Route::Quotas, "/v1/quotas"),
    (Route::Quota, "/v1/quotas/{name}"),
    (Route::Reset, "/v1/reset"),
    (Route::UnknownApi, "/v1/..."),
    (Route::Page, "/"),
    (Route::LiveEvents, "/live/events"),
    (Route::Metrics, "/metrics"),
    (Route::Health, "/healthz"),
    (Route::Ready, "/readyz"),
    (Route::Debug, "/debug"),
    (Route::DebugKey, "/debug/{key}"),
    (Route::OpenApi, "/openapi.json"),
    (Route::Proxy, "/{upstream}/..."),
];

const _: () = {
    let mut index = 0;
    while index < TABLE.len() {
        assert!(TABLE[index].0 as usize == index, "the table has the order of the enum");
        index += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_path_omits_client_data() {
        for (path, template) in [
            ("/rate/user-1", "/rate/{key}"),
            ("/rate/", "/rate/{key}"),
            ("/rate/user-1/secret", "/rate/{key}/{id}"),
            ("/debug", "/debug"),
            ("/debug/user-1", "/debug/{key}"),
            ("/v1/quotas/user-1", "/v1/quotas/{name}"),
            ("/v1/reservations/secret/settle", "/v1/reservations/{id}/settle"),
            ("/v1/unknown", "/v1/..."),
            ("/v1/reservations/secret/unknown", "/v1/..."),
            ("/healthz", "/healthz"),
            ("/live", "/{upstream}/..."),
            ("/sk-secret", "/{upstream}/..."),
            ("/openai/v1/chat/completions", "/{upstream}/..."),
            ("/", "/"),
            ("*", "/{upstream}/..."),
            ("", "/{upstream}/..."),
        ] {
            assert_eq!(Route::of(path).path(), template, "{path}");
        }
    }

    #[test]
    fn route_of_a_template_is_found_by_path() {
        for route in Route::all() {
            assert_eq!(Route::of(route.path()), route);
        }
    }

    #[test]
    fn first_segments_of_own_routes_are_reserved() {
        for name in ["rate", "debug", "healthz", "readyz", "metrics", "v1", "live", "openapi.json"]
        {
            assert!(Route::is_reserved(name), "{name}");
        }
        assert!(!Route::is_reserved("openai"));
    }
}
