//! The links between two endpoints.

/// No link leads to an endpoint that is down.
const NOWHERE: usize = usize::MAX;

/// The links between two endpoints, and those that end at each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// The first link on the way out of each side.
    pub(super) first: [usize; 2],
    /// The link that ends at each side's endpoint; [`NOWHERE`] while the endpoint is down.
    pub(super) last: [usize; 2],
    /// `last` while both endpoints are up.
    ends: [usize; 2],
    /// The last forward link and the spool behind it, an extra link in which packets wait to be written to disk.
    spool: Option<(usize, usize)>,
}

impl Route {
    /// A route over the hops from `from` to `to` (inclusive) of a path of `hops` hops, then through `spool`. Links are
    /// numbered forward and then back.
    pub(super) fn over(hops: usize, from: usize, to: usize, spool: Option<usize>) -> Self {
        let back = |hop: usize| 2 * hops - 1 - hop;
        let ends = [back(from), spool.unwrap_or(to)];
        Route { first: [from, back(to)], last: ends, ends, spool: spool.map(|spool| (to, spool)) }
    }

    /// The link after another one; none if it ends at an endpoint.
    #[inline]
    pub(super) fn next(&self, link: usize) -> Option<usize> {
        match self.spool {
            _ if self.ends.contains(&link) => None,
            Some((behind, spool)) if behind == link => Some(spool),
            _ => Some(link + 1),
        }
    }

    /// The link from which a side receives, spool excluded.
    pub(super) fn incoming(&self, side: usize) -> usize {
        match self.spool {
            Some((behind, _)) if side == 1 => behind,
            _ => self.ends[side],
        }
    }

    /// Whether a side's endpoint is up.
    #[inline]
    pub(super) fn is_up(&self, side: usize) -> bool {
        self.last[side] != NOWHERE
    }

    /// A side's endpoint goes down: packets that arrive there are dropped.
    pub(super) fn take_down(&mut self, side: usize) {
        self.last[side] = NOWHERE;
    }

    /// A side's endpoint comes up.
    pub(super) fn bring_up(&mut self, side: usize) {
        self.last[side] = self.ends[side];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three hops: links 0, 1, 2 forward, 3, 4, 5 back, 6 a spool.
    #[test]
    fn a_route_leads_from_end_to_end_and_back() {
        let whole = Route::over(3, 0, 2, None);
        assert_eq!((whole.first, whole.last), ([0, 3], [5, 2]));
        assert_eq!([0, 1, 3, 4].map(|link| whole.next(link)), [Some(1), Some(2), Some(4), Some(5)]);

        let middle = Route::over(3, 1, 1, Some(6));
        assert_eq!((middle.first, middle.last), ([1, 4], [4, 6]));
        assert_eq!((middle.next(1), middle.incoming(0), middle.incoming(1)), (Some(6), 4, 1));
    }

    #[test]
    fn no_link_leads_to_an_endpoint_that_is_down() {
        let mut route = Route::over(2, 0, 1, None);
        route.take_down(1);
        assert!(!route.is_up(1) && route.is_up(0));
        assert_eq!((route.next(0), route.next(1)), (Some(1), None));
        route.bring_up(1);
        assert_eq!(route.last, [3, 1]);
    }
}
