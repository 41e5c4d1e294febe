//! Gateways at both ends of a hop. At a gateway a flow's connection ends and the next one begins.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::Scenario;
use super::near_names::suggest;
use super::restart::Restart;
use crate::ConfigError;
use crate::protocol::TransportConfig;
use crate::protocol::tcp::TcpConfig;
use crate::units::{Count, Seconds};

/// Default buffer of one gateway.
const BUFFER_BYTES: f64 = 1e7;
/// Default time of a write to disk that is flushed (`fsync` on a solid-state disk).
const WRITE_S: f64 = 0.01;
/// Receive window of the default transport on the other hops, segments: 4.2 MB, about the 6 MB that Linux allows (`tcp_rmem`)
/// less the part that it reserves for overhead.
const EDGE_WINDOW_SEGMENTS: f64 = 2880.0;

/// Gateways at both ends of a hop. The flow's transport runs between them, and another transport runs on the hops before and
/// after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gateway {
    /// Name of the transport from the source to the first gateway and from the second gateway to the sink. Defaults to TCP with
    /// selective acknowledgements and a receive window of 4.2 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edge_transport: Option<String>,
    /// Where a gateway stores data that it has acknowledged.
    pub custody: Custody,
    /// Buffer of a gateway per flow, in bytes. A gateway whose buffer is full reads no more from the incoming connection, so that
    /// its window closes; data in flight at that moment is stored in addition.
    pub buffer_bytes: Count,
    // `[N2]`
    /// With `custody = "disk"`: time from the arrival of a packet until it is on disk and acknowledged, in seconds. Defaults to
    /// 0.01 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_s: Option<Seconds>,
    /// A crash: one of the two gateways goes down and loses its connections and all data that is not on disk. By default there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash: Option<Restart>,
}

/// Where a gateway stores data that it has acknowledged, until the next gateway or the sink acknowledges it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Custody {
    /// In memory: data is acknowledged on arrival and lost in a crash.
    #[default]
    Memory,
    /// On disk: data is acknowledged once it is written, and survives a crash.
    Disk,
}

impl Default for Gateway {
    fn default() -> Self {
        Gateway {
            edge_transport: None,
            custody: Custody::default(),
            buffer_bytes: Count::new(BUFFER_BYTES).expect("a constant within its range"),
            write_s: None,
            crash: None,
        }
    }
}

impl Gateway {
    /// How long a write takes; `None` without a disk.
    pub fn write_time(&self) -> Option<Seconds> {
        let default = || Seconds::new(WRITE_S).expect("a constant within its range");
        (self.custody == Custody::Disk).then(|| self.write_s.unwrap_or_else(default))
    }

    /// Checks the rules between keys that the types of single keys cannot express; paths are relative to the gateway's table.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), ConfigError> {
        if self.custody == Custody::Memory && self.write_s.is_some() {
            let what = "it has no effect: custody = \"memory\" writes nothing";
            return Err(ConfigError::new("write_s", what, "leave it out, or give custody = \"disk\""));
        }
        if let Some(name) = &self.edge_transport {
            check_edge(scenario, name)?;
        }
        self.crash.map_or(Ok(()), |crash| crash.check(scenario.duration_s)).map_err(|error| error.within("crash"))
    }

    /// The transport from the source to the gateway, and from the other gateway to the sink.
    pub fn edge(&self, scenario: &Scenario) -> TransportConfig {
        let named = self.edge_transport.as_ref().and_then(|name| scenario.transport.get(name));
        named.cloned().unwrap_or_else(|| {
            let window = Count::new(EDGE_WINDOW_SEGMENTS).ok();
            TransportConfig::Tcp(TcpConfig { receive_window_segments: window, ..TcpConfig::default() })
        })
    }
}

fn check_edge(scenario: &Scenario, name: &str) -> Result<(), ConfigError> {
    const KEY: &str = "edge_transport";
    match scenario.transport.get(name) {
        None => {
            let what = format!("there is no [transport.{name}]");
            let remedy = suggest(name, "transports", scenario.transport.keys().map(String::as_str));
            Err(ConfigError::new(KEY, what, remedy))
        }
        Some(transport) if transport.as_dyn().carries_datagrams() => {
            let what = format!(
                "{name:?} is {}: a gateway joins two streams, and datagrams are not a stream",
                transport.kind()
            );
            Err(ConfigError::new(KEY, what, "name a tcp transport, or leave it out"))
        }
        Some(_) => Ok(()),
    }
}

/// Reads `true` (a gateway with all its defaults), `false` (none) or a table.
pub(super) fn switch_or_table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Gateway>, D::Error> {
    struct SwitchOrTableVisitor;

    impl<'de> Visitor<'de> for SwitchOrTableVisitor {
        type Value = Option<Gateway>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("true, false, or a table with keys of the gateway")
        }

        fn visit_bool<E: Error>(self, is_on: bool) -> Result<Self::Value, E> {
            Ok(is_on.then(Gateway::default))
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
            Gateway::deserialize(MapAccessDeserializer::new(table)).map(Some)
        }
    }

    deserializer.deserialize_any(SwitchOrTableVisitor)
}

/// The schema of what [`switch_or_table`] reads.
pub(super) struct SwitchOrTable;

impl JsonSchema for SwitchOrTable {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SwitchOrTable".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<Gateway>();
        schemars::json_schema!({ "anyOf": [{ "type": "boolean" }, table] })
    }
}
