# TCP bulk flows over one bottleneck: the ns-2 side of farlink's peer tests and benchmarks.
#
#   ns dumbbell.tcl key value ...
#
# One node sends, one node receives.  All flows leave through one drop-tail queue and one link; data are lost at the far
# end of that link, after they have used it, so a lost packet costs the same link time as a delivered one.  The way back
# has the same rate and delay, no losses and a queue that never fills.
#
# Prints one line,  result DELIVERED TIMEOUTS SENT FLOW...  : segments handed to the receiver in order between warm-up and
# end, summed over the flows; retransmission timeouts and segments sent in that time; delivered segments of each flow.

array set config {
    variant        Newreno
    control        reno
    rate_bps       1e6
    delay_s        0.25
    queue_packets  100000
    wire_bytes     1000
    header_bytes   40
    headers        1
    flows          1
    window         70
    ssthresh       0
    delayed_ack    1
    ack_interval_s 0.1
    loss           0
    ber            0
    losses_file    {}
    loss_place     far
    seed           1
    warmup_s       0
    duration_s     1000
    start_spread_s 0
    tcp            {}
    sink           {}
    class          {}
    trace_file     {}
}

proc usage {message} {
    global config
    puts stderr "dumbbell.tcl: $message"
    puts stderr "keys: [lsort [array names config]]"
    exit 2
}

if {[llength $argv] % 2} { usage "a key without a value" }
foreach {key value} $argv {
    if {![info exists config($key)]} { usage "unknown key $key" }
    set config($key) $value
}

# Independent random streams: run N uses sub-stream N of every stream.
set channel_rng [new RNG]
set start_rng [new RNG]
foreach rng [list $defaultRNG $channel_rng $start_rng] {
    for {set i 1} {$i < $config(seed)} {incr i} { $rng next-substream }
}

# "tcp" and "sink" are lists of  bound-variable value  pairs that replace ns-2's defaults.
foreach {name value} $config(tcp) { Agent/TCP set $name $value }
foreach {name value} $config(sink) { Agent/TCPSink set $name $value }
# "class" sets bound variables of one variant only:  class variable value ...
foreach {class name value} $config(class) { $class set $name $value }

set payload_bytes $config(wire_bytes)
if {$config(headers)} { set payload_bytes [expr $config(wire_bytes) - $config(header_bytes)] }

switch -- $config(variant) {
    Tahoe   { set agent_class Agent/TCP }
    Reno    { set agent_class Agent/TCP/Reno }
    Newreno { set agent_class Agent/TCP/Newreno }
    Sack1   { set agent_class Agent/TCP/Sack1 }
    Fack    { set agent_class Agent/TCP/Fack }
    Linux   { set agent_class Agent/TCP/Linux }
    default { usage "variant $config(variant) is none of Tahoe Reno Newreno Sack1 Fack Linux" }
}
set sink_class Agent/TCPSink
if {[lsearch {Sack1 Fack Linux} $config(variant)] >= 0} { append sink_class /Sack1 }
if {$config(delayed_ack)} { append sink_class /DelAck }

set ns [new Simulator]
set sender [$ns node]
set receiver [$ns node]
$ns simplex-link $sender $receiver $config(rate_bps) $config(delay_s) DropTail
$ns simplex-link $receiver $sender $config(rate_bps) $config(delay_s) DropTail
$ns queue-limit $sender $receiver $config(queue_packets)
$ns queue-limit $receiver $sender 10000000
set forward [$ns link $sender $receiver]

