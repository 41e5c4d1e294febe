//! Bytes of strangers in place of a hello, a cookie or a handshake for new keys: nothing opens, nothing panics.
#![no_main]

use std::sync::LazyLock;

use farlink_net::fuzzing::Hosts;

static HOSTS: LazyLock<Hosts> = LazyLock::new(Hosts::new);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    HOSTS.hello(bytes);
    HOSTS.renewal(bytes);
});
