// Congestion controls of ns-3.37 with their defects mended, without a change to ns-3 itself.
//
// Each class derives from one of ns-3's and says what it mends, and what the original does instead.

#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "ns3/internet-module.h"
#include "ns3/tcp-bbr.h"
#include "ns3/tcp-cubic.h"
#include "ns3/tcp-hybla.h"
#include "ns3/tcp-linux-reno.h"

namespace corrections
{

using namespace ns3;

template <class Own, class Control>
TypeId
TypeIdOf()
{
    return TypeId("Corrected" + Control::GetTypeId().GetName())
        .template SetParent<Control>()
        .SetGroupName("Internet")
        .template AddConstructor<Own>();
}

// The window grows by what an acknowledgement newly delivers, as in Linux.
//
// ns-3 lets the acknowledgement that ends a recovery count with all it covers, although most of that was acknowledged
// selectively before: growth for a whole window at once (Reno: 2 segments, Hybla: 2 rho^2, CUBIC: a segment for each of
// the next acknowledgements).
template <class Control>
class PerDelivered : public Control
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeIdOf<PerDelivered, Control>();
        return tid;
    }

    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segmentsAcked) override
    {
        Control::IncreaseWindow(tcb, std::min(segmentsAcked, tcb->m_lastAckedSackedBytes / tcb->m_segmentSize));
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<PerDelivered>(this);
    }
};

// Lets a class be told which member of an ns-3 control it may reach: an explicit instantiation may name a private one.
template <class Control, uint32_t Control::*member>
struct Counter
{
    friend uint32_t& AcknowledgedSinceGrowth(Control& control)
    {
        return control.*member;
    }
};

uint32_t& AcknowledgedSinceGrowth(TcpCubic& cubic);
template struct Counter<TcpCubic, &TcpCubic::m_cWndCnt>;
uint32_t& AcknowledgedSinceGrowth(TcpLinuxReno& reno);
template struct Counter<TcpLinuxReno, &TcpLinuxReno::m_cWndCnt>;

// A control, corrected as `Base` has it, whose count of acknowledged segments begins anew with each loss, as in Linux.
//
// ns-3 carries what was counted towards the next segment of growth over a loss: Reno grows by half a segment more per loss.
template <class Control, class Base>
class CountsAnew : public Base
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeIdOf<CountsAnew, Control>();
        return tid;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t bytesInFlight) override
    {
        AcknowledgedSinceGrowth(*this) = 0;
        return Base::GetSsThresh(tcb, bytesInFlight);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<CountsAnew>(this);
    }
};

using Cubic = CountsAnew<TcpCubic, PerDelivered<TcpCubic>>;

// Reno's threshold as RFC 5681 has it: half of what was in flight, whole segments, when the loss happened.
//
// ns-3 halves what is in flight less what is lost or selectively acknowledged: four segments less.
template <class Control>
class HalfOfFlight : public PerDelivered<Control>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeIdOf<HalfOfFlight, Control>();
        return tid;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t /* bytesInFlight */) override
    {
        return std::max(2 * tcb->m_segmentSize, tcb->GetCwndInSegments() * tcb->m_segmentSize / 2);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<HalfOfFlight>(this);
    }
};

using LinuxReno = CountsAnew<TcpLinuxReno, HalfOfFlight<TcpLinuxReno>>;

// Hybla whose rho follows the least round-trip time.
//
// ns-3 computes rho only when the smoothed round-trip time equals the least one; that came from the SYN, which is shorter
// than any data segment, so rho stays 1 and Hybla is NewReno.
class Hybla : public HalfOfFlight<TcpHybla>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeIdOf<Hybla, TcpHybla>();
        return tid;
    }

    void PktsAcked(Ptr<TcpSocketState> tcb, uint32_t segmentsAcked, const Time& /* rtt */) override
    {
        TcpHybla::PktsAcked(tcb, segmentsAcked, tcb->m_minRtt);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Hybla>(this);
    }
};

