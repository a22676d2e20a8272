//! What can be said about a template without running it: which names it reads, which filters it
//! calls that do not exist, where it compares free text.
//!
//! The only file that reads minijinja's syntax tree, which is not a stable interface.

use std::collections::BTreeSet;

use minijinja::{
    Error, Value,
    machinery::{
        Span,
        ast::{self, Expr, Stmt},
        parse, parse_expr,
    },
    syntax::SyntaxConfig,
    value::ValueKind,
};

use super::{TemplateProblem, filters, place, some_text};
use crate::diagnostic::suggestion;

/// A name with its fields (`steps.review.outcome`) that a template reads from its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedPath {
    pub path: Vec<String>,
    pub line: usize,
    pub column: usize,
    /// Characters of the path as written.
    pub length: usize,
    /// The template asks itself whether it is there.
    pub guarded: bool,
    /// First names in the conditions around it.
    pub conditions: BTreeSet<String>,
}

/// A place where an expression compares a field of free text with a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeTextUse {
    /// The field, without what it belongs to.
    pub field: String,
    /// The comparison as written.
    pub text: String,
    pub line: usize,
    pub column: usize,
}

/// A parsed text or expression.
pub(super) struct Tree<'s> {
    source: &'s str,
    root: Stmt<'s>,
}

impl<'s> Tree<'s> {
    pub(super) fn of_text(source: &'s str, syntax: SyntaxConfig) -> Result<Self, Error> {
        super::is_short_text(source)?;
        Ok(Self { source, root: parse(source, "template", syntax)? })
    }

    pub(super) fn of_expression(source: &'s str) -> Result<Self, Error> {
        super::is_short(source)?;
        let expr = parse_expr(source)?;
        let span = expr.span();
        Ok(Self { source, root: Stmt::EmitExpr(ast::Spanned::new(ast::EmitExpr { expr }, span)) })
    }

    pub(super) fn used_paths(&self) -> Vec<UsedPath> {
        let mut used = Vec::new();
        let guards = self.guards();
        walk_statement(&self.root, &mut Locals::default(), &mut |expr, locals| {
            let Some(path) = path_of(expr) else { return Descend::Yes };
            let is_function = path.len() == 1 && filters::FUNCTIONS.contains(&path[0].as_str());
            if !locals.contains(&path[0]) && !is_function {
                let (line, column) = place(self.source, start(expr));
                let end = expr.span().end_offset as usize;
                let length = self.source.get(start(expr)..end).map_or(1, |text| text.chars().count().max(1));
                let guarded = guards.iter().any(|guard| path.starts_with(guard));
                let conditions = locals.conditions.iter().flatten().cloned().collect();
                used.push(UsedPath { path, line, column, length, guarded, conditions });
            }
            Descend::No
        });
        used
    }

    /// Paths that the template asks about before it uses them, wherever in it that is:
    /// `x.y is defined`, `x.y | default(…)`, `"y" in x`.
    fn guards(&self) -> Vec<Vec<String>> {
        let mut guards = Vec::new();
        walk_statement(&self.root, &mut Locals::default(), &mut |expr, _| {
            match expr {
                Expr::Test(test) if matches!(test.name, "defined" | "undefined") => {
                    guards.extend(path_of(&test.expr));
                }
                Expr::Filter(filter) if matches!(filter.name, "default" | "d") => {
                    guards.extend(filter.expr.as_ref().and_then(path_of));
                }
                Expr::BinOp(operation) if matches!(operation.op, ast::BinOpKind::In) => {
                    let key = operation.left.as_const();
                    let key = key.as_ref().and_then(|key| key.as_str().map(str::to_owned));
                    guards.extend(key.zip(path_of(&operation.right)).map(|(key, path)| extended(path, &key)));
                }
                _ => {}
            }
            Descend::Yes
        });
        guards
    }

    pub(super) fn unknown_names(&self, name: &str) -> Vec<TemplateProblem> {
        let mut problems = Vec::new();
        walk_statement(&self.root, &mut Locals::default(), &mut |expr, locals| {
            if let Some((kind, word, known)) = unknown_name(expr, locals) {
                let (line, column) = place(self.source, offset_of_name(self.source, expr, &word));
                let hint = some_text(suggestion(&word, known.iter().copied()));
                let message = format!("there is no {kind} `{word}`");
                let name = name.to_owned();
                problems.push(TemplateProblem { name, line, column: Some(column), message, hint });
            }
            Descend::Yes
        });
        problems
    }

