use paceline_testing::wire::exchange_half_closed;

use super::{Served, exchange, in_time, serves_others, statuses};

#[tokio::test]
async fn malformed_request_is_rejected_and_others_are_served() {
    let mut server = Served::start("serve: {}");
    for (what, request) in MALFORMED {
        let received = in_time(exchange(server.addr(), request.as_bytes())).await;
        let statuses = statuses(&received);
        let refused = statuses.iter().all(|status| (400..500).contains(status) || *status == 501);
        assert!(refused && statuses.len() <= 1, "{what}: {:?}", String::from_utf8_lossy(&received));
    }
    serves_others(&mut server).await;
}

#[tokio::test]
async fn smuggled_request_is_not_executed() {
    let mut server = Served::start("serve: {}");
    for (what, head) in SMUGGLING {
        let request = format!("{head}\r\n0\r\n\r\n{INNER}");
        let received = in_time(exchange(server.addr(), request.as_bytes())).await;
        let statuses = statuses(&received);
        assert!(statuses.len() <= 1, "{what}: {:?}", String::from_utf8_lossy(&received));
    }
    serves_others(&mut server).await;
}

#[tokio::test]
async fn random_bytes_leave_server_running() {
    let mut server = Served::start("serve: {}");
    let mut random = Random(7);
    for round in 0..500 {
        let request = match round % 2 {
            0 => (0..random.below(600)).map(|_| random.byte()).collect(),
            _ => random.mutated(VALID.as_bytes()),
        };
        let received = in_time(exchange_half_closed(server.addr(), &request)).await;
        let failed = statuses(&received).into_iter().any(|status| status >= 500 && status != 501);
        let request = String::from_utf8_lossy(&request);
        assert!(!failed, "{request:?}: {:?}", String::from_utf8_lossy(&received));
    }
    serves_others(&mut server).await;
}

const MALFORMED: [(&str, &str); 17] = [
    (
        "two lengths",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ),
    (
        "a list of lengths",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 2\r\n\r\nab",
    ),
    ("a negative length", "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
    (
        "a length with a sign",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\na",
    ),
    (
        "a hexadecimal length",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x1\r\n\r\na",
    ),
    (
        "a length above 64 bits",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ),
    (
        "an unknown coding",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "chunked, but not last",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    ("a folded header", "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n 2\r\n\r\n"),
    ("a NUL in a value", "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nX-A: 1\x002\r\n\r\n"),
    ("a NUL in a name", "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nX\x00A: 1\r\n\r\n"),
    ("a space before the colon", "POST /rate/a HTTP/1.1\r\nHost : x\r\n\r\n"),
    ("a header without a name", "POST /rate/a HTTP/1.1\r\n: x\r\n\r\n"),
    ("a space in the path", "POST /rate/a b HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("another protocol", "POST /rate/a HTTP/3.0\r\nHost: localhost\r\n\r\n"),
    ("no protocol", "POST /rate/a\r\n\r\n"),
    ("a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03\r\n\r\n"),
];

/// Heads that one server parses as a request with a body and another as two requests.
const SMUGGLING: [(&str, &str); 4] = [
    (
        "both lengths",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 66\r\nTransfer-Encoding: chunked\r\n",
    ),
    (
        "both, the other way round",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 66\r\n",
    ),
    (
        "a coding after a tab",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 66\r\nTransfer-Encoding:\tchunked\r\n",
    ),
    (
        "two codings",
        "POST /rate/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 66\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
    ),
];

const INNER: &str = "POST /rate/inner HTTP/1.1\r\nHost: inner\r\nContent-Length: 0\r\n\r\n";

const VALID: &str = "POST /rate/a?canWait=false&maxRequests=10 HTTP/1.1\r\nHost: 127.0.0.1\r\n\
    Accept: application/json\r\nX-Correlation-ID: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

/// A deterministic random number generator: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("the number fits usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// Returns the bytes with a few of them changed, removed or duplicated.
    fn mutated(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(3) {
                0 => bytes[at] = self.byte(),
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[at]),
            }
        }
        bytes
    }
}
