//! Errors of stores as sentences.

/// Returns a store's error as a sentence, without the code that a client would get.
pub fn sentence(error: error::Error) -> anyhow::Error {
    anyhow::Error::msg(error.message().to_owned())
}
