//! What a link may hold of a peer that means harm: bytes that are allocated at a time, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The bound, for each link.
const MOST_BYTES: usize = 1_000_000;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// The most of all inputs; printed when it has grown by an eighth.
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the system's allocator, and counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(bytes, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs an input, and looks that no more is allocated at a time than links may hold, besides `own` bytes of the test itself.
pub fn bounded(links: usize, own: usize, input: impl FnOnce()) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    input();
    let most = PEAK.load(Relaxed).saturating_sub(before + own);
    let known = MOST.load(Relaxed);
    if most > known + known / 8 {
        MOST.store(most, Relaxed);
        eprintln!("memory: {} bytes for each of {links} links", most / links);
    }
    assert!(most <= links * MOST_BYTES, "{most} bytes for {links} links");
}
