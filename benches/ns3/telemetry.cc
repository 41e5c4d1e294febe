// One transfer over a telemetry path: the ns-3 side of the comparison with AeroTP.
//
// Four nodes in a row: a fast network, a slow and long radio link, a fast network. Messages are offered at a constant
// rate; bits on the radio link are wrong independently of each other, both ways and headers included (ns-3 counts two
// bytes of PPP). Over TCP the messages are a stream of bytes, over UDP a datagram each.
//
// With `--stock=1` every option of ns-3's TCP but the segments' length is at its default (which is 536 bytes), and so are
// the queues. Otherwise timers and buffers fit the path.
//
// Prints one line of JSON. Delays are means over what arrived: `arrival_delay_mean_s` and `delay_mean_s` (in order) over
// messages, from their offering on; the same with `sent_` in front over TCP's segments, from their first transmission on.
// `by` is what had happened when a run would have ended sooner, at each of `PROGRESS_S`.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "corrections.h"

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 1000;
constexpr double PROGRESS_S[] = {50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5};

struct Settings
{
    // "Udp" or a congestion control of ns-3, without its namespace.
    std::string transport = "TcpNewReno";
    double ber = 0;
    uint64_t bytes = 1000000;
    uint32_t messageBytes = 1472;
    double offeredBps = 4.416e6;
    double rateBps = 5e6;
    double delayS = 10;
    double lanRateBps = 10e9;
    double lanDelayS = 0;
    uint32_t queuePackets = 100000;
    double durationS = 1e6;
    uint32_t run = 1;

    bool stock = false;
    bool corrected = false;
    bool sack = true;
    bool timestamps = true;
    bool delayedAck = true;
    bool hystart = true;
    bool timeoutsCorrected = false;
    double bbrRttWindowS = 10;
    std::string recovery = "TcpPrrRecovery";
    uint32_t segmentBytes = 1448;
    uint32_t bufferBytes = 1 << 26;
    uint32_t initialWindow = 10;
    double synTimeoutS = 45;
    double initialRttS = 20;
    double minRtoS = 30;
    uint32_t synRetries = 30;
    uint32_t dataRetries = std::numeric_limits<uint32_t>::max();

    bool IsUdp() const
    {
        return transport == "Udp";
    }
};

Settings
Parse(int argc, char* argv[])
{
    Settings s;
    CommandLine cmd(__FILE__);
    cmd.AddValue("transport", "Udp, or a congestion control of ns-3 without its namespace", s.transport);
    cmd.AddValue("ber", "bit error rate of the radio link, both ways", s.ber);
    cmd.AddValue("bytes", "bytes offered altogether", s.bytes);
    cmd.AddValue("message_bytes", "bytes of a message", s.messageBytes);
    cmd.AddValue("offered_bps", "rate at which messages are offered, headers not counted", s.offeredBps);
    cmd.AddValue("rate_bps", "rate of the radio link", s.rateBps);
    cmd.AddValue("delay_s", "one-way delay of the radio link", s.delayS);
    cmd.AddValue("lan_rate_bps", "rate of the networks at both ends", s.lanRateBps);
    cmd.AddValue("lan_delay_s", "one-way delay of the networks at both ends", s.lanDelayS);
    cmd.AddValue("queue_packets", "drop-tail queue of every device", s.queuePackets);
    cmd.AddValue("duration_s", "end of the run, unless all has arrived before", s.durationS);
    cmd.AddValue("run", "run number: selects the random sub-streams", s.run);
    cmd.AddValue("stock", "TCP and queues with ns-3's defaults, but for segment_bytes", s.stock);
    cmd.AddValue("corrected", "the congestion control with its defects mended (corrections.h)", s.corrected);
    cmd.AddValue("sack", "selective acknowledgements", s.sack);
    cmd.AddValue("timestamps", "timestamps on every segment", s.timestamps);
    cmd.AddValue("delayed_ack", "acknowledge every second segment", s.delayedAck);
    cmd.AddValue("hystart", "CUBIC's HyStart", s.hystart);
    cmd.AddValue("timeouts_corrected", "`corrected`, and timer and window around time-outs", s.timeoutsCorrected);
    cmd.AddValue("bbr_rtt_window_s", "how long BBR takes a round-trip time for the least", s.bbrRttWindowS);
    cmd.AddValue("recovery", "fast recovery, an ns-3 type name without its namespace", s.recovery);
    cmd.AddValue("segment_bytes", "payload of a full segment", s.segmentBytes);
    cmd.AddValue("buffer_bytes", "send buffer, and receive buffer", s.bufferBytes);
    cmd.AddValue("initial_window", "initial window, segments", s.initialWindow);
    cmd.AddValue("syn_timeout_s", "first time-out of the SYN", s.synTimeoutS);
    cmd.AddValue("initial_rtt_s", "round-trip time assumed before the first sample", s.initialRttS);
    cmd.AddValue("min_rto_s", "smallest retransmission time-out", s.minRtoS);
    cmd.AddValue("syn_retries", "SYNs sent before the connection is given up", s.synRetries);
    cmd.AddValue("data_retries", "time-outs in a row before the connection is given up", s.dataRetries);
    cmd.Parse(argc, argv);
    return s;
}

