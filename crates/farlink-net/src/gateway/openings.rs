//! How fast connections to another gateway are opened while data wait for the link.
//!
//! A connection with little in it costs the link as much as a packet of data, and a storm of them would take the link from the connections that
//! there are. So as long as something waits for the rate of the session, openings have a share of it; the others wait, those of listeners
//! with one destination in the queue of the kernel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::seal::PublicKey;

/// Share of a rate that openings get while data waits.
const SHARE: f64 = 0.125;
/// Bytes that a connection with one byte of data takes of the link in one direction, headers and acknowledgements included.
const BYTES: f64 = 900.0;
/// So many are opened at once, as a page with its pictures has, and more when the link was not busy.
const BURST: f64 = 64.0;
/// After so long the rate is looked at again.
const LOOK: Duration = Duration::from_millis(100);

/// Whose turn it is to open a connection, for each other gateway.
#[derive(Debug, Default)]
pub(super) struct Openings {
    buckets: Mutex<HashMap<PublicKey, Arc<tokio::sync::Mutex<Bucket>>>>,
    /// Clients that name their destination wait for each other first, so that however many there are other listeners have their turns.
    named: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Bucket {
    openings: f64,
    at: Instant,
}

impl Openings {
    /// Waits for the turn to open a connection to a gateway. `contended` tells the rate of its session in bit/s, if something waits for it.
    pub(super) async fn turn(&self, to: &PublicKey, contended: impl Fn() -> Option<f64>) {
        let bucket = {
            let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            buckets.entry(*to).or_insert_with(|| Arc::new(tokio::sync::Mutex::new(Bucket::full()))).clone()
        };
        // Turns are taken in the order of arrival.
        let mut bucket = bucket.lock().await;
        loop {
            let wait = match contended() {
                Some(bits_per_s) => bucket.take(Instant::now(), bits_per_s * SHARE / (8.0 * BYTES)),
                None => bucket.take_freely(),
            };
            let Some(wait) = wait else { return };
            tokio::time::sleep(wait.min(LOOK)).await;
        }
    }

    /// As [`turn`](Self::turn), for a client that has named its destination.
    pub(super) async fn turn_of_named(&self, to: &PublicKey, contended: impl Fn() -> Option<f64>) {
        let _turn = self.named.lock().await;
        self.turn(to, contended).await;
    }
}

impl Bucket {
    fn full() -> Self {
        Bucket { openings: BURST, at: Instant::now() }
    }

    /// Takes an opening; if there is none, how long the next one takes.
    fn take(&mut self, now: Instant, per_s: f64) -> Option<Duration> {
        self.openings = (self.openings + (now - self.at).as_secs_f64() * per_s).min(BURST);
        self.at = now;
        if self.openings >= 1.0 {
            self.openings -= 1.0;
            return None;
        }
        Some(Duration::try_from_secs_f64((1.0 - self.openings) / per_s).unwrap_or(LOOK).max(Duration::from_millis(1)))
    }

    /// Nothing waits for the link.
    fn take_freely(&mut self) -> Option<Duration> {
        self.at = Instant::now();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many are opened within a time, of as many as come.
    fn opened(bucket: &mut Bucket, from: Instant, per_s: f64, within: Duration) -> usize {
        let (mut now, mut count) = (from, 0);
        let end = now + within;
        while now < end {
            match bucket.take(now, per_s) {
                None => count += 1,
                Some(wait) => now += wait.min(LOOK),
            }
        }
        count
    }

    #[test]
    fn openings_have_a_share_of_a_busy_link() {
        let mut bucket = Bucket::full();
        let second = Duration::from_secs(1);
        let began = bucket.at;
        let first = opened(&mut bucket, began, 100.0, second);
        assert!((160..=165).contains(&first), "{first}");
        let next = opened(&mut bucket, began + second, 100.0, second);
        assert!((98..=101).contains(&next), "{next}");
        let slow = opened(&mut bucket, began + 2 * second, 1.0, 10 * second);
        assert!((9..=11).contains(&slow), "{slow}");
        let rested = opened(&mut bucket, began + 1000 * second, 100.0, Duration::from_nanos(1));
        assert_eq!(rested, 64, "no more than these at once");
    }

    /// Clients that name a destination leave turns to others, however many they are; when nothing waits for the link, nobody waits.
    #[tokio::test]
    async fn listeners_take_turns() {
        let (openings, peer) = (Arc::new(Openings::default()), PublicKey::new([7; 32]));
        for _ in 0..64 {
            openings.turn(&peer, || Some(1.0)).await;
        }
        let named = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = || named.load(std::sync::atomic::Ordering::Relaxed);
        for _ in 0..1000 {
            let (openings, named) = (openings.clone(), named.clone());
            tokio::spawn(async move {
                openings.turn_of_named(&peer, || Some(10e6)).await;
                named.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            });
        }
        tokio::task::yield_now().await;
        for _ in 0..50 {
            openings.turn(&peer, || Some(10e6)).await;
        }
        assert!((45..=55).contains(&count()), "{} beside 50", count());
        for _ in 0..10_000 {
            openings.turn(&peer, || None).await;
        }
    }
}
