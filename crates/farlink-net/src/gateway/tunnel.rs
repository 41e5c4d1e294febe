//! Carries a TCP connection over a connection between gateways, with its ends and resets.

use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::net::{Shutdown, shutdown, sockopt};
use tokio::io::{AsyncRead, AsyncWriteExt, Interest, ReadBuf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};

use crate::framing::HEADER_BYTES;
use crate::io::Connection;

use super::frame::{Frame, Frames, MOST_CONTENT, Refusal, fill_data_header};
use super::metrics::Metrics;

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// Both directions, in order.
    Orderly,
    /// TCP on this side was reset, or the gateway stops.
    Reset,
    /// The other gateway says that it is over.
    ResetByPeer,
    /// The other gateway could not connect.
    Refused(Refusal),
    /// The path or the other gateway failed, or what came was not understood.
    Lost(io::Error),
    /// Data stayed under way for longer than they may.
    Late,
}

/// Frames that arrive from the other gateway.
#[derive(Debug)]
pub(super) struct FromPeer<R> {
    stream: R,
    frames: Frames,
}

impl<R: AsyncRead + Unpin> FromPeer<R> {
    pub(super) fn new(stream: R) -> Self {
        FromPeer { stream, frames: Frames::default() }
    }

    pub(super) fn get_mut(&mut self) -> &mut R {
        &mut self.stream
    }

