use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::ConnectInfo;
use axum::extract::connect_info::MockConnectInfo;
use compact_str::{CompactString, format_compact};
use http::{HeaderMap, HeaderName};
use ipnet::{IpNet, Ipv4Net};

use super::head::Head;

/// The trusted proxies in front of a service.
///
/// Each proxy appends the address of its own client to a header field. From right to left, the first
/// address that isn't a trusted proxy is the client's; addresses further left may be forged. The
/// search stops at an invalid address, and the request counts for the proxy that wrote it.
///
/// Only the configured field is read, since most proxies forward the other one as the client sent it.
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
    /// Trusts the proxies in `networks`, given as networks or addresses, which write
    /// `X-Forwarded-For`.
    ///
    /// # Errors
    /// Returns [`InvalidNetwork`] if an entry is neither, such as a host name.
    pub fn x_forwarded_for<N>(networks: N) -> Result<Self, InvalidNetwork>
    where
        N: IntoIterator<Item: AsRef<str>>,
    {
        Self::new(networks, Field::XForwardedFor)
    }

    /// Trusts the proxies in `networks`, given as networks or addresses, which write `Forwarded`
    /// (RFC 7239).
    ///
    /// # Errors
    /// Returns [`InvalidNetwork`] if an entry is neither, such as a host name.
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
            network.map(canonical_network).map_err(|_| InvalidNetwork { text: text.to_owned() })
        };
        let networks = networks.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(Self { networks, field })
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Returns the address of the client: the nearest one that isn't a trusted proxy.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let field = match self.field {
            Field::XForwardedFor => X_FORWARDED_FOR,
            Field::Forwarded => http::header::FORWARDED,
        };
        let lines = headers.get_all(field).iter().rev();
        let mut hops = lines.flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','));
        let mut nearest = peer;
        while self.is_trusted(nearest)
            && let Some(address) = hops.next().and_then(|hop| self.parse_hop(hop))
        {
            nearest = address;
        }
        nearest
    }

    fn parse_hop(&self, hop: &[u8]) -> Option<IpAddr> {
        let hop = str::from_utf8(hop).ok()?.trim();
        match self.field {
            Field::XForwardedFor => parse_address(hop),
            Field::Forwarded => {
                let (_, node) = hop
                    .split(';')
                    .filter_map(|pair| pair.split_once('='))
                    .find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
                let node = node.trim();
                let quoted = || node.strip_prefix('"')?.strip_suffix('"');
                parse_address(quoted().unwrap_or(node))
            }
        }
    }
}

/// The error for a text that is neither a network (`10.0.0.0/8`) nor an address (`10.0.0.1`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidNetwork {
    /// The invalid text.
    pub text: String,
}

impl fmt::Display for InvalidNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}: invalid network; use a CIDR network or an IP address, such as 10.0.0.0/8 or 10.0.0.1",
            self.text
        )
    }
}

impl std::error::Error for InvalidNetwork {}

/// Returns the address of the client that sent a request, or `None` if the connection has no address.
pub(super) fn address(head: Head<'_>, proxies: Option<&Proxies>) -> Option<IpAddr> {
    let Some(peer) = peer(head) else {
        if !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "requests have no ConnectInfo<SocketAddr>, so all of them count as one peer; \
                 serve with into_make_service_with_connect_info"
            );
        }
        return None;
    };
    Some(proxies.map_or(peer, |proxies| proxies.client(peer, head.headers)))
}

/// Returns the key of an address: the address itself for IPv4, its /64 network for IPv6.
pub(super) fn peer_key(address: IpAddr) -> CompactString {
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

/// Returns the IPv4 network of an IPv4-mapped IPv6 network, because the addresses of peers are mapped to
/// IPv4 too. Returns other networks unchanged.
fn canonical_network(network: IpNet) -> IpNet {
    let IpNet::V6(mapped) = network else { return network };
    let length = mapped.prefix_len().checked_sub(MAPPED_BITS);
    let ipv4 = mapped.addr().to_ipv4_mapped().zip(length);
    ipv4.and_then(|(address, length)| Ipv4Net::new(address, length).ok()).map_or(network, IpNet::V4)
}

/// Parses an address with optional brackets and an optional port. Maps IPv4-mapped IPv6 to IPv4.
fn parse_address(node: &str) -> Option<IpAddr> {
    let bare = || node.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || node.parse().ok().map(|address: SocketAddr| address.ip());
    let address: IpAddr = node.parse().ok().or_else(bare).or_else(with_port)?;
    Some(address.to_canonical())
}

/// The length of the prefix `::ffff:0:0` of IPv4-mapped IPv6 addresses, in bits (RFC 4291, 2.5.5.2).
const MAPPED_BITS: u8 = 96;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// `true` once the warning about missing addresses has been logged.
static WARNED: AtomicBool = AtomicBool::new(false);
