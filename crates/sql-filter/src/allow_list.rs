//! The canonical forms of the statements that a firewall allows, kept in a file: a form per line.

use crate::line_file::LineFile;
use ahash::AHashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// Longer forms are neither learned nor read.
const FORM_BYTES_MAX: usize = 16 << 10;

/// The most bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The forms that are allowed.
#[derive(Debug)]
pub struct AllowList {
    path: PathBuf,
    forms: RwLock<AHashSet<Box<str>>>,
    forms_max: usize,
    /// Takes the forms that are learned; `None`: none are.
    file: Option<LineFile>,
}

/// The outcome of learning a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    Known,
    Added,
    /// The list is full, or the form is too long.
    NoRoom,
}

impl AllowList {
    /// Reads the file. One that learns may begin without it.
    pub fn open(path: &Path, forms_max: usize, learns: bool) -> io::Result<AllowList> {
        // Created before it is read: whether it can be written shows at once.
        let file = if learns { Some(LineFile::open(path)?) } else { None };
        let forms = RwLock::new(read(path, forms_max)?);
        Ok(AllowList { path: path.to_owned(), forms, forms_max, file })
    }

    pub fn allows(&self, form: &str) -> bool {
        self.forms.read().unwrap_or_else(PoisonError::into_inner).contains(form)
    }

    /// Adds a form.
    pub fn learn(&self, form: &str) -> Learned {
        if self.allows(form) {
            return Learned::Known;
        }
        // A file has a form per line.
        if form.is_empty() || form.len() > FORM_BYTES_MAX || form.contains(['\n', '\r']) || form.starts_with('#') {
            return Learned::NoRoom;
        }
        let mut forms = self.forms.write().unwrap_or_else(PoisonError::into_inner);
        if forms.contains(form) {
            return Learned::Known;
        }
        let has_room = forms.len() < self.forms_max;
        let is_written = has_room && self.file.as_ref().is_some_and(|file| file.push(form.to_owned()));
        match is_written {
            true => {
                forms.insert(form.into());
                Learned::Added
            }
            false => Learned::NoRoom,
        }
    }

    /// Reads the file again. If that fails, the list stays as it is.
    pub fn reopen(&self) {
        match &self.file {
            // The list keeps the forms that it has; the next ones go to the new file.
            Some(file) => file.reopen(),
            None => match read(&self.path, self.forms_max) {
                Ok(read) => *self.forms.write().unwrap_or_else(PoisonError::into_inner) = read,
                Err(error) => tracing::error!("the allow list stays as it is: {error}"),
            },
        }
    }
}

fn read(path: &Path, forms_max: usize) -> io::Result<AHashSet<Box<str>>> {
    let explain = |error: io::Error| {
        io::Error::new(error.kind(), format!("the allow list {} cannot be read: {error}", path.display()))
    };
    if std::fs::metadata(path).map_err(explain)?.len() > FILE_BYTES_MAX {
        return Err(explain(io::Error::other("it is longer than 64 MiB")));
    }
    let text = std::fs::read_to_string(path).map_err(explain)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let forms: AHashSet<Box<str>> = lines.map(Box::from).collect();
    match forms.len() > forms_max {
        true => Err(explain(io::Error::other(format!("it has more than {forms_max} statements (max-statements)")))),
        false => Ok(forms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_learned_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app");
        let list = AllowList::open(&path, 2, true).unwrap();
        assert_eq!((list.learn("SELECT ?"), list.learn("SELECT ?")), (Learned::Added, Learned::Known));
        assert_eq!(list.learn("SELECT `\n`"), Learned::NoRoom, "a form per line");
        assert_eq!((list.learn("SELECT a"), list.learn("SELECT b")), (Learned::Added, Learned::NoRoom));
        drop(list);
        let list = AllowList::open(&path, 2, false).unwrap();
        assert!(list.allows("SELECT a") && !list.allows("SELECT b"));
        std::fs::write(&path, "# mine\n\nSELECT b\n").unwrap();
        list.reopen();
        assert!(!list.allows("SELECT a") && list.allows("SELECT b"));
        std::fs::remove_file(&path).unwrap();
        list.reopen();
        assert!(list.allows("SELECT b"), "an unreadable file changes nothing");
        assert!(AllowList::open(&path, 2, false).is_err());
        std::fs::write(&path, "a\nb\nc\n").unwrap();
        assert!(AllowList::open(&path, 2, false).unwrap_err().to_string().contains("max-statements"));
    }
}
