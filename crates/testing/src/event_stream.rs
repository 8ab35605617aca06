//! Messages of AWS event streams as sent by a server.

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Returns a message with these text headers.
pub fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend(name.as_bytes());
        head.push(7);
        head.extend((value.len() as u16).to_be_bytes());
        head.extend(value.as_bytes());
    }
    with_head(&head, payload)
}

/// Returns a message with raw headers.
pub fn with_head(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = (12 + head.len() + payload.len() + 4) as u32;
    let mut message = Vec::from(length.to_be_bytes());
    message.extend((head.len() as u32).to_be_bytes());
    message.extend(crc32(&message).to_be_bytes());
    message.extend(head);
    message.extend(payload);
    message.extend(crc32(&message).to_be_bytes());
    message
}

/// Returns an event of this type.
pub fn event(kind: &str, payload: &str) -> Vec<u8> {
    let headers =
        [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    message(&headers, payload.as_bytes())
}

/// Returns an event of `invoke-with-response-stream` around a model's JSON.
pub fn chunk(json: &str) -> Vec<u8> {
    event("chunk", &format!(r#"{{"p":"abcdefg","bytes":"{}"}}"#, BASE64_STANDARD.encode(json)))
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |rest, byte| {
        (0..8).fold(rest ^ u32::from(*byte), |rest, _| {
            if rest & 1 == 1 { rest >> 1 ^ 0xEDB8_8320 } else { rest >> 1 }
        })
    })
}
