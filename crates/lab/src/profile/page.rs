//! Profiles on the HTML page.

use std::fmt::Write;

use super::{of, report};
use crate::chart::escape;
use crate::html::table;
use crate::result::Results;

/// The section of the page; nothing where no profile was asked for.
pub fn write(html: &mut String, results: &Results, base: Option<&str>) {
    if results.profiles.is_empty() && results.not_profiled.is_empty() {
        return;
    }
    html.push_str("<h2>Where the target's CPU goes</h2>\n");
    for why in &results.not_profiled {
        let _ = writeln!(html, "<p>not profiled: {}</p>", escape(why));
    }
    if results.profiles.is_empty() {
        return;
    }
    html.push_str(
        "<p>Each job was run once more after the measured rounds while perf sampled the server. A row is its share of the samples, \
         of the CPU that a request took in the measured rounds.</p>\n",
    );
    for job in results.jobs() {
        let Some(rows) = report::rows(results, job) else { continue };
        table(html, &rows);
        for sentence in base.map_or_else(Vec::new, |base| report::differences(results, base, job)) {
            let _ = writeln!(html, "<p>{}</p>", escape(&sentence));
        }
        html.push_str("<details><summary>busiest functions</summary>\n");
        for profile in results.targets().iter().filter_map(|target| of(results, target, job)) {
            let _ = writeln!(html, "<p>{}</p>", escape(&profile.target));
            table(html, &report::symbols(results, profile));
        }
        html.push_str("</details>\n");
    }
}
