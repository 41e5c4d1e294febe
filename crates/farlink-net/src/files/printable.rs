//! Names as a terminal may show them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The path for people: control characters and what is not UTF-8 are escaped, so that a name sent by a stranger cannot
/// steer a terminal.
pub fn printable(path: &Path) -> String {
    let mut text = String::new();
    for piece in path.as_os_str().as_bytes().utf8_chunks() {
        for character in piece.valid().chars() {
            if character.is_control() || is_bidirectional_control(character) {
                text.extend(character.escape_unicode());
            } else {
                text.push(character);
            }
        }
        for byte in piece.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Text from the other side: as [`printable`], without its escapes for paths.
pub(super) fn printable_text(bytes: &[u8]) -> String {
    printable(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

/// Whether a character changes the direction of text, by which "gpj.exe" can look like "exe.jpg".
const fn is_bidirectional_control(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn names_cannot_steer_a_terminal() {
        let name = OsStr::from_bytes(b"a\x1b[31m\xff\xe2\x80\xae\xc3\xa9");
        assert_eq!(printable(Path::new(name)), "a\\u{1b}[31m\\xff\\u{202e}\u{e9}");
    }
}
