//! The way that each path of a calling end has at present: an interface that is up, with an address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::privileged::DeviceName;

use super::interfaces::Interface;
use super::path_config::PathConfig;

/// Interface, source address and gateway of a path. If any of them changes, the path has another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) device: DeviceName,
    index: u32,
    addresses: Vec<IpAddr>,
    /// The own address that the socket is bound to.
    pub(super) source: IpAddr,
    pub(super) remote: SocketAddr,
    /// Longest packet, headers of IP included.
    pub(super) longest_bytes: u16,
}

/// The way of a path; why there is none otherwise.
pub(super) fn of(path: &PathConfig, all: &BTreeMap<String, Interface>) -> Result<Way, String> {
    if path.remotes.is_empty() {
        return Err("this end does not call".to_owned());
    }
    let (name, interface) = match (&path.interface, path.source) {
        (Some(name), _) => {
            let interface = all.get(name.as_str()).ok_or_else(|| format!("there is no interface {name}"))?;
            (name.as_str(), interface)
        }
        (None, Some(source)) => {
            let found = all.iter().find(|(_, interface)| interface.addresses.contains(&source));
            found
                .map(|(name, interface)| (name.as_str(), interface))
                .ok_or_else(|| format!("no interface has {source}"))?
        }
        (None, None) => return Err("neither interface nor address is given".to_owned()),
    };
    if !interface.is_up {
        return Err(format!("{name} has no carrier"));
    }
    let has_other = path.source.filter(|source| !interface.addresses.contains(source));
    if let Some(source) = has_other {
        return Err(format!("{name} does not have {source}"));
    }
    let own = |remote: &SocketAddr| -> Vec<IpAddr> {
        let of_family = |address: &&IpAddr| address.is_ipv4() == remote.is_ipv4();
        interface.addresses.iter().filter(of_family).copied().collect()
    };
    let is_reached = |remote: &&SocketAddr| match path.source {
        Some(source) => source.is_ipv4() == remote.is_ipv4(),
        None => !own(remote).is_empty(),
    };
    let Some(&remote) = path.remotes.iter().find(is_reached) else {
        let family = match &path.remotes[..] {
            [only] if only.is_ipv4() => " of IPv4",
            [_] => " of IPv6",
            _ => "",
        };
        return Err(format!("{name} has no address{family}"));
    };
    let addresses = own(&remote);
    let any = if remote.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    Ok(Way {
        device: name.parse()?,
        index: interface.index,
        addresses,
        source: path.source.unwrap_or(any),
        remote,
        longest_bytes: path.mtu_bytes.unwrap_or_else(|| interface.mtu_bytes.clamp(1200, 9000)),
    })
}

#[cfg(test)]
mod tests {
    use farlink_core::paths::PathRules;

    use super::*;

    fn path(interface: Option<&str>, source: Option<&str>) -> PathConfig {
        PathConfig {
            name: "one".to_owned(),
            number: 0,
            interface: interface.map(|name| name.parse().unwrap()),
            source: source.map(|source| source.parse().unwrap()),
            remotes: vec![([192, 0, 2, 1], 47_471).into()],
            mtu_bytes: None,
            line: None,
            rules: PathRules::default(),
        }
    }

    fn all(is_up: bool, addresses: &[&str]) -> BTreeMap<String, Interface> {
        let addresses = addresses.iter().map(|it| it.parse().unwrap()).collect();
        [("wwan0".to_owned(), Interface { index: 3, is_up, mtu_bytes: 1500, addresses })].into()
    }

    #[test]
    fn a_way_needs_carrier_and_address_of_the_right_family() {
        let by_name = path(Some("wwan0"), None);
        let way = of(&by_name, &all(true, &["10.0.0.1", "fd00::1"])).unwrap();
        assert_eq!((way.longest_bytes, way.addresses.len(), way.source.is_unspecified()), (1500, 1, true));
        for (interfaces, why) in [
            (all(false, &["10.0.0.1"]), "wwan0 has no carrier"),
            (all(true, &["fd00::1"]), "wwan0 has no address of IPv4"),
            (BTreeMap::new(), "there is no interface wwan0"),
        ] {
            assert_eq!(of(&by_name, &interfaces).unwrap_err(), why);
        }
        let by_source = path(None, Some("10.0.0.1"));
        assert_eq!(of(&by_source, &all(true, &["10.0.0.1"])).unwrap().device.as_str(), "wwan0");
        assert_eq!(of(&by_source, &all(true, &["10.0.0.2"])).unwrap_err(), "no interface has 10.0.0.1");
        let moved = of(&by_name, &all(true, &["10.0.0.2"])).unwrap();
        assert_ne!(moved, way, "another address is another way");
        let mut either = by_name;
        either.remotes.insert(0, "[2001:db8::1]:47471".parse().unwrap());
        assert!(of(&either, &all(true, &["10.0.0.1", "fd00::1"])).unwrap().remote.is_ipv6(), "the first that can be");
        assert!(of(&either, &all(true, &["10.0.0.1"])).unwrap().remote.is_ipv4());
        assert_eq!(of(&either, &all(true, &[])).unwrap_err(), "wwan0 has no address");
    }
}
