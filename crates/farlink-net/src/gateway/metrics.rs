//! Counts of a gateway, and their text for Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only grows, or a gauge.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:literal,)+) => {
        /// Counts of a gateway.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $name: Count,)+
        }

        impl Metrics {
            /// As text in the format of Prometheus.
            pub fn to_text(&self) -> String {
                let mut text = String::new();
                $(
                    let name = concat!("farlink_gateway_", stringify!($name));
                    let help = concat!($($doc),+);
                    writeln!(text, "# HELP {name}{help}\n# TYPE {name} {}\n{name} {}", $kind, self.$name.get())
                        .expect("a text grows");
                )+
                text
            }
        }
    };
}

metrics! {
    /// TCP connections that are carried at present.
    connections: "gauge",
    /// TCP connections taken from clients.
    accepted_total: "counter",
    /// TCP connections made to destinations.
    connected_total: "counter",
    /// Clients turned away because there was no room.
    turned_away_total: "counter",
    /// Clients of SOCKS5 and HTTP whose request was not understood, came too slowly, or had a wrong password.
    bad_requests_total: "counter",
    /// Connections to destinations that peers may not reach.
    not_allowed_total: "counter",
    /// Connections to destinations that could not be made.
    failed_total: "counter",
    /// Connections that ended in order in both directions.
    ended_total: "counter",
    /// Connections that were reset by a client or a destination.
    reset_total: "counter",
    /// Connections that were reset because the path between the gateways failed.
    lost_total: "counter",
    /// Bytes from TCP to the other gateway.
    sent_bytes_total: "counter",
    /// Bytes from the other gateway to TCP.
    received_bytes_total: "counter",
    /// UDP datagrams to the other gateway.
    sent_datagrams_total: "counter",
    /// UDP datagrams from the other gateway.
    received_datagrams_total: "counter",
    /// UDP datagrams that were dropped: too long, not allowed, or too many flows.
    dropped_datagrams_total: "counter",
}

impl Metrics {
    /// A datagram went to the other gateway, or did not.
    pub(super) fn count_sent(&self, is_sent: bool) {
        if is_sent { &self.sent_datagrams_total } else { &self.dropped_datagrams_total }.add(1);
    }

    /// A datagram of the other gateway went on, or did not.
    pub(super) fn count_received(&self, is_received: bool) {
        if is_received { &self.received_datagrams_total } else { &self.dropped_datagrams_total }.add(1);
    }
}

/// Counts as long as it lives.
pub(super) struct Present<'a>(&'a Count);

impl<'a> Present<'a> {
    pub(super) fn of(gauge: &'a Count) -> Self {
        gauge.add(1);
        Present(gauge)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.subtract(1);
    }
}
