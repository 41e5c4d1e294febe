//! Every refusal gives the path, the fault and the remedy: the messages as users see them.
#![cfg(feature = "toml")]

use farlink_core::scenario::{expand, from_toml};

/// A valid scenario.
const FINE: &str = r#"
duration_s = 100
[link]
rate_bps = 1e6
delay_s = 0.25
queue_bytes = 100_000
[link.channel]
kind = "loss"
loss = 1e-3
[transport.sack]
kind = "tcp"
variant = "sack"
segment_bytes = 1000
[flow.bulk]
transport = "sack"
traffic = { kind = "bulk" }
"#;

/// Each case replaces lines of the scenario above.
const MISTAKES: &[(&str, &[(&str, &str)])] = &[
    ("unknown key at the top", &[("duration_s = 100", "duration = 100")]),
    ("unknown key in a table", &[("delay_s = 0.25", "delay_ms = 250")]),
    ("unknown key beside a kind", &[("loss = 1e-3", "loss = 1e-3\nlos = 1")]),
    ("unknown key in a transport", &[("segment_bytes = 1000", "segment_size = 1000")]),
    ("unknown key deep inside", &[("segment_bytes = 1000", "rto = { min_s = 1 }")]),
    ("a rate of TCP", &[("segment_bytes = 1000", "rate_bps = 1e6")]),
    ("a rate of UDP", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"udp\"\nrate_bps = 1e6")]),
    (
        "delayed acknowledgements of SCPS-TP",
        &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"scps-tp\"\ndelayed_ack = false")],
    ),
    ("a window of ARQ", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"arq\"\nwindow = 5")]),
    (
        "congestion control of STP",
        &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\ncongestion_control = \"none\"")],
    ),
    ("a kind in capitals", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"UDP\"")]),
    ("unknown kind", &[("kind = \"loss\"", "kind = \"lost\"")]),
    ("missing kind", &[("kind = \"loss\"", "")]),
    ("kind is no text", &[("kind = \"loss\"", "kind = 1")]),
    ("unknown variant", &[("variant = \"sack\"", "variant = \"new-reno\"")]),
    ("missing key", &[("rate_bps = 1e6", "")]),
    ("missing key beside a kind", &[("loss = 1e-3", "")]),
    ("text for a number", &[("rate_bps = 1e6", "rate_bps = \"1e6\"")]),
    ("text for true", &[("segment_bytes = 1000", "delayed_ack = \"yes\"")]),
    ("an acknowledgement timer in reverse", &[("segment_bytes = 1000", "delayed_ack_timeout_s = [0.2, 0.1]")]),
    ("an acknowledgement timer below zero", &[("segment_bytes = 1000", "delayed_ack_timeout_s = [-0.1, 0.2]")]),
    ("a slow acknowledgement timer", &[("segment_bytes = 1000", "delayed_ack_timeout_s = [0.2, 0.6]")]),
    ("an acknowledgement timer without range", &[("segment_bytes = 1000", "delayed_ack_timeout_s = [0.2, 0.2]")]),
    ("an acknowledgement timer of three", &[("segment_bytes = 1000", "delayed_ack_timeout_s = [0, 0.1, 0.2]")]),
    ("an acknowledgement timer of zero", &[("segment_bytes = 1000", "delayed_ack_timeout_s = 0")]),
    ("an acknowledgement timer in words", &[("segment_bytes = 1000", "delayed_ack_timeout_s = \"bsd\"")]),
    ("an acknowledgement timer as table", &[("segment_bytes = 1000", "delayed_ack_timeout_s = { least_s = 0.1 }")]),
    ("a table for a list", &[("duration_s = 100", "duration_s = 100\nengines = {}")]),
    ("a number for a table", &[("traffic = { kind = \"bulk\" }", "traffic = 1")]),
    ("negative rate", &[("rate_bps = 1e6", "rate_bps = -5")]),
    ("probability above one", &[("loss = 1e-3", "loss = 1.5")]),
    ("half a byte", &[("segment_bytes = 1000", "segment_bytes = 0.5")]),
    ("not a number", &[("loss = 1e-3", "loss = nan")]),
    ("duration of zero", &[("duration_s = 100", "duration_s = 0")]),
    ("endless traffic without a duration", &[("duration_s = 100", "")]),
    ("warm-up as long as the run", &[("duration_s = 100", "duration_s = 100\nmeasure.warmup_s = 100")]),
    ("no flow", &[("[flow.bulk]", ""), ("transport = \"sack\"", ""), ("traffic = { kind = \"bulk\" }", "")]),
    ("flow names a missing transport", &[("transport = \"sack\"", "transport = \"sac\"")]),
    ("flow is called all", &[("[flow.bulk]", "[flow.all]")]),
    ("dot in a name", &[("[flow.bulk]", "[flow.\"a.b\"]")]),
    ("link and path", &[("duration_s = 100", "duration_s = 100\npath = [\"a\"]")]),
    ("both queue limits", &[("queue_bytes = 100_000", "queue_bytes = 1\nqueue_packets = 1")]),
    (
        "both queue limits on the way back",
        &[("loss = 1e-3", "loss = 0\n[link.return]\nqueue_bytes = 1\nqueue_packets = 1")],
    ),
    ("a congestion control for a variant", &[("variant = \"sack\"", "variant = \"CUBIC\"")]),
    ("a variant for a congestion control", &[("variant = \"sack\"", "congestion_control = \"newreno\"")]),
    (
        "both thresholds of marking",
        &[("queue_bytes = 100_000", "ecn_threshold_bytes = 1000\necn_threshold_packets = 10")],
    ),
    (
        "a queue that is full before it marks",
        &[("queue_bytes = 100_000", "queue_packets = 9\necn_threshold_packets = 9")],
    ),
    (
        "a queue that is full before it marks on the way back",
        &[("loss = 1e-3", "loss = 0\n[link.return]\nqueue_bytes = 5e3\necn_threshold_bytes = 6e3")],
    ),
    ("a policer without a burst", &[("queue_bytes = 100_000", "policer = { rate_bps = 1e6 }")]),
    ("a burst in packets", &[("queue_bytes = 100_000", "policer = { rate_bps = 1e6, burst_packets = 5 }")]),
    ("a policer that passes nothing", &[("queue_bytes = 100_000", "policer = { rate_bps = 0, burst_bytes = 7500 }")]),
    (
        "a burst that is shorter than a packet",
        &[("queue_bytes = 100_000", "policer = { rate_bps = 1e6, burst_bytes = 1039 }")],
    ),
    (
        "a burst that is shorter than a datagram",
        &[
            ("queue_bytes = 100_000", "policer = { rate_bps = 1e6, burst_bytes = 700 }"),
            ("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"udp\""),
            ("kind = \"bulk\"", "kind = \"cbr\", rate_bps = 1e5, payload_bytes = 673"),
        ],
    ),
    (
        "a policer of the way back",
        &[("loss = 1e-3", "loss = 0\n[link.return]\npolicer = { rate_bps = 1e6, burst_bytes = 7500 }")],
    ),
    ("a class that is none", &[("[flow.bulk]", "[flow.bulk]\nclass = 8")]),
    ("half a class", &[("[flow.bulk]", "[flow.bulk]\nclass = 0.5")]),
    ("a service that is none", &[("queue_bytes = 100_000", "service = \"priority\"")]),
    ("a service that is a list", &[("queue_bytes = 100_000", "service = [3, 1]")]),
    ("weights without a table's key", &[("queue_bytes = 100_000", "service = { weight = [3, 1] }")]),
    ("no weights", &[("queue_bytes = 100_000", "service = { weights = [] }")]),
    ("more weights than classes", &[("queue_bytes = 100_000", "service = { weights = [1, 1, 1, 1, 1, 1, 1, 1, 1] }")]),
    ("a weight below zero", &[("queue_bytes = 100_000", "service = { weights = [3, -1] }")]),
    ("a weight of zero", &[("queue_bytes = 100_000", "service = { weights = [3, 0] }")]),
    ("a weight in words", &[("queue_bytes = 100_000", "service = { weights = [\"low\", 1] }")]),
    (
        "weights of the way back without classes",
        &[("loss = 1e-3", "loss = 0\n[link.return]\nservice = { weights = [] }")],
    ),
    (
        "a class without a weight",
        &[("queue_bytes = 100_000", "service = { weights = [3, 1] }"), ("[flow.bulk]", "[flow.bulk]\nclass = 2")],
    ),
    (
        "a class without a weight on the way back",
        &[
            ("loss = 1e-3", "loss = 0\n[link.return]\nservice = { weights = [\"strict\"] }"),
            ("[flow.bulk]", "[flow.bulk]\nclass = 2"),
        ],
    ),
    ("marks without a reaction", &[("segment_bytes = 1000", "congestion_control = \"none\"\necn = true")]),
    (
        "a window that does not fit its field",
        &[("segment_bytes = 1000", "window_scaling = false\nmax_window_segments = 66\nsegment_bytes = 1000")],
    ),
    ("a sender that nothing bounds", &[("segment_bytes = 1000", "congestion_control = \"none\"")]),
    ("no retransmission at all", &[("segment_bytes = 1000", "max_retransmissions = 0")]),
    ("patience beside a duration", &[("duration_s = 100", "duration_s = 100\ngive_up_after_s = 50")]),
    ("engine unknown: ns-4", &[("duration_s = 100", "duration_s = 100\nengines = [\"packet\", \"ns-4\"]")]),
    (
        "a key that the fluid engine does not support",
        &[("duration_s = 100", "engines = [\"fluid\"]"), ("segment_bytes = 1000", "pacing = true")],
    ),
    (
        "a key that no closed form supports for this kind of transport",
        &[("duration_s = 100", "engines = [\"model\"]"), ("variant = \"sack\"", "pacing = true")],
    ),
    (
        "endless traffic without a duration for one of two engines",
        &[("duration_s = 100", "engines = [\"fluid\", \"packet\"]")],
    ),
    (
        "a longer round trip of nobody",
        &[("duration_s = 100", "duration_s = 100\nfluid.extra_round_trip_s = { bluk = 0.1 }")],
    ),
    ("unknown option of the fluid engine", &[("duration_s = 100", "duration_s = 100\nfluid.timeout = true")]),
    ("unknown engine", &[("duration_s = 100", "duration_s = 100\nengines = [\"pocket\"]")]),
    ("unknown series", &[("duration_s = 100", "duration_s = 100\nmeasure.series = [\"cwmd\"]")]),
    (
        "unknown quantity",
        &[("duration_s = 100", "duration_s = 100\nprecision = { quantity = \"goodput\", ci = 0.01 }")],
    ),
    (
        "runs and precision",
        &[("duration_s = 100", "duration_s = 100\nruns = 3\nprecision = { quantity = \"goodput_bps\", ci = 0.01 }")],
    ),
    ("rate trace without a file", &[("rate_bps = 1e6", "rate_bps = { kind = \"rate-trace\" }")]),
    ("rate trace with an unknown key", &[("rate_bps = 1e6", "rate_bps = { kind = \"rate-trace\", fil = \"x\" }")]),
    ("transfers in both forms", &[("{ kind = \"bulk\" }", "{ kind = \"transfers\", list = [], bytes = 1 }")]),
    (
        "unknown key in a list of transfers",
        &[("{ kind = \"bulk\" }", "{ kind = \"transfers\", list = [{ at_s = 0, bytes = 1 }, { at = 1, bytes = 1 }] }")],
    ),
    ("window past the sequence numbers", &[("segment_bytes = 1000", "max_window_segments = 1e9")]),
    ("STP by rate without a rate", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\ncongestion = \"rate\"")]),
    ("STP with a window and a rate", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\nrate_bps = 1e6")]),
    ("STP that never asks", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\npoll_interval_s = 100")]),
    ("STP that gives up after the end", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\ngive_up_s = 200")]),
    (
        "STP with a window of nothing",
        &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\nmax_window_segments = 0")],
    ),
    (
        "STP with longer STATs than packets",
        &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\nstat_ranges = 1e4")],
    ),
    ("PRR without SACK", &[("variant = \"sack\"", "variant = \"reno\"\nprr = true")]),
    ("DSACK without SACK", &[("variant = \"sack\"", "variant = \"none\"\ndsack = true")]),
    ("tail loss probe without RACK", &[("segment_bytes = 1000", "tail_loss_probe = true")]),
    (
        "a key for duplicate acknowledgements with RACK",
        &[("variant = \"sack\"", "variant = \"rack\"\nlimited_transmit = true")],
    ),
    ("a gain of what is not computed", &[("segment_bytes = 1000", "rto = { algorithm = \"rfc793\", k = 4 }")]),
    (
        "an estimate that is forgotten at a word",
        &[("segment_bytes = 1000", "rto = { forget_above_backoff = \"off\" }")],
    ),
    ("an estimate that is forgotten at once", &[("segment_bytes = 1000", "rto = { forget_above_backoff = 0 }")]),
    ("a timer without end", &[("segment_bytes = 1000", "rto = { initial_s = 1e-12 }")]),
    ("POLLs without end", &[("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"\npoll_interval_s = 1e-12")]),
    ("minimum above maximum", &[("segment_bytes = 1000", "rto = { minimum_s = 70 }")]),
    ("initial RTO above maximum", &[("segment_bytes = 1000", "rto = { initial_s = 70 }")]),
    ("constants of another congestion control", &[("segment_bytes = 1000", "cubic = { beta = 0.8 }")]),
    (
        "Hybla's constant with Vegas",
        &[("segment_bytes = 1000", "congestion_control = \"vegas\"\nhybla = { rtt0_s = 0.05 }")],
    ),
    (
        "HyStart++ with a control that has none",
        &[("segment_bytes = 1000", "congestion_control = \"hybla\"\nhystart = true")],
    ),
    ("alpha above beta", &[("segment_bytes = 1000", "congestion_control = \"vegas\"\nvegas = { alpha_segments = 5 }")]),
    (
        "beta that leaves everything",
        &[("segment_bytes = 1000", "congestion_control = \"cubic\"\ncubic = { beta = 1 }")],
    ),
    ("acknowledgement longer than a packet", &[("segment_bytes = 1000", "ack_bytes = 1e9")]),
    ("no room for options", &[("segment_bytes = 1000", "segment_bytes = 5\nheader_bytes = 65_530")]),
    (
        "timestamps make it too long",
        &[("segment_bytes = 1000", "segment_bytes = 65_490\ntimestamps = true\nmax_window_segments = 10")],
    ),
    (
        "rates measured without selective acknowledgements",
        &[("variant = \"sack\"", "variant = \"newreno\"\ncongestion_control = \"bbr\"")],
    ),
    ("rates measured and not paced", &[("segment_bytes = 1000", "congestion_control = \"bbr3\"\npacing = false")]),
    ("constants of another congestion control", &[("segment_bytes = 1000", "bbr = { probe_rtt_s = 1 }")]),
    ("a rate of nothing", &[("segment_bytes = 1000", "congestion_control = \"bbr3\"\nbbr = { pacing_margin = 1 }")]),
    ("a constant out of range", &[("segment_bytes = 1000", "congestion_control = \"bbr\"\nbbr = { probe_rtt_s = 0 }")]),
    (
        "SCPS-TP without any bound",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\ncongestion_control = \"none\"",
        )],
    ),
    (
        "SCPS-TP with two rates",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\ncongestion_control = \"bbr\"\nrate_bps = 1e5",
        )],
    ),
    (
        "SCPS-TP: given up by one side only",
        &[("kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000", "kind = \"scps-tp\"\nmax_transmissions = 3")],
    ),
    (
        "SCPS-TP: no transmission at all",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\nmax_transmissions = 0\nhold_time_s = 1",
        )],
    ),
    (
        "SCPS-TP: no copy",
        &[("kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000", "kind = \"scps-tp\"\ncopies = 0")],
    ),
    (
        "SCPS-TP: distance of a single copy",
        &[("kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000", "kind = \"scps-tp\"\ncopy_spacing_s = 0.1")],
    ),
    (
        "SCPS-TP: too many copies",
        &[("kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000", "kind = \"scps-tp\"\ncopies = 101")],
    ),
    (
        "SCPS-TP: compressed header above the plain one",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\nheader_compression = true\ncompressed_header_bytes = 41",
        )],
    ),
    (
        "SCPS-TP: compressed acknowledgement above the plain one",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\nheader_compression = true\nack_bytes = 29",
        )],
    ),
    (
        "SCPS-TP: size of what is not compressed",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\ncompressed_ack_bytes = 30",
        )],
    ),
    (
        "SCPS-TP: bit vector too long",
        &[("kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000", "kind = \"scps-tp\"\nsnack_vector_bytes = 23")],
    ),
    (
        "SCPS-TP: bit vector of what has none",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\nvariant = \"sack\"\nsnack_vector_bytes = 8",
        )],
    ),
    (
        "SCPS-TP: nobody signals",
        &[("kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000", "kind = \"scps-tp\"\ncorruption_hold_s = 1")],
    ),
    (
        "SCPS-TP: no acknowledgements",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\nack_every_segments = 65535",
        )],
    ),
    (
        "SCPS-TP: window past the sequence numbers",
        &[(
            "kind = \"tcp\"\nvariant = \"sack\"\nsegment_bytes = 1000",
            "kind = \"scps-tp\"\nmax_window_segments = 1e9",
        )],
    ),
    ("far too large", &[("rate_bps = 1e6", "rate_bps = 1e300")]),
    ("not TOML", &[("duration_s = 100", "duration_s : 100")]),
];

