//! Peer addresses as keys.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use paceline::middleware::respond::{InvalidNetwork, Proxies};
use paceline::quota::Quota;
use tower::{Layer, ServiceExt};

use super::*;

/// Returns the key of a request from this address with these header fields.
async fn key(scope: Scope, from: &str, fields: &[(&'static str, &str)]) -> String {
    let limiter = builder().quota("*", Quota::new().rpm(10)).build().unwrap();
    let service = respond(&limiter).scope(scope).layer(service_returning(hello));
    let mut request = get(fields);
    let from = SocketAddr::new(from.parse::<IpAddr>().unwrap(), 4_711);
    request.extensions_mut().insert(ConnectInfo(from));
    drop(service.oneshot(request).await.unwrap());
    let [key] = <[_; 1]>::try_from(limiter.state().snapshot()).unwrap();
    key.key
}

const XFF: &str = "x-forwarded-for";

#[tokio::test(start_paused = true)]
async fn peer_key_is_ipv4_address_or_ipv6_64_prefix() {
    for (from, expected) in [
        ("203.0.113.7", "peer:203.0.113.7"),
        ("::ffff:203.0.113.7", "peer:203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "peer:2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "peer:2001:db8:1:2::/64"),
    ] {
        assert_eq!(key(Scope::peer(), from, &[]).await, expected);
    }
    assert_eq!(key(Scope::peer().hashed(), "203.0.113.7", &[]).await.len(), 5 + 32);
}

#[tokio::test(start_paused = true)]
async fn forwarded_fields_from_untrusted_client_are_ignored() {
    let spoofed = [(XFF, "198.51.100.9"), ("forwarded", "for=198.51.100.9")];
    assert_eq!(key(Scope::peer(), "203.0.113.7", &spoofed).await, "peer:203.0.113.7");
    for proxies in [Proxies::x_forwarded_for(["10.0.0.0/8"]), Proxies::forwarded(["10.0.0.0/8"])] {
        let scope = Scope::peer_behind(proxies.unwrap());
        assert_eq!(key(scope, "203.0.113.7", &spoofed).await, "peer:203.0.113.7");
    }
}

#[tokio::test(start_paused = true)]
async fn nearest_untrusted_address_is_the_peer() {
    let behind = || {
        let proxies = Proxies::x_forwarded_for(["10.0.0.0/8", "192.0.2.1", "2001:db8:f::/48"]);
        Scope::peer_behind(proxies.unwrap())
    };
    for (lines, expected) in [
        (&["203.0.113.7"][..], "203.0.113.7"),
        // Addresses further left are set by the client.
        (&["1.1.1.1, 203.0.113.7"], "203.0.113.7"),
        (&["1.1.1.1", "203.0.113.7 , 10.2.3.4", "192.0.2.1,2001:db8:f::1"], "203.0.113.7"),
        (&["203.0.113.7:4711"], "203.0.113.7"),
        (&["::ffff:203.0.113.7"], "203.0.113.7"),
        (&["[2001:db8:1:2::9]:4711"], "2001:db8:1:2::/64"),
        (&["2001:db8:1:2::9"], "2001:db8:1:2::/64"),
        // Only proxies: the leftmost is the client.
        (&["10.9.9.9, 10.2.3.4"], "10.9.9.9"),
        (&[], "10.0.0.1"),
        // An unreadable entry ends the search.
        (&["203.0.113.7, unknown"], "10.0.0.1"),
        (&["203.0.113.7, evil, 10.2.3.4"], "10.2.3.4"),
        (&["203.0.113.7,"], "10.0.0.1"),
        (&["\u{e9}"], "10.0.0.1"),
    ] {
        let fields: Vec<_> = lines.iter().map(|line| (XFF, *line)).collect();
        let expected = format!("peer:{expected}");
        assert_eq!(key(behind(), "10.0.0.1", &fields).await, expected, "{lines:?}");
    }
    // The proxies do not set the other field.
    let other = [("forwarded", "for=198.51.100.9")];
    assert_eq!(key(behind(), "10.0.0.1", &other).await, "peer:10.0.0.1");
}

#[tokio::test(start_paused = true)]
async fn forwarded_field_is_parsed_by_rfc_7239() {
    let behind = || Scope::peer_behind(Proxies::forwarded(["10.0.0.0/8"]).unwrap());
    for (lines, expected) in [
        (&["for=203.0.113.7"][..], "203.0.113.7"),
        (&["For=\"203.0.113.7:4711\";proto=https;by=10.0.0.1"], "203.0.113.7"),
        (&["proto=https; for = \"[2001:db8:1:2::9]:4711\""], "2001:db8:1:2::/64"),
        (&["for=1.1.1.1, for=203.0.113.7;by=10.0.0.1", "for=10.2.3.4"], "203.0.113.7"),
        // Obfuscated, unknown and missing identifiers.
        (&["for=203.0.113.7, for=_hidden"], "10.0.0.1"),
        (&["for=203.0.113.7, for=unknown"], "10.0.0.1"),
        (&["for=203.0.113.7, proto=https"], "10.0.0.1"),
        // A quote left open by a client does not hide entries of a proxy.
        (&["for=1.1.1.1;x=\", for=203.0.113.7"], "203.0.113.7"),
        (&["for=\"203.0.113.7"], "10.0.0.1"),
    ] {
        let fields: Vec<_> = lines.iter().map(|line| ("forwarded", *line)).collect();
        let expected = format!("peer:{expected}");
        assert_eq!(key(behind(), "10.0.0.1", &fields).await, expected, "{lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ipv4_mapped_network_matches_ipv4_peers() {
    let fields = [(XFF, "203.0.113.7")];
    for (network, peer, is_trusted) in [
        ("::ffff:10.0.0.0/104", "10.255.0.1", true),
        ("::ffff:10.0.0.0/104", "::ffff:10.255.0.1", true),
        ("::ffff:10.0.0.0/104", "11.0.0.1", false),
        ("::ffff:10.1.2.3/104", "10.9.9.9", true),
        ("::ffff:0:0/96", "198.51.100.1", true),
        ("::ffff:0:0/96", "2001:db8:1:2::9", false),
        ("::ffff:10.0.0.1/128", "10.0.0.1", true),
        ("::ffff:10.0.0.1", "10.0.0.1", true),
        ("::ffff:10.0.0.1", "10.0.0.2", false),
        // Not IPv4-mapped.
        ("::10.0.0.0/104", "10.0.0.1", false),
    ] {
        let proxies = Proxies::x_forwarded_for([network]).unwrap();
        let key = key(Scope::peer_behind(proxies), peer, &fields).await;
        assert_eq!(key == "peer:203.0.113.7", is_trusted, "{network} {peer}");
    }
}

#[test]
fn invalid_network_is_refused() {
    for text in ["proxy.example", "10.0.0.0/33", "", "10.0.0"] {
        let error: InvalidNetwork = Proxies::forwarded([text]).unwrap_err();
        assert_eq!(error.text, text);
        assert!(error.to_string().contains("invalid network"), "{error}");
    }
}
