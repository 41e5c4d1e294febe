//! The trellis of a punctured code, for its distances.

use super::{Code, Puncturing, PuncturingError};

/// The states at each step of the period, with the weights of the steps between them.
///
/// A node is `phase * states + state`: the encoder's state before step `phase` of the period.
#[derive(Clone, Debug)]
pub(crate) struct PuncturedTrellis {
    states: usize,
    period: usize,
    /// Weight of the bits sent in a step, at `phase * 2 states + window`.
    weights: Vec<u8>,
    /// All nodes, with those of state 0 as one, ordered such that a step of weight 0 leads to a later node.
    order: Vec<u32>,
}

impl PuncturedTrellis {
    /// # Errors
    /// If the pattern does not have one row for each output or makes the code catastrophic.
    pub(crate) fn new(code: &Code, puncturing: &Puncturing) -> Result<PuncturedTrellis, PuncturingError> {
        if puncturing.outputs() != code.outputs() {
            return Err(PuncturingError::Rows { rows: puncturing.outputs(), outputs: code.outputs() });
        }
        let table = code.output_table();
        let weights = (0..puncturing.period()).flat_map(|phase| {
            let sent = puncturing.sent_at(phase);
            table.iter().map(move |output| (output & sent).count_ones() as u8)
        });
        let mut trellis = PuncturedTrellis {
            states: code.states(),
            period: puncturing.period(),
            weights: weights.collect(),
            order: Vec::new(),
        };
        trellis.order = trellis.order_of_nodes().ok_or_else(|| PuncturingError::Catastrophic {
            generators: code.to_string(),
            pattern: puncturing.to_string(),
        })?;
        Ok(trellis)
    }

    pub(crate) fn nodes(&self) -> usize {
        self.states * self.period
    }

    pub(crate) fn period(&self) -> usize {
        self.period
    }

    /// The encoder's state at a node.
    pub(crate) fn state(&self, node: usize) -> usize {
        node % self.states
    }

    /// The node of state 0 before a step of the period.
    pub(crate) fn origin(&self, phase: usize) -> usize {
        phase * self.states
    }

    /// All nodes of states other than 0, ordered such that a step of weight 0 leads to a later node.
    pub(crate) fn order(&self) -> impl Iterator<Item = usize> + '_ {
        self.order.iter().map(|&node| node as usize).filter(|&node| self.state(node) != 0)
    }

    /// The node to which a data bit leads, and the weight of that step.
    pub(crate) fn step(&self, node: usize, bit: bool) -> (usize, usize) {
        let (phase, state) = (node / self.states, node % self.states);
        let window = state | if bit { self.states } else { 0 };
        ((phase + 1) % self.period * self.states + window / 2, self.weight(phase, window))
    }

    /// The two nodes from which a step leads to a node, and its weight from each; the data bit is the same.
    pub(crate) fn steps_to(&self, node: usize) -> [(usize, usize); 2] {
        let (phase, state) = ((node / self.states + self.period - 1) % self.period, node % self.states);
        [2 * state, 2 * state + 1]
            .map(|window| (phase * self.states + window % self.states, self.weight(phase, window)))
    }

    /// The data bit of the steps to a node.
    pub(crate) fn bit(&self, node: usize) -> bool {
        node % self.states >= self.states / 2
    }

    fn weight(&self, phase: usize, window: usize) -> usize {
        usize::from(self.weights[phase * 2 * self.states + window])
    }

    /// Topological order of the nodes under steps of weight 0 other than those of the zero path; `None` if these have a cycle.
    ///
    /// With such a cycle two encoders can differ forever and send the same bits (Massey and Sain 1968). A cycle through state 0
    /// is an error event of weight 0, which can occur again and again. To find it, state 0 is one node for all phases, because
    /// the zero path leads from each phase to the next.
    fn order_of_nodes(&self) -> Option<Vec<u32>> {
        let merged = |node: usize| if self.state(node) == 0 { 0 } else { node };
        let leads_on = |node: usize| {
            let starts = if node == 0 { self.period } else { 0 };
            let from_zero = (0..starts).map(|phase| self.step(self.origin(phase), true));
            let from_other = [false, true].into_iter().filter(move |_| node != 0).map(move |bit| self.step(node, bit));
            from_zero.chain(from_other).filter(|&(_, weight)| weight == 0).map(move |(to, _)| merged(to))
        };
        let nodes = || (0..self.nodes()).filter(|&node| merged(node) == node);
        let mut incoming = vec![0u8; self.nodes()];
        nodes().flat_map(leads_on).for_each(|to| incoming[to] += 1);
        let mut order: Vec<u32> = nodes().filter(|&node| incoming[node] == 0).map(|node| node as u32).collect();
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for to in leads_on(node as usize) {
                incoming[to] -= 1;
                if incoming[to] == 0 {
                    order.push(to as u32);
                }
            }
        }
        (order.len() == nodes().count()).then_some(order)
    }
}

impl Puncturing {
    /// Whether the pattern suits a code.
    ///
    /// # Errors
    /// If it does not have one row per output, or makes the code catastrophic, which is possible even if the code itself is not.
    pub fn check(&self, code: &Code) -> Result<(), PuncturingError> {
        PuncturedTrellis::new(code, self).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::convolutional::test_codes::any_code_of;

    /// Whether an endless walk of weight 0 exists other than the zero path; it does if there is one with more steps than nodes.
    fn walks_forever(trellis: &PuncturedTrellis) -> bool {
        let mut alive = vec![true; trellis.nodes()];
        for _ in 0..=trellis.nodes() {
            let goes_on = |node: usize, bit: bool| {
                let (to, weight) = trellis.step(node, bit);
                weight == 0 && alive[to] && (trellis.state(node) != 0 || bit)
            };
            alive = (0..trellis.nodes()).map(|node| goes_on(node, false) || goes_on(node, true)).collect();
            // On the zero path a walk can wait for any phase.
            let waits = (0..trellis.period()).any(|phase| alive[trellis.origin(phase)]);
            (0..trellis.period()).for_each(|phase| alive[trellis.origin(phase)] = waits);
        }
        alive.contains(&true)
    }

    proptest! {
        #[test]
        fn catastrophic_is_where_a_walk_of_weight_0_never_ends(
            code in any_code_of(3..=5),
            pattern in prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.55), 4), 5),
            period in 1usize..=4,
        ) {
            let rows: Vec<Vec<bool>> = pattern[..code.outputs()].iter().map(|row| row[..period].to_vec()).collect();
            let Ok(puncturing) = Puncturing::new(&rows) else { return Ok(()) };
            let mut trellis = PuncturedTrellis::new(&code, &Puncturing::none(code.outputs())).unwrap();
            prop_assert!(!walks_forever(&trellis));
            trellis.period = period;
            let weight = |phase: usize, window: u32| (code.output(window) as u8 & puncturing.sent_at(phase)).count_ones() as u8;
            trellis.weights = (0..period).flat_map(|phase| (0..2 * code.states() as u32).map(move |window| (phase, window)))
                .map(|(phase, window)| weight(phase, window)).collect();
            prop_assert_eq!(puncturing.check(&code).is_err(), walks_forever(&trellis), "{} {}", code, puncturing);
        }
    }
}
