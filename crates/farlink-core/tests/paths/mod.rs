//! Two ends of a bundle of paths over emulated paths, in virtual time.

mod bulk;
mod drops;
mod network;
mod random;
mod tcp;