/// Each grid is appended to the scenario above.
const GRIDS: &[(&str, &str)] = &[
    ("misspelt last name", "[grid]\n\"link.channel.los\" = [1e-3]"),
    ("misspelt table", "[grid]\n\"link.chanel.loss\" = [1e-3]"),
    ("unlike anything", "[grid]\n\"link.qqq\" = [1e-3]"),
    ("missing transport", "[grid]\n\"transport.sak.segment_bytes\" = [500]"),
    ("transport without a key", "[grid]\n\"transport.reno\" = [{ kind = \"tcp\" }]"),
    ("missing table", "[grid]\n\"link.return.channel.loss\" = [0.1]"),
    ("below a number", "[grid]\n\"link.rate_bps.x\" = [1]"),
    ("value out of range", "[grid]\n\"link.channel.loss\" = [0.1, 1.5]"),
    ("value of the wrong type", "[grid]\n\"link.rate_bps\" = [1e6, \"fast\"]"),
    ("part of a value is wrong", "[grid]\n\"link.channel\" = [{ kind = \"loss\", loss = 2 }]"),
    ("contradiction at one point", "[grid]\n\"measure.warmup_s\" = [0, 200]"),
    (
        "contradiction at some combinations",
        "[grid]\n\"duration_s\" = [100, 20]\n\"link.delay_s\" = [0.1, 0.2]\n\"measure.warmup_s\" = [0, 30]",
    ),
    ("contradiction at the only value", "[grid]\n\"link.delay_s\" = [0.1, 0.2]\n\"measure.warmup_s\" = [200]"),
    (
        "contradiction of what does not vary",
        "[grid]\n\"link.channel.loss\" = [0.1, 0.2]\n\"seed\" = [1]\n[transport.other]\nkind = \"tcp\"\nvariant = \"reno\"\nprr = true",
    ),
    ("no list", "[grid]\n\"link.channel.loss\" = 0.1"),
    ("empty list", "[grid]\n\"link.channel.loss\" = []"),
    ("empty name", "[grid]\n\"link..loss\" = [1]"),
    ("zip of unequal lengths", "[[grid_zip]]\n\"link.channel.loss\" = [0, 1]\n\"link.rate_bps\" = [1, 2, 3]"),
    ("varies twice", "[grid]\n\"link.rate_bps\" = [1, 2]\n[[grid_zip]]\n\"link.rate_bps\" = [1, 2]"),
    ("a list, not a table", "[grid]\n\"measure.series.x\" = [1]"),
];

