//! Remedies for errors of the operating system.

use std::io;

use rustix::io::Errno;

/// The remedy for an error of the operating system.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC) => "free space on the disk and run the same command again",
        Some(Errno::DQUOT) => "free some of your quota and run the same command again",
        Some(Errno::ACCESS | Errno::PERM) => "check the permissions of the file and of the folders above it",
        Some(Errno::MFILE) => "raise the limit of open files (ulimit -n) and run the same command again",
        Some(Errno::NFILE) => "raise fs.file-max and run the same command again",
        Some(Errno::NOMEM) => "free memory and run the same command again",
        Some(Errno::ROFS) => "mount the file system for writing, or choose another folder",
        Some(Errno::IO) => "check the disk (dmesg)",
        Some(Errno::NOENT) => "check the path",
        Some(Errno::NOTDIR | Errno::ISDIR | Errno::EXIST) => "move away what stands there, or choose another folder",
        Some(Errno::LOOP | Errno::XDEV) => {
            "a symbolic link or another file system is on the way there: move it away, or choose another folder"
        }
        Some(Errno::NAMETOOLONG) => "shorten the name",
        Some(Errno::NOSYS) => "use Linux 5.6 or later, which has openat2",
        Some(Errno::FBIG) => "choose a file system that holds files of this size, or raise the limit (ulimit -f)",
        _ => "look at the path and run the same command again",
    }
}

/// That for errors which permissions and the place of a file have nothing to do with.
pub(crate) fn remedy_of_shortage(error: &io::Error) -> Option<&'static str> {
    let is_shortage = matches!(
        Errno::from_io_error(error),
        Some(Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE | Errno::NOMEM)
    );
    is_shortage.then(|| remedy(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_named() {
        let [few_files, no_room, refused] = [Errno::MFILE, Errno::NOSPC, Errno::ACCESS].map(io::Error::from);
        assert!(remedy_of_shortage(&few_files).unwrap().contains("ulimit -n"));
        assert!(remedy_of_shortage(&no_room).unwrap().contains("free space"));
        assert_eq!(remedy_of_shortage(&refused), None);
        assert_eq!(remedy_of_shortage(&io::Error::other("of this program")), None);
    }
}
