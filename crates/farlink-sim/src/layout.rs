//! The rows of the tables for a grid point, which are determined before its first run and are the same for all runs.

/// Up to this number of flows, each has its own row; with more, there is one row per name.
pub(crate) const MOST_FLOW_ROWS: u64 = 256;

/// The name of the row over all flows.
pub(crate) const ALL: &str = "all";

/// Word in the row of a path, in place of a transport.
pub(crate) const PATH: &str = "path";

/// The flows of one name, with the properties that determine the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    pub(crate) name: &'a str,
    pub(crate) transport: &'a str,
    /// Number of flows.
    pub(crate) count: u64,
    /// Number of their connections; `None` if it is random.
    pub(crate) connections: Option<u64>,
    /// Whether they share one row, regardless of their number.
    pub(crate) is_together: bool,
}

/// The content of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowOf {
    pub(crate) flow: String,
    pub(crate) transport: String,
    /// Whether it describes one connection in every run, and is measured over that connection's own time.
    pub(crate) is_single: bool,
}

/// The rows of a grid point, in order: of each name, or of each of its flows, then over all, then of each path of a bundle of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) rows: Vec<RowOf>,
    /// The first row of each name, and whether each of its flows has its own row.
    names: Vec<(usize, bool)>,
    /// How many rows of paths follow the row over all flows.
    paths: usize,
}

impl Layout {
    pub(crate) fn new<'a>(names: impl Iterator<Item = Name<'a>> + Clone) -> Self {
        let alone = names.clone().filter(|name| !name.is_together).map(|name| name.count).sum::<u64>();
        let mut layout = Layout { rows: Vec::new(), names: Vec::new(), paths: 0 };
        for name in names.clone() {
            let has_flow_rows = !name.is_together && name.count > 1 && alone <= MOST_FLOW_ROWS;
            layout.names.push((layout.rows.len(), has_flow_rows));
            let row = |flow, is_single| RowOf { flow, transport: name.transport.to_owned(), is_single };
            if has_flow_rows {
                layout.rows.extend((1..=name.count).map(|number| row(format!("{}.{number}", name.name), true)));
            } else {
                layout.rows.push(row(name.name.to_owned(), name.connections == Some(1)));
            }
        }
        let first = names.clone().next().map_or("", |name| name.transport);
        let is_same = names.clone().all(|name| name.transport == first);
        let connections = names.map(|name| name.connections).try_fold(0, |sum, count| Some(sum + count?));
        layout.rows.push(RowOf {
            flow: ALL.to_owned(),
            transport: if is_same { first } else { "mixed" }.to_owned(),
            is_single: connections == Some(1),
        });
        layout
    }

    /// Adds a row for each path.
    pub(crate) fn with_paths(mut self, names: impl Iterator<Item = String>) -> Self {
        let row = |flow| RowOf { flow, transport: PATH.to_owned(), is_single: false };
        let before = self.rows.len();
        self.rows.extend(names.map(row));
        self.paths = self.rows.len() - before;
        self
    }

    /// The row of a flow, by the index of its name and its number among the flows of that name.
    pub(crate) fn row_of(&self, name: usize, number: u64) -> usize {
        let (first, has_flow_rows) = self.names[name];
        if has_flow_rows { first + number as usize } else { first }
    }

    /// The row over all flows.
    pub(crate) fn all(&self) -> usize {
        self.rows.len() - 1 - self.paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(layout: &Layout) -> Vec<&str> {
        layout.rows.iter().map(|row| row.flow.as_str()).collect()
    }

    fn name(name: &str, count: u64, connections: Option<u64>, is_together: bool) -> Name<'_> {
        Name { name, transport: "tcp", count, connections, is_together }
    }

    #[test]
    fn flows_have_rows_of_their_own_up_to_256() {
        for (count, rows) in [(255, 256), (256, 2)] {
            let bulk = name("bulk", count, Some(count), false);
            let one = name("one", 1, Some(1), false);
            let layout = Layout::new([bulk, one].into_iter());
            assert_eq!(layout.rows.len(), rows + 1);
            assert_eq!(layout.row_of(0, 7), if rows > 2 { 7 } else { 0 });
            assert_eq!((layout.row_of(1, 0), layout.all()), (rows - 1, rows));
            assert!(layout.rows[rows - 1].is_single && !layout.rows[rows].is_single);
        }
    }

    #[test]
    fn transfers_share_a_row_and_take_none_from_others() {
        let pages = name("pages", 300, None, true);
        let bulk = name("bulk", 2, Some(2), false);
        let layout = Layout::new([pages, bulk].into_iter());
        assert_eq!(flows(&layout), ["pages", "bulk.1", "bulk.2", "all"]);
        assert_eq!([layout.row_of(0, 250), layout.row_of(1, 1)], [0, 2]);
        assert!(!layout.rows[0].is_single && layout.rows[1].is_single);
        // Their number is random, even if it is one.
        let alone = Layout::new([name("pages", 1, None, true)].into_iter());
        assert!(alone.rows.iter().all(|row| !row.is_single));
    }

    #[test]
    fn common_properties_of_all_flows_are_named() {
        let names = [name("a", 1, Some(1), false), Name { transport: "udp", ..name("b", 1, Some(1), false) }];
        assert_eq!(Layout::new(names.into_iter()).rows[2].transport, "mixed");
        assert_eq!(Layout::new(names.into_iter().take(1)).rows[1].transport, "tcp");
        assert!(Layout::new(names.into_iter().take(1)).rows[1].is_single);
    }
}
