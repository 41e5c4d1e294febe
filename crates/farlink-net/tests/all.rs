//! Tests with files and with sockets on the loopback interface.

mod bad_path;
mod examples;
mod files;
mod state;
mod transfer;