void
SetTcpDefaults(const Settings& s)
{
    const TypeId control = s.timeoutsCorrected ? corrections::FindGrowingOutOfLoss(s.transport)
                           : s.corrected       ? corrections::Find(s.transport)
                                               : TypeId::LookupByName("ns3::" + s.transport);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(control));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(s.segmentBytes));
    if (s.stock)
    {
        return;
    }
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + s.recovery)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(s.bufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(s.bufferBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(s.initialWindow));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(s.delayedAck ? 2 : 1));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(s.synTimeoutS)));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(s.synRetries));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(s.dataRetries));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(s.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(s.timestamps));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(s.minRtoS)));
    Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(s.initialRttS)));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(s.hystart));
    Config::SetDefault("ns3::TcpBbr::RttWindowLength", TimeValue(Seconds(s.bbrRttWindowS)));
}

// When each block of a stream of bytes was complete: a message, or a segment.
class Blocks
{
  public:
    Blocks(uint64_t bytes, uint32_t blockBytes)
        : m_bytes(bytes),
          m_blockBytes(blockBytes),
          m_missing((bytes + blockBytes - 1) / blockBytes, blockBytes),
          m_times(m_missing.size(), NAN),
          m_seen(bytes, false)
    {
        m_missing.back() = bytes - (m_missing.size() - 1) * blockBytes;
    }

    // Bytes `begin` to `end` are there now, perhaps not for the first time.
    void Add(uint64_t begin, uint64_t end)
    {
        for (uint64_t i = begin; i < std::min(end, m_bytes); ++i)
        {
            if (m_seen[i])
            {
                continue;
            }
            m_seen[i] = true;
            if (--m_missing[i / m_blockBytes] == 0)
            {
                m_times[i / m_blockBytes] = Simulator::Now().GetSeconds();
            }
        }
    }

    double TimeOf(std::size_t block) const
    {
        return m_times[block];
    }

    // Mean over the blocks that were complete at `endS` of the time from `since(block)` on; NaN if none was.
    double MeanSince(const std::function<double(std::size_t)>& since, double endS = INFINITY) const
    {
        double sum = 0;
        std::size_t count = 0;
        for (std::size_t block = 0; block < m_times.size(); ++block)
        {
            if (m_times[block] <= endS)
            {
                sum += m_times[block] - since(block);
                ++count;
            }
        }
        return count > 0 ? sum / count : NAN;
    }

  private:
    uint64_t m_bytes;
    uint32_t m_blockBytes;
    std::vector<uint32_t> m_missing;
    std::vector<double> m_times;
    std::vector<bool> m_seen;
};

// Bytes and packets that a device began to send.
struct Counter
{
    uint64_t bytes = 0;
    uint64_t packets = 0;

    void Count(Ptr<const Packet> packet)
    {
        bytes += packet->GetSize();
        ++packets;
    }
};

// What had happened at some time.
struct Progress
{
    uint64_t delivered;
    uint64_t forward;
    uint64_t back;
};

