//! The task that drives a socket: datagrams in and out, deadlines, and who is woken.

use std::io;
use std::sync::Weak;
use std::task::Waker;
use std::time::Duration;

use farlink_core::Time;
use farlink_core::event::Event;

use crate::mux::Batch;

use super::shared::{End, Shared, State};
use super::sockets::Sockets;
use super::timer::Timer;

/// Batches before reading has its turn again: connections that may send without end would keep answers out for ever.
const BATCHES: usize = 32;
/// Bytes of a batch at most, as the kernel takes them.
const BATCH_BYTES: usize = 65_507;
/// Waits no longer than this, so that the end of the endpoint is noticed.
const LONGEST_WAIT: Time = Time::from_secs(1);

pub(super) async fn drive(shared: Weak<Shared>, mut sockets: Sockets) {
    let mut out = vec![0; BATCH_BYTES].into_boxed_slice();
    // A batch that the kernel had no room for.
    let mut unsent: Option<Batch> = None;
    let mut to_wake = Vec::new();
    let timer = Timer::new();
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let served = serve(&strong, &mut sockets, &mut unsent, &mut out, &mut to_wake);
        // Now that the lock is free, which they want.
        to_wake.drain(..).for_each(Waker::wake);
        let wait = match served {
            Ok(wait) => wait,
            Err(error) => return fail(&strong, &error),
        };
        let waked = strong.wake_driver.notified();
        let Some(wait) = wait else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::select! {
            biased;
            read = sockets.readable() => if let Err(error) = read { return fail(&strong, &error) },
            () = waked => {}
            () = timer.wait(wait), if unsent.is_none() => {}
            _ = sockets.writable(), if unsent.is_some() => {}
        }
    }
}

/// Does some of what can be done at once; returns for how long there is nothing more to do, `None` if there is. Adds those to `to_wake` who wait for
/// what has happened.
fn serve(
    shared: &Shared,
    sockets: &mut Sockets,
    unsent: &mut Option<Batch>,
    out: &mut [u8],
    to_wake: &mut Vec<Waker>,
) -> io::Result<Option<Duration>> {
    let mut state = shared.lock();
    let State { mux, clock, .. } = &mut *state;
    if let Some(by) = clock.move_origin() {
        mux.move_origin(by);
    }
    // Never earlier than it came: the peer would be told that what it sent was held for longer than it has been gone, and [A8] refuses that.
    sockets.receive(|route, ecn, datagram| mux.receive(clock.now(), route, ecn, datagram))?;
    while let Some((session, route)) = mux.poll_path() {
        sockets.follow(session, route);
    }
    let mut is_done = false;
    for _ in 0..BATCHES {
        if unsent.is_none() {
            let now = clock.now();
            *unsent = mux.poll_transmit(now, sockets.most_datagrams(), out);
        }
        let Some(batch) = unsent else {
            is_done = true;
            break;
        };
        match sockets.try_send(batch, &out[..batch.bytes]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                is_done = true;
                break;
            }
            // A datagram that the kernel refuses counts as lost on the way.
            Err(error) => tracing::debug!(%error, to = %batch.route.remote, "datagrams were not sent"),
            Ok(()) => {}
        }
        *unsent = None;
    }
    tell(shared, &mut state, to_wake);
    if !is_done {
        return Ok(None);
    }
    let State { mux, clock, .. } = &mut *state;
    let due = mux.poll_timeout().unwrap_or(Time::NEVER).min(clock.now() + LONGEST_WAIT);
    Ok(Some(clock.until(due)))
}

/// Passes events on; adds those to `to_wake` who wait for them.
fn tell(shared: &Shared, state: &mut State, to_wake: &mut Vec<Waker>) {
    while let Some((id, event)) = state.mux.poll_event() {
        let is_new = id.accepted_at().is_some() && event == Event::Connected;
        if is_new && !state.connections.contains_key(&id) {
            state.new.push_back(id);
            shared.tell_accepted();
        }
        if !is_new && !state.connections.contains_key(&id) {
            continue;
        }
        let waiting = state.connections.entry(id).or_default();
        waiting.is_connected |= event == Event::Connected;
        let end = match event {
            Event::Finished => Some(End::Finished),
            Event::Closed => Some(End::Closed),
            Event::Aborted(why) => Some(End::Aborted(why)),
            _ => None,
        };
        // A connection that was closed in order is not aborted any more when its session goes.
        if waiting.end != Some(End::Closed) {
            waiting.end = end.or(waiting.end);
        }
        to_wake.extend(waiting.concerned(event));
        if matches!(end, Some(End::Closed | End::Aborted(_))) {
            if waiting.is_abandoned {
                state.connections.remove(&id);
            }
            shared.tell_ended();
        } else if waiting.is_abandoned {
            // Unread data would close the window, and the peer could not end.
            while state.mux.read(id).is_some() {}
        }
    }
    if state.mux.has_datagram() {
        shared.datagrams.notify_waiters();
    }
    let has_datagrams = state.mux.has_unsent_datagrams();
    let are_sent = std::mem::replace(&mut state.has_datagrams, has_datagrams) && !has_datagrams;
    if are_sent || state.finishing > 0 {
        shared.tell_ended();
    }
    let State { mux, connections, .. } = state;
    to_wake.extend(connections.iter_mut().flat_map(|(&id, waiting)| waiting.satisfied(mux, id)));
}

fn fail(shared: &Shared, error: &io::Error) {
    tracing::error!(%error, "the socket cannot be used any more");
    shared.fail(error.kind());
}
