//! The rows of a point for the engine `model`, whose equations are in Python.

use farlink_core::scenario::{Scenario, TrafficKind};

use crate::layout::{Layout, Name};

/// A row of a point, which shows one flow or all flows of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRow {
    /// The flow's name in tables.
    pub flow: String,
    /// The name of its transport in tables.
    pub transport: String,
    /// The name of the flow in the scenario; `None` for the row over all flows.
    pub of: Option<String>,
    /// Number of its flows that the row shows.
    pub flows: u64,
}

/// The rows of a grid point in the order of the table.
pub fn model_rows(scenario: &Scenario) -> Vec<ModelRow> {
    let layout = Layout::new(scenario.flow.iter().map(|(name, flow)| {
        let is_together = matches!(flow.traffic, TrafficKind::Transfers(_));
        let count = flow.count.whole();
        Name { name, transport: &flow.transport, count, connections: Some(count), is_together }
    }));
    let row = |at: usize, of: Option<String>, flows: u64| {
        let crate::layout::RowOf { flow, transport, .. } = layout.rows[at].clone();
        ModelRow { flow, transport, of, flows }
    };
    let mut rows: Vec<ModelRow> = Vec::new();
    for (at, (name, flow)) in scenario.flow.iter().enumerate() {
        let count = flow.count.whole();
        let (first, last) = (layout.row_of(at, 0), layout.row_of(at, count - 1));
        let flows = if first == last { count } else { 1 };
        rows.extend((first..=last).map(|index| row(index, Some(name.clone()), flows)));
    }
    let all = scenario.flow.values().map(|flow| flow.count.whole()).sum();
    rows.push(row(layout.all(), None, all));
    rows
}

#[cfg(test)]
mod tests {
    use farlink_core::scenario::expand;
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_those_of_the_other_engines() {
        let scenario = json!({
            "duration_s": 1,
            "link": {"rate_bps": 1e6, "delay_s": 0.1},
            "transport": {"a": {"kind": "tcp"}, "b": {"kind": "udp"}},
            "flow": {
                "one": {"transport": "a", "traffic": {"kind": "bulk"}},
                "two": {"transport": "b", "count": 2, "traffic": {"kind": "cbr", "rate_bps": 1e3, "payload_bytes": 100}},
            },
        });
        let rows = model_rows(&expand(&scenario).unwrap().points[0].scenario);
        let shown: Vec<_> = rows.iter().map(|row| (row.flow.as_str(), row.of.as_deref(), row.flows)).collect();
        assert_eq!(
            shown,
            [("one", Some("one"), 1), ("two.1", Some("two"), 1), ("two.2", Some("two"), 1), ("all", None, 3)]
        );
        assert_eq!(rows[3].transport, "mixed");
    }
}
