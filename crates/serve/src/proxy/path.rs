use axum::body::Body;
use axum::http::{Response, StatusCode, Uri};

use super::error_format::ErrorFormat;
use crate::app::App;
use crate::config::Upstream;
use crate::problem::Problem;

/// Splits a path into the name of an upstream and the remaining path, unchanged.
pub(super) fn split(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_at(path.find('/').unwrap_or(path.len()))
}

/// Returns the response to a request whose path names no upstream, in the format of the API that has the path.
pub(crate) fn unknown_upstream(app: &App, uri: &Uri) -> Response<Body> {
    let upstreams = &app.serve.upstreams;
    let format = ErrorFormat::of_path(uri.path());
    let is_meant = |upstream: &&Upstream| ErrorFormat::of(upstream.profile) == format;
    let detail = match upstreams.iter().find(is_meant).or(upstreams.first()) {
        None => {
            "no such path, and no upstreams are configured; add one to `serve.upstreams`".to_owned()
        }
        Some(upstream) => {
            let names: Vec<&str> = upstreams.iter().map(|upstream| &*upstream.name).collect();
            format!(
                "the path names no upstream (available: {}); add one to the base URL: `{}`",
                names.join(", "),
                format.base_path(&upstream.name)
            )
        }
    };
    format.problem(Problem::new(StatusCode::NOT_FOUND, "unknown_upstream", detail))
}
