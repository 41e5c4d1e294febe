//! The dialler of a bundle that is operated, for Python.

use farlink_core::bundle::{
    Action, BundleEvent, DiallerConfig, LineEvent, LineStatus, NotATime, OperatedDialler, Order, Role,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::BoundaryError;

/// Decides when each line of a bundle is dialled: events in, actions out. It has no clock and does nothing itself.
///
/// Times are readings of a clock that is never set, in s, as of `time.monotonic()`.
#[pyclass(module = "farlink._core")]
pub(crate) struct BundleDialler(OperatedDialler);

fn not_a_time(error: NotATime) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl BundleDialler {
    #[new]
    #[pyo3(signature = (config_json, history_json=None, seed=0))]
    fn new(config_json: &str, history_json: Option<&str>, seed: u64) -> Result<Self, BoundaryError> {
        let config = DiallerConfig::from_json(config_json)?;
        Ok(BundleDialler(OperatedDialler::new(&config, history_json, seed)?))
    }

    /// Handles an event, and what is due.
    #[pyo3(signature = (now_s, event, line=None, *, call=None, cause="", level=None, number="", injected=false,
        unix_s=None, zone_s=0.0))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn handle<'py>(
        &mut self,
        py: Python<'py>,
        now_s: f64,
        event: &str,
        line: Option<&str>,
        call: Option<u64>,
        cause: &str,
        level: Option<f64>,
        number: &str,
        injected: bool,
        unix_s: Option<f64>,
        zone_s: f64,
    ) -> PyResult<Bound<'py, PyList>> {
        let actions = match line {
            Some(name) => {
                let index = self.index(name)?;
                let event = line_event(event, level, injected)?;
                let words = if event == LineEvent::Ring { number } else { cause };
                self.0.handle(now_s, index, event, call, words)
            }
            None => self.0.handle_bundle(now_s, bundle_event(event, unix_s, zone_s)?),
        };
        self.listed(py, actions.map_err(not_a_time)?)
    }

    /// Does what is due. Early or repeated calls do nothing.
    fn advance<'py>(&mut self, py: Python<'py>, now_s: f64) -> PyResult<Bound<'py, PyList>> {
        let actions = self.0.advance(now_s).map_err(not_a_time)?;
        self.listed(py, actions)
    }

    /// When something is due next; None if nothing is before the next event.
    fn next_wakeup(&self) -> Option<f64> {
        self.0.next_wakeup()
    }

    /// State of each line.
    fn status<'py>(&mut self, py: Python<'py>, now_s: f64) -> PyResult<Bound<'py, PyList>> {
        let lines = self.0.status(now_s).map_err(not_a_time)?;
        let of = |status: &LineStatus| self.status_dict(py, status);
        PyList::new(py, lines.iter().map(of).collect::<PyResult<Vec<_>>>()?)
    }

    /// Costs of the calls of all lines today, and this month.
    fn costs<'py>(&mut self, py: Python<'py>, now_s: f64) -> PyResult<Bound<'py, PyDict>> {
        let (today, month) = self.0.bundle_costs(now_s).map_err(not_a_time)?;
        let dict = PyDict::new(py);
        dict.set_item("airtime_s_today", today.airtime_s)?;
        dict.set_item("airtime_s_month", month.airtime_s)?;
        dict.set_item("money_today", today.money)?;
        dict.set_item("money_month", month.money)?;
        Ok(dict)
    }

    /// The primary line; None if no line is up.
    fn primary(&self) -> Option<&str> {
        self.0.primary().map(|line| self.0.names()[line].as_str())
    }

    /// State to keep for the next start, as JSON.
    fn history(&self) -> String {
        self.0.history()
    }

    /// How often the clock went back; the latest time was kept then.
    #[getter]
    fn clock_steps_back(&self) -> u64 {
        self.0.clock_steps_back()
    }

    /// How many events were ignored, since they were not possible or about a call that is over.
    #[getter]
    fn ignored(&self) -> u64 {
        self.0.ignored()
    }
}

impl BundleDialler {
    fn index(&self, name: &str) -> PyResult<usize> {
        let index = self.0.names().iter().position(|known| known == name);
        index.ok_or_else(|| {
            PyValueError::new_err(format!("there is no line {name:?}; lines: {}", self.0.names().join(", ")))
        })
    }

    fn name(&self, line: Option<usize>) -> Option<&str> {
        line.map(|line| self.0.names()[line].as_str())
    }

