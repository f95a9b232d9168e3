//! The stacks of coroutines. Most polls end without being suspended, so a thread needs one stack,
//! over and over.

use corosensei::stack::DefaultStack;
use std::cell::RefCell;
use std::io;

/// As large as a worker's own: deeply nested expressions are evaluated here. The system only
/// provides memory that is touched.
const STACK_BYTES: usize = 16 << 20;

/// The limit of idle stacks of a thread.
const KEPT_MAX: usize = 4;

thread_local! {
    static KEPT: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Takes a stack of this thread. Fails if the system has no memory for another one.
pub(crate) fn take() -> io::Result<DefaultStack> {
    let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
    kept.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok)
}

pub(crate) fn give_back(stack: DefaultStack) {
    // A thread that is ending needs none.
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < KEPT_MAX {
            kept.push(stack);
        }
    });
}
