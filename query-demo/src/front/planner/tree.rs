//! The tree of a join graph.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::Column;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::Catalog;
use crate::QueryError;
use crate::front::graph::{Graph, SemiJoin, relations_of};

/// An edge to a relation whose keys may be unique.
#[derive(Debug, Clone)]
pub struct Edge {
    parent: usize,
    /// The relation that is built.
    pub child: usize,
    keys: Vec<(Expr, Expr)>,
}

impl Edge {
    /// The child's side of the equalities.
    pub fn child_keys(&self) -> Vec<Expr> {
        self.keys.iter().map(|(_, child)| child.clone()).collect()
    }

    /// The parent's side.
    pub fn parent_keys(&self) -> Vec<Expr> {
        self.keys.iter().map(|(parent, _)| parent.clone()).collect()
    }
}

/// Which relation probes which, and where each condition is decided.
#[derive(Debug)]
pub struct Tree {
    /// The relation that is scanned last.
    pub root: usize,
    edges: Vec<Edge>,
    attached: BTreeMap<usize, Vec<Expr>>,
}

impl Tree {
    /// The tree of `graph`. The root has the most rows, unless its `keys` are asked for: then it is their relation.
    ///
    /// # Errors
    /// No choice of a root leads to a tree.
    pub fn new(
        graph: &Graph,
        catalog: &Catalog,
        keys: Option<&[Expr]>,
        wanted: &[&Expr],
    ) -> Result<Self, QueryError> {
        let mut roots: Vec<usize> = match keys {
            None => graph.relations.keys().copied().collect(),
            Some(keys) => {
                keys.iter().flat_map(relations_of).collect::<BTreeSet<usize>>().into_iter().collect()
            }
        };
        roots.sort_by_key(|&root| std::cmp::Reverse(catalog.rows(root)));
        let mut failed = QueryError::unsupported("a query without a table");
        for root in roots {
            match Self::from_root(graph, catalog, root, wanted) {
                Ok(tree) => return Ok(tree),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn from_root(
        graph: &Graph,
        catalog: &Catalog,
        root: usize,
        wanted: &[&Expr],
    ) -> Result<Self, QueryError> {
        let mut edges: Vec<Edge> = Vec::new();
        let mut joined = BTreeSet::from([root]);
        while joined.len() < graph.relations.len() {
            // Of the edges that lead on, the one to the fewest rows.
            let candidates =
                graph.relations.keys().filter(|relation| !joined.contains(relation)).flat_map(|&child| {
                    joined.iter().map(move |&parent| Edge {
                        parent,
                        child,
                        keys: equalities(graph, parent, child),
                    })
                });
            let usable = candidates.filter(|edge| !edge.keys.is_empty() && may_be_unique(edge, catalog));
            let Some(edge) = usable.min_by_key(|edge| catalog.rows(edge.child)) else {
                let missing = graph.relations.iter().find(|(relation, _)| !joined.contains(relation));
                let name = missing.map(|(_, name)| name.as_str()).unwrap_or_default();
                return Err(QueryError::unsupported(format!(
                    "a join with {name} on keys that repeat in it, or on no equality"
                )));
            };
            joined.insert(edge.child);
            edges.push(edge);
        }
        let mut tree = Self { root, edges, attached: BTreeMap::new() };
        for (left, right) in &graph.equalities {
            let used = |edge: &Edge| {
                edge.keys.iter().any(|(parent, child)| {
                    (parent == left && child == right) || (parent == right && child == left)
                })
            };
            if !tree.edges.iter().any(used) {
                let equal = BinaryExpr::new(Box::new(left.clone()), Operator::Eq, Box::new(right.clone()));
                tree.attach(Expr::BinaryExpr(equal));
            }
        }
        graph.filters.iter().for_each(|filter| tree.attach(filter.clone()));
        let known: BTreeSet<usize> = graph.relations.keys().copied().collect();
        if let Some(other) = wanted.iter().find(|expr| !relations_of(expr).is_subset(&known)) {
            return Err(crate::front::lower::unsupported(other));
        }
        Ok(tree)
    }

    fn attach(&mut self, expr: Expr) {
        let place = self.lowest(&relations_of(&expr));
        self.attached.entry(place).or_default().push(expr);
    }

    /// The lowest relation from which all of `relations` are reached.
    fn lowest(&self, relations: &BTreeSet<usize>) -> usize {
        let mut place = self.root;
        while let Some(edge) =
            self.children(place).find(|edge| relations.is_subset(&self.subtree(edge.child)))
        {
            if relations.is_empty() {
                break;
            }
            place = edge.child;
        }
        place
    }

    /// What `node` probes.
    pub fn children(&self, node: usize) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.parent == node)
    }

    /// `node` and all below it.
    pub fn subtree(&self, node: usize) -> BTreeSet<usize> {
        let below = self.children(node).flat_map(|edge| self.subtree(edge.child));
        std::iter::once(node).chain(below).collect()
    }

    /// The conditions that are decided at `node`.
    pub fn attached(&self, node: usize) -> impl Iterator<Item = &Expr> {
        self.attached.get(&node).into_iter().flatten()
    }

    /// Where a semi join is decided; `None` outside the tree.
    pub fn place_of(&self, semi: &SemiJoin) -> Option<usize> {
        let outer: BTreeSet<usize> = semi.keys.iter().flat_map(|(outer, _)| relations_of(outer)).collect();
        outer.is_subset(&self.subtree(self.root)).then(|| self.lowest(&outer))
    }
}

/// The equalities between `parent` alone and `child` alone, in this order.
fn equalities(graph: &Graph, parent: usize, child: usize) -> Vec<(Expr, Expr)> {
    let only = |expr: &Expr, relation| relations_of(expr) == BTreeSet::from([relation]);
    graph
        .equalities
        .iter()
        .filter_map(|(left, right)| {
            if only(left, parent) && only(right, child) {
                Some((left.clone(), right.clone()))
            } else if only(right, parent) && only(left, child) {
                Some((right.clone(), left.clone()))
            } else {
                None
            }
        })
        .collect()
}

/// Whether the child has as many keys as rows, as far as ranges tell.
fn may_be_unique(edge: &Edge, catalog: &Catalog) -> bool {
    let keys = edge.keys.iter().map(|(_, child)| match child {
        Expr::Column(column) => codes(column, catalog),
        _ => u64::MAX,
    });
    keys.fold(1_u64, u64::saturating_mul) >= catalog.rows(edge.child)
}

fn codes(column: &Column, catalog: &Catalog) -> u64 {
    catalog.column(column).map_or(u64::MAX, |info| info.values.range.span().saturating_add(1))
}
