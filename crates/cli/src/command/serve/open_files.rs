use tollgate_serve::Serve;

/// Raises the limit on open files to the needs of the server; logs a warning if the system doesn't
/// allow it.
#[cfg(unix)]
pub(super) fn raise_limit(serve: &Serve) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let needed = needed(serve);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is unlimited.
    let Some(allowed) = current.filter(|&current| current < needed) else { return };
    let most = maximum.unwrap_or(needed).min(needed);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    let allowed = if raised.is_ok() { most } else { allowed };
    if allowed < needed {
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
pub(super) fn raise_limit(_: &Serve) {}

/// Returns the number of files: one per connection, one per upstream connection, and those of the
/// process.
fn needed(serve: &Serve) -> u64 {
    let each = if serve.upstreams.is_empty() { 1 } else { 2 };
    (serve.bounds.connections as u64).saturating_mul(each).saturating_add(OWN)
}

/// Files of stores, buses, logs and the runtime.
const OWN: u64 = 128;