// The transfer: offers messages, watches both ends, stops the simulation when all has arrived or nothing more can.
class Transfer
{
  public:
    Transfer(const Settings& settings,
             Ptr<Node> source,
             Ptr<Node> destination,
             Ipv4Address address,
             const Counter& forward,
             const Counter& back)
        : m_settings(settings),
          m_forward(forward),
          m_back(back),
          m_sent(settings.bytes, settings.segmentBytes),
          m_arrivedSegments(settings.bytes, settings.segmentBytes),
          m_orderedSegments(settings.bytes, settings.segmentBytes),
          m_arrived(settings.bytes, settings.messageBytes),
          m_ordered(settings.bytes, settings.messageBytes)
    {
        const TypeId factory =
            settings.IsUdp() ? UdpSocketFactory::GetTypeId() : TcpSocketFactory::GetTypeId();
        m_sink = Socket::CreateSocket(destination, factory);
        m_sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
        m_sink->SetRecvCallback(MakeCallback(&Transfer::Receive, this));
        m_source = Socket::CreateSocket(source, factory);
        if (!settings.IsUdp())
        {
            m_sink->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Transfer::Accept, this));
            m_sink->Listen();
            m_source->SetConnectCallback(MakeCallback(&Transfer::Connected, this),
                                         MakeCallback(&Transfer::ConnectFailed, this));
            m_source->SetCloseCallbacks(MakeCallback(&Transfer::Closed, this),
                                        MakeCallback(&Transfer::ClosedInError, this));
            m_source->SetSendCallback(MakeCallback(&Transfer::HasRoom, this));
            if (settings.timeoutsCorrected)
            {
                m_source->TraceConnectWithoutContext(
                    "CongState",
                    MakeBoundCallback(&corrections::StartTimerAnew, DynamicCast<TcpSocketBase>(m_source)));
            }
        }
        source->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("SendOutgoing",
                                                                        MakeCallback(&Transfer::Leaves, this));
        destination->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext(
            "LocalDeliver",
            MakeCallback(&Transfer::Arrives, this));
        m_source->Bind();
        Simulator::ScheduleNow(&Socket::Connect, m_source, InetSocketAddress(address, PORT));
        Simulator::ScheduleNow(&Transfer::Offer, this);
        for (const double at : PROGRESS_S)
        {
            Simulator::Schedule(Seconds(at), &Transfer::NoteProgress, this);
        }
    }

    void Print(std::ostream& out)
    {
        const auto offered = [this](std::size_t message) { return OfferedAt(message); };
        const auto sent = [this](std::size_t segment) { return m_sent.TimeOf(segment); };
        out << "{\"ended\": \"" << m_ended << "\", \"ended_s\": " << Simulator::Now().GetSeconds()
            << ", \"delivered_bytes\": " << m_received;
        Figure(out, "connected_s", m_connectedS);
        Figure(out, "completion_s", m_lastS);
        Figure(out, "arrival_delay_mean_s", m_arrived.MeanSince(offered));
        Figure(out, "delay_mean_s", m_ordered.MeanSince(offered));
        Figure(out, "sent_arrival_delay_mean_s", m_arrivedSegments.MeanSince(sent));
        Figure(out, "sent_delay_mean_s", m_orderedSegments.MeanSince(sent));
        out << ", \"sent_bytes\": " << m_sentBytes << ", \"retransmitted_bytes\": " << m_retransmittedBytes
            << ", \"forward_bytes\": " << m_forward.bytes << ", \"forward_packets\": " << m_forward.packets
            << ", \"return_bytes\": " << m_back.bytes << ", \"return_packets\": " << m_back.packets << ", \"by\": [";
        std::size_t entry = 0;
        for (const double at : PROGRESS_S)
        {
            if (entry == m_progress.size())
            {
                NoteProgress();
            }
            const Progress& then = m_progress[entry];
            out << (entry++ > 0 ? ", " : "") << "{\"at_s\": " << at << ", \"delivered_bytes\": " << then.delivered
                << ", \"forward_bytes\": " << then.forward << ", \"return_bytes\": " << then.back;
            Figure(out, "arrival_delay_mean_s", m_arrived.MeanSince(offered, at));
            Figure(out, "delay_mean_s", m_ordered.MeanSince(offered, at));
            out << "}";
        }
        out << "]}" << std::endl;
    }

  private:
    static void Figure(std::ostream& out, const char* name, double value)
    {
        out << ", \"" << name << "\": ";
        std::isnan(value) ? out << "null" : out << value;
    }

    double OfferedAt(std::size_t message) const
    {
        return message * 8.0 * m_settings.messageBytes / m_settings.offeredBps;
    }

    void NoteProgress()
    {
        m_progress.push_back({m_received, m_forward.bytes, m_back.bytes});
    }

    void Offer()
    {
        const uint32_t size =
            std::min<uint64_t>(m_settings.messageBytes, m_settings.bytes - m_offered);
        if (m_settings.IsUdp())
        {
            SendDatagram(size);
        }
        m_offered += size;
        if (!m_settings.IsUdp())
        {
            Write();
        }
        ++m_messages;
        if (m_offered < m_settings.bytes)
        {
            Simulator::Schedule(Seconds(OfferedAt(m_messages)) - Simulator::Now(), &Transfer::Offer, this);
        }
        else if (m_settings.IsUdp())
        {
            // The last one is through the radio's queue and over after this; there is nothing to wait for then.
            const double queuedS = 8.0 * m_settings.bytes / m_settings.rateBps;
            const double delayS = m_settings.delayS + 2 * m_settings.lanDelayS;
            Simulator::Schedule(Seconds(queuedS + delayS + 1), &Transfer::End, this, "all offered");
        }
    }

    // A datagram carries where it stands in the stream.
    void SendDatagram(uint32_t size)
    {
        std::vector<uint8_t> content(size, 0);
        for (std::size_t i = 0; i < sizeof m_offered; ++i)
        {
            content[i] = m_offered >> (8 * i);
        }
        m_source->Send(Create<Packet>(content.data(), size));
    }

    void Write()
    {
        while (m_written < m_offered)
        {
            const uint32_t size = std::min<uint64_t>(m_offered - m_written, m_source->GetTxAvailable());
            if (size == 0 || m_source->Send(Create<Packet>(size)) < 0)
            {
                return;
            }
            m_written += size;
        }
    }

    void HasRoom(Ptr<Socket> /* socket */, uint32_t /* room */)
    {
        Write();
    }

    void Accept(Ptr<Socket> socket, const Address& /* from */)
    {
        socket->SetRecvCallback(MakeCallback(&Transfer::Receive, this));
    }

    void Receive(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            const uint64_t begin = m_settings.IsUdp() ? PositionIn(packet) : m_received;
            const uint64_t end = begin + packet->GetSize();
            if (m_settings.IsUdp())
            {
                m_arrived.Add(begin, end);
            }
            m_ordered.Add(begin, end);
            m_orderedSegments.Add(begin, end);
            m_received += packet->GetSize();
            m_lastS = Simulator::Now().GetSeconds();
        }
        if (m_received == m_settings.bytes)
        {
            End("complete");
        }
    }

    static uint64_t PositionIn(Ptr<const Packet> packet)
    {
        uint8_t content[sizeof(uint64_t)];
        packet->CopyData(content, sizeof content);
        uint64_t position = 0;
        for (std::size_t i = 0; i < sizeof content; ++i)
        {
            position |= uint64_t{content[i]} << (8 * i);
        }
        return position;
    }

    // The bytes of the stream that a segment carries; ns-3 numbers the SYN 0, so the first byte is number 1.
    static std::pair<uint64_t, uint64_t> Span(Ptr<const Packet> packet)
    {
        Ptr<Packet> copy = packet->Copy();
        TcpHeader header;
        copy->RemoveHeader(header);
        const uint32_t size = copy->GetSize();
        const uint64_t begin = size > 0 ? header.GetSequenceNumber().GetValue() - 1 : 0;
        return {begin, begin + size};
    }

    void Leaves(const Ipv4Header& /* ip */, Ptr<const Packet> packet, uint32_t /* interface */)
    {
        if (m_settings.IsUdp())
        {
            UdpHeader header;
            m_sentBytes += packet->GetSize() - header.GetSerializedSize();
            return;
        }
        const auto [begin, end] = Span(packet);
        m_sentBytes += end - begin;
        m_retransmittedBytes += begin < m_highest ? std::min(end, m_highest) - begin : 0;
        m_highest = std::max(m_highest, end);
        m_sent.Add(begin, end);
    }

    void Arrives(const Ipv4Header& /* ip */, Ptr<const Packet> packet, uint32_t /* interface */)
    {
        if (!m_settings.IsUdp())
        {
            const auto [begin, end] = Span(packet);
            m_arrived.Add(begin, end);
            m_arrivedSegments.Add(begin, end);
        }
    }

    void Connected(Ptr<Socket> /* socket */)
    {
        m_connectedS = Simulator::Now().GetSeconds();
    }

    void ConnectFailed(Ptr<Socket> /* socket */)
    {
        End("connecting failed");
    }

    void Closed(Ptr<Socket> /* socket */)
    {
        End("closed");
    }

    void ClosedInError(Ptr<Socket> /* socket */)
    {
        End("closed in error");
    }

    void End(const char* why)
    {
        m_ended = why;
        Simulator::Stop();
    }

    const Settings& m_settings;
    const Counter& m_forward;
    const Counter& m_back;
    std::vector<Progress> m_progress;
    Ptr<Socket> m_source;
    Ptr<Socket> m_sink;
    Blocks m_sent;
    Blocks m_arrivedSegments;
    Blocks m_orderedSegments;
    Blocks m_arrived;
    Blocks m_ordered;
    uint64_t m_offered = 0;
    uint64_t m_messages = 0;
    uint64_t m_written = 0;
    uint64_t m_received = 0;
    uint64_t m_highest = 0;
    uint64_t m_sentBytes = 0;
    uint64_t m_retransmittedBytes = 0;
    double m_connectedS = NAN;
    double m_lastS = NAN;
    const char* m_ended = "time is over";
};

