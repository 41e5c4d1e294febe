//! A gateway as a whole: starts, reloads, drains.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{AbortHandle, JoinSet};

use crate::custody;
use crate::io::Connection;

use super::config::{Config, Listener, ListenerKind};
use super::core::Core;
use super::error::GatewayError;
use super::modes::PORT;
use super::{far, http, message_flows, near, ready, transparent, udp};

/// Commands to a running gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Read the configuration again.
    Reload,
    /// Take nothing more, and end when the connections have.
    Drain,
    /// End at once.
    Stop,
}

/// Events of a gateway.
#[derive(Debug)]
pub enum Event {
    /// All sockets are open.
    Listening {
        /// Where sessions are taken, or where from they are opened.
        sessions: SocketAddr,
        /// Where clients are served, in the order of the configuration: forwards, SOCKS5, HTTP, transparent ones, UDP.
        clients: Vec<SocketAddr>,
        /// Where metrics are served.
        metrics: Option<SocketAddr>,
    },
    /// The new configuration is in force.
    Reloaded,
    /// It is wrong; the one before is still in force.
    NotReloaded(GatewayError),
    /// Nothing more is taken.
    Draining,
}

/// A socket at which clients are served, and who serves it.
struct Open {
    listener: Arc<Listener>,
    socket: Socket,
    serving: Option<AbortHandle>,
}

#[derive(Clone)]
enum Socket {
    Tcp(Arc<TcpListener>),
    Udp(Arc<UdpSocket>),
}

