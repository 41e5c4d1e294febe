//! One direction of a hop: the queue, and the link, the bundle of lines or the bundle of IP paths behind it.
//!
//! A [`Hop`] decides the fate of packets, which the driver keeps. The driver gives the arrival time and the length of
//! each packet; the hop answers whether the packet is dropped, when it arrives at the far end, which of its bits are
//! wrong and whether it is marked. The simulator drives hops with typed packets without bytes, an emulator with real
//! ones.
//!
//! There are four kinds of queue:
//! - First in, first out: the link computes the departure when the packet is queued, because later packets cannot
//!   overtake it. [`Hop::send`] answers at once, and nothing else has to be called.
//! - Classes of service: the next packet is chosen when the link is free. A packet that waits gets a [`Ticket`].
//! - A bundle of lines: the line for a packet is chosen when a line has room. Every packet gets a ticket.
//! - A bundle of IP paths: likewise. Both directions of the hop are one bundle ([`Hop::start_both`]), so that packets of one may get
//!   their outcome when the other is called.
//!
//! With the last three, a driver calls [`Hop::handle_timeout`] at the time of [`Hop::poll_timeout`], then [`Hop::poll`]
//! until it returns `None`.
//!
//! In front of any of them there may be a policer, which drops the packets that exceed its rate and burst.

mod bundled;
mod class_queue;
mod classes;
mod paths;
mod policer;
mod setup;
mod watch;

use crate::bundle::{Availability, Counts as BundleCounts};
use crate::link::{Capacity, Link, LinkState, Verdict};
use crate::rng::Rng;
use crate::time::Time;

pub use crate::link::QueueLimit;
pub use paths::PathCounts;
pub use policer::PolicerConfig;
pub use setup::{BundleSetup, HopSetup, MemberSetup, PathsSetup};
pub use watch::LinkWatch;

use bundled::Bundled;
use classes::Classes;
use paths::OverPaths;
use policer::Policer;

/// Identifies a packet in a hop until [`Hop::poll`] returns its outcome. The number is then reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

impl Ticket {
    /// The index for a table of packets, which needs as many entries as packets have waited at once.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Immediate answer to a packet that arrives at a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Its fate is decided now.
    Sent(Verdict),
    /// It waits. The driver keeps it until [`Hop::poll`] returns its ticket.
    Waits(Ticket),
}

/// Fate of a packet that has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The link sends it now.
    Sent(Verdict),
    /// The bundle delivers it now.
    ComesOut,
    /// The bundle lost it.
    Lost,
    /// The bundle lost it because a call dropped.
    CutOff,
}

/// Arrival of a packet at the far end of a link: after all packets sent before it, or before some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// After all others, at this time.
    Behind(Time),
    /// Before some that were sent earlier, at this time, because the delay has fallen and the link does not keep the
    /// order.
    InFront(Time),
}

/// One direction of a hop in one run.
pub struct Hop {
    link: Link,
    /// Latest arrival at the far end so far.
    last_arrival: Time,
    overtakes: bool,
    policer: Option<Policer>,
    queue: Queue,
    /// Packets go straight into the link's own queue.
    is_link_alone: bool,
}

/// Where packets wait.
enum Queue {
    /// In the link's own queue.
    Fifo,
    /// In a queue for each class, in front of the link.
    Classes(Box<Classes>),
    /// In front of a bundle of lines, which replaces the link.
    Bundle(Box<Bundled>),
    /// In front of a bundle of IP paths, which replaces the link.
    Paths(Box<OverPaths>),
}

impl Hop {
    /// Begins run number `run` of `seed` in one direction of a hop: `"forward"`, or `"return"`, in which a bundle leads from the end
    /// that is called to the end that dials. The random streams have their names from hop and direction.
    pub fn start(setup: &HopSetup, direction: &str, seed: u64, run: u64) -> Self {
        let rng = Rng::for_component(seed, run, &format!("hop.{}.{direction}", setup.name));
        let of_hop = Rng::for_component(seed, run, &format!("hop.{}", setup.name));
        Hop::new(setup, direction == "return", rng, &of_hop)
    }

    /// Begins run number `run` of `seed` in both directions of a path: of hops from the sender to the receiver, and of those back in the
    /// order in which a packet passes them.
    pub fn start_both([forward, back]: [&[HopSetup]; 2], seed: u64, run: u64) -> [Vec<Self>; 2] {
        let start = |setups: &[HopSetup], direction| -> Vec<Hop> {
            setups.iter().map(|setup| Hop::start(setup, direction, seed, run)).collect()
        };
        let mut hops = [start(forward, "forward"), start(back, "return")];
        for (at, setup) in forward.iter().enumerate() {
            if let Some(paths) = &setup.paths {
                let [there, back] = OverPaths::both(setup, paths, seed, run);
                hops[0][at].use_paths(there);
                let last = hops[1].len() - 1;
                hops[1][last - at].use_paths(back);
            }
        }
        hops
    }

