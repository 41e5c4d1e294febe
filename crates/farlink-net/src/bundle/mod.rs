//! A bundle of IP paths on a real machine: sealed datagrams over several sockets, and a TUN device at either end.

pub mod session;