/// Replacements of the channel above.
const CHANNELS: &[(&str, &str)] = &[
    ("key of another form", "{ kind = \"gilbert-elliott\", p_good_to_bad = 0.1, p_bad_to_good = 0.5, ber_bad = 0.1 }"),
    ("probability above one", "{ kind = \"gilbert-elliott\", p_good_to_bad = 1.1, p_bad_to_good = 0.5 }"),
    ("outage of no form", "{ kind = \"outage\", down_s = 1 }"),
    ("outage without an end", "{ kind = \"outage\", schedule = [[1]] }"),
    ("outage that ends before it starts", "{ kind = \"outage\", schedule = [[2, 1]] }"),
    ("negative instant", "{ kind = \"outage\", schedule = [[0, 1], [2, -3]] }"),
    ("offset is a strange word", "{ kind = \"packet-trace\", file = \"x.npz\", offset = \"anywhere\" }"),
    ("offset is negative", "{ kind = \"packet-trace\", file = \"x.npz\", offset = -1 }"),
    ("trace without a file", "{ kind = \"bit-trace\" }"),
    ("inside a chain", "{ kind = \"chain\", stages = [{ kind = \"none\" }, { kind = \"ber\", ber = 2 }] }"),
];

/// `[link.coding]` after the link's channel.
/// What stands in `[link.bundle]` of the scenario above, without its channel.
const BUNDLES: &[(&str, &str)] = &[
    ("no lines", ""),
    ("no line", "lines = 0"),
    ("lines twice", "lines = 8\nmembers = [{ count = 2 }]"),
    ("too many lines", "lines = 1000"),
    ("too many lines of all kinds", "members = [{ count = 200 }, { count = 57 }]"),
    ("a peer to whom nothing goes again", "lines = 8\npeer = \"rfc1990\""),
    ("packets that the receiver drops", "lines = 8\nmrru_bytes = 1039"),
    ("headers that the receiver drops", "lines = 8\nmrru_bytes = 40\nmin_fragment_bytes = 40"),
    ("unknown key", "lines = 8\nline = 1"),
    ("unknown scheduler", "lines = 8\nscheduler = \"fastest\""),
    ("fragments without numbers", "lines = 8\nheader = \"none\"\npackets = \"fragmented\""),
    ("patience without numbers", "lines = 8\nheader = \"none\"\nreorder_timeout_s = 1"),
    ("patience of a word", "lines = 8\nreorder_timeout_s = \"sometimes\""),
    ("no patience at all", "lines = 8\nreorder_timeout_s = 0"),
    ("a serial port of another scheduler", "lines = 8\ntty_bytes = 4096"),
    ("a port that Linux does not look at", "lines = 8\nscheduler = \"linux\"\nserial_bytes = 4096"),
    (
        "a modem that Linux does not look at",
        "lines = 8\nscheduler = \"linux\"\nmodem_bytes = 4096\nserial_bytes = 4096",
    ),
    ("a timer in Linux", "lines = 8\nscheduler = \"linux\"\nreorder_timeout_s = 10"),
    ("Linux without numbers", "lines = 8\nscheduler = \"linux\"\nheader = \"none\""),
    ("copies without numbers", "lines = 8\nheader = \"none\"\nscheduler = \"redundant\""),
    ("copies of fragments", "lines = 8\npackets = \"fragmented\"\nscheduler = \"redundant\""),
    ("fragments longer than packets", "lines = 8\nmrru_bytes = 500\nmin_fragment_bytes = 501"),
    ("a port before a modem without end", "lines = 8\nserial_bytes = 4096"),
    ("an ARQ that never ends", "lines = 8\narq = { frame_bytes = 60, window_frames = 4, loss = 1 }"),
    ("requeue without drops", "lines = 8\non_drop = \"requeue\""),
    ("drops looked at without any", "lines = 8\nscheduler = \"drop-aware\""),
    ("calls without a length", "lines = 8\ncalls = { redial = { distribution = \"constant\", value_s = 1 } }"),
    (
        "calls that drop too often",
        "lines = 8\n[link.bundle.calls]\nup = { distribution = \"constant\", value_s = 1e-7 }\n\
      redial = { distribution = \"constant\", value_s = 1e-7 }",
    ),
    (
        "calls that never connect",
        "lines = 8\n[link.bundle.calls]\nup = { distribution = \"constant\", value_s = 1 }\n\
      redial = { distribution = \"constant\", value_s = 1 }\nfailure = 1",
    ),
    ("recorded calls of other lines", "lines = 8\ncalls = { schedule = [[[1, 2]]] }"),
    ("recorded calls out of order", "lines = 2\ncalls = { schedule = [[], [[3, 4], [1, 2]]] }"),
    ("recorded calls with a primary", "lines = 1\ncalls = { schedule = [[]], primary = \"ends-bundle\" }"),
    ("a pause beside a recording", "lines = 1\ncalls = { schedule = [[]], idle_s = 1 }"),
    ("numbers in one direction", "lines = 8\nreturn = { header = \"none\" }"),
    ("numbers in the other direction", "lines = 8\nheader = \"none\"\nreturn = { header = \"short\" }"),
    ("fragments longer than the packets of one direction", "lines = 8\nreturn = { mrru_bytes = 63 }"),
    ("old numbers for Linux", "lines = 1\ncalls = { schedule = [[]] }\non_drop = \"requeue\"\nreceiver = \"linux\""),
    ("Linux sends again", "lines = 1\nscheduler = \"linux\"\ncalls = { schedule = [[]] }\non_drop = \"requeue\""),
    ("set-up beside a recording", "lines = 1\ncalls = { schedule = [[]], ppp = { lcp_restart_s = 3 } }"),
    ("echoes beside a recording", "lines = 1\ncalls = { schedule = [[]], echo = {} }"),
    ("an unknown option of pppd", "lines = 8\ncalls = { ppp = { lcp_echo_interval_s = 30 } }"),
    ("an unknown authentication", "lines = 8\ncalls = { ppp = { authentication = \"chap\" } }"),
    (
        "a set-up with a hasty timer",
        "lines = 8\n[link.bundle.calls]\nup = { distribution = \"constant\", value_s = 10 }\nppp = { lcp_restart_s = 1e-7 }",
    ),
    (
        "a set-up with long frames",
        "lines = 8\n[link.bundle.calls]\nup = { distribution = \"constant\", value_s = 10 }\nppp = { frame_bytes = 1e7 }",
    ),
    (
        "echoes more frequent than their answers",
        "lines = 8\n[link.bundle.calls]\nup = { distribution = \"constant\", value_s = 10 }\nppp = {}\n\
      echo = { interval_s = 0.1, failures = 2 }",
    ),
    (
        "echoes that notice nothing",
        "lines = 8\n[link.bundle.calls]\nup = { distribution = \"constant\", value_s = 10 }\nppp = {}\n\
      echo = { failures = 1e6 }",
    ),
    ("duplicates without drops", "lines = 8\non_drop = \"duplicate-acks\""),
    ("a member's calls alone", "members = [{ up = { distribution = \"constant\", value_s = 10 } }]"),
    (
        "a member's calls beside a recording",
        "members = [{ redial = { distribution = \"constant\", value_s = 10 } }]\ncalls = { schedule = [[]] }",
    ),
    ("a member's port before a modem without end", "members = [{}, { serial_bytes = 4096 }]"),
    ("a member's ARQ that never ends", "members = [{ arq = { frame_bytes = 60, window_frames = 4, loss = 1 } }]"),
    ("a channel on top", "lines = 8\n[link.channel]\nkind = \"loss\"\nloss = 0.1"),
    ("another channel back", "lines = 8\n[link.return]\nchannel = { kind = \"loss\", loss = 0.1 }"),
    ("another delay back", "lines = 8\n[link.return]\ndelay_s = 1"),
    ("a recording as the rate back", "lines = 8\n[link.return]\nrate_bps = { kind = \"rate-trace\", file = \"x\" }"),
    ("no rate back", "members = [{ return_rate_bps = 0 }]"),
];

