//! The keys of a scenario that describe PPP on the lines of a bundle.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Time;
use crate::units::{CountToMillion, OrNever, PositiveSeconds, Seconds};

/// How PPP sets up a line once its modem is connected: LCP, authentication and IPCP, message by message over the line's rate, delay
/// and `arq`, with the timers and counters of pppd (RFC 1661, section 4.6). `calls.redial` is then only the time that the modem
/// takes. The network protocol is negotiated once for the bundle: by the first line, not by those that join it (RFC 1990, section 4).
/// The defaults are those of Zaghloul's table 3.2, and where it has none those of pppd.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PppConfig {
    /// How long the near end waits for a frame of the far end before it sends its first request, in seconds (pppd:
    /// `connect-delay`).
    pub connect_delay_s: Seconds,
    /// Whether the far end sends nothing before it has a request of the near end (pppd: `silent`; also a server that starts pppd when
    /// it sees a frame of PPP). Otherwise it begins at once, and its first frame ends the wait of the near end.
    pub far_is_silent: bool,
    /// Time after which a request of LCP is sent again, in seconds (pppd: `lcp-restart`).
    pub lcp_restart_s: PositiveSeconds,
    /// Number of transmissions of a request of LCP after which the attempt has failed (pppd: `lcp-max-configure`).
    pub lcp_max_configure: CountToMillion,
    /// Number of requests of LCP that the near end makes until the far end accepts its options; those before the last are answered
    /// with a Configure-Nak.
    pub lcp_requests: CountToMillion,
    /// How the near end authenticates itself.
    pub authentication: Authentication,
    /// Time after which a request of PAP is sent again, in seconds (pppd: `pap-restart`).
    pub pap_restart_s: PositiveSeconds,
    /// Number of transmissions of a request of PAP after which the attempt has failed (pppd: `pap-max-authreq`).
    pub pap_max_authreq: CountToMillion,
    /// How long the far end waits for a request of PAP until it ends the call, in seconds (pppd: `pap-timeout`).
    pub pap_timeout_s: OrNever<PositiveSeconds>,
    /// Time after which a request of IPCP is sent again, in seconds (pppd: `ipcp-restart`). Defaults to `lcp_restart_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipcp_restart_s: Option<PositiveSeconds>,
    /// Number of transmissions of a request of IPCP after which the attempt has failed (pppd: `ipcp-max-configure`).
    pub ipcp_max_configure: CountToMillion,
    /// Number of requests of IPCP that the near end makes until the far end accepts one; 2 if it gets its address from the far end.
    pub ipcp_requests: CountToMillion,
    /// Length of each frame of the exchange on the line, in bytes, with flags and escapes.
    pub frame_bytes: CountToMillion,
}

/// How the near end authenticates itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Authentication {
    /// With the password authentication protocol (RFC 1334): a request and its acknowledgement.
    #[default]
    Pap,
    /// Not at all.
    None,
}

/// Detection of drops by LCP echoes, as in pppd. Each end sends a request as LCP opens and then one every `interval_s`. Once
/// `failures` of them in a row have no answer, the end takes the line down instead of sending the next, and asks its peer to
/// terminate for `terminate_s` before it hangs up. Until then it gives packets to the line. So the time until a drop is noticed
/// depends on where it falls between two echoes. Echoes are not lost and wait behind no data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EchoConfig {
    /// Time between two requests, in seconds (pppd: `lcp-echo-interval`).
    pub interval_s: PositiveSeconds,
    /// Number of requests without an answer after which a line is taken down (pppd: `lcp-echo-failure`).
    pub failures: CountToMillion,
    /// How long an end asks its peer in vain to terminate, in seconds: in pppd `lcp-max-terminate` (2) times `lcp-restart`. Defaults
    /// to twice `lcp_restart_s` of `ppp`, whose default is 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate_s: Option<Seconds>,
}

fn seconds(value: f64) -> PositiveSeconds {
    PositiveSeconds::new(value).expect("a constant within its range")
}

fn times(value: f64) -> CountToMillion {
    CountToMillion::new(value).expect("a constant within its range")
}

impl Default for PppConfig {
    fn default() -> Self {
        PppConfig {
            connect_delay_s: Seconds::new(5.0).expect("a constant within its range"),
            far_is_silent: true,
            lcp_restart_s: seconds(10.0),
            lcp_max_configure: times(10.0),
            lcp_requests: times(1.0),
            authentication: Authentication::default(),
            pap_restart_s: seconds(10.0),
            pap_max_authreq: times(10.0),
            pap_timeout_s: OrNever::Value(seconds(30.0)),
            ipcp_restart_s: None,
            ipcp_max_configure: times(10.0),
            ipcp_requests: times(2.0),
            frame_bytes: times(40.0),
        }
    }
}

impl Default for EchoConfig {
    fn default() -> Self {
        EchoConfig { interval_s: seconds(30.0), failures: times(2.0), terminate_s: None }
    }
}

impl PppConfig {
    pub(in crate::bundle) fn ipcp_restart(&self) -> PositiveSeconds {
        self.ipcp_restart_s.unwrap_or(self.lcp_restart_s)
    }

    /// Least time until an attempt has failed.
    pub(in crate::bundle) fn quickest_failure(&self) -> Time {
        let timers = [self.lcp_restart_s, self.pap_restart_s, self.ipcp_restart()].map(PositiveSeconds::time);
        let timeout = self.pap_timeout_s.value().map_or(Time::NEVER, PositiveSeconds::time);
        timers.into_iter().fold(timeout, Time::min)
    }
}

impl EchoConfig {
    /// How long an end asks its peer to terminate.
    pub(in crate::bundle) fn terminate(&self, ppp: Option<&PppConfig>) -> Time {
        let restart = ppp.map_or(PppConfig::default().lcp_restart_s, |ppp| ppp.lcp_restart_s).time();
        self.terminate_s.map_or(restart.times(2), Seconds::time)
    }
}
