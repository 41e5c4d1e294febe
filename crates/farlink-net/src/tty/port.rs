//! The port of one line: opened, paced, opened again.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serial2_tokio::{FlowControl, SerialPort, Settings};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver};
use tokio::time::{Instant, sleep, sleep_until};

use super::config::Line;

/// Where a line's bytes go.
#[derive(Clone, Debug)]
pub enum Place {
    /// A serial port or a pseudo-terminal.
    Tty {
        /// Its path.
        path: PathBuf,
        /// Speed, bit/s.
        baud: u32,
        /// Whether RTS and CTS are used.
        rts_cts: bool,
        /// Whether DCD shows carrier.
        dcd: bool,
        /// Rate over the air, bytes a second.
        bytes_per_s: f64,
    },
    /// A Unix socket.
    Socket {
        /// Its path.
        path: PathBuf,
        /// Rate over the air, bytes a second.
        bytes_per_s: f64,
    },
    /// A terminal that is handed over for each call.
    Handed {
        /// Rate over the air, bytes a second.
        bytes_per_s: f64,
    },
}

impl Place {
    /// The port that a line's description names. A path that is a socket at present is taken for one.
    pub fn of(line: &Line) -> Self {
        use std::os::unix::fs::FileTypeExt;

        let bytes_per_s = line.rate_bps / 8.0;
        let Some(path) = line.port.clone() else { return Place::Handed { bytes_per_s } };
        if std::fs::metadata(&path).is_ok_and(|found| found.file_type().is_socket()) {
            Place::Socket { path, bytes_per_s }
        } else {
            Place::Tty { path, baud: line.baud, rts_cts: line.rts_cts, dcd: line.dcd, bytes_per_s }
        }
    }

    pub(crate) fn bytes_per_s(&self) -> f64 {
        match self {
            Place::Tty { bytes_per_s, .. } | Place::Socket { bytes_per_s, .. } | Place::Handed { bytes_per_s } => {
                *bytes_per_s
            }
        }
    }

    /// Bytes that are written at once: a twentieth of a second of the line.
    pub(crate) fn portion(&self) -> usize {
        ((self.bytes_per_s() * PORTION.as_secs_f64()) as usize).clamp(4, 4096)
    }
}

const PORTION: Duration = Duration::from_millis(50);
/// From a port that cannot be opened, or was lost, to the next try.
const REOPEN: Duration = Duration::from_millis(500);
/// How often DCD is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Reports of a port to the bundle.
#[derive(Debug)]
pub(crate) enum Said {
    /// It has carrier, or no longer.
    Carrier(bool),
    /// Bytes came.
    Bytes(Vec<u8>),
    /// So many bytes have left.
    Sent(usize),
    /// The terminal that was handed over is closed here.
    Released,
}

/// Runs the port of a line until the bundle ends: `out` gives a portion, which is answered by `Sent` before the next.
pub(crate) async fn run(line: usize, place: Place, mut out: Receiver<Vec<u8>>, told: Sender<(usize, Said)>) {
    let mut last_error = None;
    loop {
        match serve(line, &place, &mut out, &told).await {
            Ok(()) => return,
            // A port that stays away says so once.
            Err(error) if last_error != Some(error.kind()) => {
                tracing::info!(line, port = ?place, %error, "no carrier");
                last_error = Some(error.kind());
            }
            Err(_) => {}
        }
        if told.send((line, Said::Carrier(false))).await.is_err() {
            return;
        }
        sleep(REOPEN).await;
    }
}

/// Runs the port of a line whose terminals are handed over, until the bundle ends. `None` asks for the terminal back.
pub(super) async fn run_handed(
    line: usize,
    bytes_per_s: f64,
    mut orders: UnboundedReceiver<Option<OwnedFd>>,
    mut out: Receiver<Vec<u8>>,
    told: Sender<(usize, Said)>,
) {
    let mut next = orders.recv().await;
    while let Some(order) = next {
        let Some(terminal) = order else {
            if told.send((line, Said::Released)).await.is_err() {
                return;
            }
            next = orders.recv().await;
            continue;
        };
        let serving = async {
            // Read and written like pipes: tokio's other form for descriptors needs unsafe code.
            let reader = pipe::Receiver::from_owned_fd_unchecked(terminal.try_clone()?)?;
            let writer = pipe::Sender::from_owned_fd_unchecked(terminal)?;
            exchange(line, bytes_per_s, reader, writer, &mut out, &told).await
        };
        let asked = tokio::select! {
            ended = serving => match ended {
                Ok(()) => return,
                Err(error) => {
                    tracing::info!(line, %error, "no carrier");
                    None
                }
            },
            order = orders.recv() => Some(order),
        };
        if told.send((line, Said::Carrier(false))).await.is_err() {
            return;
        }
        next = match asked {
            Some(order) => order,
            None => orders.recv().await,
        };
    }
}

/// Serves a port while it has carrier; `Ok` when the bundle has ended.
async fn serve(
    line: usize,
    place: &Place,
    out: &mut Receiver<Vec<u8>>,
    told: &Sender<(usize, Said)>,
) -> io::Result<()> {
    let pace = place.bytes_per_s();
    match place {
        Place::Tty { path, baud, rts_cts, dcd, .. } => {
            let port = SerialPort::open(path, |mut settings: Settings| {
                settings.set_raw();
                settings.set_baud_rate(*baud)?;
                settings.set_flow_control(if *rts_cts { FlowControl::RtsCts } else { FlowControl::None });
                Ok(settings)
            })?;
            while *dcd && !port.read_cd()? {
                sleep(LOOK).await;
            }
            let watched = port.try_clone()?;
            let carrier = async {
                while !*dcd || watched.read_cd()? {
                    sleep(LOOK).await;
                }
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "DCD fell"))
            };
            let (reader, writer) = tokio::io::split(port);
            tokio::select! {
                ended = carrier => ended,
                ended = exchange(line, pace, reader, writer, out, told) => ended,
            }
        }
        Place::Handed { .. } => Err(io::ErrorKind::Unsupported.into()),
        Place::Socket { path, .. } => {
            let (reader, writer) = UnixStream::connect(path).await?.into_split();
            exchange(line, pace, reader, writer, out, told).await
        }
    }
}

/// Moves bytes both ways, no faster than the line sends them. `Ok` when the bundle has ended.
async fn exchange(
    line: usize,
    bytes_per_s: f64,
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    out: &mut Receiver<Vec<u8>>,
    told: &Sender<(usize, Said)>,
) -> io::Result<()> {
    // Bytes for the call that has ended: the bundle has heard of its end since.
    while out.try_recv().is_ok() {}
    if told.send((line, Said::Carrier(true))).await.is_err() {
        return Ok(());
    }
    let reading = async {
        let mut buffer = [0; 2048];
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "hung up"));
            }
            if told.send((line, Said::Bytes(buffer[..count].to_vec()))).await.is_err() {
                return Ok(());
            }
        }
    };
    let writing = async {
        let mut free_at = Instant::now();
        while let Some(bytes) = out.recv().await {
            writer.write_all(&bytes).await?;
            // A line that was idle begins now; one that was busy goes on where the last portion ended.
            free_at = free_at.max(Instant::now() - PORTION) + Duration::from_secs_f64(bytes.len() as f64 / bytes_per_s);
            sleep_until(free_at).await;
            if told.send((line, Said::Sent(bytes.len()))).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
    }
}
