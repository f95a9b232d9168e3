//! Temporary files for intermediate results of sorts and groups that exceed their memory.
//!
//! A file has no name, so it never outlives the process. It is stored beside the embedded store's
//! data, where there is room for as much again; with other stores, in the system's directory for
//! temporary files.

use crate::config::Store;
use error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use values::spill::{SpillFile, SpillSpace};

#[derive(Debug)]
pub struct TemporaryFiles {
    directory: PathBuf,
}

impl TemporaryFiles {
    pub fn beside(store: &Store) -> TemporaryFiles {
        let directory = match store {
            Store::Embedded(path) => path.clone(),
            Store::MariaDb(_) | Store::Service(_) | Store::EmbeddedMariaDb(_) => std::env::temp_dir(),
        };
        TemporaryFiles { directory }
    }
}

impl SpillSpace for TemporaryFiles {
    fn open(&self) -> Result<Box<dyn SpillFile>> {
        let file = tempfile::tempfile_in(&self.directory).map_err(|problem| failed("made", &problem))?;
        Ok(Box::new(Temporary { file, length: 0 }))
    }
}

struct Temporary {
    file: File,
    length: u64,
}

impl SpillFile for Temporary {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.length).map_err(|problem| failed("written", &problem))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.file.read_at(buffer, offset).map_err(|problem| failed("read", &problem))
    }
}

fn failed(what: &str, problem: &std::io::Error) -> Error {
    Error::internal(format!("a file of intermediate results cannot be {what}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_readable_and_leaves_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        let files = TemporaryFiles { directory: directory.path().to_owned() };
        let mut file = files.open().unwrap();
        file.append(b"some ").unwrap();
        file.append(b"text").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(file.read_at(3, &mut buffer).unwrap(), 6);
        assert_eq!(&buffer[..6], b"e text");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
    }
}
