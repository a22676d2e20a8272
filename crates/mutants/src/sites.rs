//! Where in a file of Rust mutants can be: what each of cargo-mutants' places means for a weaver.

use std::{collections::BTreeMap, ops::Range};

use proc_macro2::Span;
use syn::{
    BinOp, Block, Expr, ExprBinary, Signature,
    spanned::Spanned,
    visit::{self, Visit},
};

use crate::list::Genre;

/// Offsets in bytes of the file.
pub type Place = Range<usize>;

/// What surrounds a mutant.
#[derive(Clone, Debug, PartialEq)]
pub enum Site {
    /// The body of a function begins here.
    Body {
        at: usize,
    },
    /// An operator, and the widest chain of operators that it may regroup.
    Operator {
        operator: Place,
        chain: Place,
    },
    /// A unary operator with its operand.
    Prefix {
        operator: Place,
        whole: Place,
    },
    /// The pattern of an arm without a guard ends here.
    Pattern {
        end: usize,
    },
    Guard {
        guard: Place,
    },
    /// A field with its value, and the expression that the other fields come from.
    Field {
        name: String,
        value: Place,
        shorthand: bool,
        base: Place,
    },
    /// Replaced in the text and built on its own: nothing here can ask a switch.
    Alone,
    /// `||` beside a `let`: no Rust.
    Impossible,
}

/// By genre and the place (line and column, from 1) at which cargo-mutants says a mutant begins.
pub type Sites = BTreeMap<(Genre, usize, usize), Site>;

pub fn of(text: &str) -> syn::Result<Sites> {
    Ok(Finder::visited(text)?.found)
}

/// What is between the braces of each function.
pub fn bodies(text: &str) -> syn::Result<Vec<Place>> {
    Ok(Finder::visited(text)?.bodies)
}

/// The chain of binary operators around the expression under the visitor.
#[derive(Clone)]
enum Chain {
    None,
    /// With a `let` among its members: it cannot be an operand of anything.
    Let,
    Whole {
        place: Place,
        beside_let: bool,
    },
}

struct Finder {
    found: Sites,
    chain: Chain,
    within_function: bool,
    bodies: Vec<Place>,
}

impl Finder {
    fn visited(text: &str) -> syn::Result<Finder> {
        let file = syn::parse_file(text)?;
        let mut finder =
            Finder { found: Sites::new(), chain: Chain::None, within_function: false, bodies: Vec::new() };
        finder.visit_file(&file);
        Ok(finder)
    }

    fn note(&mut self, genre: Genre, span: Span, site: Site) {
        let start = span.start();
        let site = if self.within_function { site } else { Site::Alone };
        self.found.insert((genre, start.line, start.column + 1), site);
    }

    fn function(&mut self, signature: &Signature, block: &Block, inner: impl FnOnce(&mut Self)) {
        let around = std::mem::replace(&mut self.within_function, signature.constness.is_none());
        let braces = block.brace_token.span;
        let (open, close) = (braces.open().byte_range(), braces.close().byte_range());
        self.bodies.push(open.end..close.start);
        if let Some(first) = block.stmts.first() {
            // Two bodies of one `impl Trait` are two types.
            let opaque = matches!(&signature.output, syn::ReturnType::Type(_, kind) if has_impl(kind));
            let site = if opaque { Site::Alone } else { Site::Body { at: open.end } };
            self.note(Genre::FnValue, first.span(), site);
        }
        inner(self);
        self.within_function = around;
    }

    fn constant(&mut self, inner: impl FnOnce(&mut Self)) {
        let around = std::mem::replace(&mut self.within_function, false);
        inner(self);
        self.within_function = around;
    }