// A link between two nodes, and its two devices.
NetDeviceContainer
Connect(const Settings& s, Ptr<Node> one, Ptr<Node> other, double rateBps, double delayS)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rateBps))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delayS)));
    if (!s.stock)
    {
        link.SetQueue("ns3::DropTailQueue<Packet>",
                      "MaxSize",
                      QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, s.queuePackets)));
    }
    return link.Install(one, other);
}

Ptr<ErrorModel>
BitErrors(double ber)
{
    auto model = CreateObject<RateErrorModel>();
    model->SetUnit(RateErrorModel::ERROR_UNIT_BIT);
    model->SetRate(ber);
    return model;
}

} // namespace

int
main(int argc, char* argv[])
{
    const Settings s = Parse(argc, argv);
    RngSeedManager::SetRun(s.run);
    if (!s.IsUdp())
    {
        SetTcpDefaults(s);
    }

    NodeContainer nodes(4);
    InternetStackHelper().Install(nodes);
    const NetDeviceContainer near = Connect(s, nodes.Get(0), nodes.Get(1), s.lanRateBps, s.lanDelayS);
    const NetDeviceContainer radio = Connect(s, nodes.Get(1), nodes.Get(2), s.rateBps, s.delayS);
    const NetDeviceContainer far = Connect(s, nodes.Get(2), nodes.Get(3), s.lanRateBps, s.lanDelayS);
    for (uint32_t end = 0; end < radio.GetN(); ++end)
    {
        radio.Get(end)->SetAttribute("ReceiveErrorModel", PointerValue(BitErrors(s.ber)));
    }
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(near);
    addresses.NewNetwork();
    addresses.Assign(radio);
    addresses.NewNetwork();
    const Ipv4InterfaceContainer last = addresses.Assign(far);
    if (!s.stock)
    {
        for (const NetDeviceContainer& devices : {near, radio, far})
        {
            TrafficControlHelper().Uninstall(devices);
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Counter forward;
    Counter back;
    radio.Get(0)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Counter::Count, &forward));
    radio.Get(1)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Counter::Count, &back));

    Transfer transfer(s, nodes.Get(0), nodes.Get(3), last.GetAddress(1), forward, back);
    Simulator::Stop(Seconds(s.durationS));
    Simulator::Run();
    std::cout.precision(12);
    transfer.Print(std::cout);
    Simulator::Destroy();
    return 0;
}
