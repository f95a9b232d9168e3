//! Reads all documents for the server itself.

use super::{Batch, Reader};
use crate::call::Call;
use document::{Doc, DocWriter, Value};
use error::Result;

impl Reader {
    /// Reads to the end, a batch at a time.
    pub async fn for_each(&mut self, call: &Call<'_>, mut visit: impl FnMut(Doc<'_>) -> Result<()>) -> Result<()> {
        const BATCH_DOCUMENTS: usize = 1000;
        let mut bytes = Vec::new();
        while !self.is_done() {
            bytes.clear();
            {
                let mut writer = DocWriter::begin(&mut bytes);
                let mut batch = Batch::begin(&mut writer, "", BATCH_DOCUMENTS);
                self.fill(call, &mut batch).await?;
            }
            let batch = Doc::from_bytes(&bytes).and_then(|document| document.get("")).and_then(Value::as_array);
            batch.unwrap_or(Doc::EMPTY).values().filter_map(Value::as_document).try_for_each(&mut visit)?;
        }
        Ok(())
    }
}
