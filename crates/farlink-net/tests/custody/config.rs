//! What the configuration says of custody, and which mistakes it names.

use farlink_net::gateway::Config;

use super::*;

fn text(custody: &str) -> String {
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let other = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    format!(
        "keys = \"keys\"\nlisten = \"127.0.0.1:0\"\n[peer.ship]\nkey = \"{key}\"\n\
         [peer.shore]\nkey = \"{other}\"\naddress = \"127.0.0.1:9\"\n[custody]\nfolder = \"store\"\n{custody}"
    )
}

const ROUTE: &str = "[[custody.route]]\nsink = \"archive\"\nfrom = [\"ship\"]\nto = \"shore\"\n";

#[test]
fn custody_is_said_in_sentences() {
    let config = Config::parse(Path::new("/etc/farlink/hub.toml"), &text(ROUTE)).unwrap();
    let lines = config.lines();
    for said in [
        "streams of ship to the sink archive go to shore, and are kept until it has them",
        "/etc/farlink/store keeps up to 1024 streams, 64 MiB of each and 1024 MiB in all",
    ] {
        assert!(lines.iter().any(|line| line == said), "{lines:?}");
    }
}

#[test]
fn mistakes_are_named() {
    let route = |line: &str, instead: &str| ROUTE.replace(line, instead);
    for (custody, said) in [
        (String::new(), "custody has no route, so no stream is taken; add [[custody.route]]"),
        (format!("bytes = 1000\n{ROUTE}"), "custody.bytes: 1000 is not within 4194304 and"),
        (
            format!("stream_bytes = 9_000_000_000\n{ROUTE}"),
            "custody.stream_bytes: 9000000000 is not within 65536 and 1073741824",
        ),
        (format!("streams = 0\n{ROUTE}"), "custody.streams: 0 is not within 1 and 65536"),
        (format!("expires_s = 0.0\n{ROUTE}"), "custody.expires_s: 0 s cannot be"),
        (format!("byte = 5\n{ROUTE}"), "did you mean `bytes`?"),
        (route("\"archive\"", "\"the archive\""), "a sink's name has 1 to 64 of the characters"),
        (
            route("[\"ship\"]", "[]"),
            "custody.route[0].from is empty, so nobody may send to archive; give some of: ship, shore",
        ),
        (
            route("[\"ship\"]", "[\"boat\"]"),
            "custody.route[0].from: there is no peer \"boat\"; give some of: ship, shore",
        ),
        (route("\"shore\"", "\"land\""), "custody.route[0].to: there is no peer \"land\"; give one of: ship, shore"),
        (
            route("\"shore\"", "\"ship\""),
            "custody.route[0].to: the peer \"ship\" has no address; give peer.ship.address",
        ),
        (route("[\"ship\"]", "[\"ship\", \"shore\"]"), "streams of \"shore\" would go back to it"),
        (format!("{ROUTE}{ROUTE}"), "custody.route[1].sink: there are two routes to archive"),
    ] {
        let wrong = Config::parse(Path::new("/etc/farlink/hub.toml"), &text(&custody)).unwrap_err();
        assert!(wrong.to_string().contains(said), "{wrong}");
        assert_eq!(wrong.exit_code(), 2);
    }
}

/// The store of a gateway that runs, or of another version, is refused, and nothing of the gateway starts.
#[tokio::test]
async fn a_store_that_cannot_be_used_is_refused() {
    let hosts = Hosts::new(1);
    let gateway = hosts.gateway(0, "");
    let store = hosts.folder.path().join("custody-0");
    std::fs::create_dir(&store).unwrap();
    std::fs::write(store.join("format"), "farlink custody 9\n").unwrap();
    let (_control, told) = tokio::sync::mpsc::unbounded_channel();
    let ended = gateway::run(&gateway.config, told, |event| panic!("{event:?}")).await.unwrap_err();
    assert!(ended.to_string().contains("another version: \"farlink custody 9\""), "{ended}");
    assert_eq!(ended.exit_code(), 2);
}
