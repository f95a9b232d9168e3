//! The identity under which a store executes statements on documents.
//!
//! A command runs under the identity of its user, from its first statement to its last
//! ([`under`]). A store that keeps accounts beside users ([`crate::accounts`]) executes its
//! statements under that user's account. Other stores ignore the identity.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

/// An identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// Unknown: statements on documents are refused, so that a caller that forgets the identity
    /// gains nothing by it.
    #[default]
    Nobody,
    /// Selkie itself, for work that no user has asked for, such as deleting expired documents.
    Gateway,
    /// A user, by the name of its account.
    User(Arc<str>),
}

thread_local! {
    static CURRENT: RefCell<Identity> = const { RefCell::new(Identity::Nobody) };
}

/// Returns the identity of the running operation.
pub fn current() -> Identity {
    CURRENT.with_borrow(Identity::clone)
}

/// Runs an operation under an identity.
pub async fn under<T>(identity: Identity, operation: impl Future<Output = T>) -> T {
    let mut operation = pin!(operation);
    let mut identity = identity;
    poll_fn(move |context| {
        let _entered = Entered::enter(&mut identity);
        operation.as_mut().poll(context)
    })
    .await
}

/// Exchanges the current identity for another one while it lives.
struct Entered<'i>(&'i mut Identity);

impl Entered<'_> {
    fn enter(identity: &mut Identity) -> Entered<'_> {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, identity));
        Entered(identity)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::join;

    fn user(name: &str) -> Identity {
        Identity::User(name.into())
    }

    /// Returns the identity before and after other operations have run.
    async fn seen() -> [Identity; 2] {
        let before = current();
        let mut yielded = false;
        poll_fn(|context| match std::mem::replace(&mut yielded, true) {
            true => std::task::Poll::Ready(()),
            false => {
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            }
        })
        .await;
        [before, current()]
    }

    #[test]
    fn operations_that_alternate_keep_their_identities() {
        let both = async { join(under(user("a"), seen()), under(user("b"), under(Identity::Gateway, seen()))).await };
        let mut both = pin!(both);
        let (one, other) = loop {
            if let Some(done) = both.as_mut().now_or_never() {
                break done;
            }
            assert_eq!(current(), Identity::Nobody);
        };
        assert_eq!(one, [user("a"), user("a")]);
        assert_eq!(other, [Identity::Gateway, Identity::Gateway]);
        assert_eq!(current(), Identity::Nobody);
    }
}
