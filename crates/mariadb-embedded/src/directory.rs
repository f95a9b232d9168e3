//! Claims a data directory before MariaDB touches it: checks that it is one, that it is not in use,
//! and which version wrote it.
//!
//! MariaDB checks some of that itself, but waits minutes for locks, and its messages do not say
//! what to do.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Locked while the directory is in use. Has the version that opened it last, or [`BEING_CREATED`].
const OWN_FILE: &str = "selkie-mariadb";

/// The content of [`OWN_FILE`] until the first pages are on disk: InnoDB cannot recover from a kill
/// before that.
const BEING_CREATED: &str = "being made";

/// Files of an ordinary server's tools with the version of the system tables.
const UPGRADE_FILES: [&str; 2] = ["mysql_upgrade_info", "mariadb_upgrade_info"];

/// Files that an ordinary server locks.
const LOCKED_BY_SERVERS: [&str; 3] = ["ibdata1", "aria_log_control", "ib_logfile0"];

/// A directory claimed by this process until the value is dropped.
#[derive(Debug)]
pub struct Directory {
    pub path: PathBuf,
    /// It has no data yet.
    pub is_new: bool,
    own_file: File,
}

impl Directory {
    /// Claims a directory, creating it if missing. `version`: the library's, as `10.11.19-MariaDB`.
    ///
    /// Errors are one sentence that says what to do.
    pub fn claim(path: &Path, version: &str) -> Result<Directory, String> {
        let shown = path.display();
        fs::create_dir_all(path).map_err(|error| format!("cannot make the directory {shown}: {error}"))?;
        let path = path.canonicalize().map_err(|error| format!("cannot open the directory {shown}: {error}"))?;
        let before = entries(&path).map_err(|error| format!("cannot read the directory {shown}: {error}"))?;
        let holds_data = before.iter().any(|name| name == "ibdata1");
        let is_ours = before.iter().any(|name| name == OWN_FILE);
        if !holds_data && !is_ours && !before.is_empty() {
            return Err(format!(
                "{shown} holds files, and none of them is MariaDB's (there is no ibdata1): name an empty directory, or a data directory \
                 of MariaDB"
            ));
        }
        let mut own_file = lock(&path).map_err(|error| match error {
            TryLockError::WouldBlock => {
                format!("{shown} is in use by another Selkie: stop that one, or name another directory")
            }
            TryLockError::Error(error) => format!("cannot write in the directory {shown}: {error}"),
        })?;
        if let Some((file, process)) = locked_by_server(&path) {
            return Err(format!(
                "{shown} is in use: process {process}, most likely a MariaDB server, has locked {file}; stop it, or connect to it with \
                 --mariadb"
            ));
        }
        let mut last = String::new();
        own_file.read_to_string(&mut last).map_err(|error| format!("cannot read {shown}/{OWN_FILE}: {error}"))?;
        let last = last.trim();
        let is_incomplete = last == BEING_CREATED;
        if is_incomplete {
            clear(&path)
                .map_err(|error| format!("cannot remove what an interrupted start left in {shown}: {error}"))?;
        } else {
            let versions = UPGRADE_FILES.iter().filter_map(|name| fs::read_to_string(path.join(name)).ok());
            for theirs in versions.chain([last.to_owned()]) {
                refuse_newer(&theirs, version, &path)?;
            }
        }
        let is_new = is_incomplete || !holds_data;
        let mut directory = Directory { path, is_new, own_file };
        if is_new {
            directory.write_down(BEING_CREATED)?;
        }
        Ok(directory)
    }

    /// Marks the directory as complete, with data of this version that survives a kill.
    pub fn mark_ready(&mut self, version: &str) -> Result<(), String> {
        self.is_new = false;
        self.write_down(version)
    }

    fn write_down(&mut self, text: &str) -> Result<(), String> {
        let write = |file: &mut File| {
            file.rewind()?;
            file.set_len(0)?;
            writeln!(file, "{text}")?;
            file.sync_all()
        };
        write(&mut self.own_file).map_err(|error| format!("cannot write {}/{OWN_FILE}: {error}", self.path.display()))
    }
}

