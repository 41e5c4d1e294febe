//! The examples, as a user runs them.

use std::path::Path;
use std::process::Command;

/// What an example prints.
fn run(name: &str) -> String {
    // Examples are built beside the folder of the tests.
    let tests = std::env::current_exe().unwrap();
    let example = tests.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(example.is_file(), "{} is missing: cargo build -p farlink-net --examples", example.display());
    let output = Command::new(example).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn echo_brings_back_what_was_written() {
    assert_eq!(run("echo"), "Hello, far away\n");
}

#[test]
fn telemetry_arrives_over_a_path_without_losses() {
    assert_eq!(run("telemetry"), "50 of 50 positions, the last one 49: 78.2 N 15.6 E 3490 m\n");
}

#[test]
fn streams_share_the_rate_evenly() {
    let printed = run("shared_rate");
    let rates: Vec<f64> = printed.lines().map(|line| line.split(' ').nth(2).unwrap().parse().unwrap()).collect();
    let total: f64 = rates.iter().sum();
    assert!(rates.len() == 4 && total < 20.0 && total > 10.0, "{printed}");
    assert!(rates.iter().all(|rate| (rate / total - 0.25).abs() < 0.05), "{printed}");
}

#[test]
fn a_folder_arrives() {
    assert_eq!(run("folder"), "1 file, 13 bytes\n");
}
