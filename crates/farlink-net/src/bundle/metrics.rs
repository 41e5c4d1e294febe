//! Numbers of a bundle, as text for Prometheus, over HTTP.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farlink_core::paths::{BundleStats, PathState, PathStats};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::session::Counts;

/// A metric: what stands over its samples, and samples: what stands in front of their labels, the labels and the value.
#[derive(Clone, Debug)]
pub(super) struct Family {
    head: String,
    samples: Vec<(String, String, String)>,
}

/// The latest counts of each peer on a page of metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    peers: Arc<Mutex<BTreeMap<String, Vec<Family>>>>,
    /// Whether samples say of which peer they are.
    has_peers: bool,
    text: Shared,
}

impl Pages {
    /// A page of one peer, or of several.
    pub(super) fn new(has_peers: bool) -> Self {
        Pages { has_peers, ..Pages::default() }
    }

    /// Metrics that [`serve`] serves.
    pub(super) fn text(&self) -> Shared {
        self.text.clone()
    }

    /// Numbers of a peer have changed.
    pub(super) fn set(&self, peer: &str, families: Vec<Family>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.insert(peer.to_owned(), families);
        let mut text = String::new();
        // All peers have the same metrics in the same order, and all samples of one stand together.
        let count = peers.values().map(Vec::len).min().unwrap_or(0);
        for at in 0..count {
            for (n, (peer, families)) in peers.iter().enumerate() {
                let family = &families[at];
                if n == 0 {
                    text.push_str(&family.head);
                }
                for (name, labels, value) in &family.samples {
                    let own = if self.has_peers { format!("peer=\"{peer}\"") } else { String::new() };
                    let all: Vec<&str> = [own.as_str(), labels].into_iter().filter(|it| !it.is_empty()).collect();
                    match &all[..] {
                        [] => writeln!(text, "{name} {value}"),
                        all => writeln!(text, "{name}{{{}}} {value}", all.join(",")),
                    }
                    .expect("a text grows");
                }
            }
        }
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// The latest text.
pub(crate) type Shared = Arc<Mutex<String>>;

/// Counters of the driver itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own {
    /// Packets from the device that are no IP.
    pub(super) no_ip: u64,
    /// Packets that the device did not take.
    pub(super) untaken: u64,
    /// Datagrams that the kernel did not take.
    pub(super) unsent: u64,
    /// Datagrams that opened and hold no packet of a bundle.
    pub(super) malformed: u64,
    /// Packets that a router has marked on the way.
    pub(super) marked_on_the_way: u64,
    /// Packets that a router has marked although they are not capable.
    pub(super) wrongly_marked: u64,
}

/// Path by path, with its name and the longest content of its datagrams in bytes, and the rest.
pub(super) fn families<'a>(
    paths: impl Iterator<Item = (&'a str, PathStats, u32)> + Clone,
    totals: &BundleStats,
    session: &Counts,
    own: &Own,
) -> Vec<Family> {
    let mut all = Vec::new();
    let mut of_paths = |name: &str, kind: &str, help: &str, value: fn(&PathStats) -> Option<f64>| {
        let own = paths.clone().filter_map(|(path, stats, _)| Some((path, value(&stats)?.to_string())));
        all.push(of_each_path(name, kind, help, own));
    };
    of_paths("up", "gauge", "Whether it carries packets.", |it| Some(f64::from(it.state == Some(PathState::Up))));
    of_paths("round_trip_seconds", "gauge", "Smoothed round trip.", |it| it.round_trip);
    of_paths("variation_seconds", "gauge", "Smoothed deviation of the round trip.", |it| Some(it.variation));
    of_paths("queue_seconds", "gauge", "Delay above the least one, lately.", |it| Some(it.queue));
    of_paths("rate_bits_per_second", "gauge", "What arrives, headers included.", |it| Some(it.rate * 8.0));
    of_paths("loss_ratio", "gauge", "Share of packets that is lost without load.", |it| Some(it.loss));
    of_paths("sent_bytes_total", "counter", "Bytes sent, headers included.", |it| Some(it.sent_bytes as f64));
    of_paths("received_bytes_total", "counter", "Bytes received, headers included.", |it| {
        Some(it.received_bytes as f64)
    });
    of_paths("data_bytes_total", "counter", "Bytes of packets sent, those sent again included.", |it| {
        Some(it.data_bytes as f64)
    });
    of_paths("probe_bytes_total", "counter", "Bytes of probes and their answers.", |it| Some(it.probe_bytes as f64));
    of_paths("lost_packets_total", "counter", "Packets that were taken for lost.", |it| Some(it.lost_packets as f64));
    all.push(of_each_path(
        "packet_bytes",
        "gauge",
        "Longest packet of the bundle that it carries whole, headers of seal, UDP and IP left out.",
        paths.map(|(path, _, bytes)| (path, bytes.to_string())),
    ));
    for (name, kind, help, value) in [
        ("taken_total", "counter", "Packets from the device.", totals.taken),
        ("dropped_total", "counter", "Packets that the queue dropped.", totals.dropped),
        ("marked_total", "counter", "Packets that the queue marked (ECN) in place of dropping them.", totals.marked),
        ("repeated_total", "counter", "Packets and pieces that were sent again.", totals.repeated),
        ("lost_total", "counter", "Packets and pieces that were lost for good.", totals.lost),
        ("queued_bytes", "gauge", "Bytes that wait in front of the paths.", totals.queued_bytes),
        ("flight_bytes", "gauge", "Bytes in flight.", totals.flight_bytes),
        ("reorder_bytes", "gauge", "Bytes that arrived and wait for earlier ones.", totals.reorder_bytes),
        ("opened_total", "counter", "Sealed datagrams that opened.", session.opened),
        ("refused_total", "counter", "Sealed datagrams whose tag is wrong.", session.refused),
        ("replayed_total", "counter", "Sealed datagrams that came twice or too late.", session.repeated),
        ("stray_total", "counter", "Datagrams of no session.", session.stray),
        ("handshakes_total", "counter", "Handshakes that have ended well.", session.handshakes),
        ("refused_hellos_total", "counter", "Initiations that were not taken.", session.refused_hellos),
        ("no_ip_total", "counter", "Packets from the device that are no IP.", own.no_ip),
        ("untaken_total", "counter", "Packets that the device did not take.", own.untaken),
        ("unsent_total", "counter", "Datagrams that the kernel did not take.", own.unsent),
        ("malformed_total", "counter", "Datagrams that opened and hold no packet.", own.malformed),
        ("marked_on_the_way_total", "counter", "Packets that a router marked on the way (ECN).", own.marked_on_the_way),
        (
            "wrongly_marked_total",
            "counter",
            "Packets that were dropped since a router marked them in vain.",
            own.wrongly_marked,
        ),
    ] {
        let name = format!("farlink_bundle_{name}");
        all.push(Family { head: head(&name, kind, help), samples: vec![(name, String::new(), value.to_string())] });
    }
    all
}

fn of_each_path<'a>(name: &str, kind: &str, help: &str, values: impl Iterator<Item = (&'a str, String)>) -> Family {
    let name = format!("farlink_bundle_path_{name}");
    let samples = values.map(|(path, value)| (name.clone(), format!("path=\"{path}\""), value)).collect();
    Family { head: head(&name, kind, help), samples }
}

