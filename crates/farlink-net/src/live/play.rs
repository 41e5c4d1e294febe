//! Plays the flows of a plan over an emulated path.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

use farlink_core::emulator::End;
use farlink_core::emulator::ip::IpPacket;
use tokio::task::JoinSet;

use super::aerotp::Keys;
use super::ends::{EndPlace, Stopwatch, enter};
use super::meter::{Delivered, Meter};
use super::plan::{How, LiveFlow, Plan, Traffic};
use super::tap::{Counted, FlowTap, OwnLinks};
use super::{LiveError, Row, Tap, aerotp, tcp, udp};
use crate::emulate::{self, Line, Report, Settings, Watch};

/// Where the ends of the path are.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The end that sends.
    pub near: EndPlace,
    /// The end that receives.
    pub far: EndPlace,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// A row for each flow, and one for all.
    pub rows: Vec<Row>,
    /// Counts of the emulator, and how late it was.
    pub report: Report,
}

/// After the end of the flows packets still arrive for so long, so that they do not count as lost.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether a run is over.
const LOOK: Duration = Duration::from_millis(50);

/// Plays a run: `line` carries the packets between the two ends, `settings` says what the path does to them. It takes as long as the plan
/// says, or until all flows have ended, or `control` stops it. The calling thread drives the path; it may have a real-time priority.
///
/// # Errors
/// If a thread cannot enter its namespace, a socket cannot be made, or the line breaks.
pub fn play<L: Line<Packet = IpPacket>>(
    plan: &Plan,
    machine: &Machine,
    settings: &Settings,
    line: L,
    control: &Watch,
) -> Result<Run, LiveError> {
    let watch = Stopwatch::start();
    let counted = Arc::new(Mutex::new(Counted::new(plan)));
    let span = (plan.warmup, plan.duration);
    let meters: Vec<Meter> = (0..plan.flows.len()).map(|at| Meter::new(at, counted.clone(), watch, span)).collect();
    let keys: Vec<Keys> = plan.flows.iter().map(|_| Keys::new()).collect();
    let links: OwnLinks = Default::default();
    let mut tap = Tap::new(line, links.clone(), counted.clone(), watch);
    let ready = Barrier::new(2);
    let is_over = AtomicBool::new(false);
    let shared =
        Shared { plan, machine, keys: &keys, links: &links, meters: &meters, watch, ready: &ready, is_over: &is_over };
    let report = std::thread::scope(|scope| {
        let far = scope.spawn(|| shared.end("far"));
        let near = scope.spawn(|| shared.end("near"));
        let guard = scope.spawn(|| shared.guard(control));
        let report = emulate::run(settings, &mut tap, control);
        is_over.store(true, Ordering::Relaxed);
        for thread in [far, near] {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        guard.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, LiveError>(report?)
    })?;
    let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
    counted.end(report.ways[0].held_bytes == 0);
    let flows = plan.flows.iter().zip(&meters).zip(counted.flows());
    let mut rows: Vec<Row> = flows.map(|((flow, meter), tap)| row(plan, flow, &meter.read(), tap)).collect();
    rows.push(all(plan, &rows, &meters, counted.flows()));
    Ok(Run { rows, report })
}

struct Shared<'a> {
    plan: &'a Plan,
    machine: &'a Machine,
    keys: &'a [Keys],
    links: &'a OwnLinks,
    meters: &'a [Meter],
    watch: Stopwatch,
    /// Both ends have their sockets, or have failed.
    ready: &'a Barrier,
    is_over: &'a AtomicBool,
}

