//! Another configuration while the bundle runs: what can change does, without the loss of a packet, and what cannot is named, and then nothing
//! changes.

use farlink_core::Time;
use farlink_core::paths::{PathId, PathRules};
use ipnet::IpNet;

use crate::privileged::{Change, Helper, PrivilegedError};

use super::config::{At, Config};
use super::driver::Driver;
use super::events::Event;
use super::path_config::PathConfig;
use super::session::MOST_PATHS;

/// A change of the device or of its routes, which can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Address(Change, IpNet),
    Route(Change, IpNet),
    Mtu { from: u16, to: u16 },
}

impl Step {
    fn take(self, helper: &mut Helper) -> Result<(), PrivilegedError> {
        match self {
            Step::Address(change, net) => helper.address(change, net),
            Step::Route(change, net) => helper.route(change, net),
            Step::Mtu { to, .. } => helper.mtu(to),
        }
    }

    fn back(self) -> Self {
        let other = |change| match change {
            Change::Add => Change::Remove,
            Change::Remove => Change::Add,
        };
        match self {
            Step::Address(change, net) => Step::Address(other(change), net),
            Step::Route(change, net) => Step::Route(other(change), net),
            Step::Mtu { from, to } => Step::Mtu { from: to, to: from },
        }
    }
}

/// The steps from one configuration to another. What comes is there before something goes.
fn steps(old: &Config, new: &Config, has_routes: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut change = |old: &[IpNet], new: &[IpNet], step: fn(Change, IpNet) -> Step| {
        steps.extend(new.iter().filter(|net| !old.contains(net)).map(|&net| step(Change::Add, net)));
        steps.extend(old.iter().filter(|net| !new.contains(net)).map(|&net| step(Change::Remove, net)));
    };
    change(&old.tun.addresses, &new.tun.addresses, Step::Address);
    if has_routes {
        change(&old.routes, &new.routes, Step::Route);
    }
    let (from, to) = (old.tun.mtu_bytes, new.tun.mtu_bytes);
    if from != to {
        steps.push(Step::Mtu { from, to });
    }
    steps
}

/// A difference that cannot be taken over while the bundle runs.
fn fixed(old: &Config, new: &Config) -> Vec<String> {
    let mut all = Vec::new();
    let mut note = |key: &str, differs: bool| {
        if differs {
            all.push(key.to_owned());
        }
    };
    note("keys", old.keys.path() != new.keys.path());
    note("peer", old.peer.name != new.peer.name);
    note("peer_key", old.peer.key != new.peer.key);
    note("psk_file", !old.shared.is_same_as(&new.shared));
    match (&old.peer.at, &new.peer.at) {
        (At::Calls(_), At::Calls(_)) => {}
        (old, new) => note("listen", old != new),
    }
    note("tun.name", old.tun.name != new.tun.name);
    note("fallback", old.fallback != new.fallback);
    note("metrics", old.metrics != new.metrics);
    for path in &new.paths {
        let before = old.paths.iter().find(|it| it.name == path.name);
        if let Some(before) = before.filter(|it| it.number != path.number) {
            note(&format!("number of the path {} ({} in place of {})", path.name, path.number, before.number), true);
        }
        let at_number = old.path(path.number).and_then(|it| it.line.as_ref());
        note(&format!("serial line of the path {}", path.name), path.line.as_ref() != at_number);
    }
    for gone in old.paths.iter().filter(|it| it.line.is_some() && new.path(it.number).is_none()) {
        note(&format!("serial line of the path {}", gone.name), true);
    }
    all
}

/// Which paths come and go, in words.
fn in_words(old: &Config, new: &Config) -> String {
    let names = |all: &[PathConfig], others: &[PathConfig]| -> Vec<String> {
        let is_new = |path: &&PathConfig| others.iter().all(|it| it.name != path.name);
        all.iter().filter(is_new).map(|path| path.name.clone()).collect()
    };
    let (more, fewer) = (names(&new.paths, &old.paths), names(&old.paths, &new.paths));
    let mut text = "the new configuration is in force".to_owned();
    for (what, paths) in [("new paths", more), ("paths that are gone", fewer)] {
        if !paths.is_empty() {
            text.push_str(&format!("; {what}: {}", paths.join(", ")));
        }
    }
    text
}

impl<T: FnMut(Event)> Driver<T> {
    /// Reads the configuration again.
    pub(super) fn reload(&mut self) {
        let event = match self.try_reload() {
            Ok(text) => Event::new("reloaded", text),
            Err(why) => Event::new("not-reloaded", format!("the configuration before stays in force: {why}")),
        };
        (self.tell)(event);
    }

    fn try_reload(&mut self) -> Result<String, String> {
        let old = &self.parts.config;
        let new = Config::read(&old.path).map_err(|error| error.to_string())?;
        let fixed = fixed(old, &new);
        if !fixed.is_empty() {
            let all = fixed.join(", ");
            return Err(format!("{all}: cannot change while the bundle runs; start it again, or undo the change"));
        }
        let text = in_words(old, &new);
        let mut taken: Vec<Step> = Vec::new();
        for step in steps(old, &new, self.has_routes) {
            if let Err(error) = step.take(&mut self.parts.helper) {
                for done in taken.into_iter().rev() {
                    if let Err(error) = done.back().take(&mut self.parts.helper) {
                        tracing::warn!(%error, "a change of the device cannot be taken back");
                    }
                }
                return Err(error.to_string());
            }
            taken.push(step);
        }
        self.use_config(new);
        Ok(text)
    }

