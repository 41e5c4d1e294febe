//! How Linux cuts a packet for its channels (`ppp_mp_explode`).

/// A channel as the sender sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Whether the channel has no fragment queued, because the line took the last one at once.
    pub is_free: bool,
    /// Speed of the serial port, in any unit; 0 if it is unknown. It is not the rate of the modem.
    pub speed: u64,
}

/// The sender of one end: which channels are attached, and which one was used last.
///
/// A packet waits until at least half of the channels (rounded down) are free, and is then cut into one fragment for each free
/// channel. There is no least length: over eight channels a packet of 52 bytes becomes eight fragments of 6 or 7 bytes.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    /// Lines in the order in which they were attached; a line that is attached again goes to the end.
    attached: Vec<usize>,
    /// Whether each attached line has had a fragment.
    is_used: Vec<bool>,
    /// Index in `attached` of the channel that takes the next fragment.
    next: usize,
    /// Length of a fragment's header; `most_bytes` is that of its longest payload.
    header_bytes: i64,
    most_bytes: i64,
    /// For each channel: usable or free.
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Usable,
    Free,
}

/// Linux counts the protocol field as a part of a fragment's header, which is then 2 bytes longer than the multilink header.
const PROTOCOL_BYTES: u32 = 2;
/// The MTU of a channel: the default MRU of its peer (RFC 1661, section 6.1).
const CHANNEL_MTU_BYTES: i64 = 1500;

impl Sender {
    /// A sender without channels, whose fragments have a multilink header of `header_bytes` bytes.
    pub fn new(header_bytes: u32) -> Self {
        Sender {
            header_bytes: i64::from(header_bytes + PROTOCOL_BYTES),
            most_bytes: CHANNEL_MTU_BYTES - i64::from(header_bytes),
            ..Sender::default()
        }
    }

    /// A line joins the bundle, after those that are attached.
    pub fn attach(&mut self, line: usize) {
        self.detach(line);
        self.attached.push(line);
        self.is_used.push(false);
    }

    /// A line leaves the bundle.
    pub fn detach(&mut self, line: usize) {
        if let Some(at) = self.attached.iter().position(|&other| other == line) {
            self.attached.remove(at);
            self.is_used.remove(at);
        }
    }

    /// Whether no line is attached.
    pub fn is_empty(&self) -> bool {
        self.attached.is_empty()
    }