impl Shared<'_> {
    /// Ends the emulator when the run is over.
    fn guard(&self, control: &Watch) {
        let last = self.plan.duration + GRACE;
        while !self.is_over.load(Ordering::Relaxed) {
            let is_done = self.meters.iter().all(Meter::is_over);
            if self.watch.passed() >= last || is_done {
                self.is_over.store(true, Ordering::Relaxed);
                break;
            }
            std::thread::sleep(LOOK);
        }
        control.stop();
    }

    /// All flows at one end, on a thread of their own.
    fn end(&self, which: &'static str) -> Result<(), LiveError> {
        let place = if which == "near" { &self.machine.near } else { &self.machine.far };
        let prepared = enter(place, which).and_then(|()| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(|error| LiveError::Namespace { end: which, error })
        });
        let prepared = prepared.and_then(|runtime| {
            let tasks = runtime.block_on(async { if which == "near" { self.near() } else { self.far() } })?;
            Ok((runtime, tasks))
        });
        if prepared.is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        self.ready.wait();
        let (runtime, tasks) = prepared?;
        runtime.block_on(async {
            let _tasks = tasks;
            while !self.is_over.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
            }
        });
        runtime.shutdown_timeout(Duration::from_millis(100));
        Ok(())
    }

    fn flows(&self) -> impl Iterator<Item = (&LiveFlow, &Keys, Meter)> {
        self.plan.flows.iter().zip(self.keys).zip(self.meters).map(|((flow, keys), meter)| (flow, keys, meter.clone()))
    }

    fn far(&self) -> Result<JoinSet<()>, LiveError> {
        let mut tasks = JoinSet::new();
        for (flow, keys, meter) in self.flows() {
            let at = SocketAddr::new(self.machine.far.address, flow.port);
            let failed = failed(flow, "cannot listen");
            match &flow.how {
                How::Tcp { segment_bytes, .. } => {
                    tasks.spawn(tcp::receive(tcp::listener(at, *segment_bytes).map_err(failed)?, meter));
                }
                How::Udp => {
                    tasks.spawn(udp::receive(udp_socket(at).map_err(failed)?, flow.traffic, meter));
                }
                How::Aerotp(config) => {
                    let endpoint = keys.receiver(&flow.name, at, config)?;
                    tasks.spawn(aerotp::follow(endpoint.clone(), self.links[End::Far as usize].subscribe()));
                    tasks.spawn(aerotp::receive(endpoint, meter));
                }
            }
        }
        Ok(tasks)
    }

    fn near(&self) -> Result<JoinSet<()>, LiveError> {
        let mut tasks = JoinSet::new();
        for (flow, keys, meter) in self.flows() {
            let own = SocketAddr::new(self.machine.near.address, 0);
            let to = SocketAddr::new(self.machine.far.address, flow.port);
            let (watch, start, traffic) = (self.watch, flow.start, flow.traffic);
            let failed = failed(flow, "cannot make its socket");
            match &flow.how {
                How::Tcp { control, segment_bytes } => {
                    let socket = tcp::sender(own, control, *segment_bytes).map_err(failed)?;
                    tasks.spawn(async move {
                        watch.until(start).await;
                        tcp::send(socket, to, traffic, meter, watch).await;
                    });
                }
                How::Udp => {
                    let socket = udp_socket(own).map_err(failed)?;
                    tasks.spawn(async move {
                        watch.until(start).await;
                        udp::send(socket, to, traffic, meter, watch).await;
                    });
                }
                How::Aerotp(config) => {
                    let (endpoint, peer) = (keys.sender(&flow.name, own, config)?, keys.of_receiver());
                    tasks.spawn(aerotp::follow(endpoint.clone(), self.links[End::Near as usize].subscribe()));
                    tasks.spawn(async move {
                        watch.until(start).await;
                        aerotp::send(endpoint, peer, to, traffic, meter, watch).await;
                    });
                }
            }
        }
        Ok(tasks)
    }
}

fn udp_socket(at: SocketAddr) -> std::io::Result<tokio::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind(at)?;
    socket.set_nonblocking(true)?;
    tokio::net::UdpSocket::from_std(socket)
}

fn failed(flow: &LiveFlow, what: &'static str) -> impl FnOnce(std::io::Error) -> LiveError {
    let flow = flow.name.clone();
    let remedy = "another control if the kernel lacks this one (modprobe tcp_bbr), or less open sockets";
    move |error| LiveError::Socket { flow, what, error, remedy }
}

