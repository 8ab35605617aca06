/// Which of the server's routes a request is for, as OpenTelemetry's `http.route` has it: a template
/// without what its client chose. Told by logs and figures; it doesn't decide who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route(usize);

impl Route {
    /// How many there are.
    pub(super) const ALL: usize = TEMPLATES.len();

    /// Who asks for a rate.
    pub(super) const RATE: Self = Self(0);

    /// That of a path.
    #[inline]
    pub(super) fn of(path: &str) -> Self {
        let found = TEMPLATES.iter().position(|template| covers(template, path));
        // The last one is for whatever is none of ours.
        Self(found.unwrap_or(Self::ALL - 1))
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..Self::ALL).map(Self)
    }

    /// A number from 0 that is less than [`ALL`](Self::ALL).
    pub(super) fn number(self) -> usize {
        self.0
    }

    pub(super) fn template(self) -> &'static str {
        TEMPLATES[self.0]
    }
}

/// Whether a path is of this template, segment by segment.
fn covers(template: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    for expected in template.split('/') {
        match (expected, segments.next()) {
            ("...", Some(_)) => return true,
            (_, Some(_)) if expected.starts_with('{') => {}
            (_, Some(segment)) if segment == expected => {}
            _ => return false,
        }
    }
    segments.next().is_none()
}

/// Of several that cover a path the first is meant. What is asked for most comes first.
const TEMPLATES: [&str; 23] = [
    "/rate/{key}",
    "/rate/{key}/{id}",
    "/v1/reserve",
    "/v1/reservations/{id}",
    "/v1/reservations/{id}/settle",
    "/v1/reservations/{id}/release",
    "/v1/reservations/{id}/renew",
    "/v1/decide",
    "/v1/stats",
    "/v1/stats/{key}",
    "/v1/quotas",
    "/v1/quotas/{name}",
    "/v1/reset",
    "/v1/...",
    "/",
    "/live/events",
    "/metrics",
    "/healthz",
    "/readyz",
    "/debug",
    "/debug/{key}",
    "/openapi.json",
    "/{upstream}/...",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_shows_nothing_that_a_client_chose() {
        for (path, template) in [
            ("/rate/user-1", "/rate/{key}"),
            ("/rate/", "/rate/{key}"),
            ("/rate/user-1/secret", "/rate/{key}/{id}"),
            ("/debug", "/debug"),
            ("/debug/user-1", "/debug/{key}"),
            ("/v1/quotas/user-1", "/v1/quotas/{name}"),
            ("/v1/reservations/secret/settle", "/v1/reservations/{id}/settle"),
            ("/v1/what", "/v1/..."),
            ("/v1/reservations/secret/what", "/v1/..."),
            ("/healthz", "/healthz"),
            ("/live", "/{upstream}/..."),
            ("/sk-secret", "/{upstream}/..."),
            ("/openai/v1/chat/completions", "/{upstream}/..."),
            ("/", "/"),
            ("*", "/{upstream}/..."),
            ("", "/{upstream}/..."),
        ] {
            assert_eq!(Route::of(path).template(), template, "{path}");
        }
    }

    #[test]
    fn each_route_is_that_of_its_own_template() {
        for route in Route::all() {
            assert_eq!(Route::of(route.template()), route);
        }
    }
}
