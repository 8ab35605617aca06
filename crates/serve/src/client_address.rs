use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap};

/// The address that a client's parts of [budgets](super::budget::Budget) are counted by: an IPv4 address, or the network
/// of an IPv6 address (/64), of which a host can use all addresses.
///
/// It is an extension of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClientAddress(IpAddr);

impl ClientAddress {
    /// The client of requests without a connection.
    pub(super) const NONE: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    pub(super) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }

    /// Returns the client of a request with these extensions.
    pub(super) fn of_request(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self::NONE)
    }

    /// Returns the client for which a reverse proxy forwarded a request: the last address of `X-Forwarded-For`, which the
    /// proxy has added itself.
    pub(super) fn forwarded(headers: &HeaderMap) -> Option<Self> {
        let line = headers.get_all("x-forwarded-for").iter().next_back()?;
        let last = line.to_str().ok()?.rsplit(',').next()?.trim();
        last.parse().ok().map(Self::of)
    }
}

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of_request(&parts.extensions))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn addresses_of_one_host_are_one_client() {
        let of = |text: &str| ClientAddress::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }

    #[test]
    fn forwarded_client_is_the_one_that_the_last_proxy_names() {
        let mut headers = HeaderMap::new();
        assert_eq!(ClientAddress::forwarded(&headers), None);
        for value in ["10.0.0.1", "10.0.0.9, 10.0.0.2 "] {
            headers.append("x-forwarded-for", HeaderValue::from_static(value));
        }
        assert_eq!(
            ClientAddress::forwarded(&headers),
            Some(ClientAddress::of(IpAddr::from([10, 0, 0, 2])))
        );
        headers.append("x-forwarded-for", HeaderValue::from_static("unknown"));
        assert_eq!(ClientAddress::forwarded(&headers), None);
    }
}
