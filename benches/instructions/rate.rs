//! Instruction counts of the server's response to `POST /rate/{key}`, without a connection. See `library`
//! for the counts of the library.

mod count;

use std::hint::black_box;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use count::{count, poll_once, run};
use paceline::limiter::ManualClock;
use paceline_serve::{Server, Tokens};

fn main() {
    run(&[
        ("rate_granted", || rate(1_000_000_000, StatusCode::OK)),
        ("rate_refused", || rate(1, StatusCode::TOO_MANY_REQUESTS)),
    ]);
}

/// Counts requests answered with `status`, for a key with a limit of `limit` requests per hour.
fn rate(limit: u32, status: StatusCode) {
    let hot =
        format!("{{key_pattern: hot, max_requests_per_window: {limit}, window_millis: 3600000}}");
    let config = format!("serve: {{listen: '127.0.0.1:0', keys: [{hot}]}}");
    let config = paceline_serve::parse(&config).expect("a valid configuration");
    let limiter = config.builder().clock(ManualClock::new()).build().expect("a valid limiter");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let server = runtime.block_on(Server::bind(config, limiter, Tokens::default()));
    let server = server.expect("a free port");
    let _inside = runtime.enter();
    let answer = || {
        let request = Request::post("/rate/hot").header("host", "localhost").body(Body::empty());
        poll_once(server.respond(black_box(request.expect("a valid request")))).status()
    };
    assert_eq!(answer(), StatusCode::OK);
    count(|| assert_eq!(answer(), status));
}
