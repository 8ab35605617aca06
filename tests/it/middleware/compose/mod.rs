//! The layer combined with tower's own: every line of `src/middleware/composition.md`.

mod around;
mod contended;
mod inside;
mod pending;

use std::future::{Ready, ready};

use paceline::Timestamp;
use paceline::limiter::Limiter;
use tower::retry::Policy;
use tower::{BoxError, Service, ServiceExt};

use super::inner::{InnerError, Strict};
use super::{Tokens, tokens};

#[test]
fn composition_page_names_existing_tests_in_every_line() {
    let page = include_str!("../../../../src/middleware/composition.md");
    let tests = [
        include_str!("around.rs"),
        include_str!("inside.rs"),
        include_str!("pending.rs"),
        include_str!("../backpressure.rs"),
        include_str!("../call.rs"),
        include_str!("../gate.rs"),
        include_str!("../include_usage.rs"),
        include_str!("../retry/reqwest.rs"),
        include_str!("../retry/verdicts.rs"),
        include_str!("../retry/queue.rs"),
        include_str!("../retry/bodies.rs"),
        include_str!("../wiring.rs"),
    ];
    let lines = page.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| test |"));
    let mut named = 0;
    for line in lines {
        let last = line.trim_end_matches(" |").rsplit("| ").next().unwrap();
        for name in last.split(", ") {
            let declared = format!("async fn {}()", name.trim_matches('`'));
            assert!(tests.iter().any(|tests| tests.contains(&declared)), "{line}");
            named += 1;
        }
    }
    assert!(named >= 20);
}

/// Returns a layer that waits in `poll_ready`.
fn gated(limiter: &Limiter) -> Tokens {
    tokens(limiter).key("k")
}

/// Waits until the service is ready and sends one request through it.
async fn send<S>(service: &mut S) -> Result<u64, BoxError>
where
    S: Service<u64, Response = u64, Error: Into<BoxError>>,
{
    let ready = service.ready().await.map_err(Into::into)?;
    ready.call(1).await.map_err(Into::into)
}

/// Returns the seconds since `begin`.
fn seconds_since(limiter: &Limiter, begin: Timestamp) -> u64 {
    (limiter.now() - begin).as_secs()
}

/// A policy that retries a number of times the errors for which the function returns `true`.
struct RetryPolicy<E>(usize, fn(&E) -> bool);

impl<E> Clone for RetryPolicy<E> {
    fn clone(&self) -> Self {
        Self(self.0, self.1)
    }
}

impl<E> Policy<u64, u64, E> for RetryPolicy<E> {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut Result<u64, E>) -> Option<Ready<()>> {
        let retries = self.0 > 0 && result.as_ref().is_err_and(self.1);
        retries.then(|| {
            self.0 -= 1;
            ready(())
        })
    }

    fn clone_request(&mut self, request: &u64) -> Option<u64> {
        Some(*request)
    }
}

/// Returns a service that fails a number of times before it answers.
fn flaky(failures: usize) -> Strict<u64, u64> {
    let left = std::sync::atomic::AtomicUsize::new(failures);
    Strict::new(move |tokens| {
        use std::sync::atomic::Ordering::Relaxed;
        let fails = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        ready(if fails { Err(InnerError) } else { Ok(tokens) })
    })
}
