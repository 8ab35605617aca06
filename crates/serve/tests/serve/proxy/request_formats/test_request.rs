//! Test cases of requests.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request as sent by a client.
#[derive(Debug, Clone)]
pub(super) struct TestRequest {
    pub(super) provider: &'static str,
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) fields: String,
    pub(super) body: Vec<u8>,
}

impl TestRequest {
    pub(super) fn write(&self) -> Vec<u8> {
        let Self { method, path, fields, body, .. } = self;
        let length = body.len();
        let head = format!(
            "{method} /up{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\
             content-length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }

    pub(super) fn text(&self) -> String {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(160).collect();
        format!("{} {} {} {:?} {body}", self.provider, self.method, self.path, self.fields)
    }
}

/// Sends a request, and returns the status and the body of the response.
pub(super) async fn send(addr: SocketAddr, request: &TestRequest) -> (u16, String) {
    let mut stream = TcpStream::connect(addr).await.expect("a listening proxy");
    stream.write_all(&request.write()).await.expect("the proxy reads the request");
    let mut response = Vec::new();
    // A server that refuses a request may close the connection before reading all of it.
    let _ = stream.read_to_end(&mut response).await;
    let response = String::from_utf8_lossy(&response).into_owned();
    let status = response.get(9..12).and_then(|status| status.parse().ok());
    let body = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or_else(|| panic!("{response:?}: {}", request.text())), body.to_owned())
}

pub(super) fn test_request(
    method: &'static str,
    path: &str,
    fields: &str,
    body: impl AsRef<[u8]>,
) -> TestRequest {
    let (path, fields, body) = (path.to_owned(), fields.to_owned(), body.as_ref().to_vec());
    TestRequest { provider: "openai", method, path, fields, body }
}

pub(super) fn of(provider: &'static str, request: TestRequest) -> TestRequest {
    TestRequest { provider, ..request }
}

pub(super) fn chat(body: impl AsRef<[u8]>) -> TestRequest {
    test_request("POST", "/v1/chat/completions", JSON, body)
}

pub(super) fn gemini(path: &str) -> TestRequest {
    of("gemini", test_request("POST", path, JSON, r#"{"contents": []}"#))
}

pub(super) fn form(path: &str, body: &str) -> TestRequest {
    test_request("POST", path, "content-type: multipart/form-data; boundary=B\r\n", body)
}

/// Returns a part of a form.
pub(super) fn part(head: &str, value: &str) -> String {
    format!("--B\r\n{head}\r\n\r\n{value}\r\n")
}

pub(super) fn field(name: &str, value: &str) -> String {
    part(&format!("Content-Disposition: form-data; name=\"{name}\""), value)
}

pub(super) fn file(content: &str) -> String {
    let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\
                Content-Type: audio/wav";
    part(head, content)
}

pub(super) fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let units = mark.then_some(0xFEFF).into_iter().chain(text.encode_utf16());
    units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

pub(super) fn utf32(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let units = mark.then_some(0xFEFF).into_iter().chain(text.chars().map(u32::from));
    units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

pub(super) fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("writes to memory succeed");
    encoder.finish().expect("writes to memory succeed")
}

pub(super) const JSON: &str = "content-type: application/json\r\n";

pub(super) const CHAT: &str =
    r#"{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}"#;
