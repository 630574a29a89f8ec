//! The OpenAPI description, generated from the handlers; docs/openapi.json is a copy, kept by a test.

use utoipa::OpenApi;

use super::routes::Description;

/// The description as indented JSON with a line end.
pub fn openapi_json() -> String {
    let mut text = Description::openapi().to_pretty_json().expect("the description can be said in JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_DOCS=1 cargo test -p control` writes the copy anew.
    #[test]
    fn the_checked_in_description_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let generated = openapi_json();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &generated).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == generated,
            "docs/openapi.json is not up to date: UPDATE_DOCS=1 cargo test -p control"
        );
    }
}
