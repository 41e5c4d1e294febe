//! Tests of what farlink-net offers, from outside.

mod files;