    /// The next frame; an error if the stream ends, as its end has to be said by a frame. `[T8]`
    pub(super) async fn next(&mut self) -> io::Result<Frame> {
        loop {
            match self.frames.take() {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "the other gateway sends no frames")),
            }
            let FromPeer { stream, frames } = self;
            // The buffer is on the stack: an idle connection has none.
            let read = std::future::poll_fn(|cx| {
                let mut buffer = [MaybeUninit::uninit(); MOST_CONTENT];
                let mut buffer = ReadBuf::uninit(&mut buffer);
                let ready = Pin::new(&mut *stream).poll_read(cx, &mut buffer);
                ready.map_ok(|()| {
                    frames.push(buffer.filled());
                    buffer.filled().len()
                })
            });
            if read.await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Sets up a TCP connection: it is reset when it is dropped, or its process is killed, until all of it was carried. `[T9]`
pub(super) fn prepare(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    sockopt::set_socket_linger(tcp, Some(Duration::ZERO))?;
    // A host that is gone without a word is noticed.
    sockopt::set_socket_keepalive(tcp, true)?;
    sockopt::set_tcp_keepidle(tcp, Duration::from_secs(120))?;
    Ok(())
}

/// A frame that was begun, and a reset, may take so long; after that the missing end says enough. `[T8]`
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why one direction stopped before its end.
enum Broken {
    /// TCP is over.
    Tcp,
    /// The other gateway's stream is over, behind its end.
    Over,
    Ended(End),
}

/// Carries both directions until both have ended, one of them is broken, or `stops` says that the gateway stops. Both connections are over
/// then.
pub(super) async fn carry(
    tcp: TcpStream,
    peer: FromPeer<Connection>,
    deadline: Option<Duration>,
    metrics: &Metrics,
    mut stops: watch::Receiver<bool>,
) -> End {
    let watch = peer.stream.watch();
    let (stream, mut to_peer) = tokio::io::split(peer.stream);
    let mut from_peer = FromPeer { stream, frames: peer.frames };
    let (is_over, has_ended) = (Notify::new(), Notify::new());
    let end = {
        let mut up = pin!(up(&tcp, &mut to_peer, &is_over, metrics));
        let mut down = pin!(down(&tcp, &mut from_peer, &has_ended, metrics));
        let mut late = pin!(until_late(&watch, deadline));
        let (mut is_up_done, mut is_down_done) = (false, false);
        loop {
            let broken = tokio::select! {
                biased;
                ended = &mut up, if !is_up_done => {
                    is_up_done = true;
                    ended
                }
                () = has_ended.notified() => {
                    is_down_done = true;
                    Ok(())
                }
                ended = &mut down => ended,
                () = &mut late => Err(Broken::Ended(End::Late)),
                // The far end of TCP is told as well: nobody would answer the other gateway any more.
                _ = stops.wait_for(|&it| it) => Err(Broken::Tcp),
                // No task may be reading from TCP: either it has ended, or the other gateway does not take anything.
                Ok(_) = tcp.ready(Interest::ERROR) => Err(Broken::Tcp),
            };
            match broken {
                Ok(()) if is_up_done && is_down_done => break End::Orderly,
                Ok(()) => {}
                Err(Broken::Ended(end)) => break end,
                // It has all of this side's stream only if that has ended as well.
                Err(Broken::Over) if is_up_done => break End::Orderly,
                Err(Broken::Over) => break End::Lost(io::ErrorKind::UnexpectedEof.into()),
                Err(Broken::Tcp) => {
                    // A frame that was begun has to be written first.
                    if !is_up_done {
                        is_over.notify_one();
                        if tokio::time::timeout(LAST_WORDS, &mut up).await.is_err() {
                            // The other gateway takes nothing, and a reset would stand in the middle of a frame.
                            break End::Lost(io::ErrorKind::TimedOut.into());
                        }
                    }
                    break End::Reset;
                }
            }
        }
    };
    match end {
        End::Orderly => {
            // The kernel delivers what it still holds, and then FIN.
            let _ = sockopt::set_socket_linger(&tcp, None);
        }
        // If this comes late, a frame may be half written and its rest may not get through: the missing end says enough. `[T8]`
        End::Reset => {
            let _ = tokio::time::timeout(LAST_WORDS, to_peer.write_all(&Frame::Reset.to_bytes())).await;
        }
        _ => {}
    }
    end
}

/// From TCP to the other gateway. `is_over` stops it between two frames.
async fn up(
    tcp: &TcpStream,
    to_peer: &mut WriteHalf<Connection>,
    is_over: &Notify,
    metrics: &Metrics,
) -> Result<(), Broken> {
    loop {
        tokio::select! {
            biased;
            () = is_over.notified() => return Err(Broken::Tcp),
            ready = tcp.readable() => ready.map_err(|_| Broken::Tcp)?,
        }
        let Some(frame) = read_frame(tcp).map_err(|_| Broken::Tcp)? else { continue };
        let bytes = frame.len() - HEADER_BYTES;
        let frame = if bytes == 0 { Frame::End.to_bytes() } else { frame };
        to_peer.write_all(&frame).await.map_err(|error| Broken::Ended(End::Lost(error)))?;
        metrics.sent_bytes_total.add(bytes as u64);
        if bytes == 0 {
            return Ok(());
        }
    }
}

/// The data that has arrived at TCP, as a frame; none without data. An empty frame is the end.
pub(super) fn read_frame(tcp: &TcpStream) -> io::Result<Option<BytesMut>> {
    let mut buffer = [0; HEADER_BYTES + MOST_CONTENT];
    match tcp.try_read(&mut buffer[HEADER_BYTES..]) {
        Ok(bytes) => {
            let frame = &mut buffer[..HEADER_BYTES + bytes];
            fill_data_header(frame);
            Ok(Some(BytesMut::from(&*frame)))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// From the other gateway to TCP. Behind the end of the stream, of which `has_ended` tells, there may still be a reset.
async fn down<R: AsyncRead + Unpin>(
    tcp: &TcpStream,
    from_peer: &mut FromPeer<R>,
    has_ended: &Notify,
    metrics: &Metrics,
) -> Result<(), Broken> {
    let mut is_open = true;
    loop {
        let frame = match from_peer.next().await {
            Err(error) if !is_open && error.kind() == io::ErrorKind::UnexpectedEof => return Err(Broken::Over),
            frame => frame.map_err(|error| Broken::Ended(End::Lost(error)))?,
        };
        match frame {
            Frame::Data(data) if is_open => {
                metrics.received_bytes_total.add(data.len() as u64);
                write_all(tcp, data).await.map_err(|_| Broken::Tcp)?;
            }
            Frame::End if is_open => {
                shutdown(tcp, Shutdown::Write).map_err(|_| Broken::Tcp)?;
                is_open = false;
                has_ended.notify_one();
            }
            Frame::Opened => {}
            Frame::Refused(why) => return Err(Broken::Ended(End::Refused(why))),
            Frame::Reset => return Err(Broken::Ended(End::ResetByPeer)),
            Frame::Open(_) | Frame::Data(_) | Frame::End => {
                let error =
                    io::Error::new(io::ErrorKind::InvalidData, "the other gateway repeats an opening or an end");
                return Err(Broken::Ended(End::Lost(error)));
            }
        }
    }
}

async fn write_all(tcp: &TcpStream, mut data: Bytes) -> io::Result<()> {
    while !data.is_empty() {
        tcp.writable().await?;
        match tcp.try_write(&data) {
            Ok(bytes) => drop(data.split_to(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends when the same bytes have been under way for as long as they may, looked at eight times in that time.
async fn until_late(watch: &crate::io::Watch, deadline: Option<Duration>) {
    let Some(deadline) = deadline else { return std::future::pending().await };
    let interval = deadline / DEADLINE_LOOKS;
    // All data that had been written at each of the last looks has to be settled now.
    let mut written = std::collections::VecDeque::new();
    loop {
        tokio::time::sleep(interval).await;
        let (now_written, now_settled) = watch.settled_bytes();
        if written.len() == DEADLINE_LOOKS as usize && written.pop_front().is_some_and(|then| now_settled < then) {
            return;
        }
        written.push_back(now_written);
    }
}

const DEADLINE_LOOKS: u32 = 8;
