//! The files of a host.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use farlink_net::mux::CounterStore;
use farlink_net::seal::StaticKey;
use farlink_net::state::{StateFolder, Trusted};

fn folder() -> (tempfile::TempDir, StateFolder) {
    let place = tempfile::tempdir().unwrap();
    let folder = StateFolder::new(place.path().join("farlink"));
    (place, folder)
}

#[test]
fn a_key_is_made_once_and_only_its_owner_reads_it() {
    let (_place, folder) = folder();
    assert!(folder.key().unwrap_err().to_string().ends_with("there is no key; make one with \"farlink keygen\""));
    let key = folder.generate_key().unwrap();
    assert_eq!(folder.key().unwrap().public(), key.public());
    let path = folder.path().join("key");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(folder.generate_key().unwrap_err().to_string().contains("there is a key already"));
    assert_eq!(folder.key().unwrap().public(), key.public());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = folder.key().unwrap_err().to_string();
    assert!(error.contains("others can read the private key (mode 640); chmod 600 it"), "{error}");
}

#[test]
fn a_file_that_is_no_key_is_refused_without_its_content() {
    let (_place, folder) = folder();
    folder.generate_key().unwrap();
    for content in [&b"secret but no key"[..], &[0xff; 44], &[b'A'; 5000]] {
        fs::write(folder.path().join("key"), content).unwrap();
        let error = folder.key().unwrap_err().to_string();
        assert!(error.contains("this is no key") && !error.contains("secret"), "{error}");
    }
}

#[test]
fn trust_survives_the_round_trip() {
    let (_place, folder) = folder();
    assert_eq!(folder.trusted().unwrap(), Trusted::default());
    let (a, b) = (StaticKey::generate().public(), StaticKey::generate().public());
    let mut trusted = Trusted::default();
    trusted.add(a, "ship-1").unwrap();
    for name in ["", ".hidden", "a/b", "..", "a b", "\u{e9}", &"x".repeat(65)] {
        assert!(trusted.add(b, name).unwrap_err().contains("cannot be used"), "{name}");
    }
    assert!(trusted.add(b, "SHIP-1").unwrap_err().contains("another trusted host"), "one folder on some file systems");
    trusted.add(b, "shore").unwrap();
    folder.keep_trusted(&trusted).unwrap();
    assert_eq!(folder.trusted().unwrap(), trusted);
    assert_eq!((trusted.name(&a), trusted.key("shore")), (Some("ship-1"), Some(b)));

    fs::write(folder.path().join("trusted"), "# comment\n\nno-key name\n").unwrap();
    let error = folder.trusted().unwrap_err().to_string();
    assert!(error.contains("line 3: \"no-key\" is no public key"), "{error}");
}

/// Several senders with one key keep their counters at once, and the highest stays.
#[test]
fn senders_take_turns_with_the_own_counter() {
    let (_place, folder) = folder();
    std::thread::scope(|scope| {
        for sender in 0..8_u64 {
            let mut counters = folder.counters_to_send().unwrap();
            scope.spawn(move || (1..50).for_each(|step| counters.keep_own(100 * step + sender).unwrap()));
        }
    });
    assert_eq!(folder.counters_to_send().unwrap().own(), 4907);
}

#[test]
fn counters_last_and_only_one_process_answers() {
    let (_place, folder) = folder();
    let peer = StaticKey::generate().public();
    let mut counters = folder.counters_to_answer().unwrap();
    counters.keep_own(7).unwrap();
    counters.keep_peer(&peer, 9).unwrap();
    let error = folder.counters_to_answer().unwrap_err().to_string();
    assert!(error.contains("another process receives with the same key"), "{error}");
    assert_eq!(folder.counters_to_send().unwrap().own(), 7, "who only sends needs no lock");
    drop(counters);

    let counters = folder.counters_to_answer().unwrap();
    assert_eq!((counters.own(), counters.peer(&peer)), (7, 9));
    drop(counters);
    fs::write(folder.path().join("peer-counters"), format!("{peer} nine\n")).unwrap();
    let error = folder.counters_to_answer().unwrap_err().to_string();
    assert!(error.contains("line 1 is no counter"), "{error}");
}
