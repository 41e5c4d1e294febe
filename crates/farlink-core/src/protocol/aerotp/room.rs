//! The receive buffer: fixed by the configuration, or growing as the sender needs it.

use super::config::AerotpConfig;

/// The length of a receiver's window. `[W1]`
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    bytes: u64,
    most: u64,
}

/// The window grows only by at least the fraction 1 / `LEAST_GROWTH`.
const LEAST_GROWTH: u64 = 4;
/// The window does not grow while more than the fraction 1 / `MOST_UNREAD` of it is unread, because then the application limits
/// the sender, not the window.
const MOST_UNREAD: u64 = 4;

impl Room {
    pub(super) fn new(config: &AerotpConfig) -> Self {
        Room { bytes: config.first_buffer_bytes(), most: config.most_buffer_bytes() }
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Grows the window for a request of `wanted` bytes while `unread` bytes wait for the application. Returns whether the window
    /// has grown.
    pub(super) fn grow(&mut self, wanted: u64, unread: u64) -> bool {
        let wanted = wanted.min(self.most);
        let is_more = wanted >= self.bytes + self.bytes / LEAST_GROWTH && unread <= self.bytes / MOST_UNREAD;
        if is_more {
            self.bytes = wanted;
        }
        is_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Count;

    const FIRST: u64 = 1 << 26;

    #[test]
    fn the_window_grows_on_request_while_data_is_read() {
        let mut room = Room::new(&AerotpConfig::default());
        assert_eq!(room.bytes(), FIRST);
        assert!(!room.grow(FIRST + FIRST / 8, 0) && room.bytes() == FIRST, "hardly more");
        assert!(!room.grow(10 * FIRST, FIRST / 2) && room.bytes() == FIRST, "the application is the bottleneck");
        assert!(room.grow(10 * FIRST, FIRST / 4) && room.bytes() == 10 * FIRST);
        assert!(!room.grow(FIRST, 0) && room.bytes() == 10 * FIRST, "it never shrinks");
        assert!(room.grow(u64::MAX, 0) && room.bytes() == 1 << 30, "numbers tell no more apart");
    }

    #[test]
    fn a_granted_window_is_never_withdrawn() {
        let receive_buffer_bytes = Some(Count::new(5000.0).unwrap());
        let mut room = Room::new(&AerotpConfig { receive_buffer_bytes, ..AerotpConfig::default() });
        assert!(!room.grow(1 << 30, 0) && room.bytes() == 5000);
    }
}
