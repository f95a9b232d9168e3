//! The tree that an expression is parsed into: its nodes, and the operators that its calls name.

use super::evaluated::Evaluated;
use super::path::FieldPath;
use super::scope::Variable;
use super::second_engine::{Rule, SecondEngine};
use crate::metadata::Meta;
use document::{Collation, Doc, Value, ValueBuf};
use error::Result;
use std::fmt;

/// A node, with constants folded.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    /// `$$REMOVE`, and omitted arguments.
    Missing,
    Literal(ValueBuf),
    /// `$a.b`; `$$ROOT` if the path is empty.
    Root(FieldPath),
    /// `$$name.a.b`
    Variable(Variable, FieldPath),
    /// `{$meta: "textScore"}`
    Metadata(Meta),
    Document(Vec<(Box<str>, Expr)>),
    Array(Vec<Expr>),
    Call(&'static Operator, Vec<Expr>),
    Form(Box<SpecialForm>),
    /// A call or a special form, with the rule by which MongoDB's second engine differs.
    InSecondEngine(Box<Expr>, &'static Rule),
}

/// Expressions that do not simply evaluate all their arguments.
#[derive(Clone, Debug)]
pub(crate) enum SpecialForm {
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Condition { test: Expr, then: Expr, otherwise: Expr },
    IfNull(Vec<Expr>),
    Switch { branches: Vec<(Expr, Expr)>, default: Option<Expr> },
    Let { values: Vec<Expr>, body: Expr },
    Map { input: Expr, body: Expr },
    Filter { input: Expr, condition: Expr, limit: Option<Expr> },
    Reduce { input: Expr, initial: Expr, body: Expr },
}

impl Expr {
    /// Returns the value of a constant, which may be a missing one; `None` if it depends on the
    /// document.
    pub fn as_constant(&self) -> Option<Option<Value<'_>>> {
        match self {
            Expr::Literal(value) => Some(Some(value.as_value())),
            Expr::Missing => Some(None),
            _ => None,
        }
    }

    pub fn is_constant(&self) -> bool {
        matches!(self, Expr::Literal(_) | Expr::Missing)
    }

    /// Returns a constant as the argument that a call evaluates it to.
    pub fn as_constant_argument(&self) -> Option<Evaluated<'_>> {
        self.as_constant().map(|value| value.map_or(Evaluated::Missing, Evaluated::Value))
    }

    /// Calls `visit` with the node and all nodes below it.
    pub fn each(&self, visit: &mut dyn FnMut(&Expr)) {
        steps::step();
        visit(self);
        match self {
            Expr::Missing | Expr::Literal(_) | Expr::Root(_) | Expr::Variable(..) | Expr::Metadata(_) => {}
            Expr::Document(fields) => fields.iter().for_each(|(_, value)| value.each(visit)),
            Expr::Array(all) | Expr::Call(_, all) => all.iter().for_each(|part| part.each(visit)),
            Expr::Form(form) => form.each(visit),
            Expr::InSecondEngine(plain, _) => plain.each(visit),
        }
    }

    /// Calls `change` with the node, then with all nodes below what it was changed into.
    pub fn each_mut(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        steps::step();
        change(self);
        self.each_part_mut(change);
    }

    fn each_part_mut(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Missing | Expr::Literal(_) | Expr::Root(_) | Expr::Variable(..) | Expr::Metadata(_) => {}
            Expr::Document(fields) => fields.iter_mut().for_each(|(_, value)| value.each_mut(change)),
            Expr::Array(all) | Expr::Call(_, all) => all.iter_mut().for_each(|part| part.each_mut(change)),
            Expr::Form(form) => form.parts_mut().into_iter().for_each(|part| part.each_mut(change)),
            Expr::InSecondEngine(plain, _) => plain.each_part_mut(change),
        }
    }
}

