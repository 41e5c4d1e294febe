//! The keys between two hosts: each path has packet numbers and a replay window of its own. `[J4]`, `[J5]`

use farlink_core::Time;
use farlink_core::wire::aerotp::sealed::{
    MOST_NUMBER, Nonce, PacketKey as _, ReplayWindow, TAG_BYTES, Tag, expand, nonce,
};

use crate::seal::hello::SessionKeys;
use crate::seal::mac::Mac;

use super::packet::{HEADER_BYTES, Kind, MOST_PATHS, sealed_header};

/// Result of a handshake.
#[derive(Debug)]
pub(super) struct Keys {
    /// Chosen by this side, and in what it receives.
    pub(super) own_id: u32,
    /// Chosen by the peer, and in what it receives.
    pub(super) peer_id: u32,
    /// Proof of a reset by the peer.
    pub(super) peer_token: Mac,
    pub(super) since: Time,
    /// Bytes that it has sealed.
    pub(super) sealed_bytes: u64,
    sealed: u64,
    refused: u64,
    keys: SessionKeys,
    next: [u64; MOST_PATHS],
    windows: [ReplayWindow; MOST_PATHS],
}

/// Why a datagram did not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotOpened {
    Repeated,
    Refused,
}

/// A key seals no longer packets; the limits of AES-GCM depend on it.
const LONGEST_BYTES: usize = 9000;

impl Keys {
    pub(super) fn new(now: Time, (own_id, peer_id): (u32, u32), peer_token: Mac, keys: SessionKeys) -> Self {
        Keys {
            own_id,
            peer_id,
            peer_token,
            since: now,
            sealed_bytes: 0,
            sealed: 0,
            refused: 0,
            keys,
            next: [0; MOST_PATHS],
            windows: std::array::from_fn(|_| ReplayWindow::default()),
        }
    }

    /// Appends a sealed datagram to `out`, whose content `write` appends. `false`, and nothing is appended, if the key has come to its end.
    pub(super) fn seal(&mut self, kind: Kind, path: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let number = self.next[usize::from(path)];
        let algorithm = self.keys.sending.algorithm();
        if number > MOST_NUMBER || self.sealed >= algorithm.most_sealed(LONGEST_BYTES) {
            return false;
        }
        let start = out.len();
        let header = sealed_header(kind, path, self.peer_id, number);
        out.extend(header);
        write(out);
        let content = &mut out[start + HEADER_BYTES..];
        self.next[usize::from(path)] += 1;
        self.sealed += 1;
        self.sealed_bytes += content.len() as u64;
        let tag = self.keys.sending.seal(&path_nonce(self.keys.sending.iv(), path, number), &header, content);
        out.extend(tag);
        true
    }

    /// Opens a datagram in place: returns whether it is the newest of its path; its content stands between header and tag.
    pub(super) fn open(&mut self, path: u8, low: u32, datagram: &mut [u8]) -> Result<bool, NotOpened> {
        let window = &mut self.windows[usize::from(path)];
        let expected = window.expected();
        let number = expand(low, expected);
        window.check(number).map_err(|_| NotOpened::Repeated)?;
        let (header, rest) = datagram.split_first_chunk_mut::<HEADER_BYTES>().ok_or(NotOpened::Refused)?;
        let (content, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().ok_or(NotOpened::Refused)?;
        let tag: Tag = *tag;
        let nonce = path_nonce(self.keys.receiving.iv(), path, number);
        if !self.keys.receiving.open(&nonce, header, content, &tag) {
            self.refused += 1;
            return Err(NotOpened::Refused);
        }
        window.mark(number);
        Ok(number >= expected)
    }

    /// Whether another handshake should give other keys: soon enough that none comes to its end before.
    pub(super) fn are_worn(&self) -> bool {
        let algorithm = self.keys.sending.algorithm();
        self.sealed > algorithm.most_sealed(LONGEST_BYTES) / 2 || self.refused > algorithm.most_refused()
    }
}

/// The nonce of a packet: the path in the first four bytes of the IV, the number in the last eight (as of multipath QUIC,
/// draft-ietf-quic-multipath-11, section 2.4). `[J4]`
fn path_nonce(iv: &Nonce, path: u8, number: u64) -> Nonce {
    let mut nonce = nonce(iv, number);
    nonce[3] ^= path;
    nonce
}
