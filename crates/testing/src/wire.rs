//! A client that writes raw HTTP/1.1, to test broken, slow and malformed requests.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A raw connection.
#[derive(Debug)]
pub struct Wire(BufReader<TcpStream>);

/// A complete response.
#[derive(Debug)]
pub struct WireResponse {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Wire {
    pub async fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends these bytes unchanged.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// Sends a request without a body, and reads the response.
    pub async fn request(&mut self, method: &str, path: &str) -> io::Result<WireResponse> {
        self.send_head(method, path).await?;
        self.read_response().await
    }

    pub async fn send_head(&mut self, method: &str, path: &str) -> io::Result<()> {
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n");
        self.send(head.as_bytes()).await
    }

    /// Reads a response with a `Content-Length`, or without a body.
    pub async fn read_response(&mut self) -> io::Result<WireResponse> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.0.read_exact(&mut body).await?;
        let body = String::from_utf8(body).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(WireResponse { status, head, body })
    }

    /// Reads until the server closes or resets the connection, and returns the bytes.
    pub async fn read_until_closed(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes).await;
        bytes
    }

    /// Resets the connection (TCP RST).
    pub fn reset(self) {
        let _ = self.0.into_inner().set_zero_linger();
    }
}

/// Sends bytes on a new connection, and returns all bytes that the server sends until it closes the
/// connection.
///
/// Closes the sending side after the first byte of the response: a server may treat a client that closes
/// it earlier as disconnected.
pub async fn exchange(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let Ok(mut wire) = Wire::connect(addr).await else { return Vec::new() };
    // Fails if the server rejects the request before it has read all of it.
    let _ = wire.send(bytes).await;
    let _ = wire.0.fill_buf().await;
    let _ = wire.0.get_mut().shutdown().await;
    wire.read_until_closed().await
}

/// As [`exchange`], but closes the sending side immediately, for bytes that may be an incomplete request.
pub async fn exchange_half_closed(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let Ok(mut wire) = Wire::connect(addr).await else { return Vec::new() };
    let _ = wire.send(bytes).await;
    let _ = wire.0.get_mut().shutdown().await;
    wire.read_until_closed().await
}

/// Returns the value of a header in a head; the case of the name is ignored.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