const CODINGS: &[(&str, &str)] = &[
    ("no code", "ebn0_db = 4"),
    ("no Eb/N0", "code = { kind = \"uncoded\" }"),
    ("Eb/N0 and C/N0", "ebn0_db = 4\ncn0_dbhz = 64\ncode = { kind = \"uncoded\" }"),
    ("Eb/N0 out of range", "ebn0_db = 400\ncode = { kind = \"uncoded\" }"),
    ("C/N0 out of range", "cn0_dbhz = 20\ncode = { kind = \"uncoded\" }"),
    ("misspelt Eb/N0", "ebno_db = 4\ncode = { kind = \"uncoded\" }"),
    ("unknown modulation", "ebn0_db = 4\nmodulation = \"16psk\"\ncode = { kind = \"uncoded\" }"),
    ("unknown decision", "ebn0_db = 4\ndecision = \"hart\"\ncode = { kind = \"uncoded\" }"),
    ("unknown errors", "ebn0_db = 4\nerrors = \"burst\"\ncode = { kind = \"uncoded\" }"),
    ("unknown code", "ebn0_db = 4\ncode = { kind = \"convolution\", generators = \"171,133\" }"),
    ("misspelt key of a code", "ebn0_db = 4\ncode = { kind = \"convolutional\", generator = \"171,133\" }"),
    (
        "generators too long for K",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", constraint_length = 6 }",
    ),
    (
        "generators too short for K",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", constraint_length = 8 }",
    ),
    ("K of 16", "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", constraint_length = 16 }"),
    ("generators not octal", "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"189,133\" }"),
    ("generators not text", "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = 171 }"),
    ("no generators", "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"\" }"),
    ("catastrophic generators", "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"6,5\" }"),
    ("unknown rate", "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", rate = \"4/5\" }"),
    (
        "usual puncturing of three generators",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"133,145,175\", rate = \"3/4\" }",
    ),
    (
        "rate and pattern",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", rate = \"3/4\", puncture = \"110/101\" }",
    ),
    (
        "rows of unequal length",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", puncture = \"110/10\" }",
    ),
    (
        "a row too many",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", puncture = \"11/10/11\" }",
    ),
    (
        "too little is sent",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", puncture = \"110/001\" }",
    ),
    (
        "far too long a trace-back",
        "ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\", traceback_bits = 1e6 }",
    ),
    ("codeword too long", "ebn0_db = 4\ncode = { kind = \"reed-solomon\", n = 256, k = 223 }"),
    ("no parity", "ebn0_db = 4\ncode = { kind = \"reed-solomon\", n = 255, k = 255 }"),
    ("no such code of CCSDS", "ebn0_db = 4\ncode = { kind = \"reed-solomon\", n = 255, k = 235, basis = \"ccsds\" }"),
    ("interleaving too deep", "ebn0_db = 4\ncode = { kind = \"reed-solomon\", n = 255, k = 223, interleaving = 1000 }"),
    ("groups too large", "ebn0_db = 4\ncode = { kind = \"erasure\", k = 250, m = 10, block_bytes = 1000 }"),
    ("blocks too large", "ebn0_db = 4\ncode = { kind = \"erasure\", k = 25, m = 10, block_bytes = 1e6 }"),
    (
        "an erasure code over another",
        "ebn0_db = 4\ncode = { kind = \"erasure\", k = 25, m = 10, block_bytes = 1e3, over = { kind = \"erasure\", k = 25, m = 10, block_bytes = 1e3 } }",
    ),
    (
        "inner and outer exchanged",
        "ebn0_db = 4\ncode = { kind = \"concatenated\", inner = { kind = \"reed-solomon\", n = 255, k = 223 }, outer = { kind = \"convolutional\", generators = \"171,133\" } }",
    ),
    (
        "catastrophic inner code",
        "ebn0_db = 4\ncode = { kind = \"concatenated\", outer = { kind = \"reed-solomon\", n = 255, k = 223 }, inner = { kind = \"convolutional\", generators = \"6,5\" } }",
    ),
    ("no effort", "ebn0_db = 4\neffort = { events = 0 }\ncode = { kind = \"uncoded\" }"),
];

