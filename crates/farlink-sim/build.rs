//! The fingerprint of the code that computes, `FARLINK_BUILD`: SHA-256 over the Rust sources of every crate and `Cargo.lock`.
//!
//! Neither times nor places of files count, nor the ends of lines, nor whether Git is there: a checkout, an unpacked source
//! distribution and a copy without history have the same one.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

/// The crates of the Python extension, whose sources lie side by side.
const CRATES: [&str; 4] = ["farlink-core", "farlink-fec", "farlink-py", "farlink-sim"];

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("Cargo says where the crate lies"));
    let crates = own.parent().expect("a crate lies in a folder").to_path_buf();
    let mut files = Vec::new();
    for name in CRATES {
        let sources = crates.join(name).join("src");
        if sources.is_dir() {
            println!("cargo::rerun-if-changed={}", sources.display());
            list(&sources, &mut files)?;
        }
    }
    let lock = crates.parent().map(|root| root.join("Cargo.lock")).filter(|lock| lock.is_file());
    if let Some(lock) = lock {
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(fuzzing)");
    let root = crates.parent().unwrap_or(&crates);
    let named = files.iter().map(|file| (name_of(file, root), file));
    println!("cargo::rustc-env=FARLINK_BUILD={}", fingerprint(named)?);
    Ok(())
}

/// The Rust sources in a folder and those below it.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Where a file lies below a folder, with `/` between the parts.
fn name_of(file: &Path, root: &Path) -> String {
    let below = file.strip_prefix(root).unwrap_or(file);
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Of names and contents, in the order of the names.
fn fingerprint<'a>(files: impl Iterator<Item = (String, &'a PathBuf)>) -> io::Result<String> {
    let mut files: Vec<_> = files.collect();
    files.sort();
    let mut digest = Sha256::new();
    for (name, path) in files {
        let content = fs::read(path)?;
        let lines = content.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let content = lines.collect::<Vec<_>>().join(&b'\n');
        // With their lengths, so that no two lists of files read alike.
        digest.update(format!("{}\0{name}\0{}\0", name.len(), content.len()));
        digest.update(&content);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
