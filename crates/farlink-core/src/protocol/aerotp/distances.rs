//! The short form of a MACK's list: how far each edge is from the one before it, in a common unit. `[A11]`
//!
//! A sender of full packets leaves gaps and blocks that are multiples of their length, so most distances take one byte.

/// The distances between the edges of a list, from ACK number 0 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distances<'a> {
    ack: u32,
    edges: &'a [u32],
    /// Bytes that all distances are multiples of.
    pub(crate) unit: u32,
}

impl<'a> Distances<'a> {
    pub(crate) fn new(ack: u32, edges: &'a [u32]) -> Self {
        let mut distances = Distances { ack, edges, unit: 1 };
        distances.unit = distances.in_units().fold(0, greatest_common_divisor).max(1);
        distances
    }

    /// The distances, in units.
    pub(crate) fn in_units(&self) -> impl Iterator<Item = u32> + use<'a> {
        let Distances { ack, edges, unit } = *self;
        let before = std::iter::once(ack).chain(edges.iter().copied());
        edges.iter().zip(before).map(move |(edge, before)| edge.wrapping_sub(before) / unit)
    }

    /// Length of the unit and the distances on the wire; nothing if there are no edges.
    pub(crate) fn bytes(&self) -> u32 {
        if self.edges.is_empty() { 0 } else { number_bytes(self.unit) + self.in_units().map(number_bytes).sum::<u32>() }
    }
}

/// Length of a number as RFC 9000, section 16, writes it.
pub(crate) const fn number_bytes(number: u32) -> u32 {
    match number {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_blocks_of_full_packets_take_a_byte_each() {
        // Blocks of 9 and 70 packets of 1460 bytes behind gaps of one packet, across the end of the numbers.
        let ack = 0_u32.wrapping_sub(3000);
        let at = |packets: u32| ack.wrapping_add(1460 * packets);
        let edges = [at(1), at(10), at(11), at(81)];
        let distances = Distances::new(ack, &edges);
        assert_eq!((distances.unit, distances.in_units().collect::<Vec<_>>()), (1460, vec![1, 9, 1, 70]));
        assert_eq!(distances.bytes(), 2 + 1 + 1 + 1 + 2);
    }

    #[test]
    fn one_short_packet_makes_the_unit_small() {
        let edges = [1460, 2921, 2921, 2921];
        let distances = Distances::new(0, &edges);
        assert_eq!((distances.unit, distances.in_units().collect::<Vec<_>>()), (1, vec![1460, 1461, 0, 0]));
        assert_eq!(distances.bytes(), 1 + 2 + 2 + 1 + 1);
    }

    #[test]
    fn no_edges_and_edges_without_distance_have_a_unit_of_one() {
        assert_eq!((Distances::new(5, &[]).unit, Distances::new(5, &[]).bytes()), (1, 0));
        assert_eq!((Distances::new(5, &[5, 5]).unit, Distances::new(5, &[5, 5]).bytes()), (1, 3));
    }
}