fn refusal(name: &str, text: &str) -> String {
    let error = from_toml(text).and_then(|scenario| expand(&scenario)).expect_err(name);
    format!("# {name}\n{}\n{}\n\n", error.message(), error.remedy)
}

#[test]
fn mistakes() {
    let said: String = MISTAKES
        .iter()
        .map(|(name, changes)| {
            let text = changes.iter().fold(FINE.to_owned(), |text, (line, other)| {
                assert!(text.contains(line), "{name}: {line:?} is not in the scenario");
                text.replacen(line, other, 1)
            });
            refusal(name, &text)
        })
        .collect();
    insta::assert_snapshot!(said);
}

#[test]
fn channels() {
    let said: String = CHANNELS
        .iter()
        .map(|(name, channel)| {
            let (before, rest) = FINE.split_once("[link.channel]").expect("the scenario has a channel");
            let (_, after) = rest.split_once("[transport.sack]").expect("the scenario has a transport");
            refusal(name, &format!("{before}channel = {channel}\n[transport.sack]{after}"))
        })
        .collect();
    insta::assert_snapshot!(said);
}

#[test]
fn bundles() {
    let with = |bundle: &str| {
        let (before, rest) = FINE.split_once("[link.channel]").expect("the scenario has a channel");
        let (_, after) = rest.split_once("[transport.sack]").expect("the scenario has a transport");
        format!("{before}[link.bundle]\n{bundle}\n[transport.sack]{after}")
    };
    let fine = with(
        "members = [{ count = 7 }, { rate_bps = 9600, return_rate_bps = 1200, delay_s = 0.3 }]\n[link.return]\nrate_bps = 1000",
    );
    from_toml(&fine).and_then(|scenario| expand(&scenario)).expect("it is fine");
    let mut said: String = BUNDLES.iter().map(|(name, bundle)| refusal(name, &with(bundle))).collect();
    let calls =
        "up = { distribution = \"constant\", value_s = 10 }\nredial = { distribution = \"constant\", value_s = 1 }";
    let told = with(&format!("lines = 8\non_drop = \"duplicate-acks\"\n[link.bundle.calls]\n{calls}\n"));
    from_toml(&told).and_then(|scenario| expand(&scenario)).expect("it is fine");
    let unheard = told.replace("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"stp\"");
    said += &refusal("duplicates that nobody hears", &unheard);
    let datagrams = with("lines = 8\nmrru_bytes = 300")
        .replace("kind = \"tcp\"\nvariant = \"sack\"", "kind = \"udp\"")
        .replace("{ kind = \"bulk\" }", "{ kind = \"cbr\", rate_bps = 1000, payload_bytes = 272 }");
    from_toml(&datagrams).and_then(|scenario| expand(&scenario)).expect("datagrams of 300 bytes fit");
    said += &refusal("datagrams that the receiver drops", &datagrams.replace("= 272", "= 273"));
    insta::assert_snapshot!(said);
}

