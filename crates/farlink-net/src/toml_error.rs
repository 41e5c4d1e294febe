//! Errors of TOML files in words, with the line and the nearest known key.

/// What is wrong, and what to do if that is known.
pub(crate) fn in_words(text: &str, error: &toml::de::Error) -> (String, Option<String>) {
    let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let message = error.message().replace('\n', " ");
    let (message, own_remedy) = match message.rsplit_once("; ") {
        Some((what, remedy)) => (what.to_owned(), Some(remedy.to_owned())),
        None => (message, None),
    };
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let near = quoted.split_first().filter(|_| message.starts_with("unknown")).and_then(|(given, known)| {
        let near = known.iter().map(|name| (strsim::jaro_winkler(given, name), name));
        near.filter(|(likeness, _)| *likeness > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| *name)
    });
    (format!("line {line}: {message}"), own_remedy.or_else(|| near.map(|near| format!("did you mean `{near}`?"))))
}
