//! Tests with files and with sockets on the loopback interface.

mod state;
mod transfer;
