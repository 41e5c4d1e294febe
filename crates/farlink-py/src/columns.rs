//! Conversion of tables to Python: the numbers of rows as arrays of Python's own, names as lists; series and traces as NumPy arrays
//! that take over the memory.

use std::collections::BTreeMap;

use farlink_sim::{Column, Content, Output, Series, Table, Values};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

pub(crate) fn table_to_dict(py: Python<'_>, table: Table) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, column) in table.columns {
        let values = match column {
            Column::Text(texts) => names(py, texts.iter().map(String::as_str))?.into_any(),
            Column::Integer(values) => array(py, "Q", &values)?,
            Column::Real(values) => array(py, "d", &values)?,
        };
        dict.set_item(name, values)?;
    }
    Ok(dict)
}

/// Numbers as an `array.array`: to be printed they need no NumPy, whose import takes longer than a short run.
fn array<'py, T: Element>(py: Python<'py>, kind: &str, values: &[T]) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import("array")?.getattr("array")?.call1((kind, PyList::new(py, [0])?))?.mul(values.len())?;
    // The memory of an empty array need not be aligned.
    if !values.is_empty() {
        PyBuffer::<T>::get(&array)?.copy_from_slice(py, values)?;
    }
    Ok(array)
}

/// The result of a run; `is_interrupted` if Ctrl-C came when it had just ended.
pub(crate) fn output_to_dict(py: Python<'_>, output: Output, is_interrupted: bool) -> PyResult<Bound<'_, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("interrupted", output.interrupted || is_interrupted)?;
    result.set_item("notes", output.notes)?;
    result.set_item("rows", table_to_dict(py, output.rows)?)?;
    result.set_item("summary", table_to_dict(py, output.summary)?)?;
    Ok(result)
}

/// A table from columns in the form of [`table_to_dict`]: lists of texts, arrays of `uint64` and of `float64`.
///
/// # Errors
/// If a column has another type.
pub(crate) fn table_from_dict(dict: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut columns = Vec::new();
    for (name, values) in dict {
        let column = if let Ok(values) = values.extract::<PyReadonlyArray1<'_, u64>>() {
            Column::Integer(values.to_vec()?)
        } else if let Ok(values) = values.extract::<PyReadonlyArray1<'_, f64>>() {
            Column::Real(values.to_vec()?)
        } else {
            Column::Text(values.extract()?)
        };
        columns.push((name.extract()?, column));
    }
    Ok(Table { columns })
}

pub(crate) fn series_to_dict(py: Python<'_>, series: Series) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("flow", names(py, series.flow.iter().map(|name| &**name))?)?;
    dict.set_item("quantity", names(py, series.quantity.into_iter())?)?;
    dict.set_item("time_s", PyArray1::from_vec(py, series.time_s))?;
    dict.set_item("value", PyArray1::from_vec(py, series.value))?;
    Ok(dict)
}

/// A trace, with scalars as whole numbers of Python.
pub(crate) fn content_to_dict(py: Python<'_>, content: Content) -> PyResult<Bound<'_, PyDict>> {
    let arrays = PyDict::new(py);
    for (name, values) in content.arrays {
        match values {
            Values::Floats(values) => arrays.set_item(name, PyArray1::from_vec(py, values))?,
            Values::Whole(values) => arrays.set_item(name, PyArray1::from_vec(py, values))?,
            Values::Flags(values) => arrays.set_item(name, PyArray1::from_vec(py, values))?,
            Values::Scalar(value) => arrays.set_item(name, value)?,
        }
    }
    let dict = PyDict::new(py);
    dict.set_item("meta", content.meta)?;
    dict.set_item("kind", content.kind)?;
    dict.set_item("arrays", arrays)?;
    Ok(dict)
}

/// Largest number of different texts of a column that are remembered.
const MOST_NAMES: usize = 1000;

/// A list of texts in which equal ones are one object, because names are repeated.
fn names<'py, 'a>(py: Python<'py>, texts: impl Iterator<Item = &'a str>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let mut known: BTreeMap<&str, Bound<'py, PyString>> = BTreeMap::new();
    for text in texts {
        match known.get(text) {
            Some(name) => list.append(name)?,
            None => {
                let name = PyString::new(py, text);
                list.append(&name)?;
                if known.len() < MOST_NAMES {
                    known.insert(text, name);
                }
            }
        }
    }
    Ok(list)
}
