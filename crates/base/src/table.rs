//! Tables for people, in plain text: columns aligned, two spaces between them, nothing at the end of a line.

/// Rows of cells; the first row is the heading.
pub struct Table {
    rows: Vec<Vec<String>>,
    /// All columns but the first are numbers: aligned to the right.
    numbers: bool,
}

impl Table {
    /// A table of words: each column is aligned to the left.
    pub fn new(heading: &[&str]) -> Table {
        Table { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()], numbers: false }
    }

    /// A table of figures: a line below the heading, and each column but the first aligned to the right.
    pub fn of_figures(rows: Vec<Vec<String>>) -> Table {
        Table { rows, numbers: true }
    }

    /// Adds a row with a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// Appends the lines of the table, each behind `indent`.
    pub fn render(&self, indent: &str, out: &mut String) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| printed(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = indent.to_owned();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width - printed(cell));
                let gap = if column == 0 { "" } else { "  " };
                let cell = visible(cell);
                match self.numbers && column > 0 {
                    true => line.extend([gap, &pad, &cell]),
                    false => line.extend([gap, &cell, &pad]),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
            if self.numbers && number == 0 && self.rows.len() > 1 {
                let dashes = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
                out.extend([indent, &"-".repeat(dashes), "\n"]);
            }
        }
    }
}

fn printed(cell: &str) -> usize {
    cell.chars().count()
}

/// What came from a drive or a peer may hold control characters, which a terminal would obey.
fn visible(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_harmless() {
        let mut table = Table::new(&["A", "LONG"]);
        table.row(vec!["größe".to_owned(), String::new()]);
        table.row(vec!["\u{1b}[2J".to_owned(), "x".to_owned()]);
        let mut out = String::new();
        table.render(" ", &mut out);
        assert_eq!(out, " A      LONG\n größe\n ?[2J   x\n");
    }

    #[test]
    fn figures_are_aligned_to_the_right() {
        let rows = [["a", "bb"], ["ccc", "d"]].map(|row| row.map(str::to_owned).to_vec());
        let mut out = String::new();
        Table::of_figures(rows.to_vec()).render("", &mut out);
        assert_eq!(out, "a    bb\n-------\nccc   d\n");
    }
}
