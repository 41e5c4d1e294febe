//! Building blocks that several protocols share.

pub(super) mod chunks;
pub(super) mod events;
pub mod length;
pub(super) mod pacer;
pub(super) mod recent;
pub(super) mod reorder;
pub(super) mod repeats;
pub mod rto;
pub(super) mod windows;
