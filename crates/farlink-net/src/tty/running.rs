//! Follows what happens to a bundle of lines: addresses, routes, metrics, and terminals that are handed over.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::time::Duration;

use farlink_core::ppp::{Event as PppEvent, Properties};
use ipnet::{IpNet, Ipv6Net};
use tokio::net::TcpListener;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{MissedTickBehavior, interval};

use super::TtyError;
use super::config::TtyConfig;
use super::driver::{Driver, Happened};
use super::events::Event;
use super::metrics;
use super::orders::{Order, Orders};
use super::start::TtyBundle;
use crate::bundle::metrics::{Shared, serve};
use crate::privileged::{Change, DeviceName, Helper, LONGEST_MTU, PrivilegedError, SHORTEST_MTU, end_of};

/// Metrics, and what lines have carried, are told so often.
const TICK: Duration = Duration::from_secs(1);
/// The network of link-local addresses (RFC 4291, section 2.5.6).
const LINK_LOCAL: u128 = 0xfe80 << 112;
const LINK_LOCAL_LENGTH: u8 = 64;

/// Settings that the device has by now.
#[derive(Debug, Default)]
struct Given {
    pair: Option<(Ipv4Addr, Ipv4Addr)>,
    link_local: Option<IpNet>,
    mtu: Option<u16>,
    has_routes: bool,
}

struct Running<T> {
    config: TtyConfig,
    helper: Helper,
    device: DeviceName,
    given: Given,
    metrics: Option<Shared>,
    /// The latest report of the bytes that each line has carried, if an operator asks for it.
    carried: Vec<(u64, u64)>,
    tell: T,
}

impl TtyBundle {
    /// Runs until `stop` says something, or is closed, or the operator behind `orders` has ended. `tell` is told what happens.
    ///
    /// # Errors
    /// If the helper or the device ends, or the system refuses something.
    pub async fn run(
        self,
        mut stop: UnboundedReceiver<()>,
        orders: Option<OwnedFd>,
        tell: impl FnMut(Event),
    ) -> Result<(), TtyError> {
        let TtyBundle { config, helper, tun, device, capture } = self;
        let ended = Receiver::from_owned_fd_unchecked(helper.ended()?)?;
        let orders = orders.map(Orders::new).transpose()?;
        let mut driver = Driver::start(config.clone(), tun, capture)?;
        let given = Given { has_routes: !config.fallback, ..Given::default() };
        let carried = vec![(0, 0); config.lines.len()];
        let mut running = Running { metrics: served(&config)?, config, helper, device, given, carried, tell };
        let process = running.helper.process();
        let started = format!("{} is ready; helper process {process}", running.device);
        (running.tell)(Event::new("started", started));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = stop.recv() => break,
                () = end_of(&ended) => return Err(TtyError::Ended("the helper process")),
                order = next_order(orders.as_ref()) => match order? {
                    None => break,
                    Some((order, terminal)) => running.obey(&mut driver, order, terminal),
                },
                _ = ticks.tick() => running.tick(&driver, orders.is_some()),
                happened = driver.next_event() => match happened? {
                    Happened::Bundle(event) => running.follow(&event)?,
                    Happened::Released(line) => {
                        running.tell_carried(&driver, line);
                        running.tell_of(line, "detached", "its terminal is closed here");
                    }
                },
            }
        }
        driver.close().await;
        running.end()
    }
}

async fn next_order(orders: Option<&Orders>) -> io::Result<Option<(Order, Option<OwnedFd>)>> {
    match orders {
        Some(orders) => orders.next().await,
        None => std::future::pending().await,
    }
}

/// Serves metrics, if they are wanted.
fn served(config: &TtyConfig) -> Result<Option<Shared>, TtyError> {
    let Some(address) = config.metrics else { return Ok(None) };
    let failed = |error| TtyError::Output { what: format!("metrics at {address}"), error };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let shared = Shared::default();
    tokio::spawn(serve(TcpListener::from_std(listener).map_err(failed)?, shared.clone()));
    Ok(Some(shared))
}

impl<T: FnMut(Event)> Running<T> {
    fn tell_of(&mut self, line: usize, kind: &'static str, text: impl Into<String>) {
        let event = Event::of_line(&self.config, kind, line, text);
        (self.tell)(event);
    }

