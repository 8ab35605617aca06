//! The targets of the limiter's log events.

use crate::module_imports::{code, sources};

/// The files with events that programs log: `paceline::waits` and `paceline::refusals`.
const LOGGED: [&str; 2] = ["limiter/long_wait.rs", "limiter/refusals.rs"];

/// Programs turn off the limiter's events by their target, since they have keys in them.
#[test]
fn events_of_the_limiter_state_their_target() {
    let files = sources(&["crates/limiter/src"]);
    let mut events = 0;
    for (path, text) in &files {
        let code = code(text);
        for level in ["error", "warn", "info", "debug", "trace"] {
            for (at, found) in code.match_indices(&format!("tracing::{level}!(")) {
                // Strings are blank in `code`: the other targets are logged with the name of a quota.
                let rest = code[at + found.len()..].trim_start();
                let line = rest.lines().next().unwrap();
                let is_logged = LOGGED.iter().any(|file| path.ends_with(file));
                let is_known = rest.starts_with("target: TARGET,")
                    || (is_logged && rest.starts_with("target:"));
                assert!(is_known, "{path}: {line}");
                events += 1;
            }
        }
    }
    assert!(events > 5, "the events are found");
}
