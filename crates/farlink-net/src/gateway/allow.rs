//! Which destinations a peer may reach.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use ipnet::IpNet;

use super::destination::{Destination, Host};
use super::special;

/// The destinations that a peer may reach. An empty list allows none. `[T5]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Entry>);

/// One entry: hosts and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    text: String,
    hosts: Hosts,
    ports: Vec<RangeInclusive<u16>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    /// Every name that ends in this, behind a dot; all names if it is empty.
    Below(String),
    Name(String),
    Network(IpNet),
}

/// Why a text is no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {what}; {REMEDY}")]
pub struct NoEntry {
    text: String,
    what: &'static str,
}

impl NoEntry {
    /// The same, at this place of a file.
    pub(super) fn with_place(mut self, place: &str) -> Self {
        self.text = format!("{place}: {}", self.text);
        self
    }

    pub(super) fn what(&self) -> String {
        format!("{}: {}", self.text, self.what)
    }

    pub(super) fn remedy(&self) -> String {
        REMEDY.to_owned()
    }
}

const REMEDY: &str =
    "write HOSTS:PORTS with a name, *.DOMAIN, *, an address or ADDRESS/BITS, and ports as 80, 80,443, 8000-8010 or *";

impl AllowList {
    /// The list with these entries.
    ///
    /// # Errors
    /// The first that is none.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, NoEntry> {
        entries.into_iter().map(str::parse).collect::<Result<_, _>>().map(AllowList)
    }

    /// The entry that allows a destination before it is resolved, or might allow it afterwards.
    ///
    /// A name that matches no entry may still resolve to an address that does. So names are refused here only if there is no entry
    /// for the port.
    pub fn may_allow(&self, destination: &Destination) -> bool {
        match &destination.host {
            Host::Address(address) => self.allowing(destination, *address).is_some(),
            Host::Name(name) => self.0.iter().any(|entry| {
                let is_possible = match &entry.hosts {
                    Hosts::Network(_) => true,
                    hosts => hosts.has_name(name),
                };
                is_possible && entry.has_port(destination.port)
            }),
        }
    }

    /// The entry that allows this address, to which the destination has resolved. `[T6]`
    pub fn allowing(&self, destination: &Destination, address: IpAddr) -> Option<&Entry> {
        let address = address.to_canonical();
        let special = special::network_of(address).or_else(|| special::own(address));
        self.0.iter().filter(|entry| entry.has_port(destination.port)).find(|entry| match (&entry.hosts, special) {
            (Hosts::Network(network), None) => network.contains(&address),
            // A network that is part of the special one, or all of it; a larger network was not meant to include it.
            (Hosts::Network(network), Some(special)) => network.contains(&address) && special.contains(network),
            (hosts, None) => matches!(&destination.host, Host::Name(name) if hosts.has_name(name)),
            (_, Some(_)) => false,
        })
    }

    /// Whether it allows nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its entries.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }
}

impl Hosts {
    fn has_name(&self, name: &str) -> bool {
        match self {
            Hosts::Below(domain) if domain.is_empty() => true,
            Hosts::Below(domain) => name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.')),
            Hosts::Name(own) => own == name,
            Hosts::Network(_) => false,
        }
    }
}

impl Entry {
    /// Whether it names this destination, which is not resolved.
    pub(super) fn names(&self, destination: &Destination) -> bool {
        let has_host = match (&destination.host, &self.hosts) {
            (Host::Address(address), Hosts::Network(network)) => network.contains(address),
            (Host::Address(_), Hosts::Below(domain)) => domain.is_empty(), // "*"
            (Host::Address(_), Hosts::Name(_)) => false,
            (Host::Name(name), hosts) => hosts.has_name(name),
        };
        has_host && self.has_port(destination.port)
    }

    fn has_port(&self, port: u16) -> bool {
        self.ports.iter().any(|ports| ports.contains(&port))
    }
}

impl FromStr for Entry {
    type Err = NoEntry;

