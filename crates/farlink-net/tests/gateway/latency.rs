//! How long requests take, and data that are late.

use super::*;

/// A request of 1 kB has its answer a round trip later, the first one of the session as well. A busy machine makes it later, so that of
/// each the fastest of some sessions counts.
#[test]
fn a_request_takes_one_round_trip() {
    let sessions = [(); 6].map(|()| four_requests());
    let fastest = [0, 1, 2, 3].map(|n| sessions.iter().map(|took| took[n]).min().unwrap());
    println!("requests over 400 ms: {fastest:?}");
    assert!(fastest.iter().all(|took| *took < Duration::from_millis(450)), "{fastest:?}");
}

/// A short request has a long answer a round trip later, the first one as well: the session is there before it, and the address is proven.
#[test]
fn a_short_request_has_a_long_answer_after_one_round_trip() {
    let fastest = (0..6).map(|_| first_short_request()).min().unwrap();
    println!("90 bytes and 1,000 over 400 ms: {fastest:?}");
    assert!(fastest < Duration::from_millis(450), "{fastest:?}");
}

fn first_short_request() -> Duration {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let at = path(far.sessions, Duration::from_millis(200), usize::MAX);
    let text = format!("keys = \"near\"\n[peer.far]\naddress = \"{at}\"\n{}", forward(address));
    let near = Running::start(&hosts.write("near.toml", &text));
    std::thread::sleep(Duration::from_millis(1300));
    let mut client = connect(near.clients[0]);
    let began = Instant::now();
    client.write_all(&[7; 90]).unwrap();
    let mut server = accept(&listener);
    server.read_exact(&mut [0; 90]).unwrap();
    server.write_all(&[7; 1000]).unwrap();
    client.read_exact(&mut [0; 1000]).unwrap();
    began.elapsed()
}

/// How long a first request over a forward takes, one by SOCKS5, and another one of each.
fn four_requests() -> [Duration; 4] {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let at = path(far.sessions, Duration::from_millis(200), usize::MAX);
    let text = format!(
        "keys = \"near\"\n[peer.far]\naddress = \"{at}\"\n[[socks]]\nlisten = \"127.0.0.1:0\"\n{}",
        forward(address)
    );
    let near = Running::start(&hosts.write("near.toml", &text));
    let server = std::thread::spawn(move || {
        for _ in 0..4 {
            let mut server = accept(&listener);
            let mut request = [0; 1000];
            server.read_exact(&mut request).unwrap();
            server.write_all(&request).unwrap();
        }
    });
    let took = [false, true, false, true].map(|is_socks| {
        // Forwards come before SOCKS5.
        let mut client = connect(near.clients[usize::from(is_socks)]);
        let began = Instant::now();
        if is_socks {
            socks_request(&mut client, "localhost", address.port());
            assert_eq!(socks_reply(&mut client), 0);
        }
        client.write_all(&[7; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        began.elapsed()
    });
    assert!(took.iter().all(|it| *it >= Duration::from_millis(400)), "{took:?}");
    server.join().unwrap();
    took
}

/// A connection whose data do not get through in time is reset on both sides.
#[test]
fn data_that_are_late_reset_their_connection() {
    let hosts = Hosts::new();
    let (listener, address) = listener();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let rule = "[[rule]]\ndestination = \"127.0.0.1:*\"\ndeadline_s = 0.5\n";
    let near = hosts.near(&far, &format!("{}{rule}", forward(address)));
    let mut client = connect(near.clients[0]);
    let mut server = accept(&listener);
    // What is read in time goes on, however long the connection lasts.
    for _ in 0..6 {
        client.write_all(b"x").unwrap();
        server.read_exact(&mut [0; 1]).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    client.set_nonblocking(true).unwrap();
    let began = Instant::now();
    let error = loop {
        assert!(began.elapsed() < WITHIN);
        match client.write(&[7; 1 << 16]) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(5))
            }
            Err(error) => break error,
            Ok(_) => {}
        }
    };
    assert!(matches!(error.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe), "{error}");
    // The server reads what had come before, and then the reset.
    let mut arrived = Vec::new();
    assert!(server.read_to_end(&mut arrived).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
}