#[test]
fn codings() {
    let coded =
        |coding: &str| FINE.replacen("[transport.sack]", &format!("[link.coding]\n{coding}\n[transport.sack]"), 1);
    let mut said: String = CODINGS.iter().map(|(name, coding)| refusal(name, &coded(coding))).collect();

    let fine = coded("ebn0_db = 4\ncode = { kind = \"convolutional\", generators = \"171,133\" }");
    from_toml(&fine).and_then(|scenario| expand(&scenario)).expect("it is fine");
    said += &refusal("Eb/N0 of a grid", &format!("{fine}[grid]\n\"link.coding.ebn0_db\" = [4, 400]"));
    said += &refusal("misspelt in a grid", &format!("{fine}[grid]\n\"link.coding.ebn0\" = [4, 5]"));
    said += &refusal(
        "a code of a grid",
        &format!("{fine}[grid]\n\"link.coding.code.generators\" = [\"171,133\", \"17,13,6\", \"6,5\"]"),
    );
    let varying = fine.replacen("ebn0_db = 4", "cn0_dbhz = 64", 1);
    let trace = varying.replacen("rate_bps = 1e6", "rate_bps = { kind = \"rate-trace\", file = \"x.npz\" }", 1);
    said += &refusal("C/N0 and a rate that varies", &trace);
    let back =
        fine.replacen("[transport.sack]", "[link.return.coding]\ncode = { kind = \"uncoded\" }\n[transport.sack]", 1);
    said += &refusal("the way back", &back);
    let lost = fine.replacen("kind = \"loss\"\nloss = 1e-3", "kind = \"bit-trace\"\nfile = \"x.npz\"", 1).replacen(
        "ebn0_db = 4",
        "",
        1,
    );
    said += &refusal("behind a trace", &lost);
    let channel = "kind = \"coded\"\ncn0_dbhz = 64\ncode = { kind = \"uncoded\" }";
    let trace = FINE.replacen("rate_bps = 1e6", "rate_bps = { kind = \"rate-trace\", file = \"x.npz\" }", 1);
    said += &refusal(
        "C/N0 in a channel and a rate that varies",
        &trace.replacen("kind = \"loss\"\nloss = 1e-3", channel, 1),
    );
    insta::assert_snapshot!(said);
}

