//! A bundle of PPP lines as one program: `ppp CONFIG.toml [until-eof]`, with CAP_NET_ADMIN. Prints what happens. Ends with its standard
//! input if asked to. It calls itself with `--helper` for what needs CAP_NET_ADMIN.

#[cfg(target_os = "linux")]
fn run(first: &str, until_eof: bool) -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Read;
    use std::path::Path;
    use std::process::Command;

    use farlink_net::tty::{TtyBundle, TtyConfig};
    use tokio::sync::mpsc::unbounded_channel;

    let mut helper = Command::new(std::env::current_exe()?);
    helper.arg("--helper");
    let bundle = TtyBundle::prepare(TtyConfig::read(Path::new(first))?, helper, None)?;
    let (stop, stopped) = unbounded_channel();
    let kept = stop.clone();
    if until_eof {
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            let _ = stop.send(());
        });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(bundle.run(stopped, None, |event| {
        let text = event.text;
        match (event.kind, event.line) {
            ("status", _) => {}
            (kind, Some(line)) => println!("line {line} {kind}: {text}"),
            ("network", None) => println!("network up: {text}"),
            (kind, None) => println!("{kind}: {text}"),
        }
    }))?;
    drop(kept);
    Ok(())
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let mut words = std::env::args().skip(1);
    let Some(first) = words.next() else {
        eprintln!("error: ppp CONFIG.toml [until-eof]");
        return ExitCode::from(2);
    };
    let done = if first == "--helper" {
        farlink_net::privileged::serve().map_err(Into::into)
    } else {
        tracing_subscriber::fmt().with_writer(std::io::stderr).init();
        run(&first, words.next().is_some())
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