    fn use_paths(&mut self, paths: OverPaths) {
        self.queue = Queue::Paths(Box::new(paths));
        self.is_link_alone = false;
    }

    /// Begins a run of one direction, whose bundle of paths [`start_both`](Hop::start_both) alone can begin. `hop` is the random stream that both directions of a hop share; everything else is drawn from
    /// `rng`. In the reverse direction, a bundle leads from the end that is called to the end that dials.
    pub fn new(setup: &HopSetup, is_reverse: bool, rng: Rng, hop: &Rng) -> Self {
        let queue = match (&setup.bundle, setup.weights) {
            (Some(bundle), _) => {
                Queue::Bundle(Box::new(Bundled::new(bundle, setup.limit, is_reverse, rng.clone(), hop)))
            }
            (None, Some(weights)) => Queue::Classes(Box::new(Classes::new(weights, setup.limit, setup.mark_from))),
            (None, None) => Queue::Fifo,
        };
        // With classes of service, packets wait in front of the link and not in the link's own queue.
        let (limit, mark_from) = match setup.weights {
            None => (setup.limit, setup.mark_from),
            Some(_) => (QueueLimit::Unlimited, QueueLimit::Unlimited),
        };
        let link = Link::new(&setup.rate, &setup.delay, limit, &*setup.channel, rng, hop).marking(mark_from);
        let policer = setup.policer.map(Policer::new);
        let is_link_alone = policer.is_none() && matches!(queue, Queue::Fifo);
        Hop { link, last_arrival: Time::ZERO, overtakes: setup.overtakes, policer, queue, is_link_alone }
    }

    /// The link, if it takes all packets and sends them in order of arrival. Its [`send`](Link::send) then gives the same answer as
    /// [`Hop::send`], and the simulator's fast path avoids a branch.
    #[inline(always)]
    pub fn fifo(&mut self) -> Option<&mut Link> {
        if self.is_link_alone { Some(&mut self.link) } else { None }
    }

    /// A packet of `bytes` bytes and of a class arrives. `now` must not decrease from call to call. The class matters
    /// only if the hop serves classes.
    ///
    /// # Panics
    /// If the hop serves classes and there is no such class.
    pub fn send(&mut self, now: Time, bytes: u32, class: usize) -> Entry {
        self.send_of_flow(now, bytes, class, 0)
    }

    /// As [`send`](Hop::send), with a number of the packet's flow: a bundle of paths lets flows take turns and keeps the order within each.
    ///
    /// # Panics
    /// As [`send`](Hop::send).
    pub fn send_of_flow(&mut self, now: Time, bytes: u32, class: usize, flow: u64) -> Entry {
        if let Some(policer) = &mut self.policer
            && !policer.passes(now, bytes)
        {
            return Entry::Sent(Verdict::Dropped);
        }
        match &mut self.queue {
            Queue::Fifo => Entry::Sent(self.link.send(now, bytes)),
            Queue::Classes(classes) => classes.send(&mut self.link, now, bytes, class),
            Queue::Bundle(bundle) => bundle.send(now, bytes),
            Queue::Paths(paths) => paths.send(now, bytes, class, flow),
        }
    }

    /// When [`handle_timeout`](Hop::handle_timeout) is due; never if no packet waits.
    pub fn poll_timeout(&self) -> Time {
        match &self.queue {
            Queue::Fifo => Time::NEVER,
            Queue::Classes(classes) => classes.poll_timeout(),
            Queue::Bundle(bundle) => bundle.poll_timeout(),
            Queue::Paths(paths) => paths.poll_timeout(),
        }
    }

