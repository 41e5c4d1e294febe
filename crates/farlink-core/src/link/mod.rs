//! A link: a queue, a transmitter of some rate, a delay and a channel.

pub mod series;
pub mod setting;
