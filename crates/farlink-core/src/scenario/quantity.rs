//! The measured quantities: columns of the result table.

/// A column of the result table that holds a measured number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Name of the column.
    pub name: &'static str,
    /// Unit, empty for counts and ratios.
    pub unit: &'static str,
    /// Description.
    pub description: &'static str,
    /// When there is no value; empty if there always is one.
    pub unknown: &'static str,
}

const fn quantity(
    name: &'static str,
    unit: &'static str,
    description: &'static str,
    unknown: &'static str,
) -> Quantity {
    Quantity { name, unit, description, unknown }
}

const NO_TIME: &str = "no time was measured: the flow ended before the warm-up, or never started";
const NO_CAPACITY: &str = "no time was measured (the flow ended before the warm-up, or never started), or a recorded rate was 0 all that time";
const NO_BUNDLE: &str = "in the rows of single flows, and if no hop is a bundle of lines or paths";
const NOT_DELIVERED: &str = "nothing was delivered";

/// All measured quantities, in the order of the table's columns.
pub const QUANTITIES: &[Quantity] = &[
    quantity("goodput_bps", "bit/s", "application data delivered in order, over `duration_s`", NO_TIME),
    quantity(
        "goodput_fraction",
        "",
        "goodput over what the hop forward that can carry least carries in the same time (of a recorded rate, its mean over that \
         time; of a bundle, all lines together, or all paths that do not stand by); 1 where more came out, as after a warm-up data may have passed that hop \
         before and waited behind a gap or in a later queue",
        NO_CAPACITY,
    ),
    quantity("delivered_bytes", "bytes", "application data delivered in order", ""),
    quantity(
        "sent_bytes",
        "bytes",
        "bytes that the sender put on the first hop, including headers, control packets and retransmissions",
        "",
    ),
    quantity(
        "overhead_bytes",
        "bytes",
        "bytes of `sent_bytes` that are not application data sent for the first time",
        "",
    ),
    quantity("retransmitted_bytes", "bytes", "application data sent again", ""),
    quantity(
        "skipped_bytes",
        "bytes",
        "application data that the transport gave up, so that later data was delivered without it",
        "",
    ),
    quantity(
        "discarded_bytes",
        "bytes",
        "application data delivered to a transfer that began anew later (`restart`): in `delivered_bytes` counts what was \
         delivered since",
        "",
    ),
    quantity(
        "lost_in_custody_bytes",
        "bytes",
        "application data that a gateway acknowledged to the source and that nobody holds any more: lost in a crash, or dropped \
         as a connection behind it gave up",
        "",
    ),
    quantity("peak_custody_bytes", "bytes", "most data of one flow that one gateway held; the warm-up counts", ""),
    quantity(
        "back_channel_fraction",
        "",
        "what one hop back has sent of the flow's packets, headers included, over what it can send in the same time: the slowest \
         hop, of several the first, or with gateways the hop between them. The time is from the flow's start or the end of the \
         warm-up, whichever is later, to the end of the run (which acknowledgements of the last byte belong to); a run that \
         ends before `duration_s` counts until this hop has sent what it holds. What the queue drops, and what was sent \
         before the end of the warm-up, does not count; of a bundle, what comes out of it counts",
        NO_CAPACITY,
    ),
    quantity(
        "arrival_delay_mean_s",
        "s",
        "mean time from a segment's first transmission to the arrival of the first copy",
        "nothing arrived",
    ),
    quantity(
        "delay_mean_s",
        "s",
        "mean time from a segment's first transmission to its delivery in order; of a datagram, to its arrival",
        NOT_DELIVERED,
    ),
    quantity("delay_p50_s", "s", "median of the delay of `delay_mean_s`, within 0.8 %", NOT_DELIVERED),
    quantity("delay_p99_s", "s", "the delay that 99 % of the segments stay below, within 0.8 %", NOT_DELIVERED),
    quantity("delivered_packets", "", "segments or datagrams delivered in order, each counted once", ""),
    quantity(
        "loss_fraction",
        "",
        "share of the packets sent since the end of the warm-up that a channel lost or a full queue dropped on the way forward, \
         before the end of the run",
        "nothing was sent",
    ),
    quantity(
        "mended_fraction",
        "",
        "share of the packets sent since the end of the warm-up that had wrong bits behind a hop forward which their code mended; \
         one that several hops damage counts once",
        "nothing was sent",
    ),
    quantity(
        "marked_fraction",
        "",
        "share of the packets sent since the end of the warm-up that a queue forward marked with congestion (RFC 3168)",
        "nothing was sent",
    ),
    quantity(
        "timeouts",
        "",
        "expiries of the sender's retransmission timer; in selective-repeat ARQ every frame has a timer of its own, so that \
         frames lost together count one by one",
        "",
    ),
    quantity(
        "duration_s",
        "s",
        "measured time; of one flow from its start or the end of the warm-up, whichever is later, to its last byte or the \
         end of the run; of several flows, or of transfers at random, from the end of the warm-up to the end of the run",
        "",
    ),
    quantity(
        "peak_reorder_bytes",
        "bytes",
        "most data that one receiver held because earlier data was missing; the warm-up counts",
        "",
    ),
    quantity(
        "peak_send_buffer_bytes",
        "bytes",
        "most data that one sender had sent and kept because it was not acknowledged; the warm-up counts",
        "",
    ),
    quantity(
        "transfer_time_mean_s",
        "s",
        "mean time from the start of a transfer to its last byte, over the transfers that ended after the warm-up",
        "no transfer ended",
    ),
    quantity(
        "transfers_done",
        "",
        "transfers of which the last byte was delivered after the warm-up",
        "the traffic has no end",
    ),
    quantity(
        "peak_queue_bytes",
        "bytes",
        "most bytes that waited in one queue forward, of all classes together (the packet being sent does not count); the warm-up \
         counts",
        "in the rows of single flows, and if a queue forward has neither a limit nor a constant rate",
    ),
    quantity(
        "all_lines_up_fraction",
        "",
        "share of the time that all lines of the path's first `bundle` were up; of `paths`, those that the near end took for up",
        NO_BUNDLE,
    ),
    quantity("any_line_up_fraction", "", "share of the time that at least one of them was up", NO_BUNDLE),
    quantity("lines_up_fraction", "", "share of the lines that was up, on average", NO_BUNDLE),
    quantity(
        "call_drops",
        "",
        "calls of these lines that dropped; of paths, how often the near end found one down",
        NO_BUNDLE,
    ),
    quantity(
        "out_of_order_fragments",
        "",
        "fragments (or packets, where they have no numbers) that arrived over some bundle after one that was sent later, both ways; the \
         warm-up counts",
        NO_BUNDLE,
    ),
    quantity(
        "requeued_packets",
        "",
        "packets that went back into a bundle's queue as a call dropped, or that paths were given again, both ways; the warm-up counts",
        NO_BUNDLE,
    ),
];

/// The names of all quantities.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    QUANTITIES.iter().map(|quantity| quantity.name)
}
