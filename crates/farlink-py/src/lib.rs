//! The Python extension `farlink._core`: converts, releases the interpreter, maps errors. No logic.

mod cancel;
mod codes;
mod columns;
mod convolutional;
mod dialler;
mod emulate;
mod error;
mod fluid;
mod gateway;
mod handover;
#[cfg(target_os = "linux")]
mod ip_bundle;
#[cfg(target_os = "linux")]
mod live;
mod log;
mod net;
mod net_streams;
mod optics;
mod points;
#[cfg(target_os = "linux")]
mod ppp_bundle;
mod study;
mod tell;
mod waits;
mod watch;

use pyo3::prelude::*;

/// The Rust side of farlink.
#[pymodule]
mod _core {
    use std::fs::File;
    use std::io::{BufWriter, Cursor, Write};
    use std::path::PathBuf;

    use farlink_core::scenario::{self, Expanded, Scenario, Sizes, from_json, quantity::QUANTITIES};
    use farlink_fec::events::burst_statistics as statistics;
    use farlink_fec::monte_carlo::Effort;
    use farlink_sim::Options;
    use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedBytes;
    use pyo3::types::{PyBytes, PyDict};
    use serde_json::{Map, Value, json};

    #[pymodule_export]
    use crate::cancel::Cancel;
    use crate::codes::{bursts_to_dict, events_to_dict, operating_point, rate_to_dict};
    use crate::columns::{content_to_dict, output_to_dict, series_to_dict, table_from_dict, table_to_dict};
    #[pymodule_export]
    use crate::dialler::BundleDialler;
    #[pymodule_export]
    use crate::emulate::{Emulation, prepare_emulation};
    use crate::error::BoundaryError;
    #[pymodule_export]
    use crate::error::{EngineError, ScenarioError};
    #[pymodule_export]
    use crate::gateway::{check_gateway, run_gateway};
    #[pymodule_export]
    use crate::handover::{receive_streams, send_stream};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::ip_bundle::{check_ip_bundles, run_ip_bundles, serve_bundle_helper};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::live::{LiveRun, prepare_live};
    #[pymodule_export]
    use crate::log::show_log;
    #[pymodule_export]
    use crate::net::{
        NetError, distrust_host, generate_key, public_key, receive_files, send_files, trust_host, trusted_hosts,
    };
    #[pymodule_export]
    use crate::net_streams::{NetConnection, NetListener, connect_stream, listen_for_streams};
    #[pymodule_export]
    use crate::points::Points;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::ppp_bundle::{check_ppp_bundle, run_ppp_bundle};
    #[pymodule_export]
    use crate::study::Study;
    #[pymodule_export]
    use crate::waits::NetWaits;
    use crate::watch::{raised_again, watched, watched_with};

    type Floats<'py> = Bound<'py, PyArray1<f64>>;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Fingerprint of the code that computes: SHA-256 over the Rust sources and Cargo.lock.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python expects")]
    const __build__: &str = farlink_sim::BUILD;

    /// Most bytes that the arrays of a trace may have in memory.
    #[pymodule_export]
    const LARGEST_TRACE: u64 = farlink_sim::LARGEST_TRACE;