    /// Cuts a packet of `bytes` bytes, its protocol field (1 byte) included, and appends line and length of each fragment to
    /// `fragments`, in the order of their numbers. Returns `false` if the packet has to wait.
    pub fn cut(&mut self, bytes: u32, channel: impl Fn(usize) -> Channel, fragments: &mut Vec<(usize, u32)>) -> bool {
        let (mut free, mut unknown, mut total_speed) = (0_i64, 0_i64, 0_i64);
        self.states.clear();
        for &line in &self.attached {
            let Channel { is_free, speed } = channel(line);
            self.states.push(if is_free { State::Free } else { State::Usable });
            free += i64::from(is_free);
            unknown += i64::from(is_free && speed == 0);
            total_speed += if is_free { speed as i64 } else { 0 };
        }
        if let Some(fresh) = self.is_used.iter().position(|is_used| !is_used) {
            self.next = self.next.min(fresh);
        }
        let available = self.attached.len() as i64;
        if free == 0 || free < available / 2 {
            return false;
        }

        let (total, all_free) = (i64::from(bytes), free);
        let known = all_free - unknown;
        let mut left = total;
        let mut longer = total % free;
        let mut at = if self.next > self.attached.len() { 0 } else { self.next };
        while left > 0 {
            if at >= self.attached.len() {
                at = 0;
            }
            let (place, line) = (at, self.attached[at]);
            at += 1;
            match self.states[place] {
                State::Usable if free > 0 => continue, // this channel has a fragment queued, and free ones are left
                State::Usable => {}
                State::Free => self.states[place] = State::Usable,
            }
            let mut share = left;
            if free > 0 {
                let speed = channel(line).speed as i64;
                if speed == 0 {
                    share = left / free + i64::from(longer > 0);
                    longer -= i64::from(longer > 0);
                } else {
                    let slowness = (total_speed * all_free / speed).max(1);
                    share = known * (total + self.header_bytes * all_free) / slowness - self.header_bytes;
                    if longer > 0 {
                        share += known * speed / total_speed;
                        longer -= known * speed / total_speed;
                    }
                }
                free -= 1;
            }
            if free <= 0 || share > left {
                share = left;
            }
            if share <= 0 {
                self.states[place] = State::Free; // a fragment over so slow a channel is not worth its header
                continue;
            }
            let share = share.min(self.most_bytes);
            self.is_used[place] = true;
            fragments.push((line, share as u32));
            left -= share;
        }
        self.next = at;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(lines: usize) -> Sender {
        let mut sender = Sender::new(4);
        (0..lines).for_each(|line| sender.attach(line));
        sender
    }

    fn cut(sender: &mut Sender, bytes: u32, channels: &[(bool, u64)]) -> Vec<(usize, u32)> {
        let mut fragments = Vec::new();
        let channel = |line: usize| Channel { is_free: channels[line].0, speed: channels[line].1 };
        let is_cut = sender.cut(bytes, channel, &mut fragments);
        assert_eq!(is_cut, !fragments.is_empty());
        fragments
    }

    /// Measured: an acknowledgement of 52 bytes is sent as eight fragments of 6 or 7 bytes.
    #[test]
    fn equal_shares_have_no_minimum() {
        for speed in [0, 9600] {
            let fragments = cut(&mut sender(8), 53, &[(true, speed); 8]);
            let bytes: Vec<u32> = fragments.iter().map(|fragment| fragment.1).collect();
            assert_eq!(bytes, [7, 7, 7, 7, 7, 6, 6, 6], "{speed}");
            assert_eq!(fragments.iter().map(|fragment| fragment.0).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_packet_waits_until_half_of_the_channels_are_free() {
        let channels = |free: usize| -> Vec<(bool, u64)> { (0..8).map(|line| (line < free, 0)).collect() };
        assert!(cut(&mut sender(8), 1501, &channels(0)).is_empty());
        assert!(cut(&mut sender(8), 1501, &channels(3)).is_empty());
        assert_eq!(cut(&mut sender(8), 1501, &channels(4)).len(), 4);
        assert_eq!(cut(&mut sender(3), 1501, &channels(1)[..3]).len(), 2, "no fragment exceeds the MTU of a channel");
    }

    /// The next packet begins with the channel after the one that was used last; a line that is attached again goes to the end.
    #[test]
    fn channels_take_turns_in_the_order_of_attachment() {
        let mut sender = sender(4);
        let fragments = |sender: &mut Sender, bytes| -> Vec<usize> {
            cut(sender, bytes, &[(true, 0); 4]).into_iter().map(|fragment| fragment.0).collect()
        };
        assert_eq!(fragments(&mut sender, 2), [0, 1]);
        assert_eq!(fragments(&mut sender, 8), [2, 3, 0, 1]);
        sender.detach(0);
        assert_eq!(fragments(&mut sender, 6), [3, 1, 2]);
        sender.attach(0);
        assert_eq!(fragments(&mut sender, 8), [3, 0, 1, 2]);
        assert_eq!(fragments(&mut sender, 3), [3, 0, 1]);
    }

    /// flen = nfree (L + 6 nfree) / (total speed nfree / speed) - 6; a line too slow for a fragment is left out, and the last
    /// line takes the rest.
    #[test]
    fn faster_ports_carry_more() {
        let fragments = cut(&mut sender(3), 1201, &[(true, 9600), (true, 9600), (true, 19200)]);
        // 3 (1201 + 18) / 12 - 6 = 298 and 1 % 3 bytes more for the first.
        assert_eq!(fragments.iter().map(|fragment| fragment.1).sum::<u32>(), 1201);
        assert_eq!((fragments[0].1, fragments[1].1), (298, 298));
        let skipped = cut(&mut sender(2), 40, &[(true, 300), (true, 115_200)]);
        assert_eq!(skipped, [(1, 40)]);
    }
}
