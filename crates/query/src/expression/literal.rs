//! `$literal` and `$meta`.

use super::second_engine::SecondEngine;
use super::tree::{Expr, ParseExpr, SpecialOperator};
use crate::metadata::Meta;
use document::Value;
use error::Result;

pub(super) static OPERATORS: &[SpecialOperator] = &[
    SpecialOperator::node("$literal", parse_literal, SecondEngine::Same),
    SpecialOperator::node("$const", parse_literal, SecondEngine::Same),
    SpecialOperator::node("$meta", parse_meta, SecondEngine::Unsupported),
];

fn parse_literal(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<Expr> {
    parser.parse_literal(operand)
}

fn parse_meta(parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<Expr> {
    let meta = Meta::parse(operand)?;
    parser.note_metadata(meta);
    Ok(Expr::Metadata(meta))
}
