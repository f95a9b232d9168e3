//! `selkie verify`: reports damage in a data directory.

use std::path::Path;

/// Prints each finding on a line. Fails if there are any.
pub fn verify(directory: &Path, add_checksums: bool) -> anyhow::Result<()> {
    let sentence = |error: error::Error| anyhow::Error::msg(error.message().to_owned());
    if add_checksums {
        store_sqlite::add_checksums(directory).map_err(sentence)?;
    }
    let report = store_sqlite::verify(directory, &mut |finding| println!("{finding}")).map_err(sentence)?;
    let store_sqlite::Report { collections, pages, findings, checked } = report;
    let sums = if checked { "with checksums" } else { "without checksums" };
    anyhow::ensure!(findings == 0, "{} is damaged: {findings} findings", directory.display());
    println!("{} is whole: {collections} collections, {pages} pages {sums}", directory.display());
    Ok(())
}