fn head(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

/// Scrapes at a time, and how long one may take.
const MOST_SCRAPES: usize = 16;
const WITHIN: Duration = Duration::from_secs(10);

/// Serves the latest text until it is aborted.
pub(crate) async fn serve(socket: TcpListener, latest: Shared) {
    let places = Arc::new(Semaphore::new(MOST_SCRAPES));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((tcp, _)) = socket.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let latest = latest.clone();
        tokio::spawn(async move {
            let service = service_fn(|asked: Request<Incoming>| {
                let is_it = asked.method() == Method::GET && asked.uri().path() == "/metrics";
                let text = if is_it {
                    latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
                } else {
                    "GET /metrics\n".to_owned()
                };
                let status = if is_it { StatusCode::OK } else { StatusCode::NOT_FOUND };
                let response = Response::builder().status(status).header(CONTENT_TYPE, "text/plain; version=0.0.4");
                let response = response.body(Full::new(Bytes::from(text))).expect("status and header are constants");
                std::future::ready(Ok::<_, Infallible>(response))
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(WITHIN).keep_alive(false).max_buf_size(16 * 1024);
            let _ = tokio::time::timeout(2 * WITHIN, http.serve_connection(TokioIo::new(tcp), service)).await;
            drop(place);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(has_peers: bool, peers: &[&str]) -> String {
        let pages = Pages::new(has_peers);
        for peer in peers {
            let stats = [("one", PathStats::default(), 1200)].into_iter();
            pages.set(peer, families(stats, &BundleStats::default(), &Counts::default(), &Own::default()));
        }
        let text = pages.text();
        text.lock().unwrap().clone()
    }

    #[test]
    fn one_peer_has_no_label_and_of_several_all_samples_of_a_metric_stand_together() {
        let one = page(false, &["vps"]);
        assert!(one.contains("\nfarlink_bundle_path_packet_bytes{path=\"one\"} 1200\n"), "{one}");
        assert!(one.contains("\nfarlink_bundle_taken_total 0\n"));
        let two = page(true, &["ship-b", "ship-a"]);
        for part in [
            "# TYPE farlink_bundle_path_packet_bytes gauge\nfarlink_bundle_path_packet_bytes{peer=\"ship-a\",path=\"one\"} 1200\nfarlink_bundle_path_packet_bytes{peer=\"ship-b\",path=\"one\"} 1200\n",
            "farlink_bundle_taken_total{peer=\"ship-a\"} 0\nfarlink_bundle_taken_total{peer=\"ship-b\"} 0\n",
        ] {
            assert!(two.contains(part), "{part} in {two}");
        }
        assert_eq!(two.matches("# TYPE farlink_bundle_taken_total").count(), 1);
    }
}
