use paceline_config::Loaded;
use paceline_serve::Serve;

/// Raises the limit on open files to the needs of the server; logs a warning if the system doesn't
/// allow it, and the configuration sets the number of connections. Few servers need the default number.
#[cfg(unix)]
pub(super) fn raise_limit(loaded: &Loaded, serve: &Serve) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let needed = needed(serve);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is unlimited.
    let Some(allowed) = current.filter(|&current| current < needed) else { return };
    let most = maximum.unwrap_or(needed).min(needed);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    let allowed = if raised.is_ok() { most } else { allowed };
    if allowed < needed && is_bound_set(loaded) {
        tracing::warn!(
            allowed,
            needed,
            "the limit on open files is too low for `serve.bounds.connections`; raise it (ulimit -n, \
             LimitNOFILE=), or lower the bound"
        );
    }
}

/// Does nothing: only Unix has such a limit.
#[cfg(not(unix))]
pub(super) fn raise_limit(_: &Loaded, _: &Serve) {}

#[cfg(unix)]
fn is_bound_set(loaded: &Loaded) -> bool {
    let values = loaded.to_json();
    let bound = values.as_array().into_iter().flatten();
    let bound = bound.filter(|value| value["path"] == "serve.bounds.connections");
    bound.into_iter().any(|value| value["origin"] != "built-in")
}

/// Returns the number of files: one per connection, one per upstream connection, and those of the
/// process.
fn needed(serve: &Serve) -> u64 {
    let each = if serve.upstreams.is_empty() { 1 } else { 2 };
    (serve.bounds.connections as u64).saturating_mul(each).saturating_add(OWN)
}

/// Files of stores, buses, logs and the runtime.
const OWN: u64 = 128;
