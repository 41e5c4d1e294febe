"""The tables of a scenario: a page of the reference each, `docs/scenario_pages.py`."""

from __future__ import annotations

# Heading, place in the schema, where it stands in a scenario, what is said of it.
# A key that holds another section's table points there.
SECTIONS = (
    ("The scenario", "", "", "Keys at the top of the file."),
    ("What is measured", "Measure", "measure", "Table `[measure]`."),
    ("What it may cost", "Limits", "limits", "Table `[limits]`. [How it is estimated](../../design/estimate.md)."),
    ("The stopping rule", "Precision", "precision", "Table `precision`, instead of `runs`."),
    (
        "The fluid engine",
        "Fluid",
        "fluid",
        'Table `[fluid]`, for `engines = ["fluid"]`; others pass over it. [How it works](../../concepts/fluid-engine.md).',
    ),
    ("A hop", "Hop", "link", "Table `[link]`, a path of one hop, or `[hop.NAME]` for each name of `path`."),
    ("The way back", "Return", "link.return", "Table `[link.return]` or `[hop.NAME.return]`."),
    (
        "A policer",
        "PolicerConfig",
        "link.policer",
        "Table `policer` of a hop. [Where it stands](../../concepts/packet-engine.md#what-a-hop-does).",
    ),
    (
        "Gateways at the ends of a hop",
        "Gateway",
        "hop.NAME.gateway",
        "Table `[hop.NAME.gateway]` of a hop that is neither the first nor the last of `path`; `gateway = true` takes all "
        "defaults. "
        "[What they promise](../../design/gateways.md).",
    ),
    (
        "Service by weight",
        "Weights",
        "link.service",
        "Table `service` of a hop or of its way back, instead of a name. [Who waits, who is dropped](../../design/classes.md).",
    ),
    ("A rate that varies", "RateKind", "link.rate_bps", "Instead of a number for `rate_bps`, forward or back."),
    ("A delay that varies", "DelayKind", "link.delay_s", "Instead of a number for `delay_s`, forward or back."),
    ("A channel", "ChannelKind", "link.channel", "Table `channel` of a hop or of its way back. A frame is a packet on a link."),
    (
        "A bundle of lines",
        "BundleConfig",
        "link.bundle",
        "Table `[link.bundle]` or `[hop.NAME.bundle]`. [How it works](../../design/multilink.md).",
    ),
    ("Lines of one kind", "Member", "link.bundle.members", "Each table of `members` of a bundle."),
    (
        "What the return direction negotiates",
        "BundleReturn",
        "link.bundle.return",
        "Table `return` of a bundle.",
    ),
    ("Repetition on a line", "LinkArq", "link.bundle.arq", "Table `arq` of a bundle."),
    ("A line that changes", "ArqChange", "link.bundle.arq.changes", "Each table of `changes` of the `arq` of a bundle."),
    ("Calls that drop", "CallsConfig", "link.bundle.calls", "Table `[link.bundle.calls]`."),
    ("Set-up by PPP", "PppConfig", "link.bundle.calls.ppp", "Table `ppp` of the calls of a bundle."),
    ("Echoes of PPP", "EchoConfig", "link.bundle.calls.echo", "Table `echo` of the calls of a bundle."),
    (
        "A bundle of IP paths",
        "Paths",
        "link.paths",
        "Table `[link.paths]` or `[hop.NAME.paths]`. [How it works](../../design/ip-paths.md#in-the-simulator).",
    ),
    ("A path of a bundle", "PathMember", "link.paths.members", "Each table of `members` of a bundle of IP paths."),
    ("The way back of a path", "PathReturn", "link.paths.members.return", "Table `return` of a path of a bundle."),
    ("A path unplugged", "Unplugged", "link.paths.members.unplugged", "Each table of `unplugged` of a path of a bundle."),
    ("A class over paths", "PathClass", "link.paths.classes", "Each table of `classes` of a bundle of IP paths."),
    ("Limits of a bundle of IP paths", "PathLimits", "link.paths.limits", "Table `[link.paths.limits]`."),
    (
        "A time at random",
        "RandomDuration",
        "link.channel.up",
        'Table `up` or `redial` of a channel of `kind = "call-drops"`, or of the calls of a bundle.',
    ),
    ("A receiver of light", "Receiver", "link.channel.receiver", 'Table `receiver` of a channel of `kind = "fading"`.'),
    (
        "Modulation and coding",
        "Coding",
        "link.coding",
        'Table `[link.coding]`, `[link.return.coding]`, or those of `[hop.NAME]`; also a channel, `kind = "coded"`.',
    ),
    ("A code", "CodeKind", "link.coding.code", "Table `code` of a coding, or `outer`, `inner` or `over` of another code."),
    ("How error events are collected", "Effort", "link.coding.effort", "Table `effort` of a coding."),
    (
        "A transport",
        "TransportConfig",
        "transport.NAME",
        "Table `[transport.NAME]`. Headers and payload of a packet have at most "
        "65,535 bytes together; a TCP window holds less than 2 GiB.",
    ),
    ("The retransmission timer", "RtoConfig", "transport.NAME.rto", "Table `[transport.NAME.rto]` of any transport but UDP."),
    ("CUBIC", "CubicConfig", "transport.NAME.cubic", 'Table `[transport.NAME.cubic]`, with `congestion_control = "cubic"`.'),
    ("Hybla", "HyblaConfig", "transport.NAME.hybla", 'Table `[transport.NAME.hybla]`, with `congestion_control = "hybla"`.'),
    ("Vegas", "VegasConfig", "transport.NAME.vegas", 'Table `[transport.NAME.vegas]`, with `congestion_control = "vegas"`.'),
    ("BBR", "BbrConfig", "transport.NAME.bbr", 'Table `[transport.NAME.bbr]`, with `congestion_control = "bbr"` or `"bbr3"`.'),
    ("A code around each packet", "Correction", "transport.NAME.correction", "Table `[transport.NAME.correction]`."),
    (
        "Incremental redundancy",
        "Incremental",
        "transport.NAME.incremental",
        "Table `[transport.NAME.incremental]` of an ARQ transport.",
    ),
    (
        "Length of frames that follows the bit error rate",
        "AdaptiveLength",
        "transport.NAME.adaptive_length",
        "Table `[transport.NAME.adaptive_length]` of an ARQ transport. "
        "[How the rules compare](../../design/adaptive-length.md).",
    ),
    (
        "Changes of the mode",
        "ModeChange",
        "transport.NAME.mode_changes[]",
        "Entries of `mode_changes` of an AeroTP transport.",
    ),
    (
        "Parity that follows the bit error rate",
        "AdaptiveFec",
        "transport.NAME.adaptive_fec",
        'Table `[transport.NAME.adaptive_fec]` of an AeroTP transport of `mode = "quasi-reliable"`.',
    ),
    (
        "Repair packets",
        "Erasure",
        "transport.NAME.erasure",
        'Table `[transport.NAME.erasure]` of an AeroTP transport of `mode = "quasi-reliable"`.',
    ),
    (
        "Length of AeroTP packets that follows the bit error rate",
        "PacketLength",
        "transport.NAME.adaptive_length",
        "Table `[transport.NAME.adaptive_length]` of an AeroTP transport.",
    ),
    (
        "Repair symbols instead of repetition",
        "Coded",
        "transport.NAME.coded",
        "Table `[transport.NAME.coded]` of an AeroTP transport. [How it works](../../design/aerotp-coded.md).",
    ),
    ("A flow", "Flow", "flow.NAME", "Table `[flow.NAME]`."),
    (
        "A restart",
        "Restart",
        "flow.NAME.restart",
        "Table `restart` of a flow, or `crash` of gateways. [What comes of it](../../design/gateways.md).",
    ),
    ("Traffic", "TrafficKind", "flow.NAME.traffic", "Table `traffic` of a flow."),
    ("One transfer", "Transfer", "flow.NAME.traffic.list[]", 'An entry of the list of `kind = "transfers"`.'),
)
HEADING = {place: heading for heading, place, _, _ in SECTIONS}
