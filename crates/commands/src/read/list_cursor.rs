//! Cursors over documents in memory, such as the collections that `listCollections` returns.

use crate::arguments::options;
use crate::call::Call;
use crate::read::open_cursor::open_cursor;
use crate::read::{Batch, Reader};
use crate::reply::append_namespace;
use document::{DocBuf, DocWriter};
use error::Result;
use store::Namespace;

/// Appends a cursor over documents in memory; those beyond the batch size stay in the cursor.
pub async fn write_list_cursor(
    call: &Call<'_>,
    reply: &mut DocWriter<'_>,
    namespace: Namespace,
    documents: Vec<DocBuf>,
    batch_size: Option<u64>,
) -> Result<()> {
    let mut reader = Reader::over(documents.into(), None);
    let mut cursor = reply.document("cursor");
    {
        let documents_max = batch_size.map_or(usize::MAX, options::as_count);
        let mut batch = Batch::begin(&mut cursor, "firstBatch", documents_max);
        reader.fill(call, &mut batch).await?;
    }
    let id = if reader.is_done() { 0 } else { open_cursor(call, &namespace, reader, false, &cursor)? };
    cursor.append("id", id);
    append_namespace(&mut cursor, &namespace);
    Ok(())
}
