//! One end of a line that PPP sets up: LCP, authentication, IPCP.

use super::config::{Authentication, PppConfig};
use super::negotiation::{Message, Negotiation, News};
use crate::time::Time;
use crate::units::PositiveSeconds;

/// A frame of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Lcp(Message),
    PapRequest,
    PapAck,
    Ipcp(Message),
}

/// Phase of a line at one end (RFC 1661, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Establish,
    Authenticate,
    Network,
}

/// One end. The near end dials and authenticates itself.
#[derive(Clone, Debug)]
pub(super) struct End {
    config: PppConfig,
    is_near: bool,
    phase: Phase,
    lcp: Negotiation,
    ipcp: Negotiation,
    /// Near end: when the request of PAP is sent again. Far end: when it no longer waits for one.
    pap_timer: Time,
    pap_sent: u64,
    /// When LCP opened.
    pub(super) opened: Time,
    /// Messages that the negotiations have just made.
    messages: Vec<Message>,
    /// Frames to send.
    pub(super) out: Vec<Frame>,
    /// Whether the end has given up.
    pub(super) has_failed: bool,
}

impl End {
    pub(super) fn new(config: &PppConfig, is_near: bool) -> Self {
        let [lcp_refuses, ipcp_refuses] = match is_near {
            true => [0, 0],
            false => [config.lcp_requests, config.ipcp_requests].map(|requests| requests.whole() - 1),
        };
        let (lcp_most, ipcp_most) = (config.lcp_max_configure.whole(), config.ipcp_max_configure.whole());
        End {
            config: *config,
            is_near,
            phase: Phase::Establish,
            lcp: Negotiation::new(config.lcp_restart_s.time(), lcp_most, lcp_refuses),
            ipcp: Negotiation::new(config.ipcp_restart().time(), ipcp_most, ipcp_refuses),
            pap_timer: Time::NEVER,
            pap_sent: 0,
            opened: Time::ZERO,
            messages: Vec::new(),
            out: Vec::new(),
            has_failed: false,
        }
    }

    /// Whether the end takes the line for set up, except for the network protocol.
    pub(super) fn is_established(&self) -> bool {
        self.phase == Phase::Network
    }

    /// Whether the network protocol is open.
    pub(super) fn has_network(&self) -> bool {
        self.is_established() && self.ipcp.is_open()
    }

    /// When a timer expires next.
    pub(super) fn timer(&self) -> Time {
        self.lcp.timer.min(self.pap_timer).min(self.ipcp.timer)
    }

    /// Begins the exchange.
    pub(super) fn start(&mut self, at: Time) {
        self.lcp.start(at, &mut self.messages);
        self.send_lcp();
    }

    pub(super) fn on_frame(&mut self, frame: Frame, at: Time) {
        match (frame, self.phase) {
            (Frame::Lcp(message), _) => {
                let news = self.lcp.on_message(message, at, &mut self.messages);
                self.on_lcp(news, at);
            }
            (Frame::PapRequest, Phase::Authenticate | Phase::Network) if !self.is_near => {
                self.out.push(Frame::PapAck);
                if self.phase == Phase::Authenticate {
                    self.enter_network(at);
                }
            }
            (Frame::PapAck, Phase::Authenticate) if self.is_near => self.enter_network(at),
            (Frame::Ipcp(message), Phase::Network) => {
                let news = self.ipcp.on_message(message, at, &mut self.messages);
                self.on_ipcp(news);
            }
            _ => {} // what comes in a phase to which it does not belong is discarded
        }
    }

    /// Handles the timers that expire at `at`.
    pub(super) fn on_timeout(&mut self, at: Time) {
        if self.lcp.timer <= at {
            let news = self.lcp.on_timeout(at, &mut self.messages);
            self.on_lcp(news, at);
        }
        if self.ipcp.timer <= at {
            let news = self.ipcp.on_timeout(at, &mut self.messages);
            self.on_ipcp(news);
        }
        if self.pap_timer <= at {
            if self.is_near && self.pap_sent < self.config.pap_max_authreq.whole() {
                self.request_pap(at);
            } else {
                self.has_failed = true;
            }
        }
    }

    fn on_lcp(&mut self, news: Option<News>, at: Time) {
        // pppd takes the upper layers down before it sends, and starts them after.
        if news == Some(News::Down) {
            self.phase = Phase::Establish;
            self.ipcp.lower_down();
            self.pap_timer = Time::NEVER;
        }
        self.send_lcp();
        match news {
            Some(News::Up) => {
                self.opened = at;
                self.authenticate(at);
            }
            Some(News::Failed) => self.has_failed = true,
            Some(News::Down) | None => {}
        }
    }

    fn on_ipcp(&mut self, news: Option<News>) {
        self.has_failed |= news == Some(News::Failed);
        self.send_ipcp();
    }

    fn authenticate(&mut self, at: Time) {
        match (self.config.authentication, self.is_near) {
            (Authentication::None, _) => self.enter_network(at),
            (Authentication::Pap, true) => {
                self.phase = Phase::Authenticate;
                self.pap_sent = 0;
                self.request_pap(at);
            }
            (Authentication::Pap, false) => {
                self.phase = Phase::Authenticate;
                self.pap_timer = at + self.config.pap_timeout_s.value().map_or(Time::NEVER, PositiveSeconds::time);
            }
        }
    }

    fn request_pap(&mut self, at: Time) {
        self.pap_sent += 1;
        self.pap_timer = at + self.config.pap_restart_s.time();
        self.out.push(Frame::PapRequest);
    }

    fn enter_network(&mut self, at: Time) {
        self.phase = Phase::Network;
        self.pap_timer = Time::NEVER;
        self.ipcp.start(at, &mut self.messages);
        self.send_ipcp();
    }

    fn send_lcp(&mut self) {
        self.out.extend(self.messages.drain(..).map(Frame::Lcp));
    }

    fn send_ipcp(&mut self) {
        self.out.extend(self.messages.drain(..).map(Frame::Ipcp));
    }
}
