//! Tables: what a simulation gives back.

/// A table: columns of equal length, each with its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// In the order of display.
    pub columns: Vec<(String, Column)>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Names.
    Text(Vec<String>),
    /// Counts and indices.
    Integer(Vec<u64>),
    /// Measured numbers; NaN where a number is not known.
    Real(Vec<f64>),
}

/// Time series, in long form: row i says that `quantity[i]` of `flow[i]` was `value[i]` at `time_s[i]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Names of flows.
    pub flow: Vec<String>,
    /// Names of quantities.
    pub quantity: Vec<&'static str>,
    /// Instants, seconds.
    pub time_s: Vec<f64>,
    /// Values, in the quantity's unit.
    pub value: Vec<f64>,
}
