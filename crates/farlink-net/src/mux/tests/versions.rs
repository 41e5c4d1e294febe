//! Hosts without a common version. `[Y23]`

use crate::seal::versions::{LEAST_HELLO_BYTES, VersionMac, code, foreign_hello, proof_of};

use super::super::session::hello_header;
use super::*;

/// The header of a hello of version 2.
fn header() -> [u8; OUTER_BYTES] {
    hello_header(0, 0).encode_as(2)
}

/// What a host says that has these versions.
fn answer(called: &PublicKey, proof: [u8; 32], versions: &[u8]) -> Vec<u8> {
    let mut content = [&proof[..], versions].concat();
    content.extend(code(called, &content));
    [&hello_header(content.len(), 0).encode_as(0)[..], &content].concat()
}

fn receive(mux: &mut Mux, now: Time, datagram: &[u8]) -> Option<Vec<u8>> {
    mux.receive(now, Route::to(address(9)), Ecn::NotCapable, BytesMut::from(datagram));
    let mut out = [0; 200];
    mux.poll_transmit(now, 1, &mut out).map(|batch| out[..batch.bytes].to_vec())
}

#[test]
fn a_hello_of_another_version_is_told_the_own_ones() {
    let mut net = Net::new(0.0, 1);
    let called = net.hosts[1].public_key();
    let hello = foreign_hello(&called, [8; 32], &header());
    let answer = receive(&mut net.hosts[1], net.now, &hello).unwrap();
    assert!(answer.len() <= hello.len());
    assert_eq!(farlink_core::wire::aerotp::sealed::foreign(&answer), Some((0, Kind::Hello)));
    let read = VersionMac::of(&called).read(&answer[OUTER_BYTES..]).unwrap();
    assert_eq!((read, &answer[OUTER_BYTES..][..32]), (&[1][..], &[8; 32][..]));
    assert_eq!(net.hosts[1].counts().other_versions, 1);
}

/// A stranger who does not know the public key learns nothing, and few answers go out.
#[test]
fn strangers_and_floods_of_other_versions_get_few_answers() {
    let mut net = Net::new(0.0, 1);
    let called = net.hosts[1].public_key();
    let right = foreign_hello(&called, [8; 32], &header());
    let others = foreign_hello(&net.hosts[0].public_key(), [8; 32], &header());
    for datagram in [&others[..], &right[..LEAST_HELLO_BYTES - 1], &right[..20], &header()] {
        assert_eq!(receive(&mut net.hosts[1], net.now, datagram), None);
    }
    for place in 14..62 {
        let mut changed = right.clone();
        changed[place] ^= 1;
        assert_eq!(receive(&mut net.hosts[1], net.now, &changed), None, "{place}");
    }
    let answers = (0..5000).filter(|_| receive(&mut net.hosts[1], net.now, &right).is_some()).count();
    assert_eq!(answers, handshakes::MOST_RESETS as usize);
}

/// The answer of a host that has version 2 alone ends the attempt at once; any other one does nothing.
#[test]
fn a_caller_is_told_at_once_that_there_is_no_common_version() {
    let mut net = Net::new(0.0, 1);
    let id = net.connect();
    net.write(id, b"hello");
    let mut out = [0; 2000];
    let batch = net.hosts[0].poll_transmit(net.now, 1, &mut out).unwrap();
    let proof = *proof_of(&out[..batch.bytes]).unwrap();
    let called = net.hosts[1].public_key();
    let stranger = StaticKey::generate().public();
    let wrong = [
        answer(&called, [0; 32], &[2]),
        answer(&stranger, proof, &[2]),
        answer(&called, proof, &[1, 2]),
        answer(&called, proof, &[2])[..50].to_vec(),
    ];
    for datagram in wrong {
        receive(&mut net.hosts[0], net.now, &datagram);
        assert_eq!((net.hosts[0].sessions(), net.hosts[0].poll_event()), (1, None));
    }
    receive(&mut net.hosts[0], net.now, &answer(&called, proof, &[2, 3]));
    assert_eq!(net.hosts[0].poll_event(), Some((id, Event::Aborted(Abort::OtherVersion))));
    assert_eq!(net.hosts[0].sessions(), 0);
}

/// Once the peer has answered, nothing that a recorder of the hello sends ends the session.
#[test]
fn an_answered_session_has_its_version() {
    let mut net = Net::new(0.0, 1);
    let id = net.connect();
    net.write(id, b"hello");
    net.run_for(1);
    let hello = net.recorded[0].1.clone();
    let packet = answer(&net.hosts[1].public_key(), *proof_of(&hello).unwrap(), &[2]);
    receive(&mut net.hosts[0], net.now, &packet);
    assert_eq!(net.hosts[0].sessions(), 1);
}
