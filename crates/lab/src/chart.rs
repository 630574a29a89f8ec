//! Charts as SVG, drawn here: no script, no font, nothing that a page would have to load.

use std::fmt::Write;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 10.0;
/// Colours that also people with colour-blindness tell apart (Okabe and Ito).
pub const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442", "#000000"];

/// Text that may stand in a page.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Bars in groups: one group for each label, one bar for each series.
pub struct Bars<'a> {
    pub title: &'a str,
    pub series: Vec<String>,
    /// Label, and a value for each series where there is one.
    pub groups: Vec<(String, Vec<Option<f64>>)>,
    /// A line across, such as a target.
    pub line: Option<f64>,
}

impl Bars<'_> {
    /// Horizontal bars: labels are long.
    pub fn draw(&self) -> String {
        let bar = 13.0;
        let label = 210.0;
        let group = bar * self.series.len().max(1) as f64 + 8.0;
        let top = 24.0 + 16.0 * self.series.len() as f64;
        let height = top + group * self.groups.len() as f64 + 10.0;
        let values = self.groups.iter().flat_map(|(_, values)| values.iter().flatten().copied());
        let most = values.chain(self.line).fold(0.0, f64::max).max(1e-9) * 1.12;
        let x = |value: f64| label + value / most * (WIDTH - label - RIGHT);
        let mut svg = open(height, self.title);
        legend(&mut svg, &self.series, 30.0);
        for (index, (name, values)) in self.groups.iter().enumerate() {
            let y = top + group * index as f64;
            text(&mut svg, label - 6.0, y + group / 2.0, "end", name);
            for (series, value) in values.iter().enumerate() {
                let Some(value) = value else { continue };
                let (y, colour) = (y + bar * series as f64, COLOURS[series % COLOURS.len()]);
                let width = x(*value) - label;
                let _ = write!(
                    svg,
                    r#"<rect x="{label}" y="{y:.1}" width="{width:.1}" height="{:.1}" fill="{colour}"/>"#,
                    bar - 2.0
                );
                text(&mut svg, x(*value) + 4.0, y + bar - 3.5, "start", &crate::units::short(*value));
            }
        }
        if let Some(value) = self.line {
            let _ = write!(
                svg,
                r##"<line x1="{0:.1}" y1="{top:.1}" x2="{0:.1}" y2="{height:.1}" stroke="#444" stroke-dasharray="4 3"/>"##,
                x(value)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Lines over time, all on one scale.
pub struct Lines<'a> {
    pub title: &'a str,
    pub unit: &'a str,
    /// Seconds between two values.
    pub step_seconds: f64,
    pub series: Vec<(String, Vec<f64>)>,
}

impl Lines<'_> {
    pub fn draw(&self) -> String {
        let (top, plot) = (24.0 + 16.0 * self.series.len() as f64, 150.0);
        let mut svg = open(top + plot + 26.0, self.title);
        let names: Vec<String> = self.series.iter().map(|(name, _)| name.clone()).collect();
        legend(&mut svg, &names, 30.0);
        let longest = self.series.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(2);
        let most = self
            .series
            .iter()
            .flat_map(|(_, values)| values)
            .fold(0.0, |most: f64, &value| most.max(value))
            .max(1e-9);
        let x = |index: usize| LEFT + index as f64 / (longest - 1) as f64 * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| top + plot - value / most * plot;
        for part in [0.0, 0.5, 1.0] {
            let at = y(most * part);
            let _ = write!(
                svg,
                r##"<line x1="{LEFT}" y1="{at:.1}" x2="{}" y2="{at:.1}" stroke="#ccc"/>"##,
                WIDTH - RIGHT
            );
            text(&mut svg, LEFT - 4.0, at + 4.0, "end", &crate::units::count(most * part));
        }
        for (index, (_, values)) in self.series.iter().enumerate() {
            let points: Vec<String> = values
                .iter()
                .enumerate()
                .map(|(index, value)| format!("{:.1},{:.1}", x(index), y(*value)))
                .collect();
            let colour = COLOURS[index % COLOURS.len()];
            let _ = write!(
                svg,
                r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/>"#,
                points.join(" ")
            );
        }
        let end = crate::units::short((longest - 1) as f64 * self.step_seconds);
        text(&mut svg, LEFT, top + plot + 16.0, "start", &format!("0 s, {}", self.unit));
        text(&mut svg, WIDTH - RIGHT, top + plot + 16.0, "end", &format!("{end} s"));
        svg.push_str("</svg>\n");
        svg
    }
}

fn open(height: f64, title: &str) -> String {
    let mut svg = format!(
        r#"<svg viewBox="0 0 {WIDTH} {height:.0}" width="{WIDTH}" height="{height:.0}" font-family="sans-serif" font-size="11" role="img">"#
    );
    let _ = write!(
        svg,
        r#"<title>{0}</title><text x="0" y="14" font-size="13" font-weight="bold">{0}</text>"#,
        escape(title)
    );
    svg
}

fn legend(svg: &mut String, names: &[String], top: f64) {
    for (index, name) in names.iter().enumerate() {
        let y = top + 16.0 * index as f64;
        let colour = COLOURS[index % COLOURS.len()];
        let _ = write!(svg, r#"<rect x="0" y="{:.0}" width="10" height="10" fill="{colour}"/>"#, y - 9.0);
        text(svg, 15.0, y, "start", name);
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = write!(svg, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#, escape(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_chart() {
        let bars = Bars {
            title: "a <b>",
            series: vec!["x & y".to_owned()],
            groups: vec![("<script>".to_owned(), vec![Some(2.0)]), ("none".to_owned(), vec![None])],
            line: Some(1.0),
        };
        let svg = bars.draw();
        assert!(!svg.contains("<script>") && svg.contains("x &amp; y") && svg.contains("&lt;script&gt;"));
        assert_eq!(svg.matches("<rect").count(), 2, "a bar and a legend");
        let lines = Lines {
            title: "t",
            unit: "IOPS",
            step_seconds: 0.1,
            series: vec![("a".to_owned(), vec![0.0, 5.0])],
        };
        assert!(lines.draw().contains("<polyline points=\"60.0,190.0 850.0,40.0\""), "{}", lines.draw());
        let empty = Lines { title: "t", unit: "IOPS", step_seconds: 0.1, series: vec![] };
        assert!(!empty.draw().contains("NaN"));
    }
}