    /// Content of a trace file's bytes: the text of its metadata, its kind, and its arrays by name.
    #[pyfunction]
    fn read_trace<'py>(py: Python<'py>, content: PyBackedBytes) -> PyResult<Bound<'py, PyDict>> {
        let read = py.detach(|| farlink_sim::Content::read(Cursor::new(&content[..])));
        content_to_dict(py, read.map_err(PyValueError::new_err)?)
    }

    /// The JSON Schema of scenarios.
    #[pyfunction]
    fn schema() -> String {
        scenario::schema()
    }

    /// The SIMD instructions that decoders use on this machine.
    #[pyfunction]
    fn simd() -> String {
        format!("{:?}", farlink_fec::simd::Simd::best())
    }

    /// Checks a scenario: its grid points, or those with these numbers, and the scenario with every default written out, as JSON.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, points=None))]
    fn expand(py: Python<'_>, scenario_json: &str, points: Option<Vec<usize>>) -> Result<String, BoundaryError> {
        py.detach(|| {
            let expanded = read_some(scenario_json, points.as_deref())?;
            let points: Vec<Map<String, Value>> =
                expanded.points.iter().map(|point| point.settings.iter().cloned().collect()).collect();
            let approximations: Vec<Value> = expanded
                .approximations
                .iter()
                .map(|left_out| json!({ "engine": left_out.engine, "path": left_out.path }))
                .collect();
            let scenario = expanded.normalised();
            Ok(json!({ "points": points, "scenario": scenario, "approximations": approximations }).to_string())
        })
    }

    /// Runs a scenario; Ctrl-C gives what is finished.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, threads=None, progress=None, announce=None, rows=true, cancel=None, points=None,
        runs=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn run<'py>(
        py: Python<'py>,
        scenario_json: &str,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
        announce: Option<Py<PyAny>>,
        rows: bool,
        cancel: Option<Cancel>,
        points: Option<Vec<usize>>,
        runs: Option<(u64, u64)>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let expanded = py.detach(|| read_some(scenario_json, points.as_deref()))?;
        let options = Options {
            threads,
            announce: announce.map(announcing),
            without_rows: !rows,
            runs: runs.map(|(first, end)| first..end),
            ..Options::default()
        };
        let (output, is_late) =
            watched_with(py, progress, cancel, |progress| farlink_sim::run(&expanded, &options, progress))?;
        Ok(output_to_dict(py, output?, is_late)?)
    }

    /// Runs a scenario with the fluid engine; Ctrl-C gives what is finished.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, threads=None, progress=None, announce=None, rows=true, cancel=None, points=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn run_fluid<'py>(
        py: Python<'py>,
        scenario_json: &str,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
        announce: Option<Py<PyAny>>,
        rows: bool,
        cancel: Option<Cancel>,
        points: Option<Vec<usize>>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let expanded = py.detach(|| read_some(scenario_json, points.as_deref()))?;
        let options =
            Options { threads, announce: announce.map(announcing), without_rows: !rows, ..Options::default() };
        let (output, is_late) =
            watched_with(py, progress, cancel, |progress| farlink_sim::fluid::run(&expanded, &options, progress))?;
        Ok(output_to_dict(py, output?, is_late)?)
    }

    /// Each grid point as closed forms see it, as JSON: the `scenario` with its defaults, the `sizes` of each flow's transport and
    /// the `rows` of its table.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, points=None))]
    fn model_points(
        py: Python<'_>,
        scenario_json: &str,
        points: Option<Vec<usize>>,
    ) -> Result<Vec<String>, BoundaryError> {
        py.detach(|| {
            let expanded = read_some(scenario_json, points.as_deref())?;
            Ok(expanded.points.iter().map(|point| model_point(&point.scenario).to_string()).collect())
        })
    }

    /// Prepares a study that is run by the piece; `cancel` stops the collection of error events and raises `KeyboardInterrupt`.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, fluid=false, threads=None, progress=None, cancel=None))]
    fn study<'py>(
        py: Python<'py>,
        scenario_json: &str,
        fluid: bool,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
        cancel: Option<Cancel>,
    ) -> Result<Study, BoundaryError> {
        let expanded = py.detach(|| read(scenario_json))?;
        let options = Options { threads, ..Options::default() };
        let study = watched_with(py, progress, cancel, |progress| Study::prepare(expanded, fluid, &options, progress))?;
        Ok(raised_again(py, study)??)
    }

    /// The summary of rows of the packet engine, which may be those of pieces in any order.
    #[pyfunction]
    fn summarise<'py>(py: Python<'py>, rows: &Bound<'py, PyDict>) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let rows = table_from_dict(rows)?;
        Ok(table_to_dict(py, py.detach(|| farlink_sim::summarise(&rows))?)?)
    }

    /// Goodput of operating points by the fluid engine: fractions of the rate, half-widths, and whether these are as small as
    /// was asked for. Ctrl-C stops it.
    #[pyfunction]
    #[pyo3(signature = (options_json, rate, round_trip_s, buffer, loss, flows, max_window, threads=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn fluid_goodput<'py>(
        py: Python<'py>,
        options_json: &str,
        rate: PyReadonlyArray1<'py, f64>,
        round_trip_s: PyReadonlyArray1<'py, f64>,
        buffer: PyReadonlyArray1<'py, f64>,
        loss: PyReadonlyArray1<'py, f64>,
        flows: PyReadonlyArray1<'py, u64>,
        max_window: PyReadonlyArray1<'py, f64>,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<(Floats<'py>, Floats<'py>, Bound<'py, PyArray1<bool>>), BoundaryError> {
        let common = crate::fluid::Common::parse(options_json)?;
        let columns = [&rate, &round_trip_s, &buffer, &loss, &max_window];
        let [rate, round_trip_s, buffer, loss, max_window] = columns.map(|column| column.as_array().to_vec());
        let flows = flows.to_vec().map_err(PyErr::from)?;
        let row = |at: usize| crate::fluid::Row {
            rate: rate[at],
            round_trip_s: round_trip_s[at],
            buffer: buffer[at],
            loss: loss[at],
            flows: flows[at] as usize,
            max_window: max_window[at],
        };
        let rows: Vec<_> = (0..rate.len()).map(row).collect();
        let options = Options { threads, ..Options::default() };
        let found = watched(py, progress, |progress| common.run(&rows, &options, progress))??;
        let found = found.ok_or(farlink_sim::RunError::Stopped)?;
        Ok((
            PyArray1::from_vec(py, found.goodput),
            PyArray1::from_vec(py, found.half_width),
            PyArray1::from_vec(py, found.is_precise),
        ))
    }

    /// CPU time in s and memory in bytes that a scenario will take on so many threads, as estimated before it is run.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, threads=1))]
    fn estimate(py: Python<'_>, scenario_json: &str, threads: usize) -> Result<(f64, f64), BoundaryError> {
        py.detach(|| {
            let options = Options { threads: Some(threads), ..Options::default() };
            let estimate = farlink_sim::estimate(&read(scenario_json)?, &options)?;
            Ok((estimate.cpu_s, estimate.memory_bytes))
        })
    }

    /// Runs one run again and observes it; Ctrl-C stops it.
    #[pyfunction]
    #[pyo3(signature = (scenario_json, point, run, series=true, pcap=false))]
    fn trace_run<'py>(
        py: Python<'py>,
        scenario_json: &str,
        point: usize,
        run: u64,
        series: bool,
        pcap: bool,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let expanded = py.detach(|| read(scenario_json))?;
        let traced = watched(py, None, |progress| {
            farlink_sim::trace_run(&expanded, point, run, series, pcap, &|| progress(0, 0).is_break())
        })??;
        let result = PyDict::new(py);
        result.set_item("pcapng", traced.pcapng.map(|bytes| PyBytes::new(py, &bytes)))?;
        result.set_item("series", series_to_dict(py, traced.series)?)?;
        Ok(result)
    }

    /// Error rates at a decoder's output; Ctrl-C gives those of what is finished.
    #[pyfunction]
    #[pyo3(signature = (coding_json, ebn0_db, *, seed=1, events=None, max_bits=1 << 30, relative_half_width=None,
        packet_bits=None, confidence=0.95, threads=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn error_rate<'py>(
        py: Python<'py>,
        coding_json: &str,
        ebn0_db: f64,
        seed: u64,
        events: Option<u64>,
        max_bits: u64,
        relative_half_width: Option<f64>,
        packet_bits: Option<u64>,
        confidence: f64,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let point = operating_point(coding_json, ebn0_db)?;
        let effort = Effort { seed, bits_max: max_bits, events, relative_half_width, packet_bits, confidence };
        let options = Options { threads, ..Options::default() };
        let work =
            |progress: farlink_sim::Progress<'_>| farlink_sim::codes::error_rate(&point, &effort, &options, progress);
        let (rate, is_late) = watched_with(py, progress, None, work)?;
        Ok(rate_to_dict(py, &rate?, is_late)?)
    }

    /// Positions of the wrong bits at a decoder's output; Ctrl-C gives those of what is finished.
    #[pyfunction]
    #[pyo3(signature = (coding_json, ebn0_db, bits, *, seed=1, threads=None, progress=None))]
    fn error_trace<'py>(
        py: Python<'py>,
        coding_json: &str,
        ebn0_db: f64,
        bits: u64,
        seed: u64,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let point = operating_point(coding_json, ebn0_db)?;
        let options = Options { threads, ..Options::default() };
        let work = |progress: farlink_sim::Progress<'_>| {
            farlink_sim::codes::error_trace(&point, bits, seed, &options, progress)
        };
        let (trace, is_late) = watched_with(py, progress, None, work)?;
        let trace = trace?;
        let result = PyDict::new(py);
        result.set_item("position", PyArray1::from_vec(py, trace.wrong))?;
        result.set_item("bits", trace.bits)?;
        result.set_item("gave_up", trace.gave_up)?;
        result.set_item("interrupted", trace.is_interrupted || is_late)?;
        Ok(result)
    }

    /// Statistics of the bursts of the wrong bits at a decoder's output, which are not kept; positions of up to `most` of them
    /// are written to the file `positions`. Ctrl-C gives what is finished.
    #[pyfunction]
    #[pyo3(signature = (coding_json, ebn0_db, bits, gap_bits, *, seed=1, positions=None, most=u64::MAX, threads=None,
        progress=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn error_bursts<'py>(
        py: Python<'py>,
        coding_json: &str,
        ebn0_db: f64,
        bits: u64,
        gap_bits: u64,
        seed: u64,
        positions: Option<PathBuf>,
        most: u64,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let point = operating_point(coding_json, ebn0_db)?;
        let options = Options { threads, ..Options::default() };
        let mut file = positions.map(File::create).transpose().map_err(PyErr::from)?.map(BufWriter::new);
        let (found, is_late) = watched_with(py, progress, None, |progress| {
            let sink = file.as_mut().map(|file| file as &mut (dyn Write + Send));
            farlink_sim::codes::error_bursts(&point, bits, gap_bits, seed, sink, most, &options, progress)
        })?;
        let found = found?;
        let found = found.and_then(|found| file.as_mut().map_or(Ok(()), Write::flush).map(|()| found));
        let found = found.map_err(PyErr::from)?;
        let result = bursts_to_dict(py, &found.statistics)?;
        result.set_item("written", found.written)?;
        result.set_item("interrupted", found.is_interrupted || is_late)?;
        Ok(result)
    }

    /// Statistics of the bursts among wrong bits: at least `gap_bits` right bits end a burst.
    #[pyfunction]
    fn burst_statistics<'py>(
        py: Python<'py>,
        position: PyReadonlyArray1<'py, u64>,
        bits: u64,
        gap_bits: u64,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        // A copy: another thread may write to the array while the interpreter is released.
        let position = position.to_vec().map_err(PyErr::from)?;
        let bursts = py.detach(|| {
            check_positions(&position, bits)?;
            Ok::<_, BoundaryError>(statistics(&position, bits, gap_bits))
        })?;
        Ok(bursts_to_dict(py, &bursts)?)
    }

    fn check_positions(position: &[u64], bits: u64) -> Result<(), farlink_core::ConfigError> {
        let remedy = "give the ascending positions of a bit-error trace and its number of bits";
        if let Some(pair) = position.windows(2).find(|pair| pair[0] >= pair[1]) {
            let what = format!("it is not ascending: {} follows {}", pair[1], pair[0]);
            return Err(farlink_core::ConfigError::new("position", what, remedy));
        }
        match position.last() {
            Some(last) if *last >= bits => {
                let what = format!("{last} is not below bits = {bits}");
                Err(farlink_core::ConfigError::new("position", what, remedy))
            }
            _ => Ok(()),
        }
    }

    /// The error events that the channel `coded` plays, from disk if they are there; Ctrl-C raises `KeyboardInterrupt`.
    #[pyfunction]
    #[pyo3(signature = (coding_json, ebn0_db, *, threads=None, progress=None))]
    fn error_events<'py>(
        py: Python<'py>,
        coding_json: &str,
        ebn0_db: f64,
        threads: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        let point = operating_point(coding_json, ebn0_db)?;
        let options = Options { threads, ..Options::default() };
        let (events, notes) =
            watched(py, progress, |progress| farlink_sim::codes::error_events(&point, &options, progress))??;
        let result = events_to_dict(py, &events)?;
        result.set_item("notes", notes)?;
        Ok(result)
    }

    /// Codes of the literature: generators, constraint length, outputs, free distance, source.
    #[pyfunction]
    fn known_codes() -> Vec<(&'static str, u32, usize, u32, &'static str)> {
        crate::convolutional::known()
    }

    /// A convolutional code and the first terms of its distance spectrum.
    #[pyfunction]
    fn code_spectrum<'py>(
        py: Python<'py>,
        coding_json: &str,
        terms: usize,
    ) -> Result<Bound<'py, PyDict>, BoundaryError> {
        crate::convolutional::spectrum_to_dict(py, &operating_point(coding_json, 0.0)?, terms)
    }

    /// The union bound on the bit error rate of a convolutional code with BPSK or QPSK; None for other modulations.
    #[pyfunction]
    fn union_bound(coding_json: &str, ebn0_db: f64, terms: usize) -> Result<Option<f64>, BoundaryError> {
        crate::convolutional::union_bound(&operating_point(coding_json, ebn0_db)?, terms)
    }

    /// Bit error rate of hard decisions at the channel, in closed form: of the data bits themselves without a code.
    #[pyfunction]
    fn channel_ber(coding_json: &str, ebn0_db: f64) -> Result<f64, BoundaryError> {
        crate::codes::channel_ber(coding_json, ebn0_db)
    }

    /// Receivers of light that can be named, and their parameters.
    #[pyfunction]
    fn receivers(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
        crate::optics::receivers(py)
    }

    /// Bit error rate of a receiver at each received power in W: Epple, eqs. (1) and (2).
    #[pyfunction]
    fn receiver_ber<'py>(
        py: Python<'py>,
        power_w: PyReadonlyArray1<'py, f64>,
        characteristic_power_w: f64,
        form_factor: f64,
    ) -> Result<Floats<'py>, BoundaryError> {
        let receiver = crate::optics::receiver(characteristic_power_w, form_factor)?;
        let power_w = power_w.to_vec().map_err(PyErr::from)?;
        let ber = py.detach(|| power_w.iter().map(|&power| receiver.ber(power)).collect());
        Ok(PyArray1::from_vec(py, ber))
    }

    /// The inverse of `receiver_ber`; NaN for error rates that are not above 0 and at most 1/2.
    #[pyfunction]
    fn receiver_power<'py>(
        py: Python<'py>,
        ber: PyReadonlyArray1<'py, f64>,
        characteristic_power_w: f64,
        form_factor: f64,
    ) -> Result<Floats<'py>, BoundaryError> {
        let receiver = crate::optics::receiver(characteristic_power_w, form_factor)?;
        let ber = ber.to_vec().map_err(PyErr::from)?;
        let power_w = py.detach(|| ber.iter().map(|&ber| receiver.power_w(ber)).collect());
        Ok(PyArray1::from_vec(py, power_w))
    }

    /// The factor on the power that makes the mean bit error rate over samples that are not blocked `ber`.
    #[pyfunction]
    #[pyo3(signature = (power_w, blocked, characteristic_power_w, form_factor, ber))]
    fn calibrate<'py>(
        py: Python<'py>,
        power_w: PyReadonlyArray1<'py, f64>,
        blocked: Option<PyReadonlyArray1<'py, bool>>,
        characteristic_power_w: f64,
        form_factor: f64,
        ber: f64,
    ) -> Result<f64, BoundaryError> {
        let receiver = crate::optics::receiver(characteristic_power_w, form_factor)?;
        let power_w = power_w.to_vec().map_err(PyErr::from)?;
        let blocked = match blocked {
            Some(blocked) => blocked.to_vec().map_err(PyErr::from)?,
            None => Vec::new(),
        };
        py.detach(|| crate::optics::calibrate(&receiver, &power_w, &blocked, ber))
    }

    /// Elevation in degrees and range in m of a satellite on a circular orbit at each time in s: see the delay `pass`.
    #[pyfunction]
    fn circular_pass<'py>(
        py: Python<'py>,
        time_s: PyReadonlyArray1<'py, f64>,
        altitude_m: f64,
        max_elevation_deg: f64,
        start_elevation_deg: f64,
        rising: bool,
    ) -> Result<(Floats<'py>, Floats<'py>), BoundaryError> {
        let orbit = crate::optics::pass(altitude_m, max_elevation_deg, start_elevation_deg, rising)?;
        let time_s = time_s.to_vec().map_err(PyErr::from)?;
        let (elevation, range) = py.detach(|| time_s.iter().map(|&time| orbit.seen_at(time)).unzip());
        Ok((PyArray1::from_vec(py, elevation), PyArray1::from_vec(py, range)))
    }

    /// When that satellite culminates and when it sets, in s; it culminates at 0 and sets never if it stands still.
    #[pyfunction]
    fn circular_pass_times(
        altitude_m: f64,
        max_elevation_deg: f64,
        start_elevation_deg: f64,
        rising: bool,
    ) -> Result<(f64, f64), BoundaryError> {
        let orbit = crate::optics::pass(altitude_m, max_elevation_deg, start_elevation_deg, rising)?;
        let (rises_s, sets_s) = (orbit.rises_at_s(), orbit.sets_at_s());
        // A pass is symmetric around its highest point.
        Ok((if sets_s.is_finite() { f64::midpoint(rises_s, sets_s) } else { 0.0 }, sets_s))
    }

    /// Name, unit and description of every measured quantity, and when it is unknown.
    #[pyfunction]
    fn quantities() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
        QUANTITIES
            .iter()
            .map(|quantity| (quantity.name, quantity.unit, quantity.description, quantity.unknown))
            .collect()
    }

    fn model_point(scenario: &Scenario) -> Value {
        let sizes: Map<String, Value> =
            scenario.flow.iter().map(|(name, flow)| (name.clone(), json!(Sizes::of(scenario, flow)))).collect();
        let rows: Vec<Value> = farlink_sim::model_rows(scenario)
            .into_iter()
            .map(|row| json!({ "flow": row.flow, "transport": row.transport, "of": row.of, "flows": row.flows }))
            .collect();
        json!({ "scenario": scenario, "sizes": sizes, "rows": rows })
    }

    /// A function of Python that is told of a long study; what it raises is written to standard error.
    fn announcing(callback: Py<PyAny>) -> farlink_sim::Announce {
        farlink_sim::Announce(std::sync::Arc::new(move |text: &str| {
            Python::attach(|py| {
                if let Err(error) = callback.call1(py, (text,)) {
                    error.write_unraisable(py, None);
                }
            });
        }))
    }

    fn read(scenario_json: &str) -> Result<Expanded, BoundaryError> {
        read_some(scenario_json, None)
    }

    /// All points of a scenario, or those with these numbers.
    fn read_some(scenario_json: &str, points: Option<&[usize]>) -> Result<Expanded, BoundaryError> {
        let scenario = from_json(scenario_json)?;
        Ok(match points {
            Some(points) => scenario::expand_some(&scenario, points)?,
            None => scenario::expand(&scenario)?,
        })
    }
}
