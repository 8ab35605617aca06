use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::ConnectInfo;
use axum::extract::connect_info::MockConnectInfo;
use compact_str::{CompactString, format_compact};
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use super::head::Head;

/// Proxies that are believed when they say for whom they ask.
///
/// Each appends the address that it was asked from to one header field. Read from the right, the
/// first address that isn't one of these proxies is the client's: whatever stands further left, the
/// client may have made up. An address that can't be read ends the reading, and the proxy's own
/// counts.
///
/// Only the field that the proxies are known to write is read: most pass the other on as the client
/// sent it.
#[derive(Debug, Clone)]
pub struct Proxies {
    networks: Arc<[IpNet]>,
    field: Field,
}

#[derive(Debug, Clone, Copy)]
enum Field {
    XForwardedFor,
    Forwarded,
}

impl Proxies {
    /// Proxies in these networks or at these addresses, that write `X-Forwarded-For`.
    ///
    /// # Errors
    /// [`InvalidNetwork`] for what is neither, such as a host name.
    pub fn x_forwarded_for<N>(networks: N) -> Result<Self, InvalidNetwork>
    where
        N: IntoIterator<Item: AsRef<str>>,
    {
        Self::new(networks, Field::XForwardedFor)
    }

    /// The same, for proxies that write `Forwarded` (RFC 7239).
    ///
    /// # Errors
    /// [`InvalidNetwork`] for what is neither, such as a host name.
    pub fn forwarded<N>(networks: N) -> Result<Self, InvalidNetwork>
    where
        N: IntoIterator<Item: AsRef<str>>,
    {
        Self::new(networks, Field::Forwarded)
    }

    fn new<N>(networks: N, field: Field) -> Result<Self, InvalidNetwork>
    where
        N: IntoIterator<Item: AsRef<str>>,
    {
        let parse = |text: N::Item| {
            let text = text.as_ref();
            let network = text.parse().or_else(|_| text.parse().map(IpAddr::into));
            network.map_err(|_| InvalidNetwork { text: text.to_owned() })
        };
        let networks = networks.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(Self { networks, field })
    }

    fn trust(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// The nearest address that isn't a proxy's.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let field = match self.field {
            Field::XForwardedFor => X_FORWARDED_FOR,
            Field::Forwarded => http::header::FORWARDED,
        };
        let lines = headers.get_all(field).iter().rev();
        let mut hops = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
        let mut nearest = peer;
        while self.trust(nearest)
            && let Some(address) = hops.next().and_then(|hop| self.hop(hop))
        {
            nearest = address;
        }
        nearest
    }

    fn hop(&self, hop: &[u8]) -> Option<IpAddr> {
        let hop = str::from_utf8(hop).ok()?.trim();
        match self.field {
            Field::XForwardedFor => address_of(hop),
            Field::Forwarded => {
                let (_, node) = hop
                    .split(';')
                    .filter_map(|pair| pair.split_once('='))
                    .find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
                let node = node.trim();
                let quoted = || node.strip_prefix('"')?.strip_suffix('"');
                address_of(quoted().unwrap_or(node))
            }
        }
    }
}

/// What is neither a network (`10.0.0.0/8`) nor an address (`10.0.0.1`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidNetwork {
    /// What it was.
    pub text: String,
}

impl fmt::Display for InvalidNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no network or address, such as 10.0.0.0/8 or 10.0.0.1", self.text)
    }
}

impl std::error::Error for InvalidNetwork {}

/// The address that a request comes from.
pub(super) fn address(head: Head<'_>, proxies: Option<&Proxies>) -> Option<IpAddr> {
    let Some(peer) = peer(head) else {
        if !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "requests carry no ConnectInfo<SocketAddr>: they all count as one peer; \
                 serve with into_make_service_with_connect_info"
            );
        }
        return None;
    };
    Some(proxies.map_or(peer, |proxies| proxies.client(peer, head.headers)))
}

/// What an address counts as: itself, or in IPv6 its /64.
pub(super) fn counted_as(address: IpAddr) -> CompactString {
    match address {
        IpAddr::V4(address) => format_compact!("{address}"),
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64));
            format_compact!("{network}/64")
        }
    }
}

fn peer(head: Head<'_>) -> Option<IpAddr> {
    let connected = head.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    let mocked = || head.extensions.get::<MockConnectInfo<SocketAddr>>().map(|info| info.0);
    connected.or_else(mocked).map(|address| address.ip().to_canonical())
}

/// An address, in brackets or not, with a port or not; IPv4 in IPv6 is IPv4.
fn address_of(node: &str) -> Option<IpAddr> {
    let bare = || node.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || node.parse().ok().map(|address: SocketAddr| address.ip());
    let address: IpAddr = node.parse().ok().or_else(bare).or_else(with_port)?;
    Some(address.to_canonical())
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Whether it was said already that addresses are missing.
static WARNED: AtomicBool = AtomicBool::new(false);
