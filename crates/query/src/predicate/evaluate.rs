//! Evaluation of a tree for one document.

use super::details::MatchDetails;
use super::tree::Node;
use document::Doc;
use error::Result;

impl Node {
    /// Returns whether a document meets this condition; fails like
    /// [`Predicate::matches`](super::Predicate::matches).
    pub fn matches(&self, document: Doc<'_>) -> Result<bool> {
        self.matches_with(document, None)
    }

    /// Like [`Node::matches`]. Records the matching array element in `details`.
    pub(super) fn matches_with(&self, document: Doc<'_>, mut details: Option<&mut MatchDetails>) -> Result<bool> {
        match self {
            Node::Path { path, test } => test.holds_at(path, document, details),
            Node::And(branches) => {
                for branch in branches {
                    steps::step();
                    if !branch.matches_with(document, details.as_deref_mut())? {
                        if let Some(details) = details {
                            *details = MatchDetails::default();
                        }
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(branches) => {
                // MongoDB does not record the position of a match inside a branch.
                for branch in branches {
                    steps::step();
                    if branch.matches(document)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Nor(branches) => {
                for branch in branches {
                    steps::step();
                    if branch.matches(document)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Expression(expression) => Ok(expression.evaluate(document)?.is_truthy()),
            Node::Schema(schema) => schema.matches(document),
            Node::Near(near) => Ok(near.nearest(document).is_some()),
            Node::KeyRange(range) => range.contains(document),
            Node::Text { search, partial } => {
                let found = search.matches(document)
                    && partial.as_ref().map_or(Ok(true), |partial| partial.matches(document))?;
                if let Some(details) = details.filter(|_| found) {
                    details.text_score = Some(search.score(document));
                }
                Ok(found)
            }
            Node::Never => Ok(false),
        }
    }
}
