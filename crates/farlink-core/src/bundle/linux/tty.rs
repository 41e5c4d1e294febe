//! How many fragments a serial line of Linux takes: those in the buffer of its port, and three in front of it (`ppp_async_push`).

use std::collections::VecDeque;

/// The path of fragments from the sender of a bundle into the buffer of a serial port. All positions count bytes on the line
/// since it was attached.
///
/// A fragment is written into the buffer as far as there is room. A frame that does not fit stays in `obuf`, one more in `tpkt`,
/// and the next one in the queue `xq` of its channel, which is then no longer free. A buffer that was full is refilled once it is
/// almost empty.
#[derive(Clone, Debug)]
pub(in super::super) struct Tty {
    most_bytes: u64,
    /// End of the last fragment that was given to the line.
    given: u64,
    /// End of the bytes that were written into the buffer.
    written: u64,
    /// End of the bytes that were encoded into `obuf`.
    encoded: u64,
    /// End of the fragment in `tpkt`.
    packet: Option<u64>,
    /// Ends of the fragments in `xq`.
    queued: VecDeque<u64>,
}

/// Linux wakes the writer when fewer bytes are left (`WAKEUP_CHARS`).
const WAKEUP_BYTES: u64 = 256;
/// Bytes that fit into `obuf` (`OBUFSIZE` less the room for an escaped frame check sequence and a flag).
const ENCODED_BYTES: u64 = 506;

impl Tty {
    /// A port with a buffer of `most_bytes` bytes.
    pub(in super::super) fn new(most_bytes: u64) -> Self {
        Tty { most_bytes, given: 0, written: 0, encoded: 0, packet: None, queued: VecDeque::new() }
    }

    /// Drops all fragments that the port held, because the line was detached.
    pub(in super::super) fn clear(&mut self) {
        *self = Tty::new(self.most_bytes);
    }

    /// Whether its channel gets a fragment of the next packet, because no fragment is queued.
    pub(in super::super) fn is_free(&self) -> bool {
        self.queued.is_empty()
    }

    /// Takes a fragment of `bytes` bytes; `gone` bytes have left the line so far.
    pub(in super::super) fn take(&mut self, bytes: u32, gone: u64) {
        self.given += u64::from(bytes);
        if !self.queued.is_empty() || !self.start(self.given, gone) {
            self.queued.push_back(self.given);
        }
    }

    /// How many bytes must have left before the buffer is refilled; `None` while no fragment waits for that.
    pub(in super::super) fn wakes_at(&self) -> Option<u64> {
        let is_stuffed = self.written < self.encoded || self.packet.is_some();
        // A buffer that is smaller than 256 bytes is refilled as soon as there is room.
        is_stuffed.then_some((self.written + 1).saturating_sub(WAKEUP_BYTES.min(self.most_bytes)))
    }

    /// Refills the buffer after it has run low.
    pub(in super::super) fn wake(&mut self, gone: u64) {
        if !self.push(gone) {
            return;
        }
        while let Some(&end) = self.queued.front() {
            if !self.start(end, gone) {
                return;
            }
            self.queued.pop_front();
        }
    }

    /// Puts a fragment into `tpkt`; returns `false` if `tpkt` is occupied.
    fn start(&mut self, end: u64, gone: u64) -> bool {
        self.push(gone);
        if self.packet.is_some() {
            return false;
        }
        self.packet = Some(end);
        self.push(gone);
        true
    }

    /// Writes as much as there is room for; returns whether `tpkt` became free.
    fn push(&mut self, gone: u64) -> bool {
        let mut is_done = false;
        loop {
            let room = self.most_bytes.saturating_sub(self.written.saturating_sub(gone));
            self.written += room.min(self.encoded - self.written);
            if self.written < self.encoded {
                return is_done;
            }
            let Some(end) = self.packet else { return is_done };
            self.encoded = end.min(self.encoded + ENCODED_BYTES);
            if self.encoded == end {
                self.packet = None;
                is_done = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UART of 4096 bytes takes 20 fragments of 200 bytes and a part of the next one; one more goes into `tpkt`, one into `xq`.
    #[test]
    fn a_port_takes_its_buffer_and_three_fragments() {
        let mut tty = Tty::new(4096);
        let taken = (1..).find(|_| {
            tty.take(200, 0);
            !tty.is_free()
        });
        assert_eq!(taken, Some(20 + 3));
        assert_eq!((tty.written, tty.encoded, tty.packet), (4096, 4200, Some(4400)));
    }

    #[test]
    fn a_full_buffer_is_refilled_when_256_bytes_are_left() {
        let mut tty = Tty::new(4096);
        (0..23).for_each(|_| tty.take(200, 0));
        assert_eq!(tty.wakes_at(), Some(4096 - 255));
        tty.wake(4096 - 255);
        assert!(tty.is_free() && tty.wakes_at().is_none(), "all waiting fragments fit");
        assert_eq!(tty.written, 23 * 200);
    }

    #[test]
    fn a_long_frame_is_encoded_in_parts() {
        let mut tty = Tty::new(1000);
        tty.take(1500, 0);
        assert_eq!((tty.written, tty.encoded, tty.packet), (1000, 1012, Some(1500)));
        tty.take(1500, 0);
        assert!(!tty.is_free());
    }
}
