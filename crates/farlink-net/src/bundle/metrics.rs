//! Numbers of a bundle, as text for Prometheus, over HTTP.

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

/// The latest text.
pub(crate) type Shared = Arc<Mutex<String>>;

/// What the driver itself counts.
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
}

/// Path by path, with its name and the longest content of its datagrams in bytes, and the rest.
pub(super) fn text<'a>(
    paths: impl Iterator<Item = (&'a str, PathStats, u32)> + Clone,
    totals: &BundleStats,
    session: &Counts,
    own: &Own,
) -> String {
    let mut text = String::new();
    let mut of_paths = |name: &str, kind: &str, help: &str, value: fn(&PathStats) -> Option<f64>| {
        head(&mut text, name, kind, help);
        for (path, stats, _) in paths.clone() {
            if let Some(value) = value(&stats) {
                writeln!(text, "farlink_bundle_path_{name}{{path=\"{path}\"}} {value}").expect("a text grows");
            }
        }
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
    head(
        &mut text,
        "packet_bytes",
        "gauge",
        "Longest packet of the bundle that it carries whole, headers of seal, UDP and IP left out.",
    );
    for (path, _, bytes) in paths {
        writeln!(text, "farlink_bundle_path_packet_bytes{{path=\"{path}\"}} {bytes}").expect("a text grows");
    }
    for (name, kind, help, value) in [
        ("taken_total", "counter", "Packets from the device.", totals.taken),
        ("dropped_total", "counter", "Packets that the queue dropped.", totals.dropped),
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
    ] {
        writeln!(
            text,
            "# HELP farlink_bundle_{name} {help}\n# TYPE farlink_bundle_{name} {kind}\nfarlink_bundle_{name} {value}"
        )
        .expect("a text grows");
    }
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(text, "# HELP farlink_bundle_path_{name} {help}\n# TYPE farlink_bundle_path_{name} {kind}")
        .expect("a text grows");
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
