//! All tests of the crate's public interface in one program, because each further program compiles and links the crate
//! again. `aerotp_memory` and `ppp_memory` count the allocations of the process and therefore run alone.

mod aerotp;
mod aerotp_acceptor;
mod aerotp_deadlines;
mod aerotp_open_loop;
mod aerotp_origin;
mod aerotp_packet_size;
mod aerotp_parity;
mod aerotp_reordering;
mod aerotp_restarts;
mod aerotp_schedules;
mod aerotp_sealed;
mod aerotp_settings;
mod aerotp_strangers;
mod aerotp_udp;
mod arq;
mod bundle_on_the_wire;
mod bundles;
mod connections;
mod delayed_acks;
mod dialler;
mod ecn;
mod forged_segments;
mod gateway;
mod gateways;
mod idle_keys;
mod limits;
mod linux_bundle;
mod multilink;
mod pair;
mod paths;
mod ppp;
mod protocols;
mod rack;
mod random_schedules;
mod scenario;
mod scenario_errors;
mod scps;
mod stp;
mod tuning;
mod wire;

/// A file that is not named above would never be run.
#[test]
fn every_test_file_is_a_module() {
    let named: Vec<&str> =
        include_str!("all.rs").lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) =
            name.strip_suffix(".rs").filter(|_| !["all.rs", "aerotp_memory.rs", "ppp_memory.rs"].contains(&&*name))
        {
            assert!(named.contains(&module), "tests/all.rs lacks `mod {module};`");
        }
    }
}
