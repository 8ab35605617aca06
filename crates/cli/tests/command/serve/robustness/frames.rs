use super::{Served, exchange, in_time, serves_others};

#[tokio::test]
async fn invalid_http2_frames_end_only_own_connection() {
    let mut server = Served::start("serve: {}");
    for (what, frames) in broken() {
        let bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &frames].concat();
        let received = in_time(exchange(server.addr(), &bytes)).await;
        assert!(
            !received.starts_with(b"HTTP/1.1"),
            "{what}: {:?}",
            String::from_utf8_lossy(&received)
        );
        serves_others(&mut server).await;
    }
}

/// Returns descriptions and invalid frames.
fn broken() -> Vec<(&'static str, Vec<u8>)> {
    let reset = |stream: u32| {
        [
            frame(HEADERS, END_HEADERS, stream, POST),
            frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()),
        ]
        .concat()
    };
    let too_wide = [&[0, 4][..], &u32::MAX.to_be_bytes()].concat();
    let endless = frame(CONTINUATION, 0, 1, &[0; 1024]).repeat(2_000);
    vec![
        ("HTTP/1.1 instead of frames", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50)),
        ("a frame that is too long", vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]),
        ("data on stream 0", frame(0, 0, 0, b"data")),
        ("data on an idle stream", frame(0, 0, 5, b"data")),
        ("a stream id of the server", frame(HEADERS, END_HEADERS | 1, 2, POST)),
        ("an invalid header index", frame(HEADERS, END_HEADERS | 1, 1, &[0x80])),
        (
            "a header table that is too large",
            frame(HEADERS, END_HEADERS | 1, 1, &[0x3f, 0xff, 0xff, 0xff, 0x7f]),
        ),
        ("a continuation without headers", frame(CONTINUATION, END_HEADERS, 1, POST)),
        ("endless continuations", [frame(HEADERS, 0, 1, POST), endless].concat()),
        ("a window that is too wide", frame(SETTINGS, 0, 0, &too_wide)),
        ("settings of an odd length", frame(SETTINGS, 0, 0, &[0; 5])),
        ("a window update of zero", frame(WINDOW_UPDATE, 0, 0, &[0; 4])),
        (
            "requests that are reset immediately",
            (0..5_000).flat_map(|n| reset(n * 2 + 1)).collect(),
        ),
        ("a flood of pings", frame(PING, 0, 0, &[0; 8]).repeat(20_000)),
        ("a flood of settings", frame(SETTINGS, 0, 0, &[]).repeat(20_000)),
    ]
}

/// Returns a frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("the payload is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// `:method: POST`, `:scheme: http`, `:path: /rate/a`, `:authority: x` (RFC 7541).
const POST: &[u8] = b"\x83\x86\x04\x07/rate/a\x01\x01x";