    pub(super) fn free_text_uses(&self, fields: &[&str]) -> Vec<FreeTextUse> {
        let mut uses = Vec::new();
        walk_statement(&self.root, &mut Locals::default(), &mut |expr, _| {
            if let Some(field) = compared_field(expr, fields) {
                let range = start(expr)..expr.span().end_offset as usize;
                let text = self.source.get(range).unwrap_or(self.source).trim().to_owned();
                let (line, column) = place(self.source, start(expr));
                uses.push(FreeTextUse { field, text, line, column });
            }
            Descend::Yes
        });
        uses
    }
}

/// `a.b["c"]` as its segments, if the expression is nothing but such a path.
pub(super) fn plain_path(expression: &str) -> Option<Vec<String>> {
    path_of(&parse_expr(expression).ok()?)
}

fn path_of(expr: &Expr<'_>) -> Option<Vec<String>> {
    match expr {
        Expr::Var(name) => Some(vec![name.id.to_owned()]),
        Expr::GetAttr(get) => Some(extended(path_of(&get.expr)?, get.name)),
        Expr::GetItem(get) => {
            let key = get.subscript_expr.as_const()?;
            Some(extended(path_of(&get.expr)?, key.as_str()?))
        }
        _ => None,
    }
}

fn extended(mut path: Vec<String>, segment: &str) -> Vec<String> {
    path.push(segment.to_owned());
    path
}

/// Where an expression begins: the span of anything compound may begin a token too early or late.
fn start(expr: &Expr<'_>) -> usize {
    match expr {
        Expr::GetAttr(get) => start(&get.expr),
        Expr::GetItem(get) => start(&get.expr),
        Expr::Slice(slice) => start(&slice.expr),
        Expr::BinOp(operation) => start(&operation.left),
        Expr::Compare(compare) => start(&compare.expr),
        Expr::IfExpr(condition) => start(&condition.true_expr),
        Expr::Test(test) => start(&test.expr),
        Expr::Call(call) => start(&call.expr),
        Expr::Filter(filter) => filter.expr.as_ref().map_or(filter.span().start_offset as usize, start),
        Expr::Var(_) | Expr::Const(_) | Expr::UnaryOp(_) | Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => {
            expr.span().start_offset as usize
        }
    }
}

/// Where the word itself stands; spans of filters cover what they are applied to.
fn offset_of_name(source: &str, expr: &Expr<'_>, word: &str) -> usize {
    let Span { start_offset, end_offset, .. } = expr.span();
    let (from, to) = (start_offset as usize, end_offset as usize);
    let first = match expr {
        Expr::Filter(filter) => filter.expr.as_ref().map_or(from, |inner| inner.span().end_offset as usize),
        Expr::Test(test) => test.expr.span().end_offset as usize,
        _ => from,
    };
    source.get(first..to).and_then(|text| text.find(word)).map_or(from, |at| first + at)
}

