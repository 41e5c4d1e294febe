//! State that all tasks of a gateway share.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farlink_core::protocol::aerotp::AcceptorLimits;
use farlink_core::units::Count;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use crate::custody::{self, Relay};
use crate::framing::HEADER_BYTES;
use crate::io::{Connection, Endpoint};
use crate::mux::Trust;
use crate::settings::{own_address, set_patience};

use super::config::Config;
use super::destination::Destination;
use super::dscp;
use super::error::GatewayError;
use super::flows::Flows;
use super::frame::{Frame, MOST_CONTENT, Open};
use super::metrics::{Metrics, Present};
use super::modes::{self, MODES, PORT};
use super::openings::Openings;
use super::requests::{GivesWay, Request, Requests};
use super::routes::ConfiguredRoutes;
use super::rules::{Protocol, Treatment};
use super::tunnel::{self, End, FromPeer};

/// Most requests for metrics at once.
const MOST_SCRAPES: usize = 16;

/// The first data of a client ride with the request for its connection if they come within this time. `[T3]`
const FIRST_DATA: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Core {
    pub(super) endpoint: Endpoint,
    pub(super) metrics: Metrics,
    pub(super) flows: Flows,
    pub(super) custody: Option<Arc<Relay>>,
    config: Arc<RwLock<Arc<Config>>>,
    /// Free places of connections.
    places: Arc<Semaphore>,
    /// Clients that have not said where to, and those who ask for metrics.
    requests: Arc<Requests>,
    pub(super) scrapes: Arc<Requests>,
    openings: Openings,
    is_draining: AtomicBool,
    begins_draining: Notify,
    /// Whether it resets what is left.
    stops: watch::Sender<bool>,
}

/// A connection between gateways that was not asked for yet.
pub(super) struct Opening {
    pub(super) peer: Connection,
    pub(super) destination: Destination,
    pub(super) treatment: Treatment,
    /// The mark of the client's packets.
    dscp: u8,
    _place: OwnedSemaphorePermit,
}

