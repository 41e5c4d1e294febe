//! One direction of a hop: the queue, and the link or the bundle of lines behind it.
//!
//! A [`Hop`] decides what becomes of packets that its driver keeps. The driver says when a packet comes and how long it is;
//! the hop says whether the packet is dropped, when it comes out, which of its bits are wrong and whether it is marked. The
//! simulator drives hops with typed packets that have no bytes, an emulator with real ones.
//!
//! There are three kinds of queue:
//! - First in, first out: the link computes the departure when the packet is queued, as nobody who comes later goes before it.
//!   [`Hop::send`] answers at once, and nothing else has to be called.
//! - Classes of service: who goes next is decided when the link is free. A packet that waits gets a [`Ticket`].
//! - A bundle of lines: which line carries a packet is decided when a line has room. Every packet gets a ticket.
//!
//! A driver of the last two calls [`Hop::handle_timeout`] at the time of [`Hop::poll_timeout`], then [`Hop::poll`] until it
//! returns `None`.

mod bundled;
mod class_queue;
mod classes;
mod setup;
mod watch;

use crate::bundle::{Availability, Counts as BundleCounts};
use crate::link::{Capacity, Link, LinkState, Verdict};
use crate::rng::Rng;
use crate::time::Time;

pub use crate::link::QueueLimit;
pub use setup::{BundleSetup, HopSetup};
pub use watch::LinkWatch;

use bundled::Bundled;
use classes::Classes;

/// Names a packet that waits in a hop, until [`Hop::poll`] says what becomes of it. Then the number serves another packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

impl Ticket {
    /// The number, for a table of packets. Numbers are small: no more are in use than packets have waited at once.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What becomes of a packet that comes to a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is decided now.
    Sent(Verdict),
    /// It waits. The driver keeps it until [`Hop::poll`] names its ticket.
    Waits(Ticket),
}

/// What becomes of a packet that has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The link sends it now.
    Sent(Verdict),
    /// It comes out of the bundle now.
    ComesOut,
    /// The bundle lost it.
    Lost,
    /// The bundle lost it because a call dropped.
    CutOff,
}

/// Where a packet comes out of a link: behind those sent before it, or in front of some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind all others, at this time.
    Behind(Time),
    /// In front of some that were sent earlier, at this time: the delay has fallen, and the link does not keep the order.
    InFront(Time),
}

/// One direction of a hop in one run.
pub struct Hop {
    link: Link,
    /// When the last packet comes out of the link.
    last_arrival: Time,
    overtakes: bool,
    queue: Queue,
}

/// Where packets wait.
enum Queue {
    /// In the link's own queue.
    Fifo,
    /// In a queue for each class, in front of the link.
    Classes(Box<Classes>),
    /// In front of a bundle of lines, which carries them in place of the link.
    Bundle(Box<Bundled>),
}

impl Hop {
    /// Begins a run. `hop` is the same stream for both directions of a hop; what else they draw is from `rng`. In the
    /// reverse direction, a bundle leads from the end that is called to the end that dials.
    pub fn new(setup: &HopSetup, is_reverse: bool, rng: Rng, hop: &Rng) -> Self {
        let queue = match (&setup.bundle, setup.weights) {
            (Some(bundle), _) => {
                Queue::Bundle(Box::new(Bundled::new(bundle, setup.limit, is_reverse, rng.clone(), hop)))
            }
            (None, Some(weights)) => Queue::Classes(Box::new(Classes::new(weights, setup.limit, setup.mark_from))),
            (None, None) => Queue::Fifo,
        };
        // Where classes decide who goes next, the queue is in front of the link.
        let (limit, mark_from) = match setup.weights {
            None => (setup.limit, setup.mark_from),
            Some(_) => (QueueLimit::Unlimited, QueueLimit::Unlimited),
        };
        let link = Link::new(&setup.rate, &setup.delay, limit, &*setup.channel, rng, hop).marking(mark_from);
        Hop { link, last_arrival: Time::ZERO, overtakes: setup.overtakes, queue }
    }

    /// The link, if it sends packets in the order in which they come. What its [`send`](Link::send) answers is what
    /// [`Hop::send`] would answer; the simulator's simplest path is spared a choice.
    #[inline(always)]
    pub fn fifo(&mut self) -> Option<&mut Link> {
        match self.queue {
            Queue::Fifo => Some(&mut self.link),
            _ => None,
        }
    }

    /// A packet of `bytes` bytes and of a class comes. Calls are in order of time. The class has a meaning only where classes
    /// are served.
    ///
    /// # Panics
    /// If classes are served and there is no such class.
    pub fn send(&mut self, now: Time, bytes: u32, class: usize) -> Entry {
        match &mut self.queue {
            Queue::Fifo => Entry::Sent(self.link.send(now, bytes)),
            Queue::Classes(classes) => classes.send(&mut self.link, now, bytes, class),
            Queue::Bundle(bundle) => bundle.send(now, bytes),
        }
    }

