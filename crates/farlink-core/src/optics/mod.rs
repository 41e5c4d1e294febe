//! Free-space optics: from received power to bit errors.

mod calibration;
mod receiver;

pub use calibration::{CalibrationError, gain_for_ber, mean_ber};
pub use receiver::{Named, RECEIVERS, Receiver, ReceiverSetting};
