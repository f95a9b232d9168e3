//! Masking: values of columns are replaced in result sets, and statements that could show them in
//! another way are refused.
//!
//! A server says from which column of which table a value is, if it is not computed. So a statement
//! may name a masked column only where it is shown as it is ([`masked_statement`]).
//!
//! [`masked_statement`]: crate::masked_statement

use crate::counters::Counters;
use crate::filter::{Action, Call, Filter, Verdict};
use crate::mask_rule::MaskRule;
use crate::masked_statement::{CheckContext, changes_lexer, danger};
use crate::refusal::Refusal;
use crate::result_set::{Column, ResultEditor, Row};
use crate::settings::MaskingSettings;
use crate::statement::{Dynamic, Statement};
use mariadb_wire::reader::write_bytes;
use mariadb_wire::row::{BinaryRow, TextRow};
use mariadb_wire::{ColumnType, Malformed, Reader};
use std::sync::Arc;

/// Types whose values are texts. Values of others become NULL.
const TEXTS: [u8; 11] = [15, 245, 247, 248, 249, 250, 251, 252, 253, 254, 242];

/// A filter that masks columns.
#[derive(Debug)]
pub struct Masking {
    name: String,
    settings: Arc<MaskingSettings>,
}

impl Masking {
    pub fn new(name: String, settings: MaskingSettings) -> Masking {
        Masking { name, settings: Arc::new(settings) }
    }

    /// Returns why a statement is refused.
    fn danger(&self, call: &Call<'_>) -> Option<String> {
        let MaskingSettings { rules, trusted, .. } = &*self.settings;
        let known = CheckContext { rules, trusted, views: call.client.views.as_deref(), schema: &call.client.schema };
        let statement = call.statement;
        let in_text = |statement: &Statement| match statement.tokens() {
            Some(tokens) if changes_lexer(statement.text().unwrap_or_default(), &tokens) => {
                Some("it may change the settings by which the server reads the rest of it".to_owned())
            }
            Some(tokens) => danger(&tokens, &known),
            None => Some("it is too long to be checked, or cannot be read as MariaDB reads it".to_owned()),
        };
        if let Some(danger) = in_text(statement) {
            return Some(danger);
        }
        match statement.dynamic() {
            Dynamic::None => None,
            Dynamic::Unknown => Some("it executes a text that is not known before".to_owned()),
            Dynamic::Text(text) => {
                let inner = Statement::classify(&text, statement.lexis(), true);
                match inner.dynamic() {
                    Dynamic::None => in_text(&inner),
                    _ => Some("it prepares a statement that prepares another".to_owned()),
                }
            }
        }
    }

    fn is_exempt(&self, call: &Call<'_>) -> bool {
        self.settings.exempt_users.contains(&call.client.user)
    }
}

impl Filter for Masking {
    fn check(&self, call: &Call<'_>) -> Verdict {
        if self.is_exempt(call) {
            return Verdict::Pass;
        }
        let Some(danger) = self.danger(call) else { return Verdict::Pass };
        call.counters.blocked.increment();
        Verdict::Refuse(call.client.denied(&self.name, &danger))
    }

    fn results(&self, call: &Call<'_>) -> Option<Box<dyn ResultEditor>> {
        if self.is_exempt(call) || call.action == Action::Prepare {
            return None;
        }
        let (settings, counters) = (self.settings.clone(), call.counters.clone());
        Some(Box::new(MaskedRows { settings, counters, types: Vec::new(), masks: Vec::new(), is_counted: false }))
    }

    fn needs_views(&self, user: &str) -> bool {
        !self.settings.exempt_users.iter().any(|exempt| exempt == user)
    }
}

/// Masks values of result sets.
#[derive(Debug)]
struct MaskedRows {
    settings: Arc<MaskingSettings>,
    counters: Arc<Counters>,
    types: Vec<ColumnType>,
    /// The rule of each column that is masked.
    masks: Vec<Option<usize>>,
    is_counted: bool,
}

impl MaskedRows {
    fn edited(&self, row: &[u8], is_binary: bool) -> Result<Vec<u8>, Malformed> {
        if is_binary { self.edited_binary(row) } else { self.edited_text(row) }
    }

    /// Returns the text in place of a value; `None`: NULL.
    fn masked(&self, column: usize, value: &[u8]) -> Option<Vec<u8>> {
        let rule = self.settings.rules.get(self.masks.get(column).copied().flatten()?)?;
        let is_text = self.types.get(column).is_some_and(|column_type| TEXTS.contains(&column_type.0));
        is_text.then(|| rule.masked(value))
    }