    /// When [`handle_timeout`](Hop::handle_timeout) is due; never if nothing waits.
    pub fn poll_timeout(&self) -> Time {
        match &self.queue {
            Queue::Fifo => Time::NEVER,
            Queue::Classes(classes) => classes.poll_timeout(),
            Queue::Bundle(bundle) => bundle.poll_timeout(),
        }
    }

    /// The time has come at which something was due.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Queue::Bundle(bundle) = &mut self.queue {
            bundle.handle_timeout(now);
        }
    }

    /// What becomes of the next packet that has waited, if that is known at `now`.
    pub fn poll(&mut self, now: Time) -> Option<(Ticket, Outcome)> {
        match &mut self.queue {
            Queue::Fifo => None,
            Queue::Classes(classes) => classes.poll(&mut self.link, now),
            Queue::Bundle(bundle) => bundle.poll(),
        }
    }

    /// Whether anything waits, or is in a bundle.
    pub fn has_waiting(&self) -> bool {
        match &self.queue {
            Queue::Fifo => false,
            Queue::Classes(classes) => !classes.is_empty(),
            Queue::Bundle(bundle) => bundle.poll_timeout() < Time::NEVER,
        }
    }

    /// Whether classes of service are served.
    pub fn serves_classes(&self) -> bool {
        matches!(self.queue, Queue::Classes(_))
    }

    /// Whether lines of a bundle stand in place of the link.
    pub fn is_bundle(&self) -> bool {
        matches!(self.queue, Queue::Bundle(_))
    }

    /// Where a packet comes out that the link brings at `at`. A link that keeps the order holds a packet back until the one
    /// before it is there; this matters when the delay has fallen. Called for each packet that is passed on, in the order of
    /// [`send`](Hop::send).
    #[inline(always)]
    pub fn place(&mut self, at: Time) -> Place {
        if at < self.last_arrival && self.overtakes {
            return Place::InFront(at);
        }
        self.last_arrival = at.max(self.last_arrival);
        Place::Behind(self.last_arrival)
    }

    /// When a frame comes out that is not passed on, as it is damaged beyond use.
    pub fn arrival_of_useless(&self, at: Time) -> Time {
        if self.overtakes { at } else { at.max(self.last_arrival) }
    }

    /// Whether packets may overtake each other.
    #[inline(always)]
    pub fn overtakes(&self) -> bool {
        self.overtakes
    }

    /// Equal packets come: [`Link::send_train`], if packets go in the order in which they come and none has to be held
    /// back; 0 otherwise, and nothing was done.
    #[inline]
    pub fn send_train(&mut self, first: Time, gap: Time, count: u32, bytes: u32) -> (u32, Time, Time) {
        const NONE: (u32, Time, Time) = (0, Time::ZERO, Time::ZERO);
        let Some(link) = self.fifo() else { return NONE };
        let (count, at, gap) = link.send_train(first, gap, count, bytes);
        if count == 0 {
            return NONE;
        }
        debug_assert!(at >= self.last_arrival, "links of constant delay keep the order");
        self.last_arrival = at + gap.times(u64::from(count - 1));
        (count, at, gap)
    }

    /// Whether the packet that the link took last found enough waiting to be marked; see [`Link::is_marking`].
    #[inline(always)]
    pub fn is_marking(&self) -> bool {
        self.link.is_marking()
    }

    /// Wrong bits of the packet that was called damaged last.
    pub fn wrong_bits(&self) -> &[u32] {
        self.link.wrong_bits()
    }

    /// When the link will have sent all that it was given.
    #[inline(always)]
    pub fn free_at(&self) -> Time {
        self.link.free_at()
    }

    /// What the link could send in any span of the run.
    pub fn capacity(&self) -> Capacity {
        self.link.capacity()
    }

    /// What the hop is like at `now`, as a link, and when that may change next. Asked in the order of time; changes nothing
    /// that packets meet.
    pub fn state(&mut self, now: Time) -> (LinkState, Time) {
        match &mut self.queue {
            Queue::Bundle(bundle) => (bundle.state(now), bundle.next_change()),
            _ => (self.link.state(now), self.link.next_change(now)),
        }
    }

    /// Largest amount that waited, bytes; see [`Link::peak_waiting_bytes`].
    pub fn peak_waiting_bytes(&self) -> Option<f64> {
        match &self.queue {
            Queue::Fifo => self.link.peak_waiting_bytes(),
            Queue::Classes(classes) => Some(classes.peak_waiting_bytes() as f64),
            Queue::Bundle(bundle) => Some(bundle.counts().peak_waiting_bytes as f64),
        }
    }

    /// Begins the measurement of how long lines are up.
    pub fn begin_measurement(&mut self, now: Time) {
        if let Queue::Bundle(bundle) = &mut self.queue {
            bundle.begin_measurement(now);
        }
    }

    /// What a bundle did; `None` if there is none.
    pub fn bundle_report(&mut self, now: Time) -> Option<(Availability, BundleCounts)> {
        match &mut self.queue {
            Queue::Bundle(bundle) => Some((bundle.availability(now), bundle.counts())),
            _ => None,
        }
    }
}