    fn obey(&mut self, driver: &mut Driver, order: Order, terminal: Option<OwnedFd>) {
        let name = match &order {
            Order::Attach(name) | Order::Detach(name) => name.clone(),
        };
        let line = self.config.lines.iter().position(|line| line.name == name);
        let is_obeyed = match (order, line, terminal) {
            (Order::Attach(_), Some(line), Some(terminal)) => driver.hand_over(line, Some(terminal)),
            (Order::Detach(_), Some(line), _) => driver.hand_over(line, None),
            _ => false,
        };
        if !is_obeyed {
            let text =
                format!("an order for line {name:?} is not obeyed; such a line needs a table [[line]] without `port`");
            (self.tell)(Event::new("fault", text));
        }
    }

    fn tick(&mut self, driver: &Driver, is_operated: bool) {
        if let Some(shared) = &self.metrics {
            let text = metrics::text(&self.config, driver);
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        if is_operated {
            (0..self.config.lines.len()).for_each(|line| self.tell_carried(driver, line));
        } else {
            let text = metrics::line_of_status(&self.config, driver);
            (self.tell)(Event::new("status", text));
        }
    }

    /// Bytes that a line has carried, in and out, if they have changed.
    fn tell_carried(&mut self, driver: &Driver, line: usize) {
        let now = driver.carried(line);
        if std::mem::replace(&mut self.carried[line], (now.bytes_in, now.bytes_out)) != (now.bytes_in, now.bytes_out) {
            self.tell_of(line, "carried", format!("{} {}", now.bytes_in, now.bytes_out));
        }
    }

    fn follow(&mut self, event: &PppEvent) -> Result<(), TtyError> {
        if let PppEvent::NetworkUp(properties) = event
            && let Err(error) = self.give(properties)
        {
            self.tell_of_helper(&error)?;
        }
        let is_up = match event {
            PppEvent::NetworkUp(_) => true,
            PppEvent::NetworkDown => false,
            _ => self.given.has_routes,
        };
        (self.tell)(Event::of_bundle(&self.config, event));
        if self.config.fallback && is_up != self.given.has_routes {
            self.given.has_routes = is_up;
            let change = if is_up { Change::Add } else { Change::Remove };
            for to in self.config.routes.clone() {
                if let Err(error) = self.helper.route(change, to) {
                    self.tell_of_helper(&error)?;
                }
            }
        }
        Ok(())
    }

    /// A refusal of the kernel is a fault, and the bundle goes on; a helper that is gone ends it.
    fn tell_of_helper(&mut self, error: &PrivilegedError) -> Result<(), TtyError> {
        match error {
            PrivilegedError::Refused(why) => {
                (self.tell)(Event::new("fault", why.clone()));
                Ok(())
            }
            _ => Err(TtyError::Ended("the helper process")),
        }
    }

    /// Gives the device the addresses and the MTU that both ends have agreed on. They stay while no line is up, so that connections live on.
    fn give(&mut self, properties: &Properties) -> Result<(), PrivilegedError> {
        let mtu = properties.mtu.min(LONGEST_MTU);
        if self.given.mtu != Some(mtu) {
            self.helper.mtu(mtu)?;
            self.given.mtu = Some(mtu);
        }
        let pair = properties.ipv4.map(|addresses| (addresses.own, addresses.peer));
        if pair != self.given.pair {
            if let Some((own, peer)) = self.given.pair.take() {
                self.address(Change::Remove, own, peer)?;
            }
            if let Some((own, peer)) = pair {
                self.address(Change::Add, own, peer)?;
                self.given.pair = pair;
            }
        }
        let identifier = properties.ipv6.map(|(own, _)| own).filter(|_| mtu >= SHORTEST_MTU);
        let link_local = identifier.map(|own| {
            let address = Ipv6Addr::from(LINK_LOCAL | u128::from(own));
            IpNet::V6(Ipv6Net::new_assert(address, LINK_LOCAL_LENGTH))
        });
        if link_local != self.given.link_local {
            if let Some(before) = self.given.link_local.take() {
                self.helper.address(Change::Remove, before)?;
            }
            if let Some(now) = link_local {
                self.helper.address(Change::Add, now)?;
                self.given.link_local = Some(now);
            }
        }
        Ok(())
    }

    fn address(&mut self, change: Change, own: Ipv4Addr, peer: Ipv4Addr) -> Result<(), PrivilegedError> {
        if peer.is_unspecified() {
            return self.helper.address(change, IpNet::from(IpAddr::V4(own)));
        }
        self.helper.address_pair(change, own, peer)
    }

    /// Takes away what guards the routes. The device goes with the process.
    fn end(mut self) -> Result<(), TtyError> {
        if self.given.has_routes {
            for &to in &self.config.routes {
                self.helper.route(Change::Remove, to)?;
            }
        }
        Ok(())
    }
}
