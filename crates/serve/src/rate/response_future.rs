use std::convert::Infallible;
use std::future::Ready;
use std::pin::Pin;

use axum::body::Body;
use axum::http::Response;
use futures_util::future::Either;

/// The response to a request for a grant: ready, unless the request waits.
pub(crate) type ResponseFuture =
    Either<Ready<HandlerResult>, Pin<Box<dyn Future<Output = HandlerResult> + Send>>>;

type HandlerResult = Result<Response<Body>, Infallible>;
