//! Tables for people: columns aligned, two spaces between, nothing at the line's end.

/// A heading and rows; every row has as many cells as the heading.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(heading: &[&str]) -> Table {
        Table { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// Appends the table's lines, each behind `indent`.
    pub fn render(&self, indent: &str, out: &mut String) {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| printed(&row[column])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&visible(cell));
                line.extend(std::iter::repeat_n(' ', width + 2 - printed(cell)));
            }
            out.push_str(line.trim_end());
            out.push('\n');
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
}