    fn binary(&mut self, binary: &ExprBinary, within: &Chain) {
        let place = binary.span().byte_range();
        let with_let = has_let(&binary.left) || has_let(&binary.right);
        self.chain = match within {
            Chain::None | Chain::Let if with_let => Chain::Let,
            Chain::None => Chain::Whole { place, beside_let: false },
            Chain::Let => Chain::Whole { place, beside_let: true },
            Chain::Whole { .. } => within.clone(),
        };
        let logical = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
        let operator = binary.op.span().byte_range();
        let site = match &self.chain {
            Chain::Whole { beside_let, .. } if *beside_let && logical => Site::Impossible,
            Chain::Whole { place, .. } => Site::Operator { operator, chain: place.clone() },
            Chain::None | Chain::Let => Site::Impossible,
        };
        self.note(Genre::BinaryOperator, binary.op.span(), site);
    }
}

fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn has_impl(kind: &syn::Type) -> bool {
    struct Looker(bool);
    impl Visit<'_> for Looker {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut looker = Looker(false);
    looker.visit_type(kind);
    looker.0
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block, |finder| visit::visit_item_fn(finder, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block, |finder| visit::visit_impl_item_fn(finder, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block, |finder| visit::visit_trait_item_fn(finder, item));
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constant(|finder| visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constant(|finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constant(|finder| visit::visit_item_static(finder, item));
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let around = self.chain.clone();
        match expression {
            Expr::Binary(binary) => self.binary(binary, &around),
            _ => self.chain = Chain::None,
        }
        visit::visit_expr(self, expression);
        self.chain = around;
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let site = Site::Prefix { operator: unary.op.span().byte_range(), whole: unary.span().byte_range() };
        self.note(Genre::UnaryOperator, unary.op.span(), site);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        match &arm.guard {
            Some((_, guard)) => {
                let site = Site::Guard { guard: guard.span().byte_range() };
                self.note(Genre::MatchArmGuard, guard.span(), site);
            }
            None => {
                let site = Site::Pattern { end: arm.pat.span().byte_range().end };
                self.note(Genre::MatchArm, arm.span(), site);
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, whole: &'ast syn::ExprStruct) {
        if let Some(base) = &whole.rest {
            for field in &whole.fields {
                if let syn::Member::Named(name) = &field.member {
                    let site = Site::Field {
                        name: name.to_string(),
                        value: field.expr.span().byte_range(),
                        shorthand: field.colon_token.is_none(),
                        base: base.span().byte_range(),
                    };
                    self.note(Genre::StructField, field.span(), site);
                }
            }
        }
        visit::visit_expr_struct(self, whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the chain around the operator at a column of the only line.
    fn chain(text: &str, operator: &str) -> String {
        let text = format!("fn f() {{ {text} }}");
        let column = text.find(operator).expect("it is there") + 1;
        match &of(&text).expect("it is Rust")[&(Genre::BinaryOperator, 1, column)] {
            Site::Operator { chain, .. } => text[chain.clone()].to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn an_operator_is_replaced_within_everything_that_it_may_regroup() {
        assert_eq!(chain("a && b || c == d", "&&"), "a && b || c == d");
        assert_eq!(chain("x || g(a && b)", "&&"), "a && b");
        assert_eq!(chain("(a && b) || c", "&&"), "a && b");
    }

    #[test]
    fn beside_a_let_only_what_can_be_an_operand_is_replaced() {
        assert_eq!(chain("if let P = e && a + b == c {}", "=="), "a + b == c");
        assert_eq!(chain("if let P = e && a + b == c {}", "&&"), "Impossible");
        assert_eq!(chain("if a && b && let P = e {}", "&&"), "Impossible");
        assert_eq!(chain("if a == b && let P = e {}", "=="), "a == b");
    }

    #[test]
    fn where_no_switch_can_be_asked_a_mutant_stands_alone() {
        let sites = of("const A: u64 = 2 * 3;\nfn g() -> impl Iterator<Item = u8> {\n h()\n}").expect("Rust");
        assert_eq!(sites[&(Genre::BinaryOperator, 1, 18)], Site::Alone);
        assert_eq!(sites[&(Genre::FnValue, 3, 2)], Site::Alone);
    }
}
