//! Walking what is to be sent.

use std::ffi::OsStr;
use std::fs::{self, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::remedy::remedy;

use super::error::{FilesError, Refusal, is_fatal};
use super::limits::{SendOptions, SpecialFiles};
use super::manifest::{Entry, Kind, MODE_MASK, Manifest, Modified};
use super::names;
use super::printable::printable;
use super::summary::{Failure, LeftOut, Named};

/// Files and folders that a sender found.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) manifest: Manifest,
    /// The paths given by the user, by the index of their entries in ascending order.
    tops: Vec<(u32, PathBuf)>,
    pub(super) left_out: Named<LeftOut>,
    /// Paths that could not be read.
    pub(super) failed: Named<Failure>,
}

impl Tree {
    /// Where an entry is on this host.
    pub(super) fn local_path(&self, index: u32) -> PathBuf {
        let behind = self.tops.partition_point(|(top, _)| *top <= index);
        let (top, root) = &self.tops[behind.saturating_sub(1)];
        let inside = self.manifest.path(index);
        let inside = inside.strip_prefix(self.manifest.path(*top)).unwrap_or(&inside);
        if inside.as_os_str().is_empty() { root.clone() } else { root.join(inside) }
    }
}

/// When a file was modified.
pub(super) fn modified(metadata: &Metadata) -> Modified {
    // Linux keeps nanoseconds below 10^9.
    Modified { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() as u32 }
}

/// Walks the paths in their order and each folder in the order of names. `go_on` is asked at each entry.
///
/// # Errors
///
/// A path given cannot be read, has no name, is a special file, or shares its name with another; a special file is met
/// and is to be refused; `go_on` said no.
pub(super) fn walk(paths: &[PathBuf], options: &SendOptions, go_on: &dyn Fn() -> bool) -> Result<Tree, FilesError> {
    let mut tree = Tree::default();
    for path in paths {
        let metadata = fs::symlink_metadata(path).map_err(|error| FilesError::local("read", path, error))?;
        if let Some(what) = special(metadata.file_type()) {
            return Err(Refusal::new(
                format!("\"{}\" is {what}", printable(path)),
                "only files and folders are sent",
                "give the path of a file or folder",
            )
            .into());
        }
        // "." and ".." have no name of their own.
        let resolved = match path.file_name() {
            Some(_) => path.clone(),
            None => fs::canonicalize(path).map_err(|error| FilesError::local("resolve", path, error))?,
        };
        let name = resolved.file_name().ok_or_else(|| {
            Refusal::new(
                format!("\"{}\" has no name", printable(path)),
                "what is sent has a name",
                "send the folders inside it",
            )
        })?;
        let same_name =
            tree.tops.iter().find(|(index, _)| tree.manifest.get(*index).is_some_and(|top| top.name == name));
        if let Some((_, other)) = same_name {
            return Err(Refusal::new(
                format!("\"{}\" and \"{}\"", printable(other), printable(path)),
                "paths that are sent together have different last components",
                "send them one after the other, into different folders",
            )
            .into());
        }
        let index = add(&mut tree, None, name, &metadata)?;
        tree.tops.push((index, resolved.clone()));
        if metadata.is_dir() {
            walk_folder(&mut tree, index, &resolved, options, go_on)?;
        }
    }
    Ok(tree)
}

/// Adds what is below a folder. The stack holds folders whose entries were added and that were not entered yet.
fn walk_folder(
    tree: &mut Tree,
    index: u32,
    path: &Path,
    options: &SendOptions,
    go_on: &dyn Fn() -> bool,
) -> Result<(), FilesError> {
    let mut folders = vec![(index, path.to_owned())];
    while let Some((index, path)) = folders.pop() {
        let children = match children(&path) {
            Ok(children) => children,
            Err(error) if is_fatal(&error) => return Err(FilesError::local("read", &path, error)),
            Err(error) => {
                failed(tree, &path, &error);
                continue;
            }
        };
        for child in children {
            if !go_on() {
                return Err(FilesError::ThreadEnded);
            }
            let metadata = match fs::symlink_metadata(&child) {
                Ok(metadata) => metadata,
                // It went away since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    failed(tree, &child, &error);
                    continue;
                }
            };
            if names::is_work_folder(&child) {
                tree.left_out.push(LeftOut { path: child, what: "a folder of incomplete files of a receiver" });
            } else if let Some(what) = special(metadata.file_type()) {
                if options.special == SpecialFiles::Refuse {
                    return Err(Refusal::new(
                        format!("\"{}\" is {what}", printable(&child)),
                        "only files and folders are sent",
                        "remove it, or let such files be left out",
                    )
                    .into());
                }
                tree.left_out.push(LeftOut { path: child, what });
            } else {
                let name = child.file_name().unwrap_or_default();
                let added = add(tree, Some(index), name, &metadata)?;
                if metadata.is_dir() {
                    folders.push((added, child));
                }
            }
        }
    }
    Ok(())
}

