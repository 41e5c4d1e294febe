// UDP classes of service that overload one link: the ns-3 side of farlink's `service`.
//
// Two nodes, one point-to-point link whose device queue holds one packet, so that the queueing discipline in front of it decides who
// goes. "prio" is PrioQueueDisc: one band per class, each a FIFO with all the room. "fair" is the deficit round robin inside
// FqCoDelQueueDisc, with CoDel's target out of reach; it knows no weights, so a class of weight w is w flows of equal rights.
//
// Classes are given as WEIGHT:PAYLOAD_BYTES:RATE_BPS, lowest first, separated by commas; the rate is that of the payload of
// all flows of the class. Prints one line:  result PACKETS MEAN_S P99_S ...  : of each class, packets received between warm-up
// and end, their mean delay and its 99th percentile.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace
{

constexpr uint16_t FIRST_PORT = 1000;

struct Class
{
    uint32_t weight = 1;
    uint32_t payloadBytes = 0;
    double rateBps = 0;
    std::vector<double> delaysS;
};

struct Settings
{
    std::string discipline = "prio";
    std::string classes = "1:172:68800,1:1010:1.3e6";
    double rateBps = 1e6;
    double delayS = 0.05;
    uint32_t queuePackets = 50;
    double warmupS = 20;
    double durationS = 220;
};

Settings
Parse(int argc, char* argv[])
{
    Settings s;
    CommandLine cmd(__FILE__);
    cmd.AddValue("discipline", "prio or fair", s.discipline);
    cmd.AddValue("classes", "WEIGHT:PAYLOAD_BYTES:RATE_BPS of each class", s.classes);
    cmd.AddValue("rate_bps", "link rate", s.rateBps);
    cmd.AddValue("delay_s", "one-way delay", s.delayS);
    cmd.AddValue("queue_packets", "room of each class (prio), of all together per class (fair)", s.queuePackets);
    cmd.AddValue("warmup_s", "time left out of the result", s.warmupS);
    cmd.AddValue("duration_s", "end of the run", s.durationS);
    cmd.Parse(argc, argv);
    return s;
}

std::vector<Class>
ParseClasses(const std::string& text)
{
    std::vector<Class> classes;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');)
    {
        Class one;
        char colon = 0;
        std::istringstream(word) >> one.weight >> colon >> one.payloadBytes >> colon >> one.rateBps;
        classes.push_back(one);
    }
    return classes;
}

// Bears the instant of sending from one application to the other.
class SentTag : public Tag
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("SentTag").SetParent<Tag>().AddConstructor<SentTag>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return sizeof(int64_t);
    }

    void Serialize(TagBuffer buffer) const override
    {
        buffer.WriteU64(static_cast<uint64_t>(m_sent.GetTimeStep()));
    }

    void Deserialize(TagBuffer buffer) override
    {
        m_sent = TimeStep(buffer.ReadU64());
    }

    void Print(std::ostream& out) const override
    {
        out << m_sent;
    }

    Time m_sent;
};

void
SendForEver(Ptr<Socket> socket, uint32_t payloadBytes, Time interval)
{
    Ptr<Packet> packet = Create<Packet>(payloadBytes);
    SentTag tag;
    tag.m_sent = Simulator::Now();
    packet->AddPacketTag(tag);
    socket->Send(packet);
    Simulator::Schedule(interval, &SendForEver, socket, payloadBytes, interval);
}

void
Install(const Settings& s, const std::vector<Class>& classes, Ptr<NetDevice> device)
{
    const auto count = static_cast<uint32_t>(classes.size());
    TrafficControlHelper control;
    if (s.discipline == "prio")
    {
        // A packet of class n has priority n + 1, since ns-3 tags none with priority 0.
        std::ostringstream bands;
        for (uint32_t priority = 0; priority < 16; ++priority)
        {
            bands << (priority > 0 ? " " : "") << (priority > 0 ? std::min(priority, count) - 1 : count - 1);
        }
        const uint16_t root = control.SetRootQueueDisc("ns3::PrioQueueDisc", "Priomap", StringValue(bands.str()));
        const auto ids = control.AddQueueDiscClasses(root, count, "ns3::QueueDiscClass");
        control.AddChildQueueDiscs(
            root,
            ids,
            "ns3::FifoQueueDisc",
            "MaxSize",
            QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, s.queuePackets)));
    }
    else
    {
        control.SetRootQueueDisc("ns3::FqCoDelQueueDisc",
                                 "Interval",
                                 StringValue("100000s"),
                                 "Target",
                                 StringValue("10000s"),
                                 "DropBatchSize",
                                 UintegerValue(1),
                                 "MaxSize",
                                 QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, count * s.queuePackets)));
    }
    control.Install(device);
}

} // namespace

int
main(int argc, char* argv[])
{
    const Settings s = Parse(argc, argv);
    std::vector<Class> classes = ParseClasses(s.classes);

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(s.rateBps))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(s.delayS)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, 1)));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    Install(s, classes, devices.Get(0));
    Ipv4InterfaceContainer interfaces = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);

    uint16_t port = FIRST_PORT;
    for (size_t index = 0; index < classes.size(); ++index)
    {
        Class& one = classes[index];
        for (uint32_t flow = 0; flow < one.weight; ++flow, ++port)
        {
            Ptr<Socket> receiver = Socket::CreateSocket(nodes.Get(1), UdpSocketFactory::GetTypeId());
            receiver->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
            receiver->SetRecvCallback([&one, &s](Ptr<Socket> socket) {
                while (Ptr<Packet> packet = socket->Recv())
                {
                    SentTag tag;
                    packet->PeekPacketTag(tag);
                    if (Simulator::Now() >= Seconds(s.warmupS))
                    {
                        one.delaysS.push_back((Simulator::Now() - tag.m_sent).GetSeconds());
                    }
                }
            });
            Ptr<Socket> sender = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
            sender->Connect(InetSocketAddress(interfaces.GetAddress(1), port));
            sender->SetPriority(static_cast<uint8_t>(index + 1)); // Connect sets that of the address
            const Time interval = Seconds(8.0 * one.payloadBytes * one.weight / one.rateBps);
            Simulator::Schedule(interval * flow / one.weight, &SendForEver, sender, one.payloadBytes, interval);
        }
    }
    Simulator::Stop(Seconds(s.durationS));
    Simulator::Run();

    std::cout.precision(12);
    std::cout << "result";
    for (Class& one : classes)
    {
        std::vector<double>& delaysS = one.delaysS;
        std::sort(delaysS.begin(), delaysS.end());
        const double sumS = std::accumulate(delaysS.begin(), delaysS.end(), 0.0);
        const size_t count = delaysS.size();
        std::cout << ' ' << count << ' ' << sumS / static_cast<double>(count) << ' ' << delaysS.at(count * 99 / 100);
    }
    std::cout << std::endl;
    Simulator::Destroy();
    return 0;
}