impl SpecialForm {
    pub fn operator_name(&self) -> &'static str {
        match self {
            SpecialForm::And(_) => "$and",
            SpecialForm::Or(_) => "$or",
            SpecialForm::Condition { .. } => "$cond",
            SpecialForm::IfNull(_) => "$ifNull",
            SpecialForm::Switch { .. } => "$switch",
            SpecialForm::Let { .. } => "$let",
            SpecialForm::Map { .. } => "$map",
            SpecialForm::Filter { .. } => "$filter",
            SpecialForm::Reduce { .. } => "$reduce",
        }
    }

    fn each(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            SpecialForm::And(all) | SpecialForm::Or(all) | SpecialForm::IfNull(all) => {
                all.iter().for_each(|part| part.each(visit));
            }
            SpecialForm::Condition { test, then, otherwise } => {
                [test, then, otherwise].into_iter().for_each(|part| part.each(visit));
            }
            SpecialForm::Switch { branches, default } => {
                branches.iter().flat_map(|(case, then)| [case, then]).chain(default).for_each(|part| part.each(visit));
            }
            SpecialForm::Let { values, body } => values.iter().chain([body]).for_each(|part| part.each(visit)),
            SpecialForm::Map { input, body } => [input, body].into_iter().for_each(|part| part.each(visit)),
            SpecialForm::Filter { input, condition, limit } => {
                [input, condition].into_iter().chain(limit).for_each(|part| part.each(visit));
            }
            SpecialForm::Reduce { input, initial, body } => {
                [input, initial, body].into_iter().for_each(|part| part.each(visit));
            }
        }
    }

    fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            SpecialForm::And(all) | SpecialForm::Or(all) | SpecialForm::IfNull(all) => all.iter_mut().collect(),
            SpecialForm::Condition { test, then, otherwise } => vec![test, then, otherwise],
            SpecialForm::Switch { branches, default } => {
                branches.iter_mut().flat_map(|(case, then)| [case, then]).chain(default).collect()
            }
            SpecialForm::Let { values, body } => values.iter_mut().chain([body]).collect(),
            SpecialForm::Map { input, body } => vec![input, body],
            SpecialForm::Filter { input, condition, limit } => [input, condition].into_iter().chain(limit).collect(),
            SpecialForm::Reduce { input, initial, body } => vec![input, initial, body],
        }
    }
}

/// An operator that evaluates all its arguments and computes a value from them. Its entry holds all
/// facts about it; [`super::table`] lists the entries of all operators.
///
/// `evaluate` reads its arguments in MongoDB's order, as the first that fails determines the error.
/// One that returns early must still read the rest
/// ([`super::evaluated::Evaluated::mark_all_read`]).
pub(crate) struct Operator {
    pub name: &'static str,
    pub arity: Arity,
    pub evaluate: Evaluate,
    pub foldable: Foldable,
    pub algebra: Algebra,
    pub second_engine: SecondEngine,
    /// Whether a single array argument may contain all arguments.
    pub takes_one_array: bool,
    /// Whether it accepts any values as arguments.
    pub never_fails: bool,
    /// Whether equal arguments always produce the same value.
    pub deterministic: bool,
    /// Checks constant arguments before there is a document; the server has separate error codes
    /// for these.
    pub check_constants: Option<CheckConstants>,
    /// Returns the operator that replaces this one for arguments of which some are constants.
    pub specialize: Option<Specialize>,
}

