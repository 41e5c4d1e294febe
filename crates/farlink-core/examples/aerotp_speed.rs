//! CPU time that AeroTP takes for a segment, without sockets: two endpoints and a link of fixed delay between them.
//!
//! `cargo run --release -p farlink-core --example aerotp_speed`
//!
//! With the window goes the number of segments that both sides keep: the time for each is to stay the same.

#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::collections::VecDeque;
use std::sync::LazyLock;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use farlink_core::protocol::Pairs;
use farlink_core::protocol::aerotp::{AerotpConfig, Segment, Side};
use farlink_core::units::{BitRate, Count, PositiveSeconds};
use farlink_core::wire::WirePayload;
use farlink_core::wire::aerotp::{Outside, decode_segment, encode_segment_into};
use farlink_core::{Endpoint, Rx, Stream, Time, Virtual};

const BYTES: usize = 100_000_000;
/// Longer than any segment here.
const MOST_BYTES: usize = 2048;
const ONE_WAY: Time = Time::from_millis(50);

fn main() {
    println!("window  loss   ns per segment: lengths, shared bytes, vectors, shared bytes with the codec");
    for window in [1e5, 1e6, 1e7, 5e7] {
        for loss in [0.0, 0.001, 0.05] {
            let lengths = measure(window, loss, false, |n| Virtual(n as u32));
            let shared = measure(window, loss, false, |n| Bytes::from(vec![0; n]));
            let vectors = measure(window, loss, false, |n| vec![0_u8; n]);
            let coded = measure(window, loss, true, |n| Bytes::from(vec![0; n]));
            println!("{window:6.0e}  {loss:5}  {lengths:5.0} {shared:5.0} {vectors:5.0} {coded:5.0}");
        }
    }
}

/// One direction of the link.
struct Way<D> {
    under_way: VecDeque<(Time, Segment<D>)>,
    loss: f64,
    state: u64,
}

impl<D: WirePayload> Way<D> {
    fn arrived(&mut self, now: Time) -> Option<Segment<D>> {
        self.under_way.front().filter(|(at, _)| *at <= now)?;
        self.under_way.pop_front().map(|(_, segment)| segment)
    }

    fn take(&mut self, now: Time, from: &mut Side<D>, has_codec: bool, buffer: &mut BytesMut) -> u64 {
        let mut count = 0;
        while let Some(transmit) = from.poll_transmit(now) {
            count += 1;
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if ((self.state >> 32) as f64) < self.loss * 2_f64.powi(32) {
                continue;
            }
            let mut segment = transmit.packet;
            if has_codec {
                buffer.resize(MOST_BYTES, 0);
                let bytes = encode_segment_into(&segment, &Outside::default(), buffer).expect("it is short");
                segment = decode_segment(&buffer.split_to(bytes).freeze()).expect("it is right").segment;
            }
            self.under_way.push_back((now + ONE_WAY, segment));
        }
        count
    }
}

/// Nanoseconds of CPU time for each segment with data, both sides together.
fn measure<D: WirePayload>(window: f64, loss: f64, has_codec: bool, make: impl Fn(usize) -> D) -> f64 {
    let config = AerotpConfig {
        // A window in each round trip.
        rate_bps: Some(BitRate::new(window * 8.0 / 0.1).expect("above 0")),
        receive_buffer_bytes: Some(Count::new(window * 1.2).expect("above 0")),
        mack_timeout_s: PositiveSeconds::new(0.005).expect("above 0"),
        ..AerotpConfig::default()
    };
    let (mut sender, mut receiver): (Side<D>, Side<D>) = config.pair(1);
    let way = |state| Way { under_way: VecDeque::new(), loss, state };
    let (mut forth, mut back): (Way<D>, Way<D>) = (way(1), way(2));
    let (mut now, mut written, mut read, mut segments) = (Time::from_secs(1), 0, 0, 0);
    let mut buffer = BytesMut::new();
    let started = cpu_ns();
    while read < BYTES {
        while written < BYTES && written - read < 2 * window as usize {
            let n = (1 << 16).min(BYTES - written);
            written += n;
            let mut data = make(n);
            while !data.is_empty() {
                sender.write(now, &mut data);
            }
        }
        segments += forth.take(now, &mut sender, has_codec, &mut buffer);
        back.take(now, &mut receiver, has_codec, &mut buffer);
        let arrivals = [forth.under_way.front(), back.under_way.front()].map(|first| first.map(|(at, _)| *at));
        let next = [arrivals[0], arrivals[1], sender.poll_timeout(), receiver.poll_timeout()];
        now = next.into_iter().flatten().min().expect("something is to come").max(now);
        while let Some(segment) = forth.arrived(now) {
            receiver.handle_packet(now, &segment, Rx::default());
        }
        while let Some(segment) = back.arrived(now) {
            sender.handle_packet(now, &segment, Rx::default());
        }
        sender.handle_timeout(now);
        receiver.handle_timeout(now);
        while let Some(data) = receiver.read() {
            read += data.len();
        }
    }
    (cpu_ns() - started) as f64 / segments as f64
}

/// Time that this thread has been running; where the system does not tell, time that has passed.
fn cpu_ns() -> u64 {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let running = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let running = running.and_then(|text| text.split(' ').next()?.parse().ok());
    running.unwrap_or_else(|| STARTED.elapsed().as_nanos() as u64)
}