#[test]
fn grids() {
    let said: String = GRIDS.iter().map(|(name, grid)| refusal(name, &format!("{FINE}{grid}\n"))).collect();
    insta::assert_snapshot!(said);
}

#[test]
fn a_grid_of_too_many_points() {
    let values: Vec<_> = (1..=400).map(|n| n.to_string()).collect();
    let values = values.join(", ");
    let grid = format!("[grid]\n\"link.rate_bps\" = [{values}]\n\"link.delay_s\" = [{values}]");
    insta::assert_snapshot!(refusal("too many points", &format!("{FINE}{grid}\n")));
}

#[test]
fn paths() {
    let hops = |path: &str| {
        let hop = |name: &str| format!("[hop.{name}]\nrate_bps = 1e6\ndelay_s = 0.1\n");
        let rest = FINE.split("[transport.sack]").nth(1).expect("the scenario has a transport");
        format!("duration_s = 1\n{path}\n{}{}[transport.sack]{rest}", hop("access"), hop("space"))
    };
    let said: String = [
        ("missing hop", "path = [\"access\", \"spcae\"]"),
        ("hop twice", "path = [\"access\", \"access\"]"),
        ("empty path", "path = []"),
        ("no path", ""),
    ]
    .map(|(name, path)| refusal(name, &hops(path)))
    .concat();
    insta::assert_snapshot!(said);
}
