//! Frames on their way to the port of a line: waiting, being written, written but not yet sent.

use std::collections::VecDeque;

use super::hdlc::{ABORT, Accm, encode};

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// A packet of the line itself.
    Control,
    /// An Echo-Request whose departure is awaited.
    Echo,
    /// A packet of the bundle, or a part of one, with the bundle's number for it.
    Data(u64),
}

#[derive(Clone, Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    /// Bytes that the driver has taken.
    taken: usize,
    load: Load,
}

/// The frames of one line, in the order in which they are written. The driver takes bytes and reports those that have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    frames: VecDeque<Outgoing>,
    /// Bytes of the first frame that have left.
    sent: usize,
}

impl Outbox {
    /// Adds a frame: data at the end, anything else in front of data that are not begun.
    pub(super) fn push(&mut self, content: &[u8], map: Accm, load: Load) {
        let mut bytes = Vec::with_capacity(content.len() + 16);
        encode(content, map, &mut bytes);
        let frame = Outgoing { bytes, taken: 0, load };
        let is_waiting_data = |frame: &Outgoing| frame.taken == 0 && matches!(frame.load, Load::Data(_));
        let first_waiting = self.frames.iter().position(is_waiting_data).filter(|_| !matches!(load, Load::Data(_)));
        match first_waiting {
            Some(at) => self.frames.insert(at, frame),
            None => self.frames.push_back(frame),
        }
    }

    /// Appends up to `room` bytes for the port to `out`.
    pub(super) fn take(&mut self, mut room: usize, out: &mut Vec<u8>) {
        for at in 0..self.frames.len() {
            // The flag behind a frame is that in front of the next.
            if self.frames[at].taken == 0 && at > 0 {
                self.frames[at].bytes.remove(0);
            }
            let frame = &mut self.frames[at];
            let end = frame.bytes.len().min(frame.taken + room);
            out.extend(&frame.bytes[frame.taken..end]);
            room -= end - frame.taken;
            frame.taken = end;
            if room == 0 {
                return;
            }
        }
    }

    /// This many further bytes have left the port; `left` hears of each frame that has left with them.
    pub(super) fn sent(&mut self, mut bytes: usize, mut left: impl FnMut(Load)) {
        while let Some(first) = self.frames.front() {
            let more = bytes.min(first.taken - self.sent);
            self.sent += more;
            bytes -= more;
            if self.sent < first.bytes.len() {
                return;
            }
            left(first.load);
            self.sent = 0;
            self.frames.pop_front();
        }
    }

    /// Bytes that have not left the port.
    pub(super) fn backlog_bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.bytes.len()).sum::<usize>() - self.sent
    }

    /// Bytes that the driver has not taken.
    pub(super) fn untaken_bytes(&self) -> usize {
        self.frames.iter().map(|frame| frame.bytes.len() - frame.taken).sum()
    }

    /// Frames with data that have not left.
    pub(super) fn data_frames(&self) -> usize {
        self.frames.iter().filter(|frame| matches!(frame.load, Load::Data(_))).count()
    }

    /// Frames of the line itself that have not left.
    pub(super) fn control_frames(&self) -> usize {
        self.frames.len() - self.data_frames()
    }

    /// Whether nothing is left to send.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Drops everything that has not left; `unsent` hears of the bundle's numbers among it.
    pub(super) fn clear(&mut self, mut unsent: impl FnMut(u64)) {
        for frame in self.frames.drain(..) {
            if let Load::Data(number) = frame.load {
                unsent(number);
            }
        }
        self.sent = 0;
    }

    /// Drops data that no byte was taken of.
    pub(super) fn withdraw(&mut self, is_useless: impl Fn(u64) -> bool) {
        self.frames.retain(|frame| frame.taken > 0 || !matches!(frame.load, Load::Data(number) if is_useless(number)));
    }

    /// As [`clear`](Self::clear), for data only, on a line that still carries: frames of the line itself are still sent. A frame that the
    /// driver has taken will arrive, and is not unsent; one that was begun is aborted (RFC 1662, section 4.3).
    pub(super) fn clear_data(&mut self, mut unsent: impl FnMut(u64)) {
        self.frames.retain_mut(|frame| {
            let Load::Data(number) = frame.load else { return true };
            frame.load = Load::Control;
            if frame.taken < frame.bytes.len() {
                unsent(number);
                frame.bytes.truncate(frame.taken);
                frame.bytes.extend(ABORT);
            }
            frame.taken > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(outbox: &mut Outbox, room: usize) -> Vec<u8> {
        let mut out = Vec::new();
        outbox.take(room, &mut out);
        out
    }

    #[test]
    fn what_has_left_is_reported_once_and_the_rest_is_not() {
        let mut outbox = Outbox::default();
        outbox.push(b"one", Accm::NONE, Load::Data(1));
        outbox.push(b"two", Accm::NONE, Load::Data(2));
        // Seven bytes each, of which the second shares a flag.
        assert_eq!(taken(&mut outbox, 9).len(), 9);
        outbox.push(b"ctl", Accm::NONE, Load::Control);
        outbox.push(b"six", Accm::NONE, Load::Data(3));
        let mut left = Vec::new();
        outbox.sent(8, |load| left.push(load));
        assert_eq!(left, [Load::Data(1)]);
        assert_eq!(taken(&mut outbox, 100).iter().filter(|&&byte| byte == 0x7e).count(), 3, "flags are shared");
        let mut unsent = Vec::new();
        outbox.clear(|number| unsent.push(number));
        assert_eq!(unsent, [2, 3]);
        assert!(outbox.is_empty() && outbox.backlog_bytes() == 0);
    }

    #[test]
    fn control_goes_in_front_of_data_that_wait() {
        let mut outbox = Outbox::default();
        outbox.push(b"one", Accm::NONE, Load::Data(1));
        taken(&mut outbox, 2);
        outbox.push(b"two", Accm::NONE, Load::Data(2));
        outbox.push(b"echo", Accm::NONE, Load::Echo);
        taken(&mut outbox, 100);
        let mut left = Vec::new();
        outbox.sent(100, |load| left.push(load));
        assert_eq!(left, [Load::Data(1), Load::Echo, Load::Data(2)]);
    }

    #[test]
    fn more_bytes_than_were_taken_do_not_count() {
        let mut outbox = Outbox::default();
        outbox.push(b"one", Accm::NONE, Load::Data(1));
        taken(&mut outbox, 3);
        let mut left = Vec::new();
        outbox.sent(1000, |load| left.push(load));
        assert!(left.is_empty());
        // Of seven bytes, three have left.
        taken(&mut outbox, 100);
        outbox.sent(3, |load| left.push(load));
        assert!(left.is_empty());
        outbox.sent(1, |load| left.push(load));
        assert_eq!(left, [Load::Data(1)]);
    }
}