fn children(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut children: Vec<PathBuf> =
        fs::read_dir(path)?.map(|child| child.map(|child| child.path())).collect::<Result<_, _>>()?;
    children.sort_unstable();
    Ok(children)
}

fn add(tree: &mut Tree, parent: Option<u32>, name: &OsStr, metadata: &Metadata) -> Result<u32, FilesError> {
    let entry = Entry {
        parent,
        name: name.to_owned(),
        kind: if metadata.is_dir() { Kind::Folder } else { Kind::File { size: metadata.len() } },
        mode: metadata.mode() as u16 & MODE_MASK,
        modified: modified(metadata),
    };
    let added = tree.manifest.push(entry);
    added.ok_or_else(|| {
        Refusal::new("more than 4 billion files", "a transfer has fewer", "send some folders inside at a time").into()
    })
}

fn failed(tree: &mut Tree, path: &Path, error: &io::Error) {
    let reason = format!("the sender cannot read it: {error}; {}", remedy(error));
    tree.failed.push(Failure { path: path.to_owned(), reason });
}

/// The kind of a path that is neither file nor folder, in words.
fn special(kind: FileType) -> Option<&'static str> {
    if kind.is_file() || kind.is_dir() {
        None
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn walk_all(paths: &[PathBuf]) -> Result<Tree, FilesError> {
        walk(paths, &SendOptions::default(), &|| true)
    }

    #[test]
    fn entries_come_behind_their_folders_with_their_paths() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("b/c")).unwrap();
        fs::create_dir_all(root.join("empty")).unwrap();
        fs::write(root.join("b/c/deep"), "deep").unwrap();
        fs::write(root.join("a"), "").unwrap();
        let single = directory.path().join("single");
        fs::write(&single, "1").unwrap();

        let tree = walk_all(&[root.clone(), single]).unwrap();

        let mut paths: Vec<String> =
            tree.manifest.iter().map(|(index, _)| tree.manifest.path(index).display().to_string()).collect();
        for (index, entry) in tree.manifest.iter() {
            assert!(entry.parent.is_none_or(|parent| parent < index));
            assert_eq!(tree.local_path(index), directory.path().join(tree.manifest.path(index)));
        }
        paths.sort();
        assert_eq!(paths, ["root", "root/a", "root/b", "root/b/c", "root/b/c/deep", "root/empty", "single"]);
        assert_eq!(tree.manifest.total_bytes(), 5);
    }

    #[test]
    fn special_files_are_left_out_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join(names::WORK_FOLDER)).unwrap();
        symlink("/etc/passwd", root.join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();

        let tree = walk_all(std::slice::from_ref(&root)).unwrap();
        assert_eq!((tree.manifest.len(), tree.left_out.count), (1, 3));

        let refuse = SendOptions { special: SpecialFiles::Refuse };
        let error = walk(std::slice::from_ref(&root), &refuse, &|| true).err().unwrap().to_string();
        assert!(error.contains("is a symbolic link: only files and folders are sent; remove it"), "{error}");
        assert!(walk_all(&[root.join("link")]).is_err(), "what the user names is not left out in silence");
    }

    #[test]
    fn paths_need_names_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["a/x", "b/x"] {
            fs::create_dir_all(directory.path().join(path)).unwrap();
        }
        let error = walk_all(&[directory.path().join("a/x"), directory.path().join("b/x")]).err().unwrap();
        assert_eq!(error.exit_code(), 2);
        assert!(walk_all(&[PathBuf::from("/")]).is_err());
        let missing = walk_all(&[directory.path().join("missing")]).err().unwrap().to_string();
        assert!(missing.contains("missing\": No such file or directory (os error 2); check the path"), "{missing}");
    }
}
