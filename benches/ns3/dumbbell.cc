// TCP bulk flows over one bottleneck: the ns-3 side of farlink's benchmarks and peer tests.
//
// Two nodes, one point-to-point link. Data are lost at the far end, after they have used the link; the way back has the
// same rate and delay and loses nothing. Queueing disciplines are taken off, so the only queue is the device's drop-tail.
//
// Prints one line:  result DELIVERED FLOW...  : segments handed to the receiving applications between warm-up and end,
// summed over the flows and of each flow.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "corrections.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

// What a full data segment carries besides its payload: PPP 2, IPv4 20, TCP 20 (no options).
constexpr uint32_t OVERHEAD_BYTES = 42;
constexpr uint32_t TIMESTAMPS_BYTES = 12;
constexpr uint16_t FIRST_PORT = 1000;

struct Settings
{
    std::string variant = "TcpNewReno";
    std::string recovery = "TcpClassicRecovery";
    double rateBps = 1e6;
    double delayS = 0.25;
    double ber = 0;
    double loss = 0;
    uint32_t queuePackets = 100000;
    uint32_t wireBytes = 1000;
    uint32_t flows = 1;
    uint32_t window = 70;
    uint32_t initialWindow = 1;
    uint32_t initialSsthresh = 0;
    bool sack = false;
    bool delayedAck = false;
    double ackIntervalS = 0.1;
    double minRtoS = 1;
    bool limitedTransmit = true;
    bool hystart = true;
    bool pacing = false;
    bool timestamps = false;
    double referenceRttS = 0.05;
    bool corrected = false;
    double startSpreadS = 0;
    double warmupS = 0;
    double durationS = 100;
    uint32_t run = 1;

    uint32_t PayloadBytes() const
    {
        return wireBytes - OVERHEAD_BYTES - (timestamps ? TIMESTAMPS_BYTES : 0);
    }
};

Settings
Parse(int argc, char* argv[])
{
    Settings s;
    CommandLine cmd(__FILE__);
    cmd.AddValue("variant", "congestion control, an ns-3 type name without its namespace", s.variant);
    cmd.AddValue("rate_bps", "link rate", s.rateBps);
    cmd.AddValue("delay_s", "one-way delay", s.delayS);
    cmd.AddValue("ber", "bit error rate of the forward link", s.ber);
    cmd.AddValue("loss", "packet loss probability of the forward link", s.loss);
    cmd.AddValue("queue_packets", "drop-tail queue of the forward link", s.queuePackets);
    cmd.AddValue("wire_bytes", "length of a data packet on the link, all headers counted", s.wireBytes);
    cmd.AddValue("flows", "number of TCP flows", s.flows);
    cmd.AddValue("window", "largest window, segments", s.window);
    cmd.AddValue("initial_window", "initial window, segments", s.initialWindow);
    cmd.AddValue("initial_ssthresh", "initial slow-start threshold, segments; 0: none", s.initialSsthresh);
    cmd.AddValue("recovery", "fast recovery, an ns-3 type name without its namespace", s.recovery);
    cmd.AddValue("hystart", "CUBIC's HyStart", s.hystart);
    cmd.AddValue("pacing", "pace segments (BBR always does)", s.pacing);
    cmd.AddValue("timestamps", "timestamps on every segment, which then carries 12 bytes less", s.timestamps);
    cmd.AddValue("reference_rtt_s", "Hybla's reference round-trip time", s.referenceRttS);
    cmd.AddValue("corrected", "the congestion control with its defects mended (corrections.h)", s.corrected);
    cmd.AddValue("sack", "selective acknowledgements", s.sack);
    cmd.AddValue("delayed_ack", "acknowledge every second segment", s.delayedAck);
    cmd.AddValue("ack_interval_s", "longest delay of an acknowledgement", s.ackIntervalS);
    cmd.AddValue("min_rto_s", "smallest retransmission time-out", s.minRtoS);
    cmd.AddValue("limited_transmit", "limited transmit (RFC 3042)", s.limitedTransmit);
    cmd.AddValue("start_spread_s", "flows start uniformly within this time", s.startSpreadS);
    cmd.AddValue("warmup_s", "time left out of the result", s.warmupS);
    cmd.AddValue("duration_s", "end of the run", s.durationS);
    cmd.AddValue("run", "run number: selects the random sub-streams", s.run);
    cmd.Parse(argc, argv);
    return s;
}

void
SetTcpDefaults(const Settings& s)
{
    const uint32_t payloadBytes = s.PayloadBytes();
    const TypeId control =
        s.corrected ? corrections::Find(s.variant) : TypeId::LookupByName("ns3::" + s.variant);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(control));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + s.recovery)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(payloadBytes));
    // The send buffer bounds what is in flight. The receive buffer must not: ns-3.37 crashes (TcpRateLinux::SkbSent) in
    // loss recovery at the edge of the advertised window.
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(s.window * payloadBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 * s.window * payloadBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(s.initialWindow));
    if (s.initialSsthresh > 0)
    {
        Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold",
                           UintegerValue(s.initialSsthresh * payloadBytes));
    }
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(s.delayedAck ? 2 : 1));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(s.ackIntervalS)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(s.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(s.timestamps));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(s.minRtoS)));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(s.limitedTransmit));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(s.pacing));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(s.hystart));
    Config::SetDefault("ns3::TcpHybla::RRTT", TimeValue(Seconds(s.referenceRttS)));
}

Ptr<ErrorModel>
ForwardErrors(const Settings& s)
{
    auto model = CreateObject<RateErrorModel>();
    const bool bits = s.ber > 0;
    model->SetUnit(bits ? RateErrorModel::ERROR_UNIT_BIT : RateErrorModel::ERROR_UNIT_PACKET);
    model->SetRate(bits ? s.ber : s.loss);
    return model;
}

} // namespace

int
main(int argc, char* argv[])
{
    const Settings s = Parse(argc, argv);
    RngSeedManager::SetRun(s.run);
    SetTcpDefaults(s);

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(s.rateBps))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(s.delayS)));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, s.queuePackets)));
    NetDeviceContainer devices = link.Install(nodes);
    if (s.ber > 0 || s.loss > 0)
    {
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(ForwardErrors(s)));
    }

    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);

    auto start = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < s.flows; ++i)
    {
        const uint16_t port = FIRST_PORT + i;
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
        sender.SetAttribute("SendSize", UintegerValue(s.PayloadBytes()));
        sender.Install(nodes.Get(0)).Start(Seconds(start->GetValue(0, s.startSpreadS)));

        PacketSinkHelper receiver("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.push_back(DynamicCast<PacketSink>(receiver.Install(nodes.Get(1)).Get(0)));
    }

    std::vector<uint64_t> before(s.flows, 0);
    Simulator::Schedule(Seconds(s.warmupS), [&] {
        for (uint32_t i = 0; i < s.flows; ++i)
        {
            before[i] = sinks[i]->GetTotalRx();
        }
    });
    Simulator::Stop(Seconds(s.durationS));
    Simulator::Run();

    const double payloadBytes = s.PayloadBytes();
    double total = 0;
    std::vector<double> segments;
    for (uint32_t i = 0; i < s.flows; ++i)
    {
        segments.push_back((sinks[i]->GetTotalRx() - before[i]) / payloadBytes);
        total += segments.back();
    }
    std::cout.precision(12);
    std::cout << "result " << total;
    for (const double flow : segments)
    {
        std::cout << ' ' << flow;
    }
    std::cout << std::endl;
    Simulator::Destroy();
    return 0;
}
