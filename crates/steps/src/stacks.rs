//! The stacks that coroutines run on. Most polls end without being suspended, so a thread needs
//! one, over and over.

use corosensei::stack::DefaultStack;
use std::cell::RefCell;
use std::io;

/// As large as a worker's own: deeply nested expressions are evaluated here. The system gives
/// memory only to what is touched.
const STACK_BYTES: usize = 16 << 20;

/// Stacks that a thread keeps for later.
const KEPT_MAX: usize = 4;

thread_local! {
    static KEPT: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A stack of this thread's. Fails where the system has no room for another one.
pub(crate) fn take() -> io::Result<DefaultStack> {
    let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
    kept.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)
}

pub(crate) fn give_back(stack: DefaultStack) {
    // A thread that ends needs none.
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < KEPT_MAX {
            kept.push(stack);
        }
    });
}