set error_model ""
if {$config(losses_file) ne ""} {
    # Numbers of the packets that are lost, counted from 0 where they reach the far end of the link.
    set channel [open $config(losses_file)]
    set error_model [new ErrorModel/List]
    $error_model unit pkt
    $error_model droplist [split [string trim [read $channel]]]
    close $channel
    $error_model drop-target [new Agent/Null]
    $forward install-error $error_model
} elseif {$config(loss) > 0 || $config(ber) > 0} {
    set error_model [new ErrorModel]
    if {$config(ber) > 0} {
        # Per byte, so that the loss probability follows each packet's own length.
        $error_model unit byte
        $error_model set rate_ [expr 1.0 - pow(1.0 - $config(ber), 8)]
    } else {
        $error_model unit pkt
        $error_model set rate_ $config(loss)
    }
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $channel_rng
    $error_model ranvar $uniform
    $error_model drop-target [new Agent/Null]
    switch -- $config(loss_place) {
        far    { $forward install-error $error_model }
        queue  { $ns lossmodel $error_model $sender $receiver }
        link   { $ns link-lossmodel $error_model $sender $receiver }
        default { usage "loss_place $config(loss_place) is none of far queue link" }
    }
}

for {set i 0} {$i < $config(flows)} {incr i} {
    set tcp($i) [new $agent_class]
    set sink($i) [new $sink_class]
    $tcp($i) set window_ $config(window)
    $tcp($i) set packetSize_ $payload_bytes
    $tcp($i) set tcpip_base_hdr_size_ $config(header_bytes)
    $tcp($i) set useHeaders_ [expr $config(headers) ? {true} : {false}]
    if {$config(delayed_ack)} { $sink($i) set interval_ $config(ack_interval_s) }
    # Only Agent/TCP/Linux has the congestion controls of Linux; "control" names one.
    if {$config(variant) eq "Linux"} { $ns at 0.0 "$tcp($i) select_ca $config(control)" }
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $receiver $sink($i)
    $ns connect $tcp($i) $sink($i)
    $tcp($i) set fid_ $i
    set start_s 0.0
    if {$config(start_spread_s) > 0} { set start_s [$start_rng uniform 0 $config(start_spread_s)] }
    # ns-2 sets ssthresh to the window when a run begins; a smaller one must follow that.
    if {$config(ssthresh) > 0} { $ns at $start_s "$tcp($i) set ssthresh_ $config(ssthresh)" }
    $ns at $start_s "$tcp($i) send -1"
    set start_bytes($i) 0
    set start_ack($i) 0
}

if {$config(trace_file) ne ""} {
    set trace_channel [open $config(trace_file) w]
    $ns trace-queue $sender $receiver $trace_channel
    $ns trace-queue $receiver $sender $trace_channel
}

proc begin_measuring {} {
    global config tcp sink start_bytes start_ack timeouts_before sent_before
    set timeouts_before 0
    set sent_before 0
    for {set i 0} {$i < $config(flows)} {incr i} {
        set start_bytes($i) [$sink($i) set bytes_]
        set start_ack($i) [$tcp($i) set ack_]
        incr timeouts_before [$tcp($i) set nrexmit_]
        incr sent_before [$tcp($i) set ndatapack_]
    }
}

proc finish {} {
    global config tcp sink start_bytes start_ack timeouts_before sent_before error_model
    set total 0
    set timeouts [expr -$timeouts_before]
    set sent [expr -$sent_before]
    set per_flow {}
    for {set i 0} {$i < $config(flows)} {incr i} {
        # The receiver's byte counter has 32 bits; the sender's acknowledged segments say how often it wrapped.
        set bytes [expr {[$sink($i) set bytes_] - $start_bytes($i)}]
        set expected [expr {double([$tcp($i) set ack_] - $start_ack($i)) * $config(wire_bytes)}]
        set wraps [expr {round(($expected - $bytes) / 4294967296.0)}]
        set delivered [expr {($bytes + $wraps * 4294967296.0) / $config(wire_bytes)}]
        lappend per_flow [format %.2f $delivered]
        set total [expr {$total + $delivered}]
        incr timeouts [$tcp($i) set nrexmit_]
        incr sent [$tcp($i) set ndatapack_]
    }
    puts "result [format %.2f $total] $timeouts $sent $per_flow"
    flush stdout
    exit 0
}

$ns at $config(warmup_s) begin_measuring
$ns at $config(duration_s) finish
$ns run
