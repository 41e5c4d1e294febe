//! Suggestions of near names for unknown ones.

/// The known name that the user probably meant; of equally near names the first.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LEAST: f64 = 0.7;
    let name = name.to_lowercase();
    let mut best = (LEAST, None);
    for candidate in known {
        let likeness = similarity(&name, &candidate.to_lowercase());
        if likeness > best.0 {
            best = (likeness, Some(candidate));
        }
    }
    best.1
}

/// Similarity of two names, from 0 (nothing in common) to 1 (equal). The unit at the end of a key has a small weight.
fn similarity(a: &str, b: &str) -> f64 {
    let stems = strsim::jaro_winkler(stem(a), stem(b));
    strsim::jaro_winkler(a, b).max(0.99 * stems)
}

/// A key without its unit: `rate` of `rate_bps`.
fn stem(key: &str) -> &str {
    const UNITS: &[&str] =
        &["s", "ms", "us", "bps", "kbps", "mbps", "bytes", "bits", "packets", "segments", "db", "hz", "m", "km"];
    key.rsplit_once('_').filter(|(_, unit)| UNITS.contains(unit)).map_or(key, |(stem, _)| stem)
}

/// `did you mean "x"? known: a, b, c`.
pub(crate) fn suggest<'a>(name: &str, what: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let list = known.clone().into_iter().collect::<Vec<_>>().join(", ");
    let list = if list.is_empty() { format!("there are no {what}") } else { format!("{what}: {list}") };
    match nearest(name, known) {
        Some(near) => format!("did you mean \"{near}\"? {list}"),
        None => list,
    }
}
