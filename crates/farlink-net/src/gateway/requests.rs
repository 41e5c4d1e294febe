//! Clients that have not yet said where to, and which of them gives way when there are too many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// A bound of requests. When it is reached, the oldest request of the client with most of them gives way to a new one: who comes to the point
/// needs its place for a moment only, and who does not keeps nobody out.
#[derive(Debug)]
pub(super) struct Requests {
    most: usize,
    waiting: Mutex<Waiting>,
}

/// A place, as long as it lives.
#[derive(Debug)]
pub(super) struct Request {
    requests: Arc<Requests>,
    client: IpAddr,
    number: u64,
}

/// Tells that a request has to give way.
#[derive(Debug)]
pub(super) struct GivesWay(oneshot::Receiver<()>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    total: usize,
    /// By client, the oldest first.
    of_clients: BTreeMap<IpAddr, BTreeMap<u64, oneshot::Sender<()>>>,
    /// Clients by how many they have, and by the number of their oldest one.
    by_count: BTreeSet<(usize, Reverse<u64>, IpAddr)>,
}

impl Requests {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Requests { most, waiting: Mutex::default() })
    }

    /// A place for a client at an address.
    pub(super) fn begin(self: &Arc<Self>, address: IpAddr) -> (Request, GivesWay) {
        let client = client_of(address);
        let (tell, told) = oneshot::channel();
        let waiting = &mut *self.lock();
        if waiting.total >= self.most {
            waiting.give_way();
        }
        let number = waiting.next;
        waiting.next += 1;
        waiting.total += 1;
        waiting.change(client, |own| own.insert(number, tell));
        (Request { requests: self.clone(), client, number }, GivesWay(told))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Ends the oldest request of the client with most of them.
    fn give_way(&mut self) {
        let Some(&(_, Reverse(oldest), client)) = self.by_count.last() else { return };
        if let Some(tell) = self.change(client, |own| own.remove(&oldest)) {
            self.total -= 1;
            let _ = tell.send(());
        }
    }

    fn change<R>(&mut self, client: IpAddr, act: impl FnOnce(&mut BTreeMap<u64, oneshot::Sender<()>>) -> R) -> R {
        let own = self.of_clients.entry(client).or_default();
        if let Some(place) = place_of(client, own) {
            self.by_count.remove(&place);
        }
        let done = act(own);
        match place_of(client, own) {
            Some(place) => drop(self.by_count.insert(place)),
            None => drop(self.of_clients.remove(&client)),
        }
        done
    }
}

fn place_of(client: IpAddr, own: &BTreeMap<u64, oneshot::Sender<()>>) -> Option<(usize, Reverse<u64>, IpAddr)> {
    own.first_key_value().map(|(&oldest, _)| (own.len(), Reverse(oldest), client))
}

/// The client that an address belongs to. One with an IPv6 address has the whole /64.
pub(super) fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

impl GivesWay {
    /// Ends when the request has to give way; never, if it has its place until it is dropped.
    pub(super) async fn wait(self) {
        if self.0.await.is_err() {
            std::future::pending().await
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let waiting = &mut *self.requests.lock();
        if waiting.change(self.client, |own| own.remove(&self.number)).is_some() {
            waiting.total -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_told(gives_way: &mut GivesWay) -> bool {
        gives_way.0.try_recv().is_ok()
    }

    /// Of clients with as many as each other the oldest request goes, of others that of the client with most.
    #[test]
    fn the_client_with_most_gives_way() {
        let requests = Requests::new(5);
        let address = |n: u8| IpAddr::from([192, 0, 2, n]);
        let mut of_one = [(); 3].map(|()| requests.begin(address(9)));
        let mut others = [1, 2].map(|n| requests.begin(address(n)));
        let mut more: Vec<_> = (3..5).map(|n| requests.begin(address(n))).collect();
        assert_eq!(of_one.each_mut().map(|it| is_told(&mut it.1)), [true, true, false]);
        assert!(!others.iter_mut().chain(&mut more).any(|it| is_told(&mut it.1)));
        // Each has one now: the oldest of all goes, which is the third of the first client.
        let last = requests.begin(address(7));
        assert!(is_told(&mut of_one[2].1));
        drop((of_one, others, more, last));
        let left = requests.lock();
        assert_eq!((left.total, left.of_clients.len(), left.by_count.len()), (0, 0, 0));
    }

    #[test]
    fn a_place_that_was_given_back_is_free() {
        let requests = Requests::new(2);
        let mut kept = requests.begin(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..100 {
            drop(requests.begin(IpAddr::from([192, 0, 2, 2])));
        }
        assert!(!is_told(&mut kept.1));
        assert_eq!(requests.lock().total, 1);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let [one, other, far] = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"].map(|it| it.parse().unwrap());
        assert_eq!(client_of(one), client_of(other));
        assert_ne!(client_of(one), client_of(far));
        assert_eq!(client_of("::ffff:192.0.2.1".parse().unwrap()), IpAddr::from([192, 0, 2, 1]));
    }
}