impl Core {
    pub(super) fn start(config: Config) -> Result<Self, GatewayError> {
        let trust = Trust::Keys(config.peers.values().map(|peer| peer.key).collect());
        let mut of_endpoint = config.packets.endpoint(&config.keys, trust)?;
        set_patience(&mut of_endpoint.connection, config.patience);
        let window = Count::new(f64::from(config.limits.window_bytes));
        of_endpoint.connection.receive_buffer_bytes = Some(window.expect("limits are checked"));
        let endpoint = match config.listen {
            Some(address) => Endpoint::bind(address, of_endpoint, Box::new(config.keys.counters_to_answer()?))?,
            None => {
                let first = config.peers.values().find_map(|peer| peer.address);
                let address = first.map_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)), own_address);
                Endpoint::bind(address, of_endpoint, Box::new(config.keys.counters_to_send()?))?
            }
        };
        // Sessions that have ended are kept for a while as well.
        let connections = 4 * config.limits.connections as usize;
        endpoint.listen(PORT, AcceptorLimits { half_open: connections, connections })?;
        for mode in MODES {
            let (port, endpoint) = modes::place(&endpoint, mode, None);
            endpoint.listen(port, AcceptorLimits { half_open: connections, connections })?;
        }
        endpoint.listen_datagrams(PORT);
        let (places, requests) = (config.limits.connections as usize, config.limits.requests as usize);
        let custody = config.custody.clone();
        let config = Arc::new(RwLock::new(Arc::new(config)));
        let custody = match custody {
            Some(of) => {
                let streams = 4 * of.streams;
                let limits = AcceptorLimits { half_open: streams, connections: streams };
                custody::near_reliable(&endpoint).listen(custody::PORT, limits)?;
                let routes = Arc::new(ConfiguredRoutes(config.clone()));
                Some(Relay::start(&of.folder, &endpoint, of.bounds(), routes)?)
            }
            None => None,
        };
        Ok(Core {
            endpoint,
            metrics: Metrics::default(),
            flows: Flows::default(),
            places: Arc::new(Semaphore::new(places)),
            requests: Requests::new(requests),
            scrapes: Requests::new(MOST_SCRAPES),
            openings: Openings::default(),
            custody,
            config,
            is_draining: AtomicBool::new(false),
            begins_draining: Notify::new(),
            stops: watch::Sender::new(false),
        })
    }

    /// The configuration now.
    pub(super) fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on another configuration. Connections that there are go on.
    pub(super) fn set_config(&self, config: Config) {
        self.endpoint.set_trust(Trust::Keys(config.peers.values().map(|peer| peer.key).collect()));
        if let (Some(relay), Some(custody)) = (&self.custody, &config.custody) {
            relay.set_bounds(custody.bounds());
        }
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// From now on no connection is taken or made.
    pub(super) fn begin_draining(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
        self.begins_draining.notify_waiters();
        if let Some(relay) = &self.custody {
            relay.stop();
        }
    }

    /// Ends when no connection is taken or made any more.
    pub(super) async fn draining(&self) {
        let told = self.begins_draining.notified();
        if !self.is_draining.load(Ordering::SeqCst) {
            told.await;
        }
    }

    /// Resets all connections at both ends, and waits until the other gateways know.
    pub(super) async fn stop(&self) {
        self.stops.send_replace(true);
        self.endpoint.finish().await;
    }

    /// Waits until there is no connection.
    pub(super) async fn drained(&self) {
        let all = self.config().limits.connections;
        let _ = self.places.acquire_many(all).await;
    }

    /// A place for a connection, if there is one.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = self.places.clone().try_acquire_owned().ok();
        place.filter(|_| !self.is_draining.load(Ordering::Relaxed))
    }

    /// A place for a client that has not yet said where to, and what tells that it has to give way to another one.
    pub(super) fn request(&self, address: IpAddr) -> (Request, GivesWay) {
        self.requests.begin(address)
    }

    /// Waits for the turn to open a connection to another gateway, for clients with one destination, or for one that has named its own.
    pub(super) async fn turn(&self, to: &str, has_named: bool) {
        let config = self.config();
        let Some((key, address)) = config.peers.get(to).and_then(|peer| Some((peer.key, peer.address?))) else {
            return;
        };
        let contended = || self.endpoint.contended_bits_per_s(&key, address);
        if has_named {
            self.openings.turn_of_named(&key, contended).await;
        } else {
            self.openings.turn(&key, contended).await;
        }
    }

    /// The mark of a client's packets, if clients are trusted with it.
    pub(super) fn dscp_of(&self, tcp: &TcpStream) -> u8 {
        if self.config().trust_dscp { dscp::of(tcp) } else { 0 }
    }

    /// Prepares a connection to a destination behind another gateway, for a client whose packets have a mark.
    pub(super) fn open(
        &self,
        to: &str,
        destination: Destination,
        dscp: u8,
        place: OwnedSemaphorePermit,
    ) -> Option<Opening> {
        let config = self.config();
        let peer = config.peers.get(to)?;
        let mut treatment = config.treatment(Protocol::Tcp, &destination);
        let opened = self.endpoint.connect(&peer.key, peer.address?, PORT);
        let peer = opened.inspect_err(|error| tracing::warn!(%error, to, "no connection to the other gateway")).ok()?;
        if treatment.rule.is_none() {
            treatment.class = dscp::class_of(dscp);
        }
        peer.set_class(treatment.class);
        Some(Opening { peer, destination, treatment, dscp, _place: place })
    }

    /// The data that a client sends at once, in a frame; an error if the client is gone.
    pub(super) async fn first_data(&self, tcp: &TcpStream) -> io::Result<BytesMut> {
        let Ok(ready) = tokio::time::timeout(FIRST_DATA, tcp.readable()).await else { return Ok(BytesMut::new()) };
        ready?;
        let frame = tunnel::read_frame(tcp)?.filter(|frame| frame.len() > HEADER_BYTES).unwrap_or_default();
        if let Some(error) = tcp.take_error()? {
            return Err(error);
        }
        self.metrics.sent_bytes_total.add(frame.len().saturating_sub(HEADER_BYTES) as u64);
        Ok(frame)
    }

    /// A destination, as a log names it.
    pub(super) fn shown(&self, destination: &Destination) -> String {
        if self.config().log_destinations { destination.to_string() } else { "-".to_owned() }
    }

    /// Carries a connection of either side to its end.
    pub(super) async fn carry(
        &self,
        tcp: TcpStream,
        from_peer: FromPeer<Connection>,
        destination: &Destination,
        deadline: Option<Duration>,
    ) {
        let _present = Present::of(&self.metrics.connections);
        let end = tunnel::carry(tcp, from_peer, deadline, &self.metrics, self.stops.subscribe()).await;
        let count = match end {
            End::Orderly => &self.metrics.ended_total,
            End::Reset | End::ResetByPeer | End::Late => &self.metrics.reset_total,
            End::Refused(_) => &self.metrics.failed_total,
            End::Lost(_) => &self.metrics.lost_total,
        };
        count.add(1);
        let destination = self.shown(destination);
        match end {
            End::Lost(error) => tracing::warn!(destination, %error, "a connection was lost"),
            End::Refused(why) => tracing::info!(destination, why = why.text(), "a connection was refused"),
            end => tracing::info!(destination, ?end, "a connection has ended"),
        }
    }
}

