//! What several protocols are made of.

pub(super) mod chunks;
pub(super) mod events;
pub mod length;
pub(super) mod pacer;
pub(super) mod reorder;
pub mod rto;
pub(super) mod windows;
