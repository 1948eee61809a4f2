//! Aggregate functions as words.

use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::AggregateFunction;

use super::lower::{Lowered, Lowering, all, is_number, unsupported};
use super::output::Finish;
use crate::QueryError;
use crate::plan::{Predicate, Word, WordValue};

/// The words of an aggregation, each computed once however many functions need it.
#[derive(Debug, Default)]
pub struct Words {
    /// The words.
    pub words: Vec<Word>,
}

impl Words {
    /// The place of a word, added if it is new.
    pub fn add(&mut self, value: WordValue, valid: Predicate) -> usize {
        let word = Word { value, valid };
        let known = self.words.iter().position(|known| *known == word);
        known.unwrap_or_else(|| {
            self.words.push(word);
            self.words.len() - 1
        })
    }

    /// Adds what `function` needs. `rows` is how many rows there can be; `grouped`, whether every group has rows.
    ///
    /// # Errors
    /// A function that pipelines do not compute.
    pub fn function(
        &mut self,
        expr: &Expr,
        function: &AggregateFunction,
        lowering: &mut Lowering<'_>,
        rows: u64,
        grouped: bool,
    ) -> Result<Finish, QueryError> {
        let parameters = &function.params;
        if parameters.distinct && !matches!(function.func.name(), "min" | "max") {
            return Err(QueryError::unsupported(format!("{}(DISTINCT ...)", function.func.name())));
        }
        if !parameters.order_by.is_empty() || parameters.null_treatment.is_some() {
            return Err(unsupported(expr));
        }
        let filter = match &parameters.filter {
            Some(filter) => lowering.truth(filter, true)?,
            None => Predicate::Always(true),
        };
        let [argument] = parameters.args.as_slice() else { return Err(unsupported(expr)) };
        match function.func.name() {
            "count" => {
                let valid = match argument {
                    Expr::Literal(scalar, _) => Predicate::Always(!scalar.is_null()),
                    argument => lowering.value(argument)?.valid,
                };
                Ok(Finish::Count { word: self.add(WordValue::Count, all(vec![valid, filter])) })
            }
            "sum" => {
                let argument = number(expr, lowering.value(argument)?)?;
                self.sum(argument, filter, rows, grouped)
            }
            "avg" => {
                // DataFusion computes the average of integers in floating point; the sum of the integers is exact.
                let argument = match argument {
                    Expr::Cast(cast) if *cast.field.data_type() == DataType::Float64 => &cast.expr,
                    argument => argument,
                };
                let argument = number(expr, lowering.value(argument)?)?;
                let scale = super::lower::scale(&argument.data_type);
                let valid = all(vec![argument.valid.clone(), filter.clone()]);
                let count = self.add(WordValue::Count, valid);
                match self.sum(argument, filter, rows, grouped)? {
                    Finish::Sum { low, high, .. } => Ok(Finish::Average { low, high, count, scale }),
                    other => Ok(other),
                }
            }
            name @ ("min" | "max") => {
                let argument = lowering.value(argument)?;
                if argument.dictionary.is_some() || argument.range.span() == u64::MAX {
                    return Err(unsupported(expr));
                }
                let valid = all(vec![argument.valid, filter]);
                let (least, range) = (name == "min", argument.range);
                let value = argument.value;
                let value = if least {
                    WordValue::Least { value, max: range.max }
                } else {
                    WordValue::Greatest { value, min: range.min }
                };
                let word = self.add(value, valid);
                let base = if least { range.max } else { range.min };
                Ok(Finish::Extreme { word, least, base })
            }
            name => Err(QueryError::unsupported(format!("the aggregate function {name}"))),
        }
    }

    fn sum(
        &mut self,
        argument: Lowered,
        filter: Predicate,
        rows: u64,
        grouped: bool,
    ) -> Result<Finish, QueryError> {
        let valid = all(vec![argument.valid, filter]);
        let never_null = grouped && valid == Predicate::Always(true);
        let count = (!never_null).then(|| self.add(WordValue::Count, valid.clone()));
        let largest = argument.range.min.unsigned_abs().max(argument.range.max.unsigned_abs());
        let bound = u128::from(largest) * u128::from(rows);
        if bound <= i64::MAX.unsigned_abs().into() {
            let low = self.add(WordValue::Sum(argument.value), valid);
            return Ok(Finish::Sum { low, high: None, count });
        }
        // Halves of 32 bits: their sums fit 64 bits for up to 2^32 rows.
        if rows > u64::from(u32::MAX) {
            return Err(QueryError::unsupported("a sum beyond 64 bits over more than 2^32 rows"));
        }
        let low = self.add(WordValue::SumLow(argument.value.clone()), valid.clone());
        let high = self.add(WordValue::SumHigh(argument.value), valid);
        Ok(Finish::Sum { low, high: Some(high), count })
    }

    /// A word that is not zero exactly in groups that have rows, added if there is none. `positive` tells whether a value is always above zero.
    pub fn presence(&mut self, positive: impl Fn(&crate::plan::Value) -> bool) -> usize {
        let tells = |word: &Word| {
            word.valid == Predicate::Always(true)
                && match &word.value {
                    WordValue::Count | WordValue::Greatest { .. } | WordValue::Least { .. } => true,
                    WordValue::Sum(value) => positive(value),
                    WordValue::SumLow(_) | WordValue::SumHigh(_) => false,
                }
        };
        let known = self.words.iter().position(tells);
        known.unwrap_or_else(|| self.add(WordValue::Count, Predicate::Always(true)))
    }
}

fn number(expr: &Expr, lowered: Lowered) -> Result<Lowered, QueryError> {
    let plain =
        lowered.dictionary.is_none() && (is_number(&lowered.data_type) || lowered.data_type.is_null());
    if plain { Ok(lowered) } else { Err(unsupported(expr)) }
}

/// The aggregate function behind `expr`.
///
/// # Errors
/// It is none.
pub fn function(expr: &Expr) -> Result<&AggregateFunction, QueryError> {
    match expr {
        Expr::Alias(alias) => function(&alias.expr),
        Expr::AggregateFunction(function) => Ok(function),
        other => Err(unsupported(other)),
    }
}
