//! Documents that other stages produce, such as joins with other collections.

use crate::call::Call;
use error::Result;
use futures_util::future::LocalBoxFuture;
use query::ItemBuf;
use std::fmt::Debug;

/// A source of documents that a reader passes on.
pub trait DocumentSource: Debug + Send {
    /// Returns whether no document is ready or will come.
    fn is_over(&self) -> bool;

    /// Takes the next document that is ready.
    fn pop(&mut self) -> Option<ItemBuf>;

    /// Puts a document back that did not fit.
    fn put_back(&mut self, document: ItemBuf);

    /// Works until documents are ready, at best `count`, or none are left.
    fn advance<'a>(&'a mut self, call: &'a Call<'_>, count: usize) -> LocalBoxFuture<'a, Result<()>>;
}
