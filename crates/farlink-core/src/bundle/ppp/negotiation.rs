//! The option negotiation of RFC 1661, section 4, as pppd carries it out (`fsm.c`).

use crate::time::Time;

/// State of a negotiation (RFC 1661, section 4.2), of those that a set-up passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Stopped,
    RequestSent,
    AckReceived,
    AckSent,
    Opened,
}

/// A message of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Configure-Request. `refused` is the number of Configure-Naks that its sender has followed.
    Request { id: u64, refused: u64 },
    /// Configure-Ack.
    Ack { id: u64 },
    /// Configure-Nak.
    Nak { id: u64 },
}

/// Events of a negotiation for the layer above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Up,
    Down,
    Failed,
}

/// One end of a negotiation. Messages to send are appended to `out`.
#[derive(Clone, Debug)]
pub(super) struct Negotiation {
    state: State,
    restart: Time,
    /// Number of transmissions of a request (Max-Configure).
    most: u64,
    /// Number of requests of the peer that are refused before one is accepted.
    refuses: u64,
    /// Transmissions of the present request that are left (the restart counter).
    left: u64,
    id: u64,
    has_answer: bool,
    refused: u64,
    /// When the restart timer expires.
    pub(super) timer: Time,
}

impl Negotiation {
    /// A negotiation that waits for a request of the peer.
    pub(super) fn new(restart: Time, most: u64, refuses: u64) -> Self {
        Negotiation {
            state: State::Stopped,
            restart,
            most,
            refuses,
            left: 0,
            id: 0,
            has_answer: false,
            refused: 0,
            timer: Time::NEVER,
        }
    }

    /// The layer below is down: the negotiation begins anew when it is started.
    pub(super) fn lower_down(&mut self) {
        self.state = State::Stopped;
        self.timer = Time::NEVER;
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Opened
    }

    /// Sends the first request, unless one was sent already.
    pub(super) fn start(&mut self, at: Time, out: &mut Vec<Message>) {
        if self.state == State::Stopped {
            self.request_anew(at, out);
        }
    }

    fn request(&mut self, at: Time, out: &mut Vec<Message>) {
        self.left = self.most;
        self.id += 1;
        self.send_request(at, out);
    }

    fn send_request(&mut self, at: Time, out: &mut Vec<Message>) {
        self.has_answer = false;
        self.left -= 1;
        self.timer = at + self.restart;
        out.push(Message::Request { id: self.id, refused: self.refused });
    }

    /// Begins with the first options again.
    fn request_anew(&mut self, at: Time, out: &mut Vec<Message>) {
        self.refused = 0;
        self.request(at, out);
        self.state = State::RequestSent;
    }

    pub(super) fn on_message(&mut self, message: Message, at: Time, out: &mut Vec<Message>) -> Option<News> {
        match message {
            Message::Request { id, refused } => self.on_request(id, refused, at, out),
            Message::Ack { id } | Message::Nak { id } if id != self.id || self.has_answer => None,
            Message::Ack { .. } => self.on_ack(at, out),
            Message::Nak { .. } => self.on_nak(at, out),
        }
    }

    fn on_request(&mut self, id: u64, refused: u64, at: Time, out: &mut Vec<Message>) -> Option<News> {
        let news = self.is_open().then_some(News::Down);
        if matches!(self.state, State::Opened | State::Stopped) {
            self.request_anew(at, out);
        }
        if refused < self.refuses {
            out.push(Message::Nak { id });
            if self.state != State::AckReceived {
                self.state = State::RequestSent;
            }
            return news;
        }
        out.push(Message::Ack { id });
        if self.state == State::AckReceived {
            self.state = State::Opened;
            self.timer = Time::NEVER;
            return Some(News::Up);
        }
        self.state = State::AckSent;
        news
    }

    fn on_ack(&mut self, at: Time, out: &mut Vec<Message>) -> Option<News> {
        self.has_answer = true;
        match self.state {
            State::Stopped => None,
            State::RequestSent => {
                self.state = State::AckReceived;
                self.left = self.most;
                None
            }
            State::AckSent => {
                self.state = State::Opened;
                self.timer = Time::NEVER;
                Some(News::Up)
            }
            State::AckReceived | State::Opened => self.start_over(at, out),
        }
    }

    fn on_nak(&mut self, at: Time, out: &mut Vec<Message>) -> Option<News> {
        self.has_answer = true;
        match self.state {
            State::Stopped => None,
            State::RequestSent | State::AckSent => {
                self.refused += 1;
                self.request(at, out);
                None
            }
            State::AckReceived | State::Opened => self.start_over(at, out),
        }
    }

    /// An answer that was not expected any more.
    fn start_over(&mut self, at: Time, out: &mut Vec<Message>) -> Option<News> {
        let news = self.is_open().then_some(News::Down);
        self.request_anew(at, out);
        news
    }

    /// The restart timer has expired.
    pub(super) fn on_timeout(&mut self, at: Time, out: &mut Vec<Message>) -> Option<News> {
        if self.left == 0 {
            self.state = State::Stopped;
            self.timer = Time::NEVER;
            return Some(News::Failed);
        }
        self.send_request(at, out);
        if self.state == State::AckReceived {
            self.state = State::RequestSent;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESTART: Time = Time::from_secs(10);

    fn end() -> Negotiation {
        Negotiation::new(RESTART, 3, 0)
    }

    /// A request goes out `most` times; then the negotiation has failed (RFC 1661, section 4.6, Max-Configure).
    #[test]
    fn requests_without_an_answer_end_the_negotiation() {
        let (mut end, mut out) = (end(), Vec::new());
        end.start(Time::ZERO, &mut out);
        let (news, at) = loop {
            let at = end.timer;
            if let Some(news) = end.on_timeout(at, &mut out) {
                break (news, at);
            }
        };
        assert_eq!((news, at, out.len()), (News::Failed, RESTART.times(3), 3));
        assert!(out.iter().all(|message| *message == Message::Request { id: 1, refused: 0 }));
    }

    /// Opened, the end sends a request of its own on a request of the peer, and acknowledges (RFC 1661, section 4.1: tld, scr, sca).
    #[test]
    fn a_request_takes_an_open_negotiation_down() {
        let (mut end, mut out) = (end(), Vec::new());
        end.start(Time::ZERO, &mut out);
        assert_eq!(end.on_message(Message::Ack { id: 7 }, Time::ZERO, &mut out), None, "not the number of its request");
        assert_eq!(end.on_message(Message::Ack { id: 1 }, Time::ZERO, &mut out), None);
        assert_eq!(end.on_message(Message::Request { id: 9, refused: 0 }, Time::ZERO, &mut out), Some(News::Up));
        out.clear();
        assert_eq!(end.on_message(Message::Request { id: 10, refused: 0 }, Time::ZERO, &mut out), Some(News::Down));
        assert_eq!(out, [Message::Request { id: 2, refused: 0 }, Message::Ack { id: 10 }]);
        assert_eq!(end.on_message(Message::Ack { id: 2 }, Time::ZERO, &mut out), Some(News::Up));
    }

    #[test]
    fn a_refused_request_is_made_again_with_another_number() {
        let (mut end, mut out) = (end(), Vec::new());
        end.start(Time::ZERO, &mut out);
        end.on_message(Message::Nak { id: 1 }, Time::from_secs(4), &mut out);
        assert_eq!(out[1], Message::Request { id: 2, refused: 1 });
        assert_eq!(end.timer, Time::from_secs(14));
    }
}
