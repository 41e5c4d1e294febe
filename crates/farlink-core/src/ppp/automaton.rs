//! The option negotiation automaton (RFC 1661, section 4): its states, events and actions, as one pure function.

/// A state of the automaton (RFC 1661, section 4.2), in the order of their numbers there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names of the RFC")]
pub enum State {
    #[default]
    Initial,
    Starting,
    Closed,
    Stopped,
    Closing,
    Stopping,
    ReqSent,
    AckRcvd,
    AckSent,
    Opened,
}

impl State {
    /// All states, by their numbers.
    pub const ALL: [State; 10] = [
        State::Initial,
        State::Starting,
        State::Closed,
        State::Stopped,
        State::Closing,
        State::Stopping,
        State::ReqSent,
        State::AckRcvd,
        State::AckSent,
        State::Opened,
    ];

    /// Whether the restart timer runs (RFC 1661, section 4.2: in Closing, Stopping, Req-Sent, Ack-Rcvd and Ack-Sent).
    pub const fn has_timer(self) -> bool {
        matches!(self, State::Closing | State::Stopping | State::ReqSent | State::AckRcvd | State::AckSent)
    }
}

/// An event (RFC 1661, section 4.3), with its abbreviation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Up: the lower layer carries packets.
    Up,
    /// Down: it no longer does.
    Down,
    /// Open: the link may be opened.
    Open,
    /// Close: it may not.
    Close,
    /// TO+: the timer expired, and another attempt is allowed.
    TimeoutRetry,
    /// TO-: the timer expired for the last time.
    TimeoutGiveUp,
    /// RCR+: a Configure-Request that is acceptable.
    GoodRequest,
    /// RCR-: a Configure-Request that is not.
    BadRequest,
    /// RCA: a Configure-Ack.
    Ack,
    /// RCN: a Configure-Nak or Configure-Reject.
    NakOrReject,
    /// RTR: a Terminate-Request.
    TerminateRequest,
    /// RTA: a Terminate-Ack.
    TerminateAck,
    /// RUC: a packet of unknown code.
    UnknownCode,
    /// RXJ+: a Code-Reject or Protocol-Reject that can be borne.
    BearableReject,
    /// RXJ-: one that cannot.
    FatalReject,
    /// RXR: an Echo-Request, Echo-Reply or Discard-Request.
    EchoOrDiscard,
}

/// An action (RFC 1661, section 4.4), with its abbreviation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// tlu: this layer is up.
    LayerUp,
    /// tld: this layer is down.
    LayerDown,
    /// tls: this layer wants the lower one.
    LayerStarted,
    /// tlf: it no longer does.
    LayerFinished,
    /// irc: the restart counter begins anew.
    InitRestartCount,
    /// zrc: the restart counter is zero, for one timeout.
    ZeroRestartCount,
    /// scr
    SendRequest,
    /// sca
    SendAck,
    /// scn: Configure-Nak or Configure-Reject.
    SendNak,
    /// str
    SendTerminateRequest,
    /// sta
    SendTerminateAck,
    /// scj
    SendCodeReject,
    /// ser: an Echo-Reply, if it was an Echo-Request.
    SendEchoReply,
}

