//! Paths that have not merged when the decoder decides: the errors of finite trace-back, in addition to a code's error events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::convolutional::{Code, Puncturing};

/// Parameters of the search.
pub(super) struct Search<'a> {
    pub(super) code: &'a Code,
    pub(super) puncturing: &'a Puncturing,
    /// The phase of the first step.
    pub(super) phase: usize,
    /// The step that is decided, in which the path's data bit is wrong; the path leaves the correct one here or before.
    pub(super) decided: usize,
    /// Number of steps after which the path has still not merged.
    pub(super) steps: usize,
}

/// Positions among the sent bits, from the first step on, in which a path differs that leaves the correct path no later than at
/// the decided step, has a wrong bit there, and has not merged at the end. Returns up to `count` such paths, those of least
/// distance first.
///
/// A path may leave long before the decided step: while other paths were better, the bits in between were decided correctly.
pub(super) fn unmerged_paths(search: &Search<'_>, count: usize) -> Vec<Vec<u32>> {
    let steps = search.steps;
    let to_go = search.least_to_go();
    let newest = search.newest();
    let mut nodes = Vec::new();
    let mut open = BinaryHeap::new();
    for leaves in 0..=search.decided {
        let node = Node { parent: None, window: newest, depth: leaves + 1, weight: search.weight(leaves, newest) };
        let to_go = to_go[node.depth][(newest >> 1) as usize];
        if to_go < NEVER {
            open.push(Reverse((node.weight + to_go, Reverse(node.depth), nodes.len())));
            nodes.push(node);
        }
    }
    // A* search. The least remaining distance is known exactly, so that only paths of the result are followed to the end.
    let mut paths = Vec::new();
    while let Some(Reverse((_, _, at))) = open.pop() {
        let Node { window, depth, weight, .. } = nodes[at];
        if depth == steps {
            paths.push(search.places(&nodes, at));
            if paths.len() == count {
                break;
            }
            continue;
        }
        for bit in [0, newest] {
            let window = bit | window >> 1;
            let to_go = to_go[depth + 1][(window >> 1) as usize];
            if to_go == NEVER || depth == search.decided && bit == 0 {
                continue;
            }
            let node =
                Node { parent: Some(at), window, depth: depth + 1, weight: weight + search.weight(depth, window) };
            // Among equal distances the deepest first, because it ends soonest.
            open.push(Reverse((node.weight + to_go, Reverse(depth + 1), nodes.len())));
            nodes.push(node);
        }
    }
    paths
}

/// Distance of an impossible path.
const NEVER: u32 = u32::MAX;

/// A path, represented by its last step.
#[derive(Clone, Copy)]
struct Node {
    parent: Option<usize>,
    /// The encoder's window in that step, and the number of steps up to it.
    window: u32,
    depth: usize,
    weight: u32,
}

impl Search<'_> {
    /// The newest bit of a window.
    fn newest(&self) -> u32 {
        1 << (self.code.constraint_length() - 1)
    }

    /// Sent bits that differ, output j in bit j.
    fn differing(&self, step: usize, window: u32) -> u32 {
        self.code.output(window) & u32::from(self.puncturing.sent_at(self.phase + step))
    }

    fn weight(&self, step: usize, window: u32) -> u32 {
        self.differing(step, window).count_ones()
    }

    /// Least distance that a path in each state after each number of steps will still gain by the end.
    fn least_to_go(&self) -> Vec<Vec<u32>> {
        let mut to_go = vec![vec![NEVER; self.code.states()]; self.steps + 1];
        to_go[self.steps][1..].fill(0);
        for depth in (1..self.steps).rev() {
            for state in 1..self.code.states() {
                let bits = if depth == self.decided { &[self.newest()][..] } else { &[0, self.newest()] };
                let least = bits.iter().map(|bit| bit | state as u32).filter_map(|window| {
                    let after = to_go[depth + 1][(window >> 1) as usize];
                    (after < NEVER).then(|| self.weight(depth, window) + after)
                });
                to_go[depth][state] = least.min().unwrap_or(NEVER);
            }
        }
        to_go
    }

    fn places(&self, nodes: &[Node], last: usize) -> Vec<u32> {
        let path = std::iter::successors(Some(last), |&at| nodes[at].parent);
        let mut windows: Vec<u32> = path.map(|at| nodes[at].window).collect();
        windows.reverse();
        let leaves = self.steps - windows.len();
        let sent_in = |step: usize| self.puncturing.sent_at(self.phase + step).count_ones();
        let mut sent_before = (0..leaves).map(sent_in).sum();
        let mut places = Vec::new();
        for (step, &window) in (leaves..).zip(&windows) {
            let sent = self.puncturing.sent_at(self.phase + step);
            let differing = self.differing(step, window);
            for j in (0..self.code.outputs()).filter(|j| sent >> j & 1 == 1) {
                if differing >> j & 1 == 1 {
                    places.push(sent_before);
                }
                sent_before += 1;
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_a_full_search() {
        let code = Code::new(3, &[0o7, 0o5]).unwrap();
        let puncturing = Puncturing::usual("2/3").unwrap();
        const STEPS: usize = 10;
        for (phase, decided) in [(0, 0), (1, 0), (0, 3), (1, 2)] {
            let weight_of = |data: u32| {
                let (mut state, mut weight, mut has_left) = (0, 0, false);
                for step in 0..STEPS {
                    let bit = data >> step & 1;
                    let window = bit << 2 | state;
                    let sent = u32::from(puncturing.sent_at(phase + step));
                    weight += (code.output(window) & sent).count_ones() as usize;
                    state = window >> 1;
                    has_left |= state != 0;
                    if has_left && state == 0 || step == decided && bit == 0 {
                        return None;
                    }
                }
                Some(weight)
            };
            let mut weights: Vec<usize> = (0..1u32 << STEPS).filter_map(weight_of).collect();
            weights.sort_unstable();
            let search = Search { code: &code, puncturing: &puncturing, phase, decided, steps: STEPS };
            let found: Vec<usize> = unmerged_paths(&search, 40).iter().map(Vec::len).collect();
            assert_eq!(found, weights[..40]);
        }
    }
}