    fn use_config(&mut self, new: Config) {
        let now = self.clock.now();
        let old = std::mem::replace(&mut self.parts.config, new);
        let new = &self.parts.config;
        self.bundle.set_config(now, new.scheduler.clone());
        self.session.set_paths(new.numbers());
        let is_caller = matches!(new.peer.at, At::Calls(_));
        for number in 0..MOST_PATHS as u8 {
            let (id, index) = (PathId(number), usize::from(number));
            match (old.path(number), new.path(number)) {
                (Some(path), None) => {
                    self.told.remove(&path.name);
                    // Its numbers stay: the peer would take new ones for old packets.
                    let gone = PathRules { classes: 0, ..PathRules::DEFAULT };
                    self.bundle.set_rules(now, id, gone);
                    self.bundle.set_carrier(now, id, false);
                    if is_caller {
                        self.sockets[index] = None;
                        self.ways[index] = Err("the path is gone".to_owned());
                    }
                }
                (before, Some(path)) => {
                    if self.bundle.stats(id).state.is_none() {
                        self.bundle.add_path(now, path.rules.clone());
                        self.bundle.set_carrier(now, id, false);
                    } else {
                        self.bundle.set_rules(now, id, path.rules.clone());
                    }
                    // Handshakes spare a path that is a last resort.
                    let is_same = before.is_some_and(|it| it.rules.is_standby == path.rules.is_standby);
                    if is_caller && !is_same && path.line.is_none() {
                        self.ways[index] = Err("looked for again".to_owned());
                    }
                }
                (None, None) => {}
            }
        }
        let longest = |config: &Config| config.paths.iter().map(|it| (it.number, it.mtu_bytes)).collect::<Vec<_>>();
        if longest(&old) != longest(&self.parts.config) {
            self.set_longest();
        }
        self.next_look = Time::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn config(changes: &[(&str, &str)]) -> Config {
        let mut text = format!(
            r#"
            keys = "keys"
            peer = "vps"
            peer_key = "{KEY}"
            address = "203.0.113.5:47471"
            routes = ["0.0.0.0/0"]
            [tun]
            name = "farlink0"
            addresses = ["10.77.0.2/24"]
            [[path]]
            name = "one"
            interface = "eth1"
            [[path]]
            name = "two"
            serial = "/dev/ttyS0"
            rate_bps = 2400
            "#
        );
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        Config::parse(Path::new("ship.toml"), &text).unwrap()
    }

    #[test]
    fn what_cannot_change_is_named() {
        let old = config(&[]);
        for (from, to, named) in [
            ("\"keys\"", "\"others\"", "keys"),
            ("\"vps\"", "\"elsewhere\"", "peer"),
            ("\"AAA", "\"BAA", "peer_key"),
            ("farlink0", "farlink1", "tun.name"),
            ("[tun]", "fallback = true\n[tun]", "fallback"),
            ("[tun]", "metrics = \"127.0.0.1:9\"\n[tun]", "metrics"),
            ("name = \"one\"", "name = \"one\"\nnumber = 5", "number of the path one (5 in place of 0)"),
            ("rate_bps = 2400", "rate_bps = 9600", "serial line of the path two"),
            ("/dev/ttyS0", "/dev/ttyS1", "serial line of the path two"),
        ] {
            assert_eq!(fixed(&old, &config(&[(from, to)])), [named], "{to}");
        }
        let mut without = config(&[]);
        without.paths.pop();
        assert_eq!(fixed(&old, &without), ["serial line of the path two"]);
        let free = [
            ("\"203.0.113.5:47471\"", "\"203.0.113.6:47471\""),
            ("\"eth1\"", "\"eth2\""),
            ("name = \"one\"", "name = \"other\""),
            ("[[path]]", "[[path]]\nname = \"three\"\nnumber = 3\ninterface = \"eth3\"\n[[path]]\nnumber = 0"),
            ("name = \"two\"", "name = \"two\"\nnumber = 1\nbytes_a_day = 1e6"),
            ("[tun]", "[limits]\nlatency_s = 0.1\n[tun]"),
        ];
        assert_eq!(fixed(&old, &config(&free)), [""; 0]);
    }

    #[test]
    fn only_what_differs_is_changed_and_what_comes_is_there_first() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let old = config(&[]);
        assert_eq!(steps(&old, &config(&[]), true), []);
        let new = config(&[
            ("10.77.0.2/24", "10.78.0.2/24"),
            ("0.0.0.0/0", "10.0.0.0/8"),
            ("[[path]]", "mtu_bytes = 1300\n[[path]]"),
        ]);
        let all = steps(&old, &new, true);
        let address = |change, text| Step::Address(change, net(text));
        let route = |change, text| Step::Route(change, net(text));
        assert_eq!(
            all,
            [
                address(Change::Add, "10.78.0.2/24"),
                address(Change::Remove, "10.77.0.2/24"),
                route(Change::Add, "10.0.0.0/8"),
                route(Change::Remove, "0.0.0.0/0"),
                Step::Mtu { from: 1400, to: 1300 },
            ]
        );
        assert_eq!(steps(&old, &new, false).len(), 3, "routes that are not there are not changed");
        assert!(all.iter().all(|step| step.back().back() == *step));
    }
}
