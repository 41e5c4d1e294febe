//! Networks that are nobody's on the Internet: private, of this host, of a link, or reserved.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use ipnet::IpNet;

/// As the registries of IANA list them (RFC 6890), with multicast; and networks that embed an IPv4 address, behind which any of these may be.
const SPECIAL: [&str; 32] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    "::ffff:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:db8::/32",
    "2001:10::/28",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

/// The special network in which an address is.
pub(super) fn network_of(address: IpAddr) -> Option<IpNet> {
    let networks = SPECIAL.iter().map(|text| text.parse::<IpNet>().expect("a constant"));
    networks.into_iter().find(|network| network.contains(&address))
}

/// An address of this machine, as a network: over the loopback interface it reaches what firewalls hide from others.
pub(super) fn own(address: IpAddr) -> Option<IpNet> {
    let any: SocketAddr =
        if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    // This sends nothing. To itself, a machine would send from the same address.
    socket.connect((address, 9)).ok()?;
    (socket.local_addr().ok()?.ip() == address).then(|| address.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known() {
        assert_eq!(own(Ipv4Addr::LOCALHOST.into()), Some(IpNet::from(IpAddr::from(Ipv4Addr::LOCALHOST))));
        assert_eq!(own([192, 0, 2, 77].into()), None);
    }

    #[test]
    fn only_special_addresses_are_special() {
        for public in ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2001:4860:4860::8888"] {
            assert_eq!(network_of(public.parse().unwrap()), None, "{public}");
        }
        for special in
            ["10.0.0.1", "127.9.9.9", "198.19.0.1", "::1", "fe80::1", "febf::1", "fdff::1", "64:ff9b::808:808"]
        {
            assert!(network_of(special.parse().unwrap()).is_some(), "{special}");
        }
    }
}
