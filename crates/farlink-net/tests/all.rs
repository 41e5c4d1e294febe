//! Tests with files and with sockets on the loopback interface.

mod files;
mod state;
mod transfer;
