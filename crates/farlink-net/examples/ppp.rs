//! A bundle of PPP lines: `ppp CONFIG.toml`, as root. Prints what happens, and gives the TUN device its address with `ip`. Ends with its
//! standard input if that is a pipe: `ppp CONFIG.toml until-eof`.

#[cfg(target_os = "linux")]
mod bundle {
    use std::io::Read;
    use std::process::Command;

    use farlink_core::ppp::{Event, Properties};
    use farlink_net::tty::{Driver, TtyConfig, TtyError, Tun};

    pub(super) async fn run(path: &str, until_eof: bool) -> Result<(), TtyError> {
        let config = TtyConfig::load(path.as_ref())?;
        let mut driver = Driver::start(&config, Some(Tun::open(config.device())?))?;
        let (ended, end) = tokio::sync::oneshot::channel();
        if until_eof {
            std::thread::spawn(move || {
                let _ = std::io::stdin().read_to_end(&mut Vec::new());
                let _ = ended.send(());
            });
        } else {
            std::mem::forget(ended);
        }
        tokio::pin!(end);
        loop {
            let event = tokio::select! {
                event = driver.next_event() => event?,
                _ = &mut end => break,
            };
            match &event {
                Event::LineUp { line } => println!("line {line} up"),
                Event::LineDown { line, cause } => println!("line {line} down: {cause}"),
                Event::NetworkUp(properties) => {
                    println!("network up: {properties:?}");
                    set_address(config.device(), properties);
                }
                Event::NetworkDown => println!("network down"),
                Event::AddressesDisagree { own, wanted } => println!("the peer wants {wanted} here, not {own}"),
            }
        }
        println!("sent {:?}\nreceived {:?}", driver.bundle().send_counts(), driver.bundle().receive_counts());
        driver.close().await;
        Ok(())
    }

    fn set_address(device: &str, properties: &Properties) {
        let mtu = properties.mtu.to_string();
        let ip = |words: &[&str]| {
            if !Command::new("ip").args(words).status().is_ok_and(|status| status.success()) {
                eprintln!("ip {} failed", words.join(" "));
            }
        };
        ip(&["link", "set", device, "mtu", &mtu, "up"]);
        if let Some(addresses) = properties.ipv4 {
            ip(&["address", "replace", &addresses.own.to_string(), "peer", &addresses.peer.to_string(), "dev", device]);
        }
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let mut words = std::env::args().skip(1);
    let Some(path) = words.next() else {
        eprintln!("error: ppp CONFIG.toml [until-eof]");
        return ExitCode::from(2);
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match runtime.block_on(bundle::run(&path, words.next().is_some())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
