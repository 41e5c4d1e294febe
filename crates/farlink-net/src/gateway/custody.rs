//! Custody in the configuration of a gateway: `[custody]`, and which host sends to which sink.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::custody::{Bounds, Label};

use super::error::GatewayError;
use super::fields::{parsed, seconds};

/// Custody of streams: what a gateway keeps on its disk, since it has acknowledged it to the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Custody {
    /// Its folder.
    pub folder: PathBuf,
    /// Most bytes that all streams take on the disk.
    pub bytes: u64,
    /// Most bytes that are held of one stream.
    pub stream_bytes: u64,
    /// Streams at a time.
    pub streams: usize,
    /// When there is no room, streams give way that have been silent for so long.
    pub expires: Duration,
    /// By sink.
    pub routes: BTreeMap<Label, Route>,
}

/// The way to a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Peers that may send there.
    pub from: Vec<String>,
    /// The peer that is the next gateway, or the sink itself.
    pub to: String,
}

/// The table as it is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCustody {
    folder: PathBuf,
    #[serde(default = "usual_bytes")]
    bytes: u64,
    #[serde(default = "usual_stream_bytes")]
    stream_bytes: u64,
    #[serde(default = "usual_streams")]
    streams: usize,
    #[serde(default = "usual_expires_s")]
    expires_s: f64,
    #[serde(default)]
    route: Vec<RawRoute>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRoute {
    #[serde(deserialize_with = "parsed")]
    sink: Label,
    from: Vec<String>,
    to: String,
}

const LEAST_STREAM_BYTES: u64 = 1 << 16;
/// Each stream has files that are not full.
const LEAST_BYTES: u64 = 1 << 22;
const MOST_BYTES: u64 = 1 << 50;
const MOST_STREAMS: usize = 1 << 16;

const fn usual_bytes() -> u64 {
    1 << 30
}

const fn usual_stream_bytes() -> u64 {
    1 << 26
}

const fn usual_streams() -> usize {
    1024
}

/// A week.
const fn usual_expires_s() -> f64 {
    604_800.0
}

impl RawCustody {
    /// `peers` has their addresses.
    pub(super) fn check(
        self,
        path: &Path,
        peers: &BTreeMap<&str, Option<SocketAddr>>,
    ) -> Result<Custody, GatewayError> {
        let wrong = |what: String, remedy: String| Err(GatewayError::config(path, what, remedy));
        for (key, value, least, most) in [
            ("bytes", self.bytes, LEAST_BYTES, MOST_BYTES),
            ("stream_bytes", self.stream_bytes, LEAST_STREAM_BYTES, self.bytes),
            ("streams", self.streams as u64, 1, MOST_STREAMS as u64),
        ] {
            if !(least..=most).contains(&value) {
                let what = format!("custody.{key}: {value} is not within {least} and {most}");
                return wrong(what, "give a number within these".to_owned());
            }
        }
        let expires = seconds(path, "custody.expires_s", self.expires_s)?;
        if self.route.is_empty() {
            let remedy = "add [[custody.route]] with `sink`, `from` and `to`".to_owned();
            return wrong("custody has no route, so no stream is taken".to_owned(), remedy);
        }
        let mut routes = BTreeMap::new();
        for (n, RawRoute { sink, from, to }) in self.route.into_iter().enumerate() {
            let key = format!("custody.route[{n}]");
            let known = || peers.keys().copied().collect::<Vec<_>>().join(", ");
            if let Some(stranger) = from.iter().find(|name| !peers.contains_key(name.as_str())) {
                return wrong(
                    format!("{key}.from: there is no peer {stranger:?}"),
                    format!("give some of: {}", known()),
                );
            }
            if from.is_empty() {
                let what = format!("{key}.from is empty, so nobody may send to {sink}");
                return wrong(what, format!("give some of: {}", known()));
            }
            match peers.get(to.as_str()) {
                None => {
                    return wrong(format!("{key}.to: there is no peer {to:?}"), format!("give one of: {}", known()));
                }
                Some(None) => {
                    let remedy = format!("give peer.{to}.address, as 192.0.2.1:47470");
                    return wrong(format!("{key}.to: the peer {to:?} has no address"), remedy);
                }
                Some(Some(_)) => {}
            }
            if from.contains(&to) {
                let what = format!("{key}: streams of {to:?} would go back to it");
                return wrong(what, "give another peer in `to`, or leave it out of `from`".to_owned());
            }
            if routes.insert(sink.clone(), Route { from, to }).is_some() {
                let what = format!("{key}.sink: there are two routes to {sink}");
                return wrong(what, "give each sink once, with all hosts that send there in `from`".to_owned());
            }
        }
        let folder = path.parent().unwrap_or(Path::new("")).join(&self.folder);
        let RawCustody { bytes, stream_bytes, streams, .. } = self;
        Ok(Custody { folder, bytes, stream_bytes, streams, expires, routes })
    }
}

impl Custody {
    pub(super) fn bounds(&self) -> Bounds {
        let Custody { bytes, stream_bytes, streams, expires, .. } = *self;
        Bounds { bytes, stream_bytes, streams, expires }
    }

    /// A summary for people, line by line.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (sink, Route { from, to }) in &self.routes {
            lines.push(format!(
                "streams of {} to the sink {sink} go to {to}, and are kept until it has them",
                from.join(", ")
            ));
        }
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        lines.push(format!(
            "{} keeps up to {} streams, {} MiB of each and {} MiB in all",
            self.folder.display(),
            self.streams,
            mib(self.stream_bytes),
            mib(self.bytes)
        ));
        lines
    }
}
