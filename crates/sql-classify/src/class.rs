//! The classes of statements: what each does, computed once for all statements of a canonical form.

use crate::canonical::{CANONICAL_LEXIS, Canonical, Canonicalizer, collapsed};
use crate::facts::Facts;
use crate::scanner::Lexis;
use crate::statement::{ParseContext, Statement, is_delayed};
use ahash::AHashMap;
use std::cell::OnceCell;
use std::rc::Rc;

/// What statements of a canonical form do.
#[derive(Debug)]
pub struct Class {
    /// The canonical form, or the text with its literals if its effects depend on them.
    text: Box<str>,
    lexis: Lexis,
    context: ParseContext,
    statement: OnceCell<Statement>,
    facts: OnceCell<Facts>,
}

impl Class {
    fn new(text: Box<str>, lexis: Lexis, context: ParseContext) -> Class {
        Class { text, lexis, context, statement: OnceCell::new(), facts: OnceCell::new() }
    }

    /// Computes the class of a canonical form.
    pub fn computed(form: String, context: ParseContext) -> Class {
        let class = Class::new(form.into(), CANONICAL_LEXIS, context);
        class.facts();
        class
    }

    /// The class of texts that cannot be read as the server reads them.
    pub fn unclear(sql: &[u8], context: ParseContext) -> Class {
        let text = String::from_utf8_lossy(sql);
        let class = Class::new("".into(), Lexis::default(), context);
        let _ = class.statement.set(Statement { is_delayed: is_delayed(&text), ..Statement::unknown() });
        class
    }

    /// Returns the text that the class was computed from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what the statements do. It is computed when it is first asked for.
    pub fn statement(&self) -> &Statement {
        self.statement.get_or_init(|| Statement::classify(&self.text, self.lexis, self.context))
    }

    /// Returns the facts that decide where the statements may be executed, computed likewise.
    pub fn facts(&self) -> &Facts {
        self.facts.get_or_init(|| Facts::of(&self.text, self.lexis, self.statement()))
    }
}

/// Classes by canonical form, the most recently used ones. A worker has one.
#[derive(Debug, Default)]
pub struct ClassCache {
    /// By [`ParseContext::is_prepared`].
    forms: [Generations; 2],
}

/// Canonical forms in a generation.
const FORMS_MAX: usize = 2048;

/// Longer forms are not cached.
pub const FORM_BYTES_MAX: usize = 4 << 10;

/// The forms used since the last generation was full, and those of the one before.
#[derive(Debug, Default)]
struct Generations {
    young: AHashMap<Box<str>, Rc<Class>>,
    old: AHashMap<Box<str>, Rc<Class>>,
    assumes_pure: bool,
}

impl ClassCache {
    /// Returns the class of a text.
    pub fn class(&mut self, sql: &[u8], lexis: Lexis, context: ParseContext) -> Rc<Class> {
        let Ok(text) = std::str::from_utf8(sql) else { return Rc::new(Class::unclear(sql, context)) };
        let mut canonicalizer = Canonicalizer::of(text, lexis);
        loop {
            match canonicalizer.advance(usize::MAX) {
                Ok(false) => {}
                Ok(true) => return self.class_of_form(text, canonicalizer.finish(), lexis, context),
                Err(_) => return Rc::new(Class::unclear(sql, context)),
            }
        }
    }

    /// Returns the class of a text whose canonical form is known.
    pub fn class_of_form(&mut self, text: &str, form: Canonical<'_>, lexis: Lexis, context: ParseContext) -> Rc<Class> {
        if form.depends_on_literals {
            let collapsed = collapsed(text, lexis);
            return Rc::new(match collapsed {
                Ok(text) => Class::new(text.into(), lexis, context),
                Err(_) => Class::unclear(text.as_bytes(), context),
            });
        }
        let context = context.of_form(&form);
        if context.is_refused {
            return Rc::new(Class::new(form.text.into(), CANONICAL_LEXIS, context));
        }
        let forms = &mut self.forms[usize::from(context.is_prepared)];
        if forms.assumes_pure != context.assume_pure {
            *forms = Generations { assumes_pure: context.assume_pure, ..Generations::default() };
        }
        forms.class(form.text, context)
    }
}

impl Generations {
    fn class(&mut self, form: String, context: ParseContext) -> Rc<Class> {
        if let Some(class) = self.young.get(form.as_str()) {
            return class.clone();
        }
        let class = match self.old.remove(form.as_str()) {
            Some(class) => class,
            None => Rc::new(Class::new(form.as_str().into(), CANONICAL_LEXIS, context)),
        };
        if form.len() <= FORM_BYTES_MAX {
            if self.young.len() >= FORMS_MAX {
                self.old = std::mem::take(&mut self.young);
            }
            self.young.insert(form.into(), class.clone());
        }
        class
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::StatementKind;

    #[test]
    fn statements_of_a_form_share_their_class() {
        let mut cache = ClassCache::default();
        let mut class = |sql: &str| cache.class(sql.as_bytes(), Lexis::default(), ParseContext::default());
        let first = class("SELECT a FROM t WHERE b = 1");
        assert!(Rc::ptr_eq(&first, &class("select a from  t where b='x' -- why")));
        assert_eq!(first.statement().kind, StatementKind::PureSelect);
        for number in 0..2 * FORMS_MAX {
            class(&format!("SELECT a{number} FROM t"));
            class("SELECT a FROM t WHERE b = 1");
        }
        assert!(Rc::ptr_eq(&first, &class("SELECT a FROM t WHERE b = 1")), "a form in use stays");
        assert_eq!(class("SET @selkie_cache = 0").text(), "SET @selkie_cache = 0");
        assert_eq!(class("SELECT 'a").statement().kind, StatementKind::Unknown);
        assert_eq!(class("SELECT a FROM t WHERE b = ?").statement().kind, StatementKind::Read);
    }
}