// BBR with the rate sample of Linux (tcp_rate_gen) and its window after a recovery.
//
// ns-3's sampler measures the time of the acknowledgements from the *previous* sample's segment and, after an invalid
// sample, from the beginning of the simulation: one such sample is next to zero. Rounds pass with invalid samples too,
// so the filter forgets the good ones, and the flow ends up sending a segment per time-out for ever. At the end of a
// recovery the restored window is overwritten by the slow-start threshold, after a time-out nothing is restored, and a
// second time-out forgets what to restore.
class Bbr : public TcpBbr
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeIdOf<Bbr, TcpBbr>();
        return tid;
    }

    void CongControl(Ptr<TcpSocketState> tcb,
                     const TcpRateOps::TcpRateConnection& rc,
                     const TcpRateOps::TcpRateSample& rs) override
    {
        TcpRateOps::TcpRateSample sample = rs;
        sample.m_interval = std::max(rs.m_sendElapsed, Simulator::Now() - rs.m_priorTime);
        if (rs.m_ackedSacked > 0 && !rs.m_priorTime.IsZero() && sample.m_interval >= tcb->m_minRtt)
        {
            sample.m_delivered = rc.m_delivered - rs.m_priorDelivered;
            sample.m_deliveryRate = DataRate(sample.m_delivered * 8.0 / sample.m_interval.GetSeconds());
        }
        else
        {
            // Neither a round nor a rate: a sample of the past that is limited by the application.
            sample.m_priorDelivered = 0;
            sample.m_isAppLimited = true;
            sample.m_deliveryRate = DataRate(1);
        }
        TcpBbr::CongControl(tcb, rc, sample);
    }

    void CongestionStateSet(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCongState_t newState) override
    {
        const bool isInLoss = tcb->m_congState == TcpSocketState::CA_LOSS;
        if (!isInLoss || newState != TcpSocketState::CA_LOSS)
        {
            TcpBbr::CongestionStateSet(tcb, newState);
        }
        if (isInLoss && newState == TcpSocketState::CA_OPEN)
        {
            CwndEvent(tcb, TcpSocketState::CA_EVENT_COMPLETE_CWR);
        }
    }

    void CwndEvent(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCAEvent_t event) override
    {
        TcpBbr::CwndEvent(tcb, event);
        if (event == TcpSocketState::CA_EVENT_COMPLETE_CWR)
        {
            // What the socket is about to set the window to.
            tcb->m_ssThresh = tcb->m_cWnd.Get();
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t bytesInFlight) override
    {
        const bool isInLoss = tcb->m_congState == TcpSocketState::CA_LOSS;
        return isInLoss ? tcb->m_ssThresh.Get() : TcpBbr::GetSsThresh(tcb, bytesInFlight);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Bbr>(this);
    }
};

// Lets a function be told which member of `TcpSocketBase` it may reach, as above.
template <EventId TcpSocketBase::*member>
struct SocketTimer
{
    friend EventId& RetransmissionTimer(TcpSocketBase& socket)
    {
        return socket.*member;
    }
};

struct SocketMembers : public TcpSocketBase
{
    static constexpr EventId TcpSocketBase::*RETRANSMISSION_TIMER = &SocketMembers::m_retxEvent;
};

EventId& RetransmissionTimer(TcpSocketBase& socket);
template struct SocketTimer<SocketMembers::RETRANSMISSION_TIMER>;

// For a socket's trace "CongState": the fast retransmission starts the timer anew, as RFC 6675, section 6, allows and
// Linux does.
//
// ns-3's runs on from the last new acknowledgement. The third duplicate may come a round trip after that, by limited
// transmit; then it expires before the retransmission can be acknowledged, if it is less than two round trips.
inline void
StartTimerAnew(Ptr<TcpSocketBase> socket,
               TcpSocketState::TcpCongState_t /* before */,
               TcpSocketState::TcpCongState_t now)
{
    if (now == TcpSocketState::CA_RECOVERY)
    {
        // The segment that is sent next starts it.
        RetransmissionTimer(*socket).Cancel();
    }
}

// The window grows by the acknowledgement that ends the repair after a time-out, too (RFC 5681, section 3.1: by each).
//
// ns-3 counts of it only what lies beyond the repair, nothing as a rule: a single lost segment leaves a window of one.
template <class Control>
class GrowsOutOfLoss : public Control
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeIdOf<GrowsOutOfLoss, Control>();
        return tid;
    }

    void CongestionStateSet(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCongState_t newState) override
    {
        m_endsLoss = tcb->m_congState == TcpSocketState::CA_LOSS && newState == TcpSocketState::CA_OPEN;
        Control::CongestionStateSet(tcb, newState);
    }

    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segmentsAcked) override
    {
        const uint32_t delivered = tcb->m_lastAckedSackedBytes / tcb->m_segmentSize;
        Control::IncreaseWindow(tcb, std::exchange(m_endsLoss, false) ? delivered : segmentsAcked);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<GrowsOutOfLoss>(this);
    }

  private:
    bool m_endsLoss = false;
};

// The corrected congestion control that takes the place of `ns3::NAME`.
inline TypeId
Find(const std::string& name)
{
    for (const TypeId type : {HalfOfFlight<TcpNewReno>::GetTypeId(),
                              LinuxReno::GetTypeId(),
                              Cubic::GetTypeId(),
                              Hybla::GetTypeId(),
                              Bbr::GetTypeId()})
    {
        if (type.GetParent().GetName() == "ns3::" + name)
        {
            return type;
        }
    }
    NS_FATAL_ERROR("no corrections are known for " << name);
}

// The same with the window after a time-out corrected as well, where that is known to need it.
inline TypeId
FindGrowingOutOfLoss(const std::string& name)
{
    if (name == "TcpNewReno")
    {
        return GrowsOutOfLoss<HalfOfFlight<TcpNewReno>>::GetTypeId();
    }
    return name == "TcpCubic" ? GrowsOutOfLoss<Cubic>::GetTypeId() : Find(name);
}

} // namespace corrections
