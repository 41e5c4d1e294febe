//! The measured quantities: columns of the result table.

/// A column of the result table that holds a measured number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Name of the column.
    pub name: &'static str,
    /// Unit, empty for counts and ratios.
    pub unit: &'static str,
    /// What it is.
    pub description: &'static str,
}

const fn quantity(name: &'static str, unit: &'static str, description: &'static str) -> Quantity {
    Quantity { name, unit, description }
}

/// Every measured quantity, in the order of the table's columns.
pub const QUANTITIES: &[Quantity] = &[
    quantity("goodput_bps", "bit/s", "application data delivered in order per second"),
    quantity("goodput_fraction", "", "goodput over the rate of the slowest hop forward"),
    quantity("delivered_bytes", "bytes", "application data delivered in order"),
    quantity("sent_bytes", "bytes", "bytes sent forward on the wire, headers and retransmissions included"),
    quantity("overhead_bytes", "bytes", "bytes sent forward that are not application data sent for the first time"),
    quantity("retransmitted_bytes", "bytes", "application data sent again"),
    quantity("back_channel_fraction", "", "bytes sent back over what the slowest hop back could carry"),
    quantity("arrival_delay_mean_s", "s", "mean time from a packet's sending to its arrival"),
    quantity("delay_mean_s", "s", "mean time from first transmission to delivery in order"),
    quantity("delay_p50_s", "s", "median time from first transmission to delivery in order"),
    quantity("delay_p99_s", "s", "time from first transmission to delivery in order that 99 % of the data stay below"),
    quantity("delivered_packets", "", "packets whose data was delivered in order"),
    quantity("loss_fraction", "", "packets sent forward that did not arrive"),
    quantity("timeouts", "", "expiries of the retransmission timer"),
    quantity("duration_s", "s", "measured time: from the end of the warm-up to the end of the flow or of the run"),
    quantity("peak_reorder_bytes", "bytes", "most data that the receiver held because earlier data was missing"),
    quantity("peak_send_buffer_bytes", "bytes", "most data that the sender held because it was not acknowledged"),
    quantity("transfer_time_mean_s", "s", "mean time from the start of a transfer to its complete arrival"),
    quantity("transfers_done", "", "transfers that arrived completely"),
    quantity("peak_queue_bytes", "bytes", "most bytes that waited in a queue forward"),
];

/// The names of all of them.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    QUANTITIES.iter().map(|quantity| quantity.name)
}
