//! Single values, below any operator: numbers and their promotion, decimal arithmetic, regular
//! expressions, hashes, texts for messages, the calendar.
//!
//! Nothing here parses a filter, an expression or a pipeline. The crate does no I/O and reads no
//! clock; a [`spill::SpillSpace`] that the caller supplies gives sorts and groups room on disk.
//!
//! Start with [`number`] (MongoDB's promotion rules), [`integer`] (numbers read as whole ones),
//! [`regex`], and [`text`] (values in error messages).

pub mod calendar;
pub mod decimal;
pub mod hash;
pub mod integer;
pub mod name_index;
pub mod number;
pub mod regex;
pub mod spill;
pub mod text;
pub mod value_set;
pub mod variables;

pub use variables::Variables;
