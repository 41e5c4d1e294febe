//! UDP through gateways: without connections, and in connections of the modes that rules give.

use std::net::UdpSocket;

use super::*;

#[test]
fn datagrams_go_there_and_back() {
    let hosts = Hosts::new();
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    server.set_read_timeout(Some(WITHIN)).unwrap();
    let address = server.local_addr().unwrap();
    let listener = format!("[[udp]]\nlisten = \"127.0.0.1:0\"\ndestination = \"{address}\"\n");
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let near = hosts.near(&far, &listener);
    let clients = [0; 3].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    for (n, client) in clients.iter().enumerate() {
        client.set_read_timeout(Some(WITHIN)).unwrap();
        for piece in [0, 1, 700] {
            client.send_to(&vec![n as u8; piece], near.clients[0]).unwrap();
            let mut buffer = [0; 2000];
            let (bytes, from) = server.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..bytes], vec![n as u8; piece]);
            server.send_to(&buffer[..bytes], from).unwrap();
            let (back, _) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(back, bytes);
        }
    }
    // Not without an entry.
    drop((near, far));
    let refusing = hosts.far("[]");
    let near = hosts.near(&refusing, &listener);
    clients[0].send_to(b"x", near.clients[0]).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(server.recv_from(&mut [0; 10]).is_err());
}

