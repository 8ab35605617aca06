//! A client that writes HTTP/1.1 by hand: it can break off, drip and lie as no library's would.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection.
#[derive(Debug)]
pub struct Wire(BufReader<TcpStream>);

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
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

    /// Sends these bytes, whatever they are.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// Asks with an empty body, and reads the answer.
    pub async fn ask(&mut self, method: &str, path: &str) -> io::Result<Answer> {
        self.send_head(method, path).await?;
        self.answer().await
    }

    pub async fn send_head(&mut self, method: &str, path: &str) -> io::Result<()> {
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n");
        self.send(head.as_bytes()).await
    }

    /// Reads an answer whose length is said.
    pub async fn answer(&mut self) -> io::Result<Answer> {
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
        Ok(Answer { status, head, body })
    }

    /// Reads until the server has closed the connection, by whatever means; what it said.
    pub async fn until_closed(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        // A reset is an end too.
        let _ = self.0.read_to_end(&mut said).await;
        said
    }

    /// Is gone without a word: the server sees a reset.
    pub fn vanish(self) {
        let _ = self.0.into_inner().set_zero_linger();
    }
}

/// One connection's worth of bytes: sends them, closes its side once the server has begun to answer
/// (a client that closes it before is one that is gone), and reads what comes.
pub async fn exchange(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let Ok(mut wire) = Wire::connect(addr).await else { return Vec::new() };
    // A server that has seen enough closes before all is sent.
    let _ = wire.send(bytes).await;
    let _ = wire.0.fill_buf().await;
    let _ = wire.0.get_mut().shutdown().await;
    wire.until_closed().await
}

/// The same of bytes that may be no whole request: closes its side without waiting for an answer.
pub async fn exchange_unheard(addr: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let Ok(mut wire) = Wire::connect(addr).await else { return Vec::new() };
    let _ = wire.send(bytes).await;
    let _ = wire.0.get_mut().shutdown().await;
    wire.until_closed().await
}

/// A header of a head, by its name in lower case.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
