//! Says in words why a statement has its class.

use crate::class::Class;
use crate::effects::{SessionEffect, Writes};
use crate::statement::StatementKind;
use crate::table_name::TableName;
use std::fmt::Write;

impl Class {
    /// Describes the class in sentences, one a line: the tables, whether a replica may execute it,
    /// whether its result may be cached, and the state of its session.
    pub fn explain(&self) -> String {
        let (statement, facts) = (self.statement(), self.facts());
        let effects = &statement.effects;
        let mut text = String::new();
        let mut line = |sentence: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{sentence}");
        };
        if !effects.reads.is_empty() {
            line(format_args!("It reads {}.", names(&effects.reads)));
        }
        match &effects.writes {
            Writes::Nothing => line(format_args!("Its text names nothing that it changes.")),
            Writes::Tables(tables) => line(format_args!("It may change {}.", names(tables))),
            Writes::AnyRows => line(format_args!("It may change rows of any table.")),
            Writes::Everything => line(format_args!("It may change rows and definitions of any table.")),
        }
        for routine in &effects.calls.routines {
            line(format_args!("It calls {}, which may change more.", routine.name));
        }
        match facts.primary {
            Some(reason) => line(format_args!("Only the primary may execute it: {reason}.")),
            None => line(format_args!("A replica may execute it.")),
        }
        line(format_args!("{}", self.caching()));
        for state in &facts.session {
            line(format_args!("It uses or changes {state}."));
        }
        match effects.session {
            SessionEffect::None => {}
            SessionEffect::Settings => line(format_args!("The session's settings are read again after it.")),
            SessionEffect::Anything => {
                line(format_args!("After it the session may see other tables than other sessions."));
            }
        }
        text
    }

    fn caching(&self) -> &'static str {
        let statement = self.statement();
        match &statement.kind {
            StatementKind::PureSelect => "Its result may be cached: it depends on nothing but rows.",
            StatementKind::Read if !statement.effects.calls.is_empty() => {
                "Its result is not cached: it calls a function that is not built in."
            }
            StatementKind::Read if statement.effects.reads.is_empty() => {
                "Its result is not cached: it reads no table, or depends on more than rows."
            }
            StatementKind::Read => {
                "Its result is not cached: it depends on more than rows, or was not understood as a SELECT from at most eight \
                 tables."
            }
            _ => "Nothing of it is cached: it is not a SELECT.",
        }
    }
}

fn names(tables: &[TableName]) -> String {
    let name = |table: &TableName| match &table.schema {
        Some(schema) => format!("{schema}.{}", table.name),
        None => table.name.clone(),
    };
    tables.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::class::ClassCache;
    use crate::scanner::Lexis;
    use crate::statement::ParseContext;

    fn explain(sql: &str) -> String {
        ClassCache::default().class(sql.as_bytes(), Lexis::default(), ParseContext::default()).explain()
    }

    #[test]
    fn classes_in_words() {
        assert_eq!(
            explain("SELECT a FROM t JOIN d.u ON t.b = u.b WHERE c = 5"),
            "It reads t, d.u.\nIts text names nothing that it changes.\nA replica may execute it.\n\
             Its result may be cached: it depends on nothing but rows.\n"
        );
        assert_eq!(
            explain("UPDATE t SET a = f(1)"),
            "It may change t.\nIt calls f, which may change more.\nOnly the primary may execute it: it changes rows.\n\
             Nothing of it is cached: it is not a SELECT.\n"
        );
        for (sql, part) in [
            ("SELECT a FROM t FOR UPDATE", "it locks rows"),
            ("SELECT NOW()", "depends on more than rows"),
            ("SET NAMES utf8", "the character set"),
            ("nonsense", "it is not understood"),
            ("CREATE TEMPORARY TABLE t (a INT)", "other tables than other sessions"),
        ] {
            assert!(explain(sql).contains(part), "{sql}: {}", explain(sql));
        }
    }
}
