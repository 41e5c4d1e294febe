//! Tables, the results of a simulation.

use std::sync::Arc;

/// A table: columns of equal length, each with its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// In the order of display.
    pub columns: Vec<(String, Column)>,
}

impl Table {
    /// Appends the rows of another table.
    ///
    /// # Errors
    /// If the other has other columns; then nothing is appended.
    pub fn append(&mut self, other: Table) -> Result<(), UnlikeTables> {
        if self.columns.is_empty() {
            *self = other;
            return Ok(());
        }
        let is_like = |((name, column), (other_name, other)): (&(String, Column), &(String, Column))| {
            name == other_name && std::mem::discriminant(column) == std::mem::discriminant(other)
        };
        if self.columns.len() != other.columns.len() || !self.columns.iter().zip(&other.columns).all(is_like) {
            return Err(UnlikeTables);
        }
        for ((_, column), (_, more)) in self.columns.iter_mut().zip(other.columns) {
            match (column, more) {
                (Column::Text(column), Column::Text(more)) => column.extend(more),
                (Column::Integer(column), Column::Integer(more)) => column.extend(more),
                (Column::Real(column), Column::Real(more)) => column.extend(more),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Tables that do not have the same columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tables have different columns; append rows of the same kind of run")]
pub struct UnlikeTables;

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
    pub flow: Vec<Arc<str>>,
    /// Names of quantities.
    pub quantity: Vec<&'static str>,
    /// Instants, seconds.
    pub time_s: Vec<f64>,
    /// Values, in the quantity's unit.
    pub value: Vec<f64>,
}
