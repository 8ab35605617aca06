use tollgate_serve::Serve;

/// Raises how many files this process may have open to what the bounds of the server need; where the
/// system doesn't allow that many, logs what is missing.
#[cfg(unix)]
pub(super) fn allow(serve: &Serve) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let needed = needed(serve);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // None is no limit.
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

/// Nothing bounds them elsewhere.
#[cfg(not(unix))]
pub(super) fn allow(_: &Serve) {}

/// A file for each connection, another for the one to an upstream that answers it, and those of the
/// process itself.
fn needed(serve: &Serve) -> u64 {
    let each = if serve.upstreams.is_empty() { 1 } else { 2 };
    (serve.bounds.connections as u64).saturating_mul(each).saturating_add(OWN)
}

/// Stores, buses, logs, the runtime.
const OWN: u64 = 128;
