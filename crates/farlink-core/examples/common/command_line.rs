//! What the examples' command lines have in common: errors with a remedy, and numbers within bounds.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The fault, and the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Failure { what: what.into(), remedy: remedy.into() }
    }
}

/// Runs a program with its parsed arguments, or prints the help that they ask for. A failure is two lines and exit code 2.
pub(crate) fn run<A>(
    arguments: Result<Option<A>, Failure>,
    help: &str,
    run: impl FnOnce(&A) -> Result<ExitCode, Failure>,
) -> ExitCode {
    let outcome = arguments.and_then(|arguments| match arguments {
        Some(arguments) => run(&arguments),
        None => {
            print!("{help}");
            Ok(ExitCode::SUCCESS)
        }
    });
    outcome.unwrap_or_else(|Failure { what, remedy }| {
        eprintln!("error: {what}");
        eprintln!("hint: {remedy}");
        ExitCode::from(2)
    })
}

/// Becomes true with Ctrl-C.
pub(crate) fn interrupts() -> Result<Arc<AtomicBool>, Failure> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))
            .map_err(|error| Failure::new(format!("cannot watch for Ctrl-C: {error}"), "run it on Linux or macOS"))?;
    }
    Ok(is_interrupted)
}

/// The value of an option, within bounds; `example` is one that makes sense.
pub(crate) fn number(option: &str, text: &str, bounds: [f64; 2], example: impl Display) -> Result<f64, Failure> {
    let [least, most] = bounds;
    text.parse().ok().filter(|value| (least..=most).contains(value)).ok_or_else(|| {
        Failure::new(
            format!("{option} {text} is no number from {least:e} to {most:e}"),
            format!("as in {option} {example}"),
        )
    })
}
