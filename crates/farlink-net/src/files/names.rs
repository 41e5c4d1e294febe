//! Which names a sender may choose.

use std::path::Path;

use super::error::Refusal;
use super::printable::printable_text;

/// The folder inside the receiver's directory that has what is not complete yet. No file may have this name.
pub const WORK_FOLDER: &str = ".farlink-partial";

/// One component of a path as the sender chose it.
///
/// # Errors
///
/// The name is empty, `.` or `..`, has a `/` or a NUL, is longer than `limit_bytes`, or is the work folder's.
pub(super) fn check(name: &[u8], limit_bytes: usize) -> Result<(), Refusal> {
    let refused =
        |rule: String, remedy: &str| Refusal::new(format!("the name \"{}\"", printable_text(name)), rule, remedy);
    if name.is_empty() {
        return Err(refused("a name has at least one byte".to_owned(), "rename the file on the sending side"));
    }
    if name == b"." || name == b".." {
        return Err(refused(
            "\".\" and \"..\" are no names of files".to_owned(),
            "do not receive from this sender: farlink sends no such name",
        ));
    }
    if name.contains(&b'/') || name.contains(&0) {
        return Err(refused("a name has no \"/\" and no NUL".to_owned(), "rename the file on the sending side"));
    }
    if name.len() > limit_bytes {
        return Err(Refusal::new(
            format!("a name of {} bytes", name.len()),
            format!("a name has at most {limit_bytes} bytes"),
            "rename the file on the sending side, or raise the limit name_bytes",
        ));
    }
    if fold(name) == WORK_FOLDER.as_bytes() {
        return Err(refused(
            "the receiver keeps what is not complete in a folder of this name".to_owned(),
            "rename the file on the sending side",
        ));
    }
    Ok(())
}

/// The name as a file system that ignores case compares it. Two names of one folder that fold to the same are one file
/// there, so that the second would replace the first. Unicode's normal forms are not taken into account.
pub(super) fn fold(name: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(name) {
        // To upper case first: "ſ" and "K" (the unit) fold to the letters that they look like.
        Ok(text) => text.to_uppercase().to_lowercase().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

/// Whether the path names the work folder; a sender leaves such folders out.
pub(super) fn is_work_folder(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    path.file_name().is_some_and(|name| fold(name.as_bytes()) == WORK_FOLDER.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_their_folder_are_refused() {
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0", b".farlink-partial", b".FarLink-Partial"] {
            assert!(check(name, 255).is_err(), "{name:?}");
        }
        for name in [&b"a"[..], b"...", b".a", b"\xff\xfe", "\u{e9}".as_bytes(), b" ", b"-rf", b"a:b", b"a\\x2d"] {
            assert!(check(name, 255).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn a_refusal_has_value_rule_and_remedy() {
        let refusal = check(&[b'x'; 300], 255).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "a name of 300 bytes: a name has at most 255 bytes; rename the file on the sending side, or raise the \
             limit name_bytes"
        );
    }

    #[test]
    fn case_folds() {
        assert_eq!(fold(b"README"), fold(b"readme"));
        assert_eq!(fold("\u{c9}".as_bytes()), fold("\u{e9}".as_bytes()));
        assert_eq!(fold("\u{212a}".as_bytes()), fold(b"k"));
        assert_ne!(fold(b"\xffa"), fold(b"\xfea"));
    }
}
