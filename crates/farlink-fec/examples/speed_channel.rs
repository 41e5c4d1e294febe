//! Speed of noise and of whole simulations, on one thread: `cargo run --release -p farlink-fec --example speed_channel`.

use std::time::Instant;

use farlink_fec::awgn::{Channel, Noise};
use farlink_fec::convolutional::{Code, Puncturing};
use farlink_fec::modulation::{Decision, Modulation};
use farlink_fec::monte_carlo::{Effort, error_rate};
use farlink_fec::scheme::{Coding, Convolutional, Scheme};

fn main() {
    for modulation in [Modulation::Bpsk, Modulation::Qpsk, Modulation::Psk8, Modulation::Qam16] {
        for decision in [Decision::Soft, Decision::Hard] {
            let channel = Channel::new(modulation, decision, 2.0);
            let mut noise = Noise::stream(1, 0);
            let mut sent = vec![0; 1 << 13];
            noise.fill(&mut sent);
            let mut received = Vec::new();
            let best = (0..200).map(|_| {
                received.clear();
                let start = Instant::now();
                channel.carry(&sent, sent.len() * 8, &mut noise, &mut received);
                start.elapsed().as_secs_f64()
            });
            let best = best.fold(f64::INFINITY, f64::min);
            println!(
                "{modulation} {decision}: {:.0} million symbols of a bit per second",
                sent.len() as f64 * 8e-6 / best
            );
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    for (rate, decision, eb_n0_db) in
        [("1/2", Decision::Soft, 4.0), ("1/2", Decision::Hard, 6.0), ("3/4", Decision::Soft, 5.0)]
    {
        let code = Code::new(7, &[0o171, 0o133]).expect("the usual code");
        let pattern = Puncturing::usual(rate).expect("a usual rate");
        let coding = Coding::Convolutional(Convolutional::new(code).punctured(pattern));
        let scheme = Scheme::new(coding, Modulation::Bpsk, decision).expect("parts that fit");
        let effort = Effort { events: None, bits_max: 50_000_000, ..Effort::default() };
        let start = Instant::now();
        let rate = pool.install(|| error_rate(&scheme, eb_n0_db, &effort, &|_, _| true)).expect("numbers in range");
        let mbps = rate.bits as f64 * 1e-6 / start.elapsed().as_secs_f64();
        println!("{scheme} at {eb_n0_db} dB: {mbps:.0} Mb/s simulated, BER {:.2e}", rate.bit_error_rate.value);
    }
}
