//! Tests with files and with sockets on the loopback interface.

mod bad_path;
mod custody;
mod examples;
mod files;
mod gateway;
mod state;
mod transfer;