fn in_frames(data: &[u8]) -> BytesMut {
    let mut frames = BytesMut::new();
    for piece in data.chunks(MOST_CONTENT) {
        Frame::Data(Bytes::copy_from_slice(piece)).put(&mut frames);
    }
    frames
}

impl Opening {
    fn request(&self) -> BytesMut {
        let Opening { destination, treatment, dscp, .. } = self;
        Frame::Open(Open { destination: destination.clone(), class: treatment.class, dscp: *dscp }).to_bytes()
    }

    /// As [`begin`](Self::begin), with what was read from TCP already, or what comes now.
    pub(super) async fn carry(self, core: &Core, tcp: TcpStream, first: &[u8]) {
        if tunnel::prepare(&tcp).is_err() {
            return; // the client is gone
        }
        let frames = if first.is_empty() { core.first_data(&tcp).await } else { Ok(in_frames(first)) };
        if let Ok(frames) = frames {
            core.metrics.sent_bytes_total.add(first.len() as u64);
            self.begin(core, tcp, frames).await;
        }
    }

    /// Asks for the connection and carries it; the first data are in frames.
    pub(super) async fn begin(mut self, core: &Core, tcp: TcpStream, first: BytesMut) {
        let mut asked = self.request();
        asked.unsplit(first);
        if let Err(error) = self.peer.write_all(&asked).await {
            core.metrics.lost_total.add(1);
            tracing::warn!(%error, "no connection to the other gateway");
            return;
        }
        let Opening { peer, destination, treatment, _place, .. } = self;
        core.carry(tcp, FromPeer::new(peer), &destination, treatment.deadline).await;
    }

    /// Asks for the connection and waits for the answer.
    pub(super) async fn ask(mut self, core: &Core) -> Result<Asked, super::frame::Refusal> {
        use super::frame::Refusal;
        let limits = &core.config().limits;
        let within = Duration::from_secs_f64(limits.request_s + limits.connect_s);
        let asked = self.request();
        self.peer.write_all(&asked).await.map_err(|_| Refusal::HostUnreachable)?;
        let Opening { peer, destination, treatment, _place, .. } = self;
        let mut from_peer = FromPeer::new(peer);
        match tokio::time::timeout(within, from_peer.next()).await.map_err(|_| Refusal::TimedOut)? {
            Ok(Frame::Opened) => Ok(Asked { from_peer, destination, treatment, _place }),
            Ok(Frame::Refused(why)) => Err(why),
            Ok(_) => Err(Refusal::Other),
            Err(_) => Err(Refusal::HostUnreachable),
        }
    }
}

/// A connection between gateways that leads to its destination.
pub(super) struct Asked {
    from_peer: FromPeer<Connection>,
    destination: Destination,
    treatment: Treatment,
    _place: OwnedSemaphorePermit,
}

impl Asked {
    /// Carries it; `first` was read from TCP already.
    pub(super) async fn carry(mut self, core: &Core, tcp: TcpStream, first: &[u8]) {
        if tunnel::prepare(&tcp).is_err() {
            return; // the client is gone
        }
        if self.from_peer.get_mut().write_all(&in_frames(first)).await.is_err() {
            return;
        }
        core.metrics.sent_bytes_total.add(first.len() as u64);
        let Asked { from_peer, destination, treatment, _place } = self;
        core.carry(tcp, from_peer, &destination, treatment.deadline).await;
    }
}
