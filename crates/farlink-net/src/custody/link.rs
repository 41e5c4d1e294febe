//! A connection to the next or the previous node, with frames in both directions.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io::Connection;

use super::frame::{Frame, Frames};

/// A connection between two nodes of a stream.
#[derive(Debug)]
pub(super) struct Link {
    connection: Connection,
    frames: Frames,
    out: BytesMut,
}

/// Events of a link.
#[derive(Debug)]
pub(super) enum LinkEvent {
    /// A frame has come.
    Frame(Frame),
    /// Some of what was put was written.
    Written,
}

const READ_BYTES: usize = 16 * 1024;

impl Link {
    pub(super) fn new(connection: Connection) -> Self {
        Link { connection, frames: Frames::default(), out: BytesMut::new() }
    }

    /// Puts a frame behind those that are to be written.
    pub(super) fn put(&mut self, frame: &Frame) {
        frame.put(&mut self.out);
    }

    /// The end of the program does not wait for the connection.
    pub(super) fn leave(&self) {
        self.connection.leave();
    }

    /// Bytes that were put and not written.
    pub(super) fn unwritten(&self) -> usize {
        self.out.len()
    }

    /// Writes what was put, and waits for a frame if one is wanted. It may be cancelled.
    ///
    /// # Errors
    /// If the connection is over, or what comes are no frames.
    pub(super) async fn event(&mut self, wants_frame: bool) -> io::Result<LinkEvent> {
        let Link { connection, frames, out } = self;
        poll_fn(|cx| {
            if !out.is_empty()
                && let Poll::Ready(written) = Pin::new(&mut *connection).poll_write(cx, out)
            {
                out.advance(written?);
                return Poll::Ready(Ok(LinkEvent::Written));
            }
            if !wants_frame {
                return Poll::Pending;
            }
            loop {
                match frames.take() {
                    Ok(Some(frame)) => return Poll::Ready(Ok(LinkEvent::Frame(frame))),
                    Ok(None) => {}
                    Err(_) => {
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "no frames of custody")));
                    }
                }
                // The buffer is on the stack: an idle connection has none.
                let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
                let mut buffer = ReadBuf::uninit(&mut buffer);
                ready!(Pin::new(&mut *connection).poll_read(cx, &mut buffer))?;
                if buffer.filled().is_empty() {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
                frames.push(buffer.filled());
            }
        })
        .await
    }

    /// Writes everything that was put.
    ///
    /// # Errors
    /// If the connection is over.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        while self.unwritten() > 0 {
            self.event(false).await?;
        }
        Ok(())
    }

    /// The next frame.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub(super) async fn frame(&mut self) -> io::Result<Frame> {
        loop {
            if let LinkEvent::Frame(frame) = self.event(true).await? {
                return Ok(frame);
            }
        }
    }
}

/// Events of a link that may not be there: then none.
pub(super) async fn event_of(link: &mut Option<Link>, wants_frame: bool) -> io::Result<LinkEvent> {
    match link {
        Some(link) => link.event(wants_frame).await,
        None => std::future::pending().await,
    }
}
