//! The check of a request, before the document cache and before anything is executed.
