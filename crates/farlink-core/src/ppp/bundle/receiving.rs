//! The way in: fragments of all lines become packets.

use bytes::Bytes;

use crate::bundle::{Numbering, Reassembler, ReceiverCounts};
use crate::time::Time;
use crate::wire::mp;

/// Fragments that wait at most, as in Linux.
const MOST_HELD: usize = 128;
/// So many numbers before the first that comes may still come over other lines.
const NEAR_START: u32 = 128;
/// A line whose first number is so far behind the others' belongs to a bundle that its peer has begun anew.
const RESTARTED: u64 = 1024;

#[derive(Clone, Debug)]
pub(super) struct Receiving {
    numbering: Numbering,
    /// Longest packet with its protocol, bytes.
    longest: usize,
    patience: Time,
    reassembler: Option<Reassembler<Bytes>>,
    /// The number that counts as the first.
    base: u32,
    members: Vec<Member>,
    /// Counts of bundles that have ended.
    before: ReceiverCounts,
    restarts: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    is_up: bool,
    /// Whether a fragment has come since it joined.
    is_heard: bool,
    /// Whether the reassembly counts with it.
    is_counted: bool,
}

impl Receiving {
    pub(super) fn new(lines: usize, patience: Time) -> Self {
        Receiving {
            numbering: Numbering::Long,
            longest: 0,
            patience,
            reassembler: None,
            base: 0,
            members: vec![Member::default(); lines],
            before: ReceiverCounts::default(),
            restarts: 0,
        }
    }

    /// The bundle begins: with the next fragment.
    pub(super) fn begin(&mut self, numbering: Numbering, mrru: u16) {
        self.end();
        self.numbering = numbering;
        self.longest = usize::from(mrru) + 2;
    }

    fn end(&mut self) {
        if let Some(reassembler) = self.reassembler.take() {
            let now = reassembler.counts();
            self.before.packets += now.packets;
            self.before.missing += now.missing;
            self.before.useless += now.useless + reassembler.held() as u64;
            self.before.late += now.late;
            self.before.too_long += now.too_long;
        }
    }

    /// Counts of packets and fragments. What waited when a bundle ended counts as useless.
    pub(super) fn counts(&self) -> ReceiverCounts {
        let now = self.reassembler.as_ref().map(Reassembler::counts).unwrap_or_default();
        ReceiverCounts {
            packets: self.before.packets + now.packets,
            missing: self.before.missing + now.missing,
            useless: self.before.useless + now.useless,
            late: self.before.late + now.late,
            too_long: self.before.too_long + now.too_long,
            ..now
        }
    }

    /// How many times a peer has begun anew while lines were up.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts
    }

    pub(super) fn set_up(&mut self, now: Time, line: usize, is_up: bool) {
        self.members[line] = Member { is_up, is_heard: false, is_counted: is_up };
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.set_up(now, line, is_up);
        }
    }

    /// A frame with a fragment has come.
    pub(super) fn on_frame(&mut self, now: Time, line: usize, information: &Bytes) {
        let Some(mut fragment) = mp::decode::<Bytes>(information, self.numbering) else { return };
        if !self.members[line].is_up {
            return;
        }
        let is_first = !std::mem::replace(&mut self.members[line].is_heard, true);
        if is_first && self.is_of_a_new_bundle(fragment.number) {
            self.restarts += 1;
            self.end();
            // The others are of the old bundle until they show otherwise.
            self.members.iter_mut().for_each(|member| member.is_counted = false);
        }
        let round = self.numbering.round() as u32;
        let reassembler = match &mut self.reassembler {
            Some(reassembler) => reassembler,
            None => {
                self.base = fragment.number.saturating_sub(NEAR_START);
                let mut made =
                    Reassembler::new(self.numbering, 0, self.longest, MOST_HELD).with_patience(self.patience);
                for (line, _) in self.members.iter().enumerate().filter(|(_, member)| member.is_counted) {
                    made.set_up(now, line, true);
                }
                self.reassembler.insert(made)
            }
        };
        if !std::mem::replace(&mut self.members[line].is_counted, true) {
            reassembler.set_up(now, line, true);
        }
        fragment.number = (fragment.number + round - self.base) % round;
        reassembler.on_fragment(now, line, fragment);
    }

    fn is_of_a_new_bundle(&self, number: u32) -> bool {
        let Some(reassembler) = &self.reassembler else { return false };
        let round = self.numbering.round();
        let relative = (number + round as u32 - self.base) % round as u32;
        let ahead = (u64::from(relative) + round - reassembler.settled() % round) % round;
        let behind = if ahead < round / 2 { 0 } else { round - ahead };
        behind > RESTARTED.min(round / 8)
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.reassembler.as_ref()?.deadline()
    }

    pub(super) fn on_timeout(&mut self, now: Time) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.on_timeout(now);
        }
    }

    /// The next packet, with its protocol in front.
    pub(super) fn next_packet(&mut self, now: Time) -> Option<Bytes> {
        let mut pieces = Vec::new();
        loop {
            pieces.clear();
            if !self.reassembler.as_mut()?.next_packet(now, &mut pieces) {
                return None;
            }
            match &pieces[..] {
                [whole] if !whole.is_empty() => return Some(whole.clone()),
                // A fragment without content carries no packet.
                pieces if pieces.iter().all(Bytes::is_empty) => {}
                pieces => return Some(pieces.concat().into()),
            }
        }
    }
}