type Unknown = (&'static str, String, &'static [&'static str]);

fn unknown_name(expr: &Expr<'_>, locals: &Locals) -> Option<Unknown> {
    let (kind, word, known): (_, &str, _) = match expr {
        Expr::Filter(filter) => ("filter", filter.name, filters::FILTERS),
        Expr::Test(test) => ("test", test.name, filters::TESTS),
        Expr::Call(call) => match &call.expr {
            Expr::Var(name) if locals.contains(name.id) => return None,
            Expr::Var(name) => ("function", name.id, filters::FUNCTIONS),
            // `loop.cycle(…)` and `loop.changed(…)` are the only methods there are.
            Expr::GetAttr(get) if matches!(&get.expr, Expr::Var(name) if name.id == "loop") => return None,
            Expr::GetAttr(get) => return Some(("method", get.name.to_owned(), filters::FILTERS)),
            _ => return None,
        },
        _ => return None,
    };
    let word: String = word.chars().filter(|character| !character.is_whitespace()).collect();
    (!known.contains(&word.as_str())).then_some((kind, word, known))
}

/// Tests that compare their subject with an argument.
const COMPARING_TESTS: &[&str] = &[
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "endingwith",
    "eq",
    "equalto",
    "ge",
    "gt",
    "in",
    "le",
    "lt",
    "ne",
    "startingwith",
];

fn compared_field(expr: &Expr<'_>, fields: &[&str]) -> Option<String> {
    match expr {
        Expr::Compare(compare) => {
            let operands: Vec<&Expr<'_>> =
                std::iter::once(&compare.expr).chain(compare.ops.iter().map(|op| &op.expr)).collect();
            operands.windows(2).find_map(|pair| compared_pair(pair[0], pair[1], fields))
        }
        Expr::BinOp(operation) if is_comparison(operation.op) => {
            compared_pair(&operation.left, &operation.right, fields)
        }
        Expr::Test(test) if COMPARING_TESTS.contains(&test.name) => {
            test.args.iter().find_map(|argument| compared_pair(&test.expr, argument_of(argument), fields))
        }
        // `issues | selectattr("comment", "eq", "ok")`
        Expr::Filter(filter) if matches!(filter.name, "selectattr" | "rejectattr") => {
            let mut arguments = filter.args.iter().map(argument_of);
            let attribute = arguments.next()?.as_const()?;
            let field = fields.iter().find(|field| attribute.as_str() == Some(field))?;
            arguments.skip(1).any(is_literal_text).then(|| (*field).to_owned())
        }
        _ => None,
    }
}

fn is_comparison(operator: ast::BinOpKind) -> bool {
    use ast::BinOpKind::{Eq, Gt, Gte, In, Lt, Lte, Ne};
    matches!(operator, Eq | Ne | Lt | Lte | Gt | Gte | In)
}

fn compared_pair(left: &Expr<'_>, right: &Expr<'_>, fields: &[&str]) -> Option<String> {
    if is_literal_text(right) {
        return free_text_field(left, fields);
    }
    if is_literal_text(left) { free_text_field(right, fields) } else { None }
}

/// A text, or a list with one. The empty text is not: it asks whether something was said, not what.
fn is_literal_text(expr: &Expr<'_>) -> bool {
    fn has_text(value: &Value) -> bool {
        match value.kind() {
            ValueKind::String => value.as_str().is_some_and(|text| !text.is_empty()),
            ValueKind::Seq => value.try_iter().is_ok_and(|mut items| items.any(|item| has_text(&item))),
            _ => false,
        }
    }
    expr.as_const().is_some_and(|value| has_text(&value))
}

fn free_text_field(expr: &Expr<'_>, fields: &[&str]) -> Option<String> {
    let name = match expr {
        Expr::Var(name) => name.id.to_owned(),
        Expr::GetAttr(get) => get.name.to_owned(),
        Expr::GetItem(get) => match get.subscript_expr.as_const()?.as_str() {
            Some(key) => key.to_owned(),
            None => return free_text_field(&get.expr, fields),
        },
        Expr::Slice(slice) => return free_text_field(&slice.expr, fields),
        // How long a text is says nothing about what it says.
        Expr::Filter(filter) if matches!(filter.name, "length" | "count") => return None,
        Expr::Filter(filter) => return free_text_field(filter.expr.as_ref()?, fields),
        Expr::BinOp(operation) if matches!(operation.op, ast::BinOpKind::Add | ast::BinOpKind::Concat) => {
            return free_text_field(&operation.left, fields)
                .or_else(|| free_text_field(&operation.right, fields));
        }
        _ => return None,
    };
    fields.contains(&name.as_str()).then_some(name)
}

fn argument_of<'e, 's>(argument: &'e ast::CallArg<'s>) -> &'e Expr<'s> {
    match argument {
        ast::CallArg::Pos(expr)
        | ast::CallArg::Kwarg(_, expr)
        | ast::CallArg::PosSplat(expr)
        | ast::CallArg::KwargSplat(expr) => expr,
    }
}

enum Descend {
    Yes,
    No,
}

/// Names that the template itself has bound, innermost block last.
struct Locals {
    blocks: Vec<BTreeSet<String>>,
    /// First names in the conditions of the blocks around.
    conditions: Vec<BTreeSet<String>>,
}

impl Default for Locals {
    fn default() -> Self {
        Self { blocks: vec![BTreeSet::new()], conditions: Vec::new() }
    }
}

impl Locals {
    fn contains(&self, name: &str) -> bool {
        self.blocks.iter().any(|block| block.contains(name))
    }

    fn assign(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(name) => self.insert(name.id),
            Expr::List(list) => list.items.iter().for_each(|item| self.assign(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.assign(item)),
            _ => {}
        }
    }

    fn insert(&mut self, name: &str) {
        if let Some(block) = self.blocks.last_mut() {
            block.insert(name.to_owned());
        }
    }
}

type Visit<'v> = dyn FnMut(&Expr<'_>, &Locals) -> Descend + 'v;

fn walk_statement(statement: &Stmt<'_>, locals: &mut Locals, visit: &mut Visit<'_>) {
    match statement {
        Stmt::Template(template) => walk_block(&template.children, locals, visit),
        Stmt::EmitExpr(emit) => walk_expression(&emit.expr, locals, visit),
        Stmt::EmitRaw(_) => {}
        Stmt::ForLoop(each) => {
            walk_expression(&each.iter, locals, visit);
            locals.blocks.push(BTreeSet::new());
            locals.assign(&each.target);
            if let Some(filter) = &each.filter_expr {
                walk_expression(filter, locals, visit);
            }
            locals.insert("loop");
            each.body.iter().for_each(|child| walk_statement(child, locals, visit));
            locals.blocks.pop();
            walk_block(&each.else_body, locals, visit);
        }
        Stmt::IfCond(condition) => {
            walk_expression(&condition.expr, locals, visit);
            locals.conditions.push(names_in(&condition.expr));
            walk_block(&condition.true_body, locals, visit);
            walk_block(&condition.false_body, locals, visit);
            locals.conditions.pop();
        }
        Stmt::WithBlock(with) => {
            locals.blocks.push(BTreeSet::new());
            for (target, value) in &with.assignments {
                walk_expression(value, locals, visit);
                locals.assign(target);
            }
            with.body.iter().for_each(|child| walk_statement(child, locals, visit));
            locals.blocks.pop();
        }
        Stmt::Set(set) => {
            walk_expression(&set.expr, locals, visit);
            locals.assign(&set.target);
        }
        Stmt::SetBlock(set) => {
            set.filter.iter().for_each(|filter| walk_expression(filter, locals, visit));
            walk_block(&set.body, locals, visit);
            locals.assign(&set.target);
        }
        Stmt::AutoEscape(escape) => {
            walk_expression(&escape.enabled, locals, visit);
            walk_block(&escape.body, locals, visit);
        }
        Stmt::FilterBlock(filter) => {
            walk_expression(&filter.filter, locals, visit);
            walk_block(&filter.body, locals, visit);
        }
        Stmt::Do(statement) => walk_call(&statement.call, locals, visit),
    }
}

fn names_in(expr: &Expr<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk_expression(expr, &Locals::default(), &mut |expr, _| {
        if let Expr::Var(name) = expr {
            names.insert(name.id.to_owned());
        }
        Descend::Yes
    });
    names
}

fn walk_block(children: &[Stmt<'_>], locals: &mut Locals, visit: &mut Visit<'_>) {
    locals.blocks.push(BTreeSet::new());
    for child in children {
        walk_statement(child, locals, visit);
    }
    locals.blocks.pop();
}

fn walk_call(call: &ast::Call<'_>, locals: &Locals, visit: &mut Visit<'_>) {
    walk_expression(&call.expr, locals, visit);
    call.args.iter().for_each(|argument| walk_expression(argument_of(argument), locals, visit));
}

fn walk_expression(expr: &Expr<'_>, locals: &Locals, visit: &mut Visit<'_>) {
    if matches!(visit(expr, locals), Descend::No) {
        return;
    }
    let mut walk = |child: &Expr<'_>| walk_expression(child, locals, visit);
    match expr {
        Expr::Var(_) | Expr::Const(_) => {}
        Expr::Slice(slice) => {
            walk(&slice.expr);
            [&slice.start, &slice.stop, &slice.step].into_iter().flatten().for_each(walk);
        }
        Expr::UnaryOp(operation) => walk(&operation.expr),
        Expr::BinOp(operation) => {
            walk(&operation.left);
            walk(&operation.right);
        }
        Expr::Compare(compare) => {
            walk(&compare.expr);
            compare.ops.iter().for_each(|op| walk(&op.expr));
        }
        Expr::IfExpr(condition) => {
            walk(&condition.test_expr);
            walk(&condition.true_expr);
            condition.false_expr.iter().for_each(walk);
        }
        Expr::Filter(filter) => {
            filter.expr.iter().for_each(&mut walk);
            filter.args.iter().for_each(|argument| walk(argument_of(argument)));
        }
        Expr::Test(test) => {
            walk(&test.expr);
            test.args.iter().for_each(|argument| walk(argument_of(argument)));
        }
        Expr::GetAttr(get) => walk(&get.expr),
        Expr::GetItem(get) => {
            walk(&get.expr);
            walk(&get.subscript_expr);
        }
        Expr::Call(call) => walk_call(call, locals, visit),
        Expr::List(list) => list.items.iter().for_each(walk),
        Expr::Tuple(tuple) => tuple.items.iter().for_each(walk),
        Expr::Map(map) => map.keys.iter().chain(&map.values).for_each(walk),
    }
}