/// Runs a gateway until it is told to stop. It starts whole or not at all.
///
/// # Errors
/// If the configuration is wrong, a file of this host cannot be used, or a socket cannot be opened or fails.
pub async fn run(
    path: &Path,
    mut control: UnboundedReceiver<Control>,
    mut tell: impl FnMut(Event),
) -> Result<(), GatewayError> {
    let config = Config::read(path)?;
    let mut open = Vec::new();
    for listener in &config.listeners {
        open.push(Open::bind(listener).await?);
    }
    let metrics = match config.metrics {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let core = Arc::new(Core::start(config)?);
    let clients = open.iter().map(|it| it.socket.address()).collect();
    let metrics_at = metrics.as_ref().and_then(|socket| socket.local_addr().ok());
    let mut tasks = JoinSet::new();
    if let Some(socket) = metrics {
        tasks.spawn(http::serve_metrics(core.clone(), socket));
    }
    tasks.spawn(udp::take(core.clone()));
    open.iter_mut().for_each(|it| it.serve(&core, &mut tasks));
    let mut keeping = tasks.spawn(ready::keep(core.clone()));
    tell(Event::Listening { sessions: core.endpoint.local_addr(), clients, metrics: metrics_at });
    notify(&[sd_notify::NotifyState::Ready]);
    loop {
        tokio::select! {
            accepted = core.endpoint.accept() => {
                let Some(connection) = accepted else { return Err(GatewayError::SocketFailed) };
                serve_peer(&core, connection);
            }
            // A closed channel leaves a gateway that nobody can reload.
            Some(told) = control.recv() => match told {
                Control::Reload => match reload(&core, path, &mut open, &mut tasks).await {
                    Ok(()) => {
                        keeping.abort();
                        keeping = tasks.spawn(ready::keep(core.clone()));
                        tell(Event::Reloaded);
                    }
                    Err(error) => tell(Event::NotReloaded(error)),
                },
                Control::Drain => break,
                Control::Stop => return Ok(()),
            },
            Some(_) = tasks.join_next() => {}
        }
    }
    notify(&[sd_notify::NotifyState::Stopping]);
    tell(Event::Draining);
    core.begin_draining();
    drop(open);
    tasks.abort_all();
    drain(&core, control).await;
    Ok(())
}

/// Serves a connection of another gateway: of TCP, with datagrams, or with a stream in custody.
fn serve_peer(core: &Arc<Core>, connection: Connection) {
    match (connection.accepted_at(), &core.custody) {
        (Some(PORT), _) => drop(tokio::spawn(far::serve(core.clone(), connection))),
        (Some(custody::PORT), Some(relay)) => drop(tokio::spawn(relay.clone().take(connection))),
        _ => drop(tokio::spawn(message_flows::serve(core.clone(), connection))),
    }
}

/// Other gateways may take so long to hear that what is left of their connections is reset. A path that is down does not keep a gateway from
/// ending.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Waits for the end of the connections, and for what is still to be sent, as long as the configuration allows.
async fn drain(core: &Arc<Core>, mut control: UnboundedReceiver<Control>) {
    let within = Duration::from_secs_f64(core.config().limits.drain_s);
    let drained = async {
        core.drained().await;
        core.endpoint.finish().await;
    };
    let refuse = async {
        // Connections that peers still open are answered that there is no room.
        while let Some(connection) = core.endpoint.accept().await {
            serve_peer(core, connection);
        }
    };
    let stopped = async { while !matches!(control.recv().await, Some(Control::Stop) | None) {} };
    let is_left = tokio::select! {
        ended = tokio::time::timeout(within, drained) => ended.is_err(),
        () = refuse => true,
        () = stopped => true,
    };
    if is_left {
        tracing::warn!(connections = core.metrics.connections.get(), "connections are left and will be reset");
        let _ = tokio::time::timeout(LAST_WORDS, core.stop()).await;
    }
}

/// Puts another configuration in force, or leaves everything as it is.
async fn reload(
    core: &Arc<Core>,
    path: &Path,
    open: &mut Vec<Open>,
    tasks: &mut JoinSet<()>,
) -> Result<(), GatewayError> {
    let config = Config::read(path)?;
    let before = core.config();
    if let Some(key) = before.differs_for_good(&config) {
        let what = format!("{key} cannot change while the gateway runs");
        return Err(GatewayError::config(path, what, "restart the gateway, or change it back"));
    }
    // New sockets first: if one cannot be had, nothing has changed.
    let mut bound = Vec::new();
    // Several may be at port 0, each with a socket of its own.
    let mut left: Vec<&Open> = open.iter().collect();
    for listener in &config.listeners {
        bound.push(match left.iter().position(|it| it.is_at(listener)) {
            Some(place) => {
                let socket = left.remove(place).socket.clone();
                Open { listener: Arc::new(listener.clone()), socket, serving: None }
            }
            None => Open::bind(listener).await?,
        });
    }
    core.set_config(config);
    open.iter().filter_map(|it| it.serving.as_ref()).for_each(AbortHandle::abort);
    *open = bound;
    open.iter_mut().for_each(|it| it.serve(core, tasks));
    Ok(())
}

impl Open {
    async fn bind(listener: &Listener) -> Result<Self, GatewayError> {
        let address = listener.address;
        let socket = match listener.kind {
            ListenerKind::Udp { .. } => {
                let socket = UdpSocket::bind(address).await;
                Socket::Udp(Arc::new(socket.map_err(|error| GatewayError::Listen { address, error })?))
            }
            ListenerKind::Transparent => Socket::Tcp(Arc::new(transparent::bind(address)?)),
            _ => Socket::Tcp(Arc::new(bind(address).await?)),
        };
        Ok(Open { listener: Arc::new(listener.clone()), socket, serving: None })
    }

    fn is_at(&self, listener: &Listener) -> bool {
        let kind_of_socket = |it: &Listener| match it.kind {
            ListenerKind::Udp { .. } => 0,
            ListenerKind::Transparent => 1,
            _ => 2,
        };
        self.listener.address == listener.address && kind_of_socket(&self.listener) == kind_of_socket(listener)
    }

    fn serve(&mut self, core: &Arc<Core>, tasks: &mut JoinSet<()>) {
        let (core, listener) = (core.clone(), self.listener.clone());
        self.serving = Some(match &self.socket {
            Socket::Tcp(socket) => tasks.spawn(near::serve(core, listener, socket.clone())),
            Socket::Udp(socket) => tasks.spawn(udp::serve(core, listener, socket.clone())),
        });
    }
}

impl Socket {
    fn address(&self) -> SocketAddr {
        let address = match self {
            Socket::Tcp(socket) => socket.local_addr(),
            Socket::Udp(socket) => socket.local_addr(),
        };
        address.unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    TcpListener::bind(address).await.map_err(|error| GatewayError::Listen { address, error })
}

/// Tells systemd, if it has started the gateway.
fn notify(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "systemd was not told");
    }
}