fn entries(path: &Path) -> std::io::Result<Vec<std::ffi::OsString>> {
    let names = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name()));
    // A directory of the file system itself.
    names.filter(|name| !name.as_ref().is_ok_and(|name| name == OsStr::new("lost+found"))).collect()
}

fn lock(path: &Path) -> Result<File, TryLockError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path.join(OWN_FILE));
    let file = file.map_err(TryLockError::Error)?;
    file.try_lock()?;
    Ok(file)
}

/// Returns the process that holds a lock on one of a server's files. Closing the files here
/// releases no lock: this process has none yet.
fn locked_by_server(path: &Path) -> Option<(&'static str, String)> {
    use rustix::process::{Flock, FlockType, fcntl_getlk};
    LOCKED_BY_SERVERS.into_iter().find_map(|name| {
        let file = OpenOptions::new().read(true).write(true).open(path.join(name)).ok()?;
        let lock = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??;
        let process = lock.pid.map_or("of another machine".to_owned(), |pid| pid.as_raw_nonzero().to_string());
        Some((name, process))
    })
}

/// Removes everything except the own file.
fn clear(path: &Path) -> std::io::Result<()> {
    for name in entries(path)?.iter().filter(|name| *name != OWN_FILE) {
        let entry = path.join(name);
        if fs::symlink_metadata(&entry)?.is_dir() { fs::remove_dir_all(entry)? } else { fs::remove_file(entry)? }
    }
    Ok(())
}

/// Fails if a newer MariaDB wrote the data. MariaDB converts older data itself.
fn refuse_newer(theirs: &str, ours: &str, path: &Path) -> Result<(), String> {
    match (release(theirs), release(ours)) {
        (Some(their_release), Some(our_release)) if their_release > our_release => Err(format!(
            "{} was written by MariaDB {}, and this Selkie has MariaDB {} built in: serve it with a MariaDB server of that version and \
             --mariadb, or dump it there and load it here",
            path.display(),
            theirs.trim(),
            ours.trim()
        )),
        _ => Ok(()),
    }
}

/// Returns the release of a version, which determines the data format: `10.11.19-MariaDB` → 10 and
/// 11.
pub(crate) fn release(version: &str) -> Option<(u16, u16)> {
    let mut parts = version.trim().split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "10.11.19-MariaDB";

    fn claim(path: &Path) -> Result<Directory, String> {
        Directory::claim(path, OURS)
    }

    #[test]
    fn a_directory_is_new_until_it_is_ready() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        assert!(claim(&path).unwrap().is_new);
        fs::write(path.join("ibdata1"), "half").unwrap();
        fs::create_dir(path.join("test")).unwrap();
        let mut again = claim(&path).unwrap();
        assert!(again.is_new);
        assert!(!path.join("ibdata1").exists() && !path.join("test").exists());
        fs::write(path.join("ibdata1"), "whole").unwrap();
        again.mark_ready(OURS).unwrap();
        drop(again);
        assert!(!claim(&path).unwrap().is_new);
        assert!(path.join("ibdata1").exists());
    }

    #[test]
    fn foreign_directories_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let _held = claim(dir.path()).unwrap();
        assert!(claim(dir.path()).unwrap_err().contains("in use by another Selkie"));

        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("thesis.tex"), "").unwrap();
        assert!(claim(other.path()).unwrap_err().contains("none of them is MariaDB's"));
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
    }

    #[test]
    fn newer_data_is_refused_and_older_taken() {
        for (file, version, taken) in [
            ("mysql_upgrade_info", "11.4.2-MariaDB", false),
            ("mysql_upgrade_info", "10.6.1-MariaDB", true),
            ("mariadb_upgrade_info", "10.12.0-MariaDB", false),
            ("mysql_upgrade_info", "10.11.99-MariaDB", true),
            (OWN_FILE, "11.8.1-MariaDB\n", false),
            (OWN_FILE, "10.11.2-MariaDB\n", true),
        ] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("ibdata1"), "").unwrap();
            fs::write(dir.path().join(file), version).unwrap();
            let outcome = claim(dir.path());
            assert_eq!(outcome.is_ok(), taken, "{file} {version}: {outcome:?}");
        }
    }
}
