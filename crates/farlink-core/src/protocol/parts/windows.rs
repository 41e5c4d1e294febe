//! Windows in segments, for protocols with 32-bit positions.

use crate::ConfigError;
use crate::units::Count;

/// Largest window in segments, because positions are compared in half of their 32-bit space.
pub(in crate::protocol) const MOST_SEGMENTS: u64 = (1 << 31) - 1;

/// Checks windows, each with its key, for segments of `segment_bytes`; `positions` names the 32-bit positions in words.
pub(in crate::protocol) fn check_windows(
    windows: &[(&str, Option<Count>)],
    segment_bytes: Count,
    positions: &str,
) -> Result<(), ConfigError> {
    let most = MOST_SEGMENTS / segment_bytes.whole();
    for &(key, window) in windows {
        if let Some(window) = window.filter(|window| window.whole() > most) {
            let (segments, segment) = (window.whole(), segment_bytes.get());
            let what = format!(
                "{segments} segments of segment_bytes = {segment} hold 2 GiB or more, which is beyond the range of {positions}"
            );
            return Err(ConfigError::new(key, what, format!("give at most {most}")));
        }
    }
    Ok(())
}
