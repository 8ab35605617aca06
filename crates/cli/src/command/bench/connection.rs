use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// One connection, kept alive, on which one request is sent after the other.
pub(super) enum Connection {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    /// # Errors
    /// Says why there is none.
    pub(super) async fn open(address: SocketAddr, http2: bool) -> Result<Self, String> {
        let refused = |error: &dyn std::error::Error| format!("{address}: {error}");
        let stream = TcpStream::connect(address).await.map_err(|error| refused(&error))?;
        stream.set_nodelay(true).map_err(|error| refused(&error))?;
        let stream = TokioIo::new(stream);
        // How a connection ends, its next request is told.
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
    /// The server has closed it.
    pub(super) async fn ready(&mut self) -> hyper::Result<()> {
        match self {
            Self::Http1(sender) => sender.ready().await,
            Self::Http2(sender) => sender.ready().await,
        }
    }

    /// Sends a request, and reads its answer to the end.
    ///
    /// # Errors
    /// The connection breaks before that, or what comes is not HTTP.
    pub(super) async fn ask(
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