    fn from_str(text: &str) -> Result<Self, NoEntry> {
        let wrong = |what| NoEntry { text: text.chars().take(300).collect(), what };
        let (hosts, ports) = text.rsplit_once(':').ok_or_else(|| wrong("there are no ports"))?;
        let ports = ports.split(',').map(range).collect::<Option<Vec<_>>>();
        let ports = ports.ok_or_else(|| wrong("the ports are none"))?;
        let is_bare_v6 = hosts.contains(':') && !hosts.starts_with('[');
        if is_bare_v6 {
            return Err(wrong("an IPv6 address stands in brackets"));
        }
        let hosts = hosts_of(hosts).ok_or_else(|| wrong("the hosts are none"))?;
        Ok(Entry { text: text.to_owned(), hosts, ports })
    }
}

fn hosts_of(text: &str) -> Option<Hosts> {
    if text == "*" {
        return Some(Hosts::Below(String::new()));
    }
    if let Some(domain) = text.strip_prefix("*.") {
        let Ok(Host::Name(domain)) = Host::parse(domain) else { return None };
        return Some(Hosts::Below(domain.into()));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(network) = bare.parse::<IpNet>() {
        return Some(Hosts::Network(network.trunc()));
    }
    match Host::parse(text).ok()? {
        Host::Address(address) => Some(Hosts::Network(address.into())),
        Host::Name(name) => Some(Hosts::Name(name.into())),
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    if text == "*" {
        return Some(1..=u16::MAX);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (1 <= first && first <= last).then_some(first..=last)
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &[&str], destination: &str, resolved: &str) -> bool {
        let destination: Destination = destination.parse().unwrap();
        let list = AllowList::parse(list.iter().copied()).unwrap();
        let allowed = list.allowing(&destination, resolved.parse().unwrap()).is_some();
        assert!(!allowed || list.may_allow(&destination), "what is allowed is tried");
        allowed
    }

    #[test]
    fn an_empty_list_refuses_all() {
        for (destination, resolved) in
            [("example.org:80", "192.0.33.8"), ("8.8.8.8:53", "8.8.8.8"), ("localhost:80", "127.0.0.1")]
        {
            assert!(!allows(&[], destination, resolved));
        }
    }

    #[test]
    fn names_match_as_they_are_or_below_a_domain() {
        let list = ["*.example.org:443", "www.example.net:80,8000-8010"];
        assert!(allows(&list, "a.example.org:443", "8.8.8.8"));
        assert!(allows(&list, "a.b.EXAMPLE.org:443", "8.8.8.8"));
        assert!(allows(&list, "www.example.net:8005", "8.8.8.8"));
        for refused in
            ["example.org:443", "badexample.org:443", "a.example.org:80", "www.example.net:443", "x.www.example.net:80"]
        {
            assert!(!allows(&list, refused, "8.8.8.8"), "{refused}");
        }
        // An address is no name, wherever it belongs to.
        assert!(!allows(&list, "8.8.8.8:443", "8.8.8.8"));
    }

    /// A name that resolves to a private address is refused unless that address is listed: what resolves names may be anybody's.
    #[test]
    fn private_addresses_are_allowed_only_where_they_are_listed() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ];
        for address in private {
            for list in [&["*:*"][..], &["*:*", "0.0.0.0/0:*", "[::/0]:*"]] {
                assert!(!allows(list, "evil.example.org:80", address), "{address}");
                let literal = Destination { host: Host::parse(address).unwrap(), port: 80 };
                assert!(!allows(list, &literal.to_string(), address), "{address}");
            }
        }
        assert!(allows(&["10.0.0.0/8:80"], "intranet.example.org:80", "10.1.2.3"));
        assert!(allows(&["10.1.2.3:80"], "10.1.2.3:80", "10.1.2.3"));
        assert!(allows(&["127.0.0.1:80"], "localhost:80", "::ffff:127.0.0.1"));
        assert!(allows(&["[fd00::/8]:80"], "intranet.example.org:80", "fd00::1"));
        assert!(!allows(&["8.0.0.0/5:80"], "10.1.2.3:80", "10.1.2.3"), "a larger network was not meant for it");
        assert!(allows(&["0.0.0.0/0:80"], "8.8.8.8:80", "8.8.8.8"));
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for text in [
            "",
            "a",
            "a:",
            "a:0",
            "a:5-4",
            "a:80,",
            "2001:db8::1:80",
            "10.0.0.0/33:80",
            "*.:80",
            "**:80",
            "*.1.2.3.4:80",
            "a b:80",
        ] {
            assert!(AllowList::parse([text]).is_err(), "{text:?}");
        }
    }
}