fn row(plan: &Plan, flow: &LiveFlow, delivered: &Delivered, tap: &FlowTap) -> Row {
    let begin = flow.start.max(plan.warmup).as_secs_f64();
    let last = delivered.last.map(|last| last.as_secs_f64());
    let end = last.filter(|_| delivered.is_done).unwrap_or(plan.duration.as_secs_f64());
    let has_end = !matches!(flow.traffic, Traffic::Bulk | Traffic::Cbr { messages: None, .. });
    let is_done = !has_end && delivered.failure.is_none() || delivered.is_done;
    let reason = match &delivered.failure {
        _ if is_done => String::new(),
        Some(failure) => failure.clone(),
        None => "the run ended before it".into(),
    };
    let delays = delivered.delays.count();
    Row {
        flow: flow.name.clone(),
        transport: flow.transport.clone(),
        is_done,
        reason,
        delivered_bytes: delivered.bytes as f64,
        retransmitted_bytes: matches!(flow.how, How::Tcp { .. }).then_some(tap.retransmitted_bytes as f64),
        delay_mean_s: (delays > 0).then(|| delivered.delay_sum_s / delays as f64),
        delay_p50_s: delivered.delays.quantile(0.5),
        delay_p99_s: delivered.delays.quantile(0.99),
        duration_s: (end - begin).max(0.0),
        transfer_time_s: last.filter(|_| has_end && delivered.is_done).map(|last| last - flow.start.as_secs_f64()),
        ..of_packets(std::slice::from_ref(tap))
    }
}

/// Measurements from the packets of some flows.
fn of_packets(taps: &[FlowTap]) -> Row {
    let sum = |count: fn(&FlowTap) -> u64| taps.iter().map(count).sum::<u64>() as f64;
    let decided = sum(|tap| tap.sent_packets - tap.undecided_packets);
    let left = sum(|tap| tap.left_packets);
    let delay_sum_s: f64 = taps.iter().map(|tap| tap.delay_sum_s).sum();
    Row {
        flow: String::new(),
        transport: String::new(),
        is_done: true,
        reason: String::new(),
        delivered_bytes: 0.0,
        sent_bytes: sum(|tap| tap.sent_bytes),
        retransmitted_bytes: None,
        arrival_delay_mean_s: (left > 0.0).then(|| delay_sum_s / left),
        delay_mean_s: None,
        delay_p50_s: None,
        delay_p99_s: None,
        loss_fraction: (decided > 0.0).then(|| 1.0 - left / decided),
        marked_fraction: (decided > 0.0).then(|| sum(|tap| tap.marked_packets) / decided),
        duration_s: 0.0,
        transfer_time_s: None,
    }
}

/// The row over all flows.
fn all(plan: &Plan, rows: &[Row], meters: &[Meter], taps: &[FlowTap]) -> Row {
    let transports: std::collections::BTreeSet<_> = rows.iter().map(|row| row.transport.as_str()).collect();
    let (mut delays, mut delay_sum_s) = (farlink_core::histogram::Histogram::default(), 0.0);
    for delivered in meters.iter().map(Meter::read) {
        delays.merge(&delivered.delays);
        delay_sum_s += delivered.delay_sum_s;
    }
    let known = delays.count();
    let times: Vec<f64> = rows.iter().filter_map(|row| row.transfer_time_s).collect();
    let last = rows.iter().map(|row| row.duration_s).fold(0.0, f64::max);
    let whole = (plan.duration.saturating_sub(plan.warmup)).as_secs_f64();
    let first_failed = rows.iter().find(|row| !row.is_done);
    Row {
        flow: "all".into(),
        transport: if transports.len() == 1 { rows[0].transport.clone() } else { "mixed".into() },
        is_done: first_failed.is_none(),
        reason: first_failed.map(|row| row.reason.clone()).unwrap_or_default(),
        delivered_bytes: rows.iter().map(|row| row.delivered_bytes).sum(),
        retransmitted_bytes: rows.iter().map(|row| row.retransmitted_bytes).sum(),
        delay_mean_s: (known > 0).then(|| delay_sum_s / known as f64),
        delay_p50_s: delays.quantile(0.5),
        delay_p99_s: delays.quantile(0.99),
        duration_s: if rows.len() == 1 { last } else { whole },
        transfer_time_s: (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64),
        ..of_packets(taps)
    }
}
