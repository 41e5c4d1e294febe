//! Two ends of a bundle of paths over emulated paths, in virtual time.

mod bulk;
mod drops;
mod forged;
mod latency;
mod marks;
mod network;
mod operation;
mod random;
mod tcp;

proptest::proptest! {
    #[test]
    fn forged_packets_do_no_harm(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2000)) {
        forged::forged_packets(&bytes);
    }
}