    fn is_masked(&self, column: usize) -> bool {
        self.masks.get(column).is_some_and(Option::is_some)
    }

    fn edited_text(&self, row: &[u8]) -> Result<Vec<u8>, Malformed> {
        const NULL: u8 = 0xFB;
        let (mut values, mut out) = (TextRow::new(row), Vec::with_capacity(row.len()));
        for column in 0..self.types.len() {
            let value = values.next_bytes()?;
            let masked = value.filter(|_| self.is_masked(column)).map(|value| self.masked(column, value));
            match (value, masked) {
                (None, _) | (_, Some(None)) => out.push(NULL),
                (_, Some(Some(masked))) => write_bytes(&masked, &mut out),
                (Some(value), None) => write_bytes(value, &mut out),
            }
        }
        Ok(out)
    }

    fn edited_binary(&self, row: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut values = BinaryRow::new(row, &self.types)?;
        let head = 1 + (self.types.len() + 2).div_ceil(8);
        let mut out = Reader::new(row, "binary row").bytes(head)?.to_vec();
        for (column, column_type) in self.types.iter().enumerate() {
            let Some(value) = values.next_bytes()? else { continue };
            if !self.is_masked(column) {
                match column_type.fixed_bytes() {
                    Some(_) => out.extend_from_slice(value),
                    None => write_bytes(value, &mut out),
                }
                continue;
            }
            match self.masked(column, value) {
                Some(masked) => write_bytes(&masked, &mut out),
                None => {
                    let bit = column + 2;
                    if let Some(byte) = out.get_mut(1 + bit / 8) {
                        *byte |= 1 << (bit % 8);
                    }
                }
            }
        }
        Ok(out)
    }
}

impl ResultEditor for MaskedRows {
    fn columns(&mut self, columns: &[Column]) {
        self.types = columns.iter().map(|column| column.column_type).collect();
        let rule = |column: &Column| self.settings.rules.iter().position(|rule: &MaskRule| rule.masks(column));
        self.masks = columns.iter().map(rule).collect();
        self.is_counted = false;
    }

    fn row(&mut self, row: &mut Vec<u8>, is_binary: bool) -> Row {
        if self.types.is_empty() {
            // Rows without definitions: the origin of their values is not known.
            return Row::End(Refusal::denied("A filter that masks columns cannot read these rows".to_owned()));
        }
        if self.masks.iter().all(Option::is_none) {
            return Row::Keep;
        }
        if !self.is_counted {
            self.is_counted = true;
            self.counters.masked.increment();
        }
        match self.edited(row, is_binary) {
            Ok(edited) => *row = edited,
            Err(error) => return Row::End(Refusal::denied(format!("A filter cannot mask a row: {error}"))),
        }
        Row::Keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(columns: &[(&str, u8)]) -> MaskedRows {
        let rules = vec![MaskRule::parse("column t.a").unwrap(), MaskRule::parse("column t.n").unwrap()];
        let settings = Arc::new(MaskingSettings { rules, ..MaskingSettings::default() });
        let (types, masks) = Default::default();
        let mut editor = MaskedRows { settings, counters: Arc::default(), types, masks, is_counted: false };
        let column = |&(name, column_type): &(&str, u8)| Column {
            is_readable: true,
            schema: "d".into(),
            table: "t".into(),
            original_name: name.into(),
            name: name.into(),
            column_type: ColumnType(column_type),
        };
        editor.columns(&columns.iter().map(column).collect::<Vec<_>>());
        editor
    }

    #[test]
    fn rows_are_masked() {
        let mut editor = editor(&[("b", 253), ("a", 253), ("n", 3), ("a", 253), ("m", 3)]);
        let mut row = b"\x01x\x06secret\x017\xfb\x018".to_vec();
        assert_eq!((editor.row(&mut row, false), &row[..]), (Row::Keep, &b"\x01x\x03***\xfb\xfb\x018"[..]));
        let mut row = b"\0\x20\x01x\x06secret\x07\0\0\0\x08\0\0\0".to_vec();
        assert_eq!((editor.row(&mut row, true), &row[..]), (Row::Keep, &b"\0\x30\x01x\x03***\x08\0\0\0"[..]));
        assert_eq!(editor.counters.masked.get(), 1);
        for is_binary in [false, true] {
            assert!(matches!(editor.row(&mut b"\x01".to_vec(), is_binary), Row::End(_)));
        }
    }
}
