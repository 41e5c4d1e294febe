//! Waits that end in time: within some 0.1 ms on Linux, where tokio's timers take a millisecond or two.
//!
//! A packet of 1500 bytes takes 1.2 ms at 10 Mb/s. A driver that wakes up only each other millisecond sends two or three at once, which
//! fills short queues for nothing.

use std::time::Duration;

#[cfg(target_os = "linux")]
pub(crate) use linux::Timer;
#[cfg(not(target_os = "linux"))]
pub(crate) use tokio_timer::Timer;

/// Shorter waits are made this long: at high rates a batch of packets costs less than a wake-up for each. A batch is then no more than
/// a millisecond of the rate.
const LEAST: Duration = Duration::from_micros(600);

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use tokio::net::unix::pipe::Receiver;

    use super::LEAST;

    /// A timer of the kernel, which is read like a pipe: tokio's other form for descriptors needs unsafe code. That of tokio if there is
    /// none to be had.
    #[derive(Debug)]
    pub(crate) struct Timer(Option<Receiver>);

    impl Timer {
        pub(crate) fn new() -> Self {
            Timer(create().inspect_err(|error| tracing::debug!(%error, "no timer of the kernel")).ok())
        }

        /// Waits for so long, or a little more, so that there are not too many waits; it may be cancelled.
        pub(in super::super) async fn wait(&self, span: Duration) {
            self.wait_for(span.max(LEAST)).await;
        }

        /// Waits for so long; it may be cancelled.
        pub(crate) async fn wait_for(&self, span: Duration) {
            let Some(timer) = self.0.as_ref().filter(|timer| start(timer, span).is_ok()) else {
                return tokio::time::sleep(span).await;
            };
            let mut expirations = [0; 8];
            while timer.readable().await.is_ok() {
                // Starting this wait cleared an expiry that an earlier one left: there is nothing to read then.
                if timer.try_read(&mut expirations).is_ok() {
                    return;
                }
            }
        }
    }

    fn create() -> io::Result<Receiver> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Receiver::from_owned_fd_unchecked(timerfd_create(TimerfdClockId::Monotonic, flags)?)
    }

    fn start(timer: &Receiver, span: Duration) -> io::Result<()> {
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = span.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: once, it_value })?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod tokio_timer {
    use std::time::Duration;

    use super::LEAST;

    #[derive(Debug)]
    pub(crate) struct Timer;

    impl Timer {
        pub(crate) fn new() -> Self {
            Timer
        }

        /// Waits for so long; it may be cancelled.
        pub(in super::super) async fn wait(&self, span: Duration) {
            tokio::time::sleep(span.max(LEAST)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits follow each other, cancelled ones among them, and none ends early.
    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it measures a timer")]
    async fn no_wait_ends_early() {
        let timer = Timer::new();
        for milliseconds in [1, 3, 1, 20, 2] {
            let span = Duration::from_millis(milliseconds);
            // A wait that is cancelled before it ends, and one that ended while no task waited.
            let cancelled = tokio::time::timeout(Duration::from_millis(2), timer.wait(Duration::from_secs(60))).await;
            assert!(cancelled.is_err());
            {
                let mut unread = std::pin::pin!(timer.wait(LEAST));
                assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(unread.as_mut().poll(cx))).await.is_pending());
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            let began = std::time::Instant::now();
            timer.wait(span).await;
            let took = began.elapsed();
            assert!(took >= span && took < Duration::from_secs(5), "{took:?} for {span:?}");
        }
    }
}
