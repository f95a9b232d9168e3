//! The classes of texts. A long text is read in parts, so that it does not hold up the other
//! sessions of its worker.

use super::state::Session;
use sql_classify::{Canonicalizer, Class, FORM_BYTES_MAX, Lexis, ParseContext};
use std::rc::Rc;
use tokio::task::{spawn_blocking, yield_now};

/// The most bytes of a text that are read at once.
const PART_BYTES: usize = 4 << 10;

impl Session {
    /// Returns the class of a text.
    pub async fn class(&mut self, sql: &[u8], is_prepared: bool) -> std::io::Result<Rc<Class>> {
        let lexis = self.lexis(sql).await?;
        Ok(self.class_by(sql, lexis, is_prepared).await)
    }

    /// As [`Session::class`], by known settings of the lexer.
    pub async fn class_by(&self, sql: &[u8], lexis: Lexis, is_prepared: bool) -> Rc<Class> {
        let context = self.parse_context(is_prepared);
        match std::str::from_utf8(sql) {
            // Boxed because it is rare, and would enlarge the future of every statement.
            Ok(text) if sql.len() > PART_BYTES => Box::pin(self.class_in_parts(text, lexis, context)).await,
            _ => self.classes.borrow_mut().class(sql, lexis, context),
        }
    }

    async fn class_in_parts(&self, text: &str, lexis: Lexis, context: ParseContext) -> Rc<Class> {
        let mut canonicalizer = Canonicalizer::of(text, lexis);
        loop {
            match canonicalizer.advance(PART_BYTES) {
                Ok(true) => break,
                Ok(false) => yield_now().await,
                Err(_) => return Rc::new(Class::unclear(text.as_bytes(), context)),
            }
        }
        let form = canonicalizer.finish();
        if form.depends_on_literals || form.text.len() <= FORM_BYTES_MAX {
            return self.classes.borrow_mut().class_of_form(text, form, lexis, context);
        }
        // The class of a long form is not cached. To compute it takes as long as to read the text.
        let (context, form) = (context.of_form(&form), form.text);
        match spawn_blocking(move || Class::computed(form, context)).await {
            Ok(class) => Rc::new(class),
            Err(_) => Rc::new(Class::unclear(text.as_bytes(), context)),
        }
    }
}
