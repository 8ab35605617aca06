use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// A kept-alive connection that sends one request at a time.
pub(super) enum Connection {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// Returns the reason why the connection failed.
    pub(super) async fn open(address: SocketAddr, http2: bool) -> Result<Self, String> {
        let refused = |error: &dyn std::error::Error| format!("{address}: {error}");
        let stream = TcpStream::connect(address).await.map_err(|error| refused(&error))?;
        stream.set_nodelay(true).map_err(|error| refused(&error))?;
        let stream = TokioIo::new(stream);
        // The error of a connection is returned by its next request.
        Ok(match http2 {
            false => {
                let made = http1::handshake(stream).await;
                let (sender, connection) = made.map_err(|error| refused(&error))?;
                tokio::spawn(connection);
                Self::Http1(sender)
            }
            true => {
                let made = http2::handshake(TokioExecutor::new(), stream).await;
                let (sender, connection) = made.map_err(|error| refused(&error))?;
                tokio::spawn(connection);
                Self::Http2(sender)
            }
        })
    }

    /// Waits until another request can be sent.
    ///
    /// # Errors
    /// Returns an error if the server has closed the connection.
    pub(super) async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(sender) => sender.ready().await,
            Self::Http2(sender) => sender.ready().await,
        }
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    /// Returns an error if the connection breaks or the response is not HTTP.
    pub(super) async fn send(
        &mut self,
        request: Request<Empty<Bytes>>,
    ) -> hyper::Result<StatusCode> {
        let mut response: Response<Incoming> = match self {
            Self::Http1(sender) => sender.send_request(request).await?,
            Self::Http2(sender) => sender.send_request(request).await?,
        };
        while let Some(frame) = response.body_mut().frame().await {
            frame?;
        }
        Ok(response.status())
    }
}
