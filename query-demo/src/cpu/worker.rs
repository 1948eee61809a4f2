//! What one thread keeps while it goes through tiles: decoded inputs, the rows that are left, and what probes found.

use super::evaluate::{Column, Frame, Scratch};
use super::lanes::{Lanes, Sign};
use super::row_group::Tile;
use super::rows::{Rows, Selection};
use super::stage::{Action, RangeTest, Stage};
use super::{filter, probe};
use crate::QueryError;
use crate::plan::{Input, Predicate};

/// The state of a tile on its way through a pipeline's steps.
#[derive(Debug)]
pub struct Worker {
    columns: Columns,
    found: Vec<Lanes>,
    selection: Selection,
    scratch: Scratch,
}

/// The inputs of a tile, decoded when they are asked for.
#[derive(Debug)]
struct Columns(Vec<Column>);

impl Columns {
    /// The input, decoded.
    fn get(&mut self, stage: &Stage<'_>, tile: Tile<'_>, index: usize) -> Result<&Column, QueryError> {
        let column = self.0.get_mut(index).ok_or_else(|| stage.malformed("an input"))?;
        if !column.is_decoded {
            tile.decode(stage, index, &mut column.lanes)?;
            let signed = stage.pipeline.inputs.get(index).is_some_and(|input| input.signed);
            column.sign = Sign::new(signed, column.lanes.value_width());
            column.is_decoded = true;
        }
        Ok(column)
    }

    fn decode(&mut self, stage: &Stage<'_>, tile: Tile<'_>, needs: &[usize]) -> Result<(), QueryError> {
        needs.iter().try_for_each(|&index| self.get(stage, tile, index).map(drop))
    }
}

impl Worker {
    /// For the tiles of `stage`.
    pub fn new(stage: &Stage<'_>) -> Self {
        let column = |input: &Input| Column {
            lanes: Lanes::new(input.value_width),
            sign: Sign::new(input.signed, input.value_width),
            is_decoded: false,
        };
        Self {
            columns: Columns(stage.pipeline.inputs.iter().map(column).collect()),
            found: stage.probes.iter().map(|probed| Lanes::new(probe::entry_width(probed.table))).collect(),
            selection: Selection::new(),
            scratch: Scratch::default(),
        }
    }

    /// Takes a tile through all steps. Returns how many rows are left.
    ///
    /// # Errors
    /// A damaged tile, or a plan that refers to what is not there.
    pub fn run_steps(&mut self, stage: &Stage<'_>, tile: Tile<'_>) -> Result<usize, QueryError> {
        self.columns.0.iter_mut().for_each(|column| column.is_decoded = false);
        self.selection.reset(tile.rows());
        for action in &stage.actions {
            if self.selection.count() == 0 {
                return Ok(0);
            }
            match action {
                Action::Ranges(tests) => self.filter_ranges(stage, tile, tests)?,
                Action::InSet { input, set } => {
                    let column = self.columns.get(stage, tile, *input)?;
                    filter::by_set(column, set, &mut self.scratch, &mut self.selection);
                }
                Action::Filter { predicate, needs } => {
                    self.columns.decode(stage, tile, needs)?;
                    self.filter(stage, predicate)?;
                }
                Action::Probe { number, needs } => {
                    self.columns.decode(stage, tile, needs)?;
                    self.probe(stage, *number)?;
                }
            }
        }
        Ok(self.selection.count())
    }

    /// Decodes those inputs of the tile that are not decoded yet.
    ///
    /// # Errors
    /// A damaged tile.
    pub fn decode(&mut self, stage: &Stage<'_>, tile: Tile<'_>, needs: &[usize]) -> Result<(), QueryError> {
        self.columns.decode(stage, tile, needs)
    }

    fn filter_ranges(
        &mut self,
        stage: &Stage<'_>,
        tile: Tile<'_>,
        tests: &[RangeTest],
    ) -> Result<(), QueryError> {
        let Self { columns, selection, scratch, .. } = self;
        let Rows::All(count) = selection.rows() else {
            for test in tests {
                filter::by_range(columns.get(stage, tile, test.input)?, *test, selection);
                if selection.count() == 0 {
                    break;
                }
            }
            return Ok(());
        };
        scratch.with_flags(|_, flags| {
            flags.fill(1);
            for test in tests {
                filter::flag_range(columns.get(stage, tile, test.input)?, *test, flags);
                if !flags.iter().take(count).any(|flag| *flag == 1) {
                    break;
                }
            }
            selection.keep(flags);
            Ok(())
        })
    }

    fn filter(&mut self, stage: &Stage<'_>, predicate: &Predicate) -> Result<(), QueryError> {
        let Self { columns, found, selection, scratch } = self;
        scratch.with_flags(|scratch, flags| {
            let frame = Frame { stage, columns: &columns.0, found, rows: selection.rows() };
            frame.predicate(predicate, scratch, flags)?;
            selection.keep(flags);
            Ok(())
        })
    }

    fn probe(&mut self, stage: &Stage<'_>, number: usize) -> Result<(), QueryError> {
        let Self { columns, found, selection, scratch } = self;
        let probed = stage.probes.get(number).ok_or_else(|| stage.malformed("a probe"))?;
        if probe::by_input(probed, &columns.0, found.get_mut(number), scratch, selection) {
            return Ok(());
        }
        scratch.with_values(|scratch, keys| {
            scratch.with_flags(|scratch, flags| {
                let frame = Frame { stage, columns: &columns.0, found, rows: selection.rows() };
                frame.value(&probed.probe.key, scratch, keys)?;
                frame.predicate(&probed.probe.valid, scratch, flags)?;
                let target = found.get_mut(number).ok_or_else(|| stage.malformed("a probe"))?;
                probe::by_keys(probed, keys, flags, target, selection);
                Ok(())
            })
        })
    }

    /// The rows that are left and memory for expressions.
    pub fn frame<'a>(&'a mut self, stage: &'a Stage<'a>) -> (Frame<'a>, &'a mut Scratch) {
        let rows = self.selection.rows();
        (Frame { stage, columns: &self.columns.0, found: &self.found, rows }, &mut self.scratch)
    }
}