    /// Handles everything due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        match &mut self.queue {
            Queue::Bundle(bundle) => bundle.handle_timeout(now),
            Queue::Paths(paths) => paths.handle_timeout(now),
            Queue::Fifo | Queue::Classes(_) => {}
        }
    }

    /// The next packet that has waited and whose fate is decided at `now`.
    pub fn poll(&mut self, now: Time) -> Option<(Ticket, Outcome)> {
        match &mut self.queue {
            Queue::Fifo => None,
            Queue::Classes(classes) => classes.poll(&mut self.link, now),
            Queue::Bundle(bundle) => bundle.poll(),
            Queue::Paths(paths) => paths.poll(now),
        }
    }

    /// Whether any packet waits or is in a bundle.
    pub fn has_waiting(&self) -> bool {
        match &self.queue {
            Queue::Fifo => false,
            Queue::Classes(classes) => !classes.is_empty(),
            Queue::Bundle(bundle) => bundle.poll_timeout() < Time::NEVER,
            Queue::Paths(paths) => paths.has_waiting(),
        }
    }

    /// Whether the hop serves classes of service.
    pub fn serves_classes(&self) -> bool {
        matches!(self.queue, Queue::Classes(_))
    }

    /// Whether a bundle of lines replaces the link.
    pub fn is_bundle(&self) -> bool {
        matches!(self.queue, Queue::Bundle(_))
    }

    /// Whether a bundle of paths replaces the link in this direction and the other one.
    pub fn is_over_paths(&self) -> bool {
        matches!(self.queue, Queue::Paths(_))
    }

    /// The place of a packet whose propagation ends at `at`. If the delay has fallen, a link that keeps the order holds
    /// the packet back until the previous one has arrived. Call it for each packet that is passed on, in the order of
    /// [`send`](Hop::send).
    #[inline(always)]
    pub fn place(&mut self, at: Time) -> Place {
        if at < self.last_arrival && self.overtakes {
            return Place::InFront(at);
        }
        self.last_arrival = at.max(self.last_arrival);
        Place::Behind(self.last_arrival)
    }

    /// When a frame arrives that is damaged beyond use and therefore not passed on.
    pub fn arrival_of_useless(&self, at: Time) -> Time {
        if self.overtakes { at } else { at.max(self.last_arrival) }
    }

    /// Whether packets may overtake each other.
    #[inline(always)]
    pub fn overtakes(&self) -> bool {
        self.overtakes
    }

    /// A train of equal packets arrives: [`Link::send_train`], if the hop sends in order of arrival and neither
    /// polices them nor holds any back. A count of 0 means that nothing was done.
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

    /// Whether the packet that the link took last is to be marked; see [`Link::is_marking`].
    #[inline(always)]
    pub fn is_marking(&self) -> bool {
        self.link.is_marking()
    }

    /// Wrong bits of the packet that was last reported as damaged.
    pub fn wrong_bits(&self) -> &[u32] {
        self.link.wrong_bits()
    }

    /// When the link will have sent everything that it holds.
    #[inline(always)]
    pub fn free_at(&self) -> Time {
        self.link.free_at()
    }

    /// The capacity of the link over any span of the run.
    pub fn capacity(&self) -> Capacity {
        match &self.queue {
            Queue::Paths(paths) => paths.capacity(),
            _ => self.link.capacity(),
        }
    }

    /// The state of the hop at `now`, as a link, and when it may change next. `now` must not decrease from call to
    /// call. The call has no effect on packets.
    pub fn state(&mut self, now: Time) -> (LinkState, Time) {
        match &mut self.queue {
            Queue::Bundle(bundle) => (bundle.state(now), bundle.next_change()),
            Queue::Paths(paths) => (paths.state(), Time::NEVER),
            _ => (self.link.state(now), self.link.next_change(now)),
        }
    }

    /// Largest backlog, bytes; see [`Link::peak_waiting_bytes`].
    pub fn peak_waiting_bytes(&self) -> Option<f64> {
        match &self.queue {
            Queue::Fifo => self.link.peak_waiting_bytes(),
            Queue::Classes(classes) => Some(classes.peak_waiting_bytes() as f64),
            Queue::Bundle(bundle) => Some(bundle.counts().peak_waiting_bytes as f64),
            Queue::Paths(paths) => Some(paths.peak_waiting_bytes() as f64),
        }
    }

    /// Begins the measurement of the lines' availability.
    pub fn begin_measurement(&mut self, now: Time) {
        match &mut self.queue {
            Queue::Bundle(bundle) => bundle.begin_measurement(now),
            Queue::Paths(paths) => paths.begin_measurement(now),
            Queue::Fifo | Queue::Classes(_) => {}
        }
    }

    /// Availability and counts of the bundle; `None` if there is none.
    pub fn bundle_report(&mut self, now: Time) -> Option<(Availability, BundleCounts)> {
        match &mut self.queue {
            Queue::Bundle(bundle) => Some((bundle.availability(now), bundle.counts())),
            Queue::Paths(paths) => Some(paths.report(now)),
            _ => None,
        }
    }

    /// Counts of each path of a bundle of paths, in this direction; `None` if there is none.
    pub fn path_counts(&mut self, now: Time) -> Option<Vec<PathCounts>> {
        match &self.queue {
            Queue::Paths(paths) => Some(paths.of_paths(now)),
            _ => None,
        }
    }
}
