//! A bundle of IP paths as one program: `bundle CONFIG.toml [CAPTURE.pcapng]`. It calls itself with `--helper` for what needs CAP_NET_ADMIN.

use std::error::Error;
use std::path::Path;
use std::process::Command;

use farlink_net::bundle::{Bundle, Config};
use farlink_net::privileged;
use tokio::sync::mpsc::unbounded_channel;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().ok_or("give CONFIG.toml")?;
    if first == "--helper" {
        return Ok(privileged::serve()?);
    }
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut helper = Command::new(std::env::current_exe()?);
    helper.arg("--helper");
    let capture = arguments.next();
    let bundle = Bundle::prepare(Config::read(Path::new(&first))?, helper, capture.as_deref().map(Path::new))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (_control, told) = unbounded_channel();
        bundle.run(told, |event| eprintln!("{}: {} {}", event.kind, event.path.unwrap_or_default(), event.text)).await
    })?;
    Ok(())
}