/// The port of a removed listener is free at once, though clients of it are known.
#[test]
fn a_removed_listener_of_datagrams_frees_its_port() {
    let hosts = Hosts::new();
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = server.local_addr().unwrap();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let near = hosts.near(&far, &format!("[[udp]]\nlisten = \"127.0.0.1:0\"\ndestination = \"{address}\"\n"));
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    client.send_to(b"known", near.clients[0]).unwrap();
    server.set_read_timeout(Some(WITHIN)).unwrap();
    server.recv_from(&mut [0; 10]).unwrap();
    assert!(UdpSocket::bind(near.clients[0]).is_err());
    hosts.write("near.toml", &hosts.near_text(&far, ""));
    near.control.send(Control::Reload).unwrap();
    assert!(matches!(near.next(), Event::Reloaded));
    let began = Instant::now();
    while let Err(error) = UdpSocket::bind(near.clients[0]) {
        assert!(began.elapsed() < Duration::from_secs(5), "{error}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn udp_socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(WITHIN)).unwrap();
    socket
}

fn with_mode(destination: SocketAddr, mode: &str) -> String {
    format!(
        "[[udp]]\nlisten = \"127.0.0.1:0\"\ndestination = \"{destination}\"\nidle_s = 2.0\n\
         [[rule]]\ndestination = \"{destination}\"\nprotocol = \"udp\"\nmode = {mode}\n"
    )
}

#[test]
fn datagrams_in_connections_go_there_and_back() {
    let hosts = Hosts::new();
    let far = hosts.far("[\"127.0.0.1:*\"]");
    for mode in ["\"reliable\"", "\"quasi-reliable\"", "\"unreliable\"\nclass = 1\ndeadline_s = 5.0"] {
        let server = udp_socket();
        let near = hosts.near(&far, &with_mode(server.local_addr().unwrap(), mode));
        let clients = [0; 3].map(|_| udp_socket());
        for (n, client) in clients.iter().enumerate() {
            // Longer than a packet, too: it takes two.
            for piece in [0, 1, 700, 3000] {
                client.send_to(&vec![n as u8; piece], near.clients[0]).unwrap();
                let mut buffer = [0; 5000];
                let (bytes, from) = server.recv_from(&mut buffer).unwrap();
                assert_eq!(&buffer[..bytes], vec![n as u8; piece], "{mode}");
                server.send_to(&buffer[..bytes], from).unwrap();
                let (back, _) = client.recv_from(&mut buffer).unwrap();
                assert_eq!(&buffer[..back], vec![n as u8; piece], "{mode}");
            }
        }
    }
    // Not without an entry.
    drop(far);
    let (refusing, server, client) = (hosts.far("[]"), udp_socket(), udp_socket());
    let near = hosts.near(&refusing, &with_mode(server.local_addr().unwrap(), "\"reliable\""));
    client.send_to(b"x", near.clients[0]).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    assert!(server.recv_from(&mut [0; 10]).is_err());
}

/// Of 300 datagrams over a path that loses one packet of ten. The path lives in real time: where others keep the processors, more is
/// late than is lost, so there are three tries.
#[test]
fn modes_differ_in_what_arrives_over_a_path_that_loses() {
    let is_as_said = |[datagram, unreliable, quasi, reliable]: [usize; 4]| {
        let loses = |arrived| (255..285).contains(&arrived);
        reliable == 300 && loses(datagram) && loses(unreliable) && quasi >= 297
    };
    let mut tries = Vec::new();
    while tries.len() < 3 && !tries.last().is_some_and(|&arrived| is_as_said(arrived)) {
        tries.push(arrived_of_300());
    }
    println!("of 300 datagrams: {tries:?}");
    assert!(tries.last().is_some_and(|&arrived| is_as_said(arrived)), "{tries:?}");
}

/// How many arrive in each mode: datagram, unreliable, quasi-reliable, reliable.
fn arrived_of_300() -> [usize; 4] {
    ["datagram", "unreliable", "quasi-reliable", "reliable"].map(|mode| {
        let hosts = Hosts::new();
        let (server, client) = (udp_socket(), udp_socket());
        let far = hosts.far("[\"127.0.0.1:*\"]");
        let at = path(far.sessions, Duration::from_millis(20), 10);
        let listeners = with_mode(server.local_addr().unwrap(), &format!("\"{mode}\""));
        let text = format!("keys = \"near\"\n[peer.far]\naddress = \"{at}\"\n{listeners}");
        let near = Running::start(&hosts.write("near.toml", &text));
        // The session is there before it counts.
        client.send_to(b"first", near.clients[0]).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let to = near.clients[0];
        let sending = std::thread::spawn(move || {
            for n in 0..300_u32 {
                client.send_to(&[&n.to_be_bytes()[..], &[7; 600]].concat(), to).unwrap();
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        server.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
        let mut numbers = Vec::new();
        let mut buffer = [0; 1000];
        while let Ok((bytes, _)) = server.recv_from(&mut buffer) {
            if bytes == 604 {
                numbers.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
            }
        }
        sending.join().unwrap();
        assert!(mode == "datagram" || numbers.is_sorted(), "a connection keeps the order");
        numbers.dedup();
        numbers.len()
    })
}

/// New rules are for flows as well: the next datagram of a client begins another connection.
#[test]
fn new_rules_hold_for_clients_that_are_known() {
    let (hosts, server, client) = (Hosts::new(), udp_socket(), udp_socket());
    let far = hosts.far("[\"127.0.0.1:*\"]");
    let (spare, at) = listener();
    drop(spare);
    let address = server.local_addr().unwrap();
    let text = |mode: &str| with_mode(address, mode).replace("listen = \"127.0.0.1:0\"", &format!("listen = \"{at}\""));
    let near = hosts.near(&far, &text("\"unreliable\""));
    let mut buffer = [0; 10];
    let mut sent = |data: &[u8]| {
        client.send_to(data, at).unwrap();
        server.recv_from(&mut buffer).unwrap().1
    };
    let first = sent(b"one");
    assert_eq!(sent(b"two"), first, "the same flow");
    hosts.write("near.toml", &hosts.near_text(&far, &text("\"reliable\"")));
    near.control.send(Control::Reload).unwrap();
    assert!(matches!(near.next(), Event::Reloaded));
    assert_ne!(sent(b"three"), first);
    // A client that was silent for too long begins anew as well.
    let third = sent(b"four");
    std::thread::sleep(Duration::from_millis(2600));
    assert_ne!(sent(b"five"), third);
}

/// A flow that the other gateway ends at once is not begun anew for each datagram, which would take the ports of the session from others.
#[test]
fn a_flow_that_is_refused_is_not_asked_for_with_each_datagram() {
    let (hosts, server, client) = (Hosts::new(), udp_socket(), udp_socket());
    let text = format!("keys = \"far\"\nlisten = \"127.0.0.1:0\"\n[peer.near]\n{METRICS}");
    let far = Running::start(&hosts.write("far.toml", &text));
    let near = hosts.near(&far, &with_mode(server.local_addr().unwrap(), "\"reliable\""));
    let began = Instant::now();
    for _ in 0..300 {
        client.send_to(b"x", near.clients[0]).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let (refused, most) = (metric(&far, "not_allowed_total"), 2 + began.elapsed().as_secs());
    assert!((1..=most).contains(&refused), "{refused}");
}

/// Datagrams have no end that could be waited for: a gateway that drains ends its flows.
#[test]
fn flows_of_datagrams_keep_no_gateway_from_ending() {
    for is_near in [true, false] {
        let (hosts, server, client) = (Hosts::new(), udp_socket(), udp_socket());
        let far = hosts.far("[\"127.0.0.1:*\"]");
        let listeners =
            with_mode(server.local_addr().unwrap(), "\"reliable\"").replace("idle_s = 2.0", "idle_s = 60.0");
        let near = hosts.near(&far, &listeners);
        client.send_to(b"x", near.clients[0]).unwrap();
        server.recv_from(&mut [0; 10]).unwrap();
        let took = if is_near { near.drain() } else { far.drain() };
        assert!(took < Duration::from_secs(10), "near: {is_near}, {took:?}");
    }
}

/// The mark of a datagram arrives at the destination if both gateways trust clients with it, and else not.
#[test]
#[cfg(target_os = "linux")]
fn marks_of_datagrams_arrive() {
    use rustix::net::sockopt;
    for (near_trusts, far_trusts) in [(true, true), (true, false), (false, true)] {
        let (hosts, server, client) = (Hosts::new(), udp_socket(), udp_socket());
        sockopt::set_ip_recvtos(&server, true).unwrap();
        let far = format!(
            "keys = \"far\"\nlisten = \"127.0.0.1:0\"\ntrust_dscp = {far_trusts}\n[peer.near]\nallow = [\"127.0.0.1:*\"]\n"
        );
        let far = Running::start(&hosts.write("far.toml", &far));
        let udp = format!("[[udp]]\nlisten = \"127.0.0.1:0\"\ndestination = \"{}\"\n", server.local_addr().unwrap());
        let near = format!("trust_dscp = {near_trusts}\n{}", hosts.near_text(&far, &udp));
        let near = Running::start(&hosts.write("near.toml", &near));
        let marks = [46, 46, 0, 10].map(|mark| {
            sockopt::set_ip_tos(&client, mark << 2).unwrap();
            client.send_to(b"marked", near.clients[0]).unwrap();
            mark_of_next(&server)
        });
        let wanted = if near_trusts && far_trusts { [46, 46, 0, 10] } else { [0; 4] };
        assert_eq!(marks, wanted, "{near_trusts} {far_trusts}");
    }
}

#[cfg(target_os = "linux")]
fn mark_of_next(server: &UdpSocket) -> u8 {
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
    let (mut buffer, mut more) = ([0; 10], nix::cmsg_space!(u8));
    let mut pieces = [std::io::IoSliceMut::new(&mut buffer)];
    let server = std::os::fd::AsRawFd::as_raw_fd(server);
    let arrived = recvmsg::<()>(server, &mut pieces, Some(&mut more), MsgFlags::empty()).unwrap();
    assert_eq!(arrived.bytes, 6);
    let Some(ControlMessageOwned::Ipv4Tos(octet)) = arrived.cmsgs().unwrap().next() else { panic!("no mark") };
    octet >> 2
}
