//! Messages over a pair of Unix sockets that keep their bounds (SOCK_SEQPACKET), with at most one file descriptor each.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longer messages are refused.
const MOST_BYTES: usize = 4096;

/// Sends a message, and a file with it.
pub(crate) fn send<T: Serialize>(socket: BorrowedFd<'_>, message: &T, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.map(|file| [file]);
    if let Some(files) = &files {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next message, and the file that came with it; `None` at the end.
pub(crate) fn receive<T: DeserializeOwned>(socket: BorrowedFd<'_>) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut bytes = [0; MOST_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let received = loop {
        match recvmsg(socket.as_fd(), &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    let file = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message has more than {MOST_BYTES} bytes")));
    }
    Ok(Some((serde_json::from_slice(&bytes[..received.bytes])?, file)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn a_file_comes_with_its_message() {
        let (one, other) = pair();
        let (mut near, far) = UnixStream::pair().unwrap();
        send(one.as_fd(), &"first", None).unwrap();
        send(one.as_fd(), &"second", Some(far.as_fd())).unwrap();
        drop(far);
        let first: (String, Option<OwnedFd>) = receive(other.as_fd()).unwrap().unwrap();
        assert!(first.0 == "first" && first.1.is_none());
        let (text, file): (String, _) = receive(other.as_fd()).unwrap().unwrap();
        assert_eq!(text, "second");
        UnixStream::from(file.unwrap()).write_all(b"through it").unwrap();
        let mut read = String::new();
        near.read_to_string(&mut read).unwrap();
        assert_eq!(read, "through it");
        drop(one);
        assert!(receive::<String>(other.as_fd()).unwrap().is_none());
    }

    #[test]
    fn long_messages_and_other_ones_are_errors() {
        let (one, other) = pair();
        send(one.as_fd(), &"x".repeat(5000), None).unwrap();
        assert!(receive::<String>(other.as_fd()).is_err());
        send(one.as_fd(), &7, None).unwrap();
        assert!(receive::<String>(other.as_fd()).is_err());
    }
}
