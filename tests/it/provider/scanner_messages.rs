//! Messages of AWS event streams as sent by a server.

/// Returns a message with these text headers.
pub(crate) fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
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
pub(crate) fn with_head(head: &[u8], payload: &[u8]) -> Vec<u8> {
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
pub(crate) fn event(kind: &str, payload: &str) -> Vec<u8> {
    let headers =
        [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    message(&headers, payload.as_bytes())
}

/// Returns an event of `invoke-with-response-stream` around a model's JSON.
pub(crate) fn chunk(json: &str) -> Vec<u8> {
    event("chunk", &format!(r#"{{"p":"abcdefg","bytes":"{}"}}"#, base64(json.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quad = |part: &[u8]| {
        let word = part.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let word = word << (8 * (3 - part.len()));
        let digit = |at: usize| char::from(digits[(word >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(|at| if at <= part.len() { digit(at) } else { '=' }).collect::<String>()
    };
    bytes.chunks(3).map(quad).collect()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |rest, byte| {
        (0..8).fold(rest ^ u32::from(*byte), |rest, _| {
            if rest & 1 == 1 { rest >> 1 ^ 0xEDB8_8320 } else { rest >> 1 }
        })
    })
}
