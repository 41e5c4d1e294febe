//! All tests of the crate's public interface in one program, because each further program compiles and links the crate
//! again.

mod aerotp_captures;
mod aerotp_neighbours;
mod aerotp_open_loop;
mod aerotp_reliable;
mod aerotp_way_back;
mod arq;
mod arq_length;
mod bbr;
mod bounds;
mod bundles;
mod captures;
mod classes;
mod coded;
mod common;
mod congestion;
mod conservation;
mod copies;
mod correction;
mod custody;
mod determinism;
mod ecn;
mod emulated_hops;
mod estimates;
mod fluid;
mod gateways;
mod interrupted;
mod intervals;
mod long_paths;
mod paths;
mod pcap;
mod pieces;
mod policers;
mod possible;
mod processing;
mod quantities;
mod refusals;
mod restart;
mod scps;
mod shortcut;
mod stalls;
mod stp_traces;
mod summaries;
mod traces;

/// A file that is not named above would never be run.
#[test]
fn every_test_file_is_a_module() {
    let named: Vec<&str> =
        include_str!("all.rs").lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|_| !["all.rs"].contains(&&*name)) {
            assert!(named.contains(&module), "tests/all.rs lacks `mod {module};`");
        }
    }
}
