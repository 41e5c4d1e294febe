//! Several peers in one process: what their configurations may not have in common.

use std::net::SocketAddr;

use ipnet::IpNet;

use super::config::{At, Config};
use super::error::BundleError;

/// Whether bundles can run in one process.
///
/// # Errors
/// Names the two files and what they have in common.
pub fn check(configs: &[Config]) -> Result<(), BundleError> {
    for (at, one) in configs.iter().enumerate() {
        for other in &configs[..at] {
            if let Some((what, remedy)) = clash(one, other) {
                let what = format!("{what}, as {} has it", other.path.display());
                return Err(BundleError::config(&one.path, what, remedy));
            }
        }
    }
    Ok(())
}

/// A resource that two configurations share, and the remedy.
fn clash(one: &Config, other: &Config) -> Option<(String, &'static str)> {
    if one.path == other.path {
        return Some(("the configuration is there twice".to_owned(), "give each file once"));
    }
    if one.peer.name == other.peer.name {
        return Some((format!("peer: {:?}", one.peer.name), "give each peer a name of its own"));
    }
    if one.peer.key == other.peer.key {
        let what = format!("peer_key: {} of {}", one.peer.key, one.peer.name);
        return Some((what, "give each peer a key of its own: farlink keygen at its end"));
    }
    if one.tun.name.is_some() && one.tun.name == other.tun.name {
        let name = one.tun.name.as_ref().map_or(String::new(), ToString::to_string);
        return Some((format!("tun.name: {name}"), "give each peer a device of its own"));
    }
    let overlap = |one: &[IpNet], other: &[IpNet]| {
        let is_shared = |net: &&IpNet| other.iter().any(|it| it.contains(&net.trunc()) || net.contains(&it.trunc()));
        one.iter().find(is_shared).copied()
    };
    if let Some(net) = overlap(&one.tun.addresses, &other.tun.addresses) {
        let remedy = "give each peer a network of its own, for example 10.77.1.1/24 and 10.77.2.1/24";
        return Some((format!("tun.addresses: {net} overlaps"), remedy));
    }
    if let Some(net) = one.routes.iter().find(|net| other.routes.contains(net)) {
        return Some((format!("routes: {net}"), "give each network to one peer"));
    }
    let listens = |config: &Config| match &config.peer.at {
        At::Listens(all) => all.clone(),
        At::Calls(_) => Vec::new(),
    };
    let theirs = listens(other);
    let is_taken = |own: &&SocketAddr| {
        theirs.iter().any(|it| {
            let is_one_family = it.is_ipv4() == own.is_ipv4();
            let is_any = it.ip().is_unspecified() || own.ip().is_unspecified();
            it.port() == own.port() && is_one_family && (is_any || it.ip() == own.ip())
        })
    };
    if let Some(address) = listens(one).iter().find(is_taken) {
        return Some((format!("listen: {address}"), "give each peer a port of its own, for example 47471 and 47472"));
    }
    let line = |config: &Config| -> Vec<_> {
        config.paths.iter().filter_map(|path| path.line.as_ref()?.port.clone()).collect()
    };
    let ports = line(other);
    line(one)
        .into_iter()
        .find(|port| ports.contains(port))
        .map(|port| (format!("serial: {}", port.display()), "give each path its own port"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::seal::StaticKey;

    use super::*;

    fn text(number: u8) -> String {
        let key = StaticKey::generate().public();
        format!(
            r#"
            keys = "keys"
            peer = "ship{number}"
            peer_key = "{key}"
            listen = ["0.0.0.0:4747{number}", "[::]:4747{number}"]
            routes = ["192.168.{number}.0/24"]
            [tun]
            name = "ship{number}"
            addresses = ["10.77.{number}.1/24"]
            [[path]]
            name = "any"
            "#
        )
    }

    fn both(one: &str, other: &str) -> Result<(), String> {
        let parse = |name: &str, text: &str| Config::parse(Path::new(name), text).unwrap();
        check(&[parse("a.toml", one), parse("b.toml", other)]).map_err(|error| {
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        })
    }

    #[test]
    fn peers_that_are_apart_run_together_and_others_are_named() {
        let (one, other) = (text(1), text(2));
        both(&one, &other).unwrap();
        let key = |text: &str| text.lines().find(|line| line.contains("peer_key")).unwrap().trim().to_owned();
        for (from, to, said) in [
            ("ship2\"\n            peer_key", "ship1\"\n            peer_key", "peer: \"ship1\", as a.toml has it"),
            (&*key(&other), &*key(&one), "peer_key: "),
            ("name = \"ship2\"", "name = \"ship1\"", "tun.name: ship1"),
            ("10.77.2.1/24", "10.77.0.1/16", "tun.addresses: 10.77.0.1/16 overlaps"),
            ("192.168.2.0", "192.168.1.0", "routes: 192.168.1.0/24"),
            ("\"0.0.0.0:47472\"", "\"127.0.0.1:47471\"", "listen: 127.0.0.1:47471"),
            ("[::]:47472", "[::1]:47471", "listen: [::1]:47471"),
        ] {
            assert!(other.contains(from), "{from}");
            let error = both(&one, &other.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains("b.toml: ") && error.contains(said) && error.contains("; give "), "{error}");
        }
        assert!(both(&one, &one).is_err());
    }
}
