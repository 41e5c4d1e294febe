//! Orders of the operator of a bundle, who dials: terminals of calls are handed over, and asked back.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram as StdSocket;

use serde::Deserialize;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::privileged::channel;

/// An order for the line of this name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Order {
    /// A call is up, and its terminal comes along.
    Attach(String),
    /// The call is hung up: its terminal is to be closed.
    Detach(String),
}

/// The socket of the operator (SOCK_SEQPACKET): messages in JSON, and a file descriptor with those that attach.
#[derive(Debug)]
pub(super) struct Orders(UnixDatagram);

impl Orders {
    /// Reads orders from this socket, within a runtime of `tokio`.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        // Not bound to a type of sockets: what matters is that messages keep their bounds.
        let socket = StdSocket::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Orders(UnixDatagram::from_std(socket)?))
    }

    /// The next order; `None` when the operator has ended. It may be cancelled.
    ///
    /// # Errors
    /// If it is none.
    pub(super) async fn next(&self) -> io::Result<Option<(Order, Option<OwnedFd>)>> {
        self.0.async_io(Interest::READABLE, || channel::receive(self.0.as_fd())).await
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[tokio::test]
    async fn orders_come_with_their_terminals_and_end() {
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let orders = Orders::new(far).unwrap();
        let (terminal, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        channel::send(near.as_fd(), &serde_json::json!({"attach": "kansas"}), Some(terminal.as_fd())).unwrap();
        channel::send(near.as_fd(), &serde_json::json!({"detach": "kansas"}), None).unwrap();
        let (order, file) = orders.next().await.unwrap().unwrap();
        assert!(order == Order::Attach("kansas".to_owned()) && file.is_some());
        let (order, file) = orders.next().await.unwrap().unwrap();
        assert!(order == Order::Detach("kansas".to_owned()) && file.is_none());
        channel::send(near.as_fd(), &serde_json::json!({"dial": "kansas"}), None).unwrap();
        orders.next().await.unwrap_err();
        drop(near);
        assert!(orders.next().await.unwrap().is_none());
    }
}