/// Called after each argument was folded, with the number of arguments that are folded by then, and
/// the name of the operator.
pub(crate) type CheckConstants = fn(&'static str, &[Expr], usize) -> Result<()>;

/// Returns the operator that replaces this one for these arguments.
pub(crate) type Specialize = fn(&[Expr]) -> Option<&'static Operator>;

/// Computes the value of an operator, whose own name is passed for messages.
#[derive(Clone, Copy)]
pub(crate) enum Evaluate {
    Plain(for<'a> fn(&'static str, &mut [Evaluated<'a>]) -> Result<Evaluated<'a>>),
    /// For operators that compare values: strings by the collation.
    Collated(for<'a> fn(&'static str, &mut [Evaluated<'a>], &Collation) -> Result<Evaluated<'a>>),
}

/// The number of arguments of an operator, or a parser for named ones.
#[derive(Clone, Copy)]
pub(crate) enum Arity {
    Exactly(usize),
    Between(usize, usize),
    Any,
    AtLeastTwo {
        code: i32,
    },
    /// One; otherwise the error is that of conversions.
    Conversion,
    /// This number; messages have the name that the operator is an alias of.
    AliasOf(&'static str, usize),
    /// Returns the arguments in the order that `evaluate` expects, [`Expr::Missing`] for omitted
    /// ones.
    Named(fn(&mut dyn ParseExpr, &str, Value<'_>) -> Result<Vec<Expr>>),
}

/// The part of a call that is computed before there is a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foldable {
    /// The whole call, if all arguments are constants.
    Full,
    /// Constant parts of its arguments.
    Arguments,
    /// Nothing, as on the server; constants that fail do so once there is a document.
    None,
}

/// The laws by which calls may be rearranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algebra {
    None,
    /// Nested calls are equal to one call with all arguments.
    Associative,
    /// The order of the arguments does not matter either.
    Commutative,
    /// Like `Commutative`, under the simple collation only: of texts that another collation takes
    /// for equal, sets retain the first.
    CommutativeSet,
}

impl Operator {
    pub const fn new(
        name: &'static str,
        arity: Arity,
        evaluate: for<'a> fn(&'static str, &mut [Evaluated<'a>]) -> Result<Evaluated<'a>>,
    ) -> Operator {
        Operator::with(name, arity, Evaluate::Plain(evaluate))
    }

    /// Returns an operator that compares values.
    pub const fn collated(
        name: &'static str,
        arity: Arity,
        evaluate: for<'a> fn(&'static str, &mut [Evaluated<'a>], &Collation) -> Result<Evaluated<'a>>,
    ) -> Operator {
        Operator::with(name, arity, Evaluate::Collated(evaluate))
    }

    const fn with(name: &'static str, arity: Arity, evaluate: Evaluate) -> Operator {
        Operator {
            name,
            arity,
            evaluate,
            foldable: Foldable::Full,
            algebra: Algebra::None,
            second_engine: SecondEngine::Unsupported,
            takes_one_array: false,
            never_fails: false,
            deterministic: true,
            check_constants: None,
            specialize: None,
        }
    }

    pub const fn foldable(mut self, foldable: Foldable) -> Operator {
        self.foldable = foldable;
        self
    }

    pub const fn algebra(mut self, algebra: Algebra) -> Operator {
        self.algebra = algebra;
        self
    }

    pub const fn second_engine(mut self, second_engine: SecondEngine) -> Operator {
        self.second_engine = second_engine;
        self
    }

    pub const fn takes_one_array(mut self) -> Operator {
        self.takes_one_array = true;
        self
    }

    pub const fn never_fails(mut self) -> Operator {
        self.never_fails = true;
        self
    }

    /// Marks an operator whose value differs between calls: nothing of it is folded.
    pub const fn nondeterministic(mut self) -> Operator {
        self.deterministic = false;
        self.foldable = Foldable::None;
        self
    }

    pub const fn check_constants(mut self, check: CheckConstants) -> Operator {
        self.check_constants = Some(check);
        self
    }

    pub const fn specialize(mut self, specialize: Specialize) -> Operator {
        self.specialize = Some(specialize);
        self
    }

    pub fn apply<'a>(&self, arguments: &mut [Evaluated<'a>], collation: &Collation) -> Result<Evaluated<'a>> {
        match self.evaluate {
            Evaluate::Plain(evaluate) => evaluate(self.name, arguments),
            Evaluate::Collated(evaluate) => evaluate(self.name, arguments, collation),
        }
    }

    pub fn is_associative(&self) -> bool {
        self.algebra != Algebra::None
    }

    pub fn is_commutative(&self, collation: &Collation) -> bool {
        match self.algebra {
            Algebra::Commutative => true,
            Algebra::CommutativeSet => collation.is_simple(),
            Algebra::None | Algebra::Associative => false,
        }
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An operator that has a node of its own in the tree.
pub(crate) struct SpecialOperator {
    pub name: &'static str,
    pub parse: ParseOperand,
    pub second_engine: SecondEngine,
}

/// Parses the operand of a special operator.
#[derive(Clone, Copy)]
pub(crate) enum ParseOperand {
    Form(fn(&mut dyn ParseExpr, Value<'_>) -> Result<SpecialForm>),
    Node(fn(&mut dyn ParseExpr, Value<'_>) -> Result<Expr>),
}

impl SpecialOperator {
    /// Returns the entry of a special form.
    pub const fn form(
        name: &'static str,
        parse: fn(&mut dyn ParseExpr, Value<'_>) -> Result<SpecialForm>,
        second_engine: SecondEngine,
    ) -> SpecialOperator {
        SpecialOperator { name, parse: ParseOperand::Form(parse), second_engine }
    }

    /// Returns the entry of an operator that becomes another node, with the engine's support of
    /// that node.
    pub const fn node(
        name: &'static str,
        parse: fn(&mut dyn ParseExpr, Value<'_>) -> Result<Expr>,
        second_engine: SecondEngine,
    ) -> SpecialOperator {
        SpecialOperator { name, parse: ParseOperand::Node(parse), second_engine }
    }

    /// Parses the operand.
    pub fn parse(&self, parser: &mut dyn ParseExpr, operand: Value<'_>) -> Result<Expr> {
        match self.parse {
            ParseOperand::Form(parse) => Ok(Expr::Form(Box::new(parse(parser, operand)?))),
            ParseOperand::Node(parse) => parse(parser, operand),
        }
    }
}

/// The parser, as operators use it to parse their operands.
pub(crate) trait ParseExpr {
    fn parse(&mut self, value: Value<'_>) -> Result<Expr>;

    /// Parses with more variables in scope.
    fn parse_inside(&mut self, names: Vec<String>, value: Value<'_>) -> Result<Expr>;

    /// Parses a value that is taken as it is.
    fn parse_literal(&mut self, value: Value<'_>) -> Result<Expr>;

    /// Records that the expression reads metadata.
    fn note_metadata(&mut self, meta: Meta);

    fn parse_all(&mut self, array: Doc<'_>) -> Result<Vec<Expr>> {
        array.values().map(|value| self.parse(value)).collect()
    }

    /// Parses the arguments of an operator: an array's elements, or a single value that is not an
    /// array.
    fn parse_arguments(&mut self, operand: Value<'_>) -> Result<Vec<Expr>> {
        match operand {
            Value::Array(array) => self.parse_all(array),
            value => Ok(vec![self.parse(value)?]),
        }
    }
}