    fn listed<'py>(&self, py: Python<'py>, actions: Vec<Action>) -> PyResult<Bound<'py, PyList>> {
        let of = |action: &Action| self.action_dict(py, action);
        PyList::new(py, actions.iter().map(of).collect::<PyResult<Vec<_>>>()?)
    }

    fn action_dict<'py>(&self, py: Python<'py>, action: &Action) -> PyResult<Bound<'py, PyDict>> {
        let (order, call, number, cause) = match action {
            Action::State(status) => {
                let dict = self.status_dict(py, status)?;
                dict.set_item("action", "state")?;
                return Ok(dict);
            }
            Action::Do { order, call, number, cause } => (*order, *call, number, cause),
        };
        let dict = PyDict::new(py);
        let (name, line) = match order {
            Order::Dial(line) => ("dial", Some(line)),
            Order::Answer(line) => ("answer", Some(line)),
            Order::StartLink(line) => ("start-link", Some(line)),
            Order::HangUp(line) => ("hang-up", Some(line)),
            Order::TearDown => ("tear-down", None),
            Order::Primary(line) => ("primary", line),
            Order::Alert(alert) => {
                dict.set_item("alert", alert.name())?;
                dict.set_item("cause", cause)?;
                ("alert", alert.line())
            }
        };
        dict.set_item("action", name)?;
        dict.set_item("line", self.name(line))?;
        if call > 0 {
            dict.set_item("call", call)?;
        }
        if matches!(order, Order::Answer(_)) {
            dict.set_item("number", number)?;
        }
        Ok(dict)
    }

    fn status_dict<'py>(&self, py: Python<'py>, status: &LineStatus) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("line", self.name(Some(status.line)))?;
        dict.set_item("role", if status.role == Role::Dial { "dial" } else { "answer" })?;
        dict.set_item("state", status.state.name())?;
        dict.set_item("reason", status.reason.name())?;
        dict.set_item("cause", &status.cause)?;
        dict.set_item("since_s", status.since_s)?;
        dict.set_item("until_s", status.until_s)?;
        dict.set_item("ends", status.reason.ends())?;
        dict.set_item("attempt", status.attempt)?;
        dict.set_item("call", status.call)?;
        dict.set_item("number", &status.number)?;
        dict.set_item("is_primary", status.is_primary)?;
        dict.set_item("is_trial", status.is_trial)?;
        dict.set_item("expected_up_s", status.expected_up_s)?;
        dict.set_item("connected_s", status.connected_s)?;
        dict.set_item("drops", status.drops)?;
        dict.set_item("airtime_s_today", status.today.airtime_s)?;
        dict.set_item("airtime_s_month", status.month.airtime_s)?;
        dict.set_item("money_today", status.today.money)?;
        dict.set_item("money_month", status.month.money)?;
        dict.set_item("signal", status.signal)?;
        dict.set_item("has_port", status.has_port)?;
        Ok(dict)
    }
}

/// The events of a line that need nothing but their name.
const PLAIN_EVENTS: [(&str, LineEvent); 14] = [
    ("carrier", LineEvent::Carrier),
    ("link-up", LineEvent::LinkUp),
    ("dial-failed", LineEvent::DialFailed),
    ("probe-lost", LineEvent::ProbeLost),
    ("probe-answered", LineEvent::ProbeAnswered),
    ("ring", LineEvent::Ring),
    ("ring-ended", LineEvent::RingEnded),
    ("modem-failed", LineEvent::ModemFailed),
    ("port-gone", LineEvent::PortGone),
    ("port-back", LineEvent::PortBack),
    ("hold", LineEvent::Hold),
    ("release", LineEvent::Release),
    ("redial", LineEvent::Redial),
    ("inject", LineEvent::Inject),
];

fn line_event(name: &str, level: Option<f64>, injected: bool) -> PyResult<LineEvent> {
    match name {
        "dropped" => Ok(LineEvent::Dropped { injected }),
        // A cast saturates, and makes 0 of what is no number.
        "signal" => Ok(LineEvent::Signal(level.map(|level| level as u64))),
        _ => PLAIN_EVENTS.iter().find(|(known, _)| *known == name).map(|(_, event)| *event).ok_or_else(|| {
            let known: Vec<&str> = PLAIN_EVENTS.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            PyValueError::new_err(format!("a line has no event {name:?}; events: {known}, dropped, signal"))
        }),
    }
}

fn bundle_event(name: &str, unix_s: Option<f64>, zone_s: f64) -> PyResult<BundleEvent> {
    match (name, unix_s) {
        ("start", _) => Ok(BundleEvent::Start),
        ("stop", _) => Ok(BundleEvent::Stop),
        ("bundle-lost", _) => Ok(BundleEvent::BundleLost),
        ("wall-clock", Some(unix_s)) => Ok(BundleEvent::WallClock { unix_s, zone_s }),
        ("wall-clock", None) => Err(PyValueError::new_err("wall-clock without unix_s; give s since 1970-01-01 UTC")),
        _ => Err(PyValueError::new_err(format!(
            "a bundle has no event {name:?}; events: start, stop, bundle-lost, wall-clock; others need a line"
        ))),
    }
}