/// The actions and the next state; `None` for an event that cannot happen in the state. The options of implementations (r, p) are not
/// taken; a negotiation may be restarted by Down and Up.
pub const fn transition(state: State, event: Event) -> Option<(&'static [Action], State)> {
    use Action::{
        InitRestartCount as irc, LayerDown as tld, LayerFinished as tlf, LayerStarted as tls, LayerUp as tlu,
        SendAck as sca, SendCodeReject as scj, SendEchoReply as ser, SendNak as scn, SendRequest as scr,
        SendTerminateAck as sta, SendTerminateRequest as str, ZeroRestartCount as zrc,
    };
    use State::{AckRcvd, AckSent, Closed, Closing, Initial, Opened, ReqSent, Starting, Stopped, Stopping};

    let (actions, next): (&'static [Action], State) = match event {
        Event::Up => match state {
            Initial => (&[], Closed),
            Starting => (&[irc, scr], ReqSent),
            _ => return None,
        },
        Event::Down => match state {
            Closed | Closing => (&[], Initial),
            Stopped => (&[tls], Starting),
            Stopping | ReqSent | AckRcvd | AckSent => (&[], Starting),
            Opened => (&[tld], Starting),
            Initial | Starting => return None,
        },
        Event::Open => match state {
            Initial => (&[tls], Starting),
            Closed => (&[irc, scr], ReqSent),
            Closing => (&[], Stopping),
            same => (&[], same),
        },
        Event::Close => match state {
            Starting => (&[tlf], Initial),
            Stopped => (&[], Closed),
            Stopping => (&[], Closing),
            ReqSent | AckRcvd | AckSent => (&[irc, str], Closing),
            Opened => (&[tld, irc, str], Closing),
            same => (&[], same),
        },
        Event::TimeoutRetry => match state {
            Closing | Stopping => (&[str], state),
            ReqSent | AckRcvd => (&[scr], ReqSent),
            AckSent => (&[scr], AckSent),
            _ => return None,
        },
        Event::TimeoutGiveUp => match state {
            Closing => (&[tlf], Closed),
            Stopping | ReqSent | AckRcvd | AckSent => (&[tlf], Stopped),
            _ => return None,
        },
        _ if matches!(state, Initial | Starting) => return None,
        Event::GoodRequest => match state {
            Closed => (&[sta], Closed),
            Stopped => (&[irc, scr, sca], AckSent),
            AckRcvd => (&[sca, tlu], Opened),
            Opened => (&[tld, scr, sca], AckSent),
            Closing | Stopping => (&[], state),
            _ => (&[sca], AckSent),
        },
        Event::BadRequest => match state {
            Closed => (&[sta], Closed),
            Stopped => (&[irc, scr, scn], ReqSent),
            AckRcvd => (&[scn], AckRcvd),
            Opened => (&[tld, scr, scn], ReqSent),
            Closing | Stopping => (&[], state),
            _ => (&[scn], ReqSent),
        },
        Event::Ack => match state {
            Closed | Stopped => (&[sta], state),
            ReqSent => (&[irc], AckRcvd),
            AckRcvd => (&[scr], ReqSent),
            AckSent => (&[irc, tlu], Opened),
            Opened => (&[tld, scr], ReqSent),
            _ => (&[], state),
        },
        Event::NakOrReject => match state {
            Closed | Stopped => (&[sta], state),
            ReqSent => (&[irc, scr], ReqSent),
            AckRcvd => (&[scr], ReqSent),
            AckSent => (&[irc, scr], AckSent),
            Opened => (&[tld, scr], ReqSent),
            _ => (&[], state),
        },
        Event::TerminateRequest => match state {
            ReqSent | AckRcvd | AckSent => (&[sta], ReqSent),
            Opened => (&[tld, zrc, sta], Stopping),
            _ => (&[sta], state),
        },
        Event::TerminateAck => match state {
            Closing => (&[tlf], Closed),
            Stopping => (&[tlf], Stopped),
            AckRcvd => (&[], ReqSent),
            Opened => (&[tld, scr], ReqSent),
            _ => (&[], state),
        },
        Event::UnknownCode => (&[scj], state),
        Event::BearableReject => match state {
            AckRcvd => (&[], ReqSent),
            _ => (&[], state),
        },
        Event::FatalReject => match state {
            Closed | Closing => (&[tlf], Closed),
            Opened => (&[tld, irc, str], Stopping),
            _ => (&[tlf], Stopped),
        },
        Event::EchoOrDiscard => match state {
            Opened => (&[ser], Opened),
            _ => (&[], state),
        },
    };
    Some((actions, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [(&str, Event); 16] = [
        ("Up", Event::Up),
        ("Down", Event::Down),
        ("Open", Event::Open),
        ("Close", Event::Close),
        ("TO+", Event::TimeoutRetry),
        ("TO-", Event::TimeoutGiveUp),
        ("RCR+", Event::GoodRequest),
        ("RCR-", Event::BadRequest),
        ("RCA", Event::Ack),
        ("RCN", Event::NakOrReject),
        ("RTR", Event::TerminateRequest),
        ("RTA", Event::TerminateAck),
        ("RUC", Event::UnknownCode),
        ("RXJ+", Event::BearableReject),
        ("RXJ-", Event::FatalReject),
        ("RXR", Event::EchoOrDiscard),
    ];

    /// RFC 1661, section 4.1, states 0 to 9 from left to right. r, p and x are footnotes: restart and passive options, crossed
    /// connection.
    const TABLE: &str = "
        Up     2      irc,scr/6 -     -               -     -     -         -         -         -
        Down   -      -         0     tls/1           0     1     1         1         1         tld/1
        Open   tls/1  1         irc,scr/6 3r          5r    5r    6         7         8         9r
        Close  0      tlf/0     2     2               4     4     irc,str/4 irc,str/4 irc,str/4 tld,irc,str/4
        TO+    -      -         -     -               str/4 str/5 scr/6     scr/6     scr/8     -
        TO-    -      -         -     -               tlf/2 tlf/3 tlf/3p    tlf/3p    tlf/3p    -
        RCR+   -      -         sta/2 irc,scr,sca/8   4     5     sca/8     sca,tlu/9 sca/8     tld,scr,sca/8
        RCR-   -      -         sta/2 irc,scr,scn/6   4     5     scn/6     scn/7     scn/6     tld,scr,scn/6
        RCA    -      -         sta/2 sta/3           4     5     irc/7     scr/6x    irc,tlu/9 tld,scr/6x
        RCN    -      -         sta/2 sta/3           4     5     irc,scr/6 scr/6x    irc,scr/8 tld,scr/6x
        RTR    -      -         sta/2 sta/3           sta/4 sta/5 sta/6     sta/6     sta/6     tld,zrc,sta/5
        RTA    -      -         2     3               tlf/2 tlf/3 6         6         8         tld,scr/6
        RUC    -      -         scj/2 scj/3           scj/4 scj/5 scj/6     scj/7     scj/8     scj/9
        RXJ+   -      -         2     3               4     5     6         6         8         9
        RXJ-   -      -         tlf/2 tlf/3           tlf/2 tlf/3 tlf/3     tlf/3     tlf/3     tld,irc,str/5
        RXR    -      -         2     3               4     5     6         7         8         ser/9";

    fn abbreviated(action: &Action) -> &'static str {
        match action {
            Action::LayerUp => "tlu",
            Action::LayerDown => "tld",
            Action::LayerStarted => "tls",
            Action::LayerFinished => "tlf",
            Action::InitRestartCount => "irc",
            Action::ZeroRestartCount => "zrc",
            Action::SendRequest => "scr",
            Action::SendAck => "sca",
            Action::SendNak => "scn",
            Action::SendTerminateRequest => "str",
            Action::SendTerminateAck => "sta",
            Action::SendCodeReject => "scj",
            Action::SendEchoReply => "ser",
        }
    }

    fn cell(state: State, event: Event) -> String {
        let Some((actions, next)) = transition(state, event) else { return "-".to_owned() };
        let names: Vec<&str> = actions.iter().map(abbreviated).collect();
        let separator = if names.is_empty() { "" } else { "/" };
        format!("{}{separator}{}", names.join(","), next as u8)
    }

    #[test]
    fn every_cell_is_that_of_the_rfc() {
        let rows: Vec<&str> = TABLE.trim().lines().collect();
        assert_eq!(rows.len(), EVENTS.len());
        let mut cells = 0;
        for (row, (name, event)) in rows.into_iter().zip(EVENTS) {
            let mut printed = row.split_whitespace();
            assert_eq!(printed.next(), Some(name));
            for state in State::ALL {
                let wanted = printed.next().unwrap().trim_end_matches(['r', 'p', 'x']);
                assert_eq!(cell(state, event), wanted, "{name} in {state:?}");
                cells += 1;
            }
            assert_eq!(printed.next(), None);
        }
        assert_eq!(cells, 160);
    }
}
