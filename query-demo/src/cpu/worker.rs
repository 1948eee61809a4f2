//! What one thread keeps while it goes through tiles: decoded inputs, the rows that are left, and what probes found.

use super::evaluate::{Column, Frame, Scratch};
use super::lanes::{Lanes, Sign};
use super::row_group::RowGroup;
use super::rows::Selection;
use super::stage::{Action, Stage};
use super::{filter, probe};
use crate::QueryError;
use crate::plan::{Input, Predicate};

/// The state of a tile on its way through a pipeline's steps.
#[derive(Debug)]
pub struct Worker {
    columns: Vec<Column>,
    found: Vec<Lanes>,
    selection: Selection,
    scratch: Scratch,
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
            columns: stage.pipeline.inputs.iter().map(column).collect(),
            found: stage.probes.iter().map(|probed| Lanes::new(probe::entry_width(probed.table))).collect(),
            selection: Selection::new(),
            scratch: Scratch::default(),
        }
    }

    /// Takes a tile through all steps. Returns how many rows are left.
    ///
    /// # Errors
    /// A damaged tile, or a plan that refers to what is not there.
    pub fn run_steps(
        &mut self,
        stage: &Stage<'_>,
        row_group: &RowGroup<'_>,
        tile_index: u64,
    ) -> Result<usize, QueryError> {
        self.columns.iter_mut().for_each(|column| column.is_decoded = false);
        self.selection.reset(row_group.tile_rows(tile_index));
        for action in &stage.actions {
            if self.selection.count() == 0 {
                return Ok(0);
            }
            match action {
                Action::Filter { predicate, needs } => {
                    self.decode(stage, row_group, tile_index, needs)?;
                    self.filter(stage, predicate)?;
                }
                Action::Probe { number, needs } => {
                    self.decode(stage, row_group, tile_index, needs)?;
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
    pub fn decode(
        &mut self,
        stage: &Stage<'_>,
        row_group: &RowGroup<'_>,
        tile_index: u64,
        needs: &[usize],
    ) -> Result<(), QueryError> {
        for &index in needs {
            let column = self.columns.get_mut(index).ok_or_else(|| stage.malformed("an input"))?;
            if column.is_decoded {
                continue;
            }
            row_group.decode(stage, index, tile_index, &mut column.lanes)?;
            let signed = stage.pipeline.inputs.get(index).is_some_and(|input| input.signed);
            column.sign = Sign::new(signed, column.lanes.value_width());
            column.is_decoded = true;
        }
        Ok(())
    }

    fn filter(&mut self, stage: &Stage<'_>, predicate: &Predicate) -> Result<(), QueryError> {
        let Self { columns, found, selection, scratch } = self;
        if filter::by_input(stage, predicate, columns, scratch, selection) {
            return Ok(());
        }
        scratch.with_flags(|scratch, flags| {
            let frame = Frame { stage, columns, found, rows: selection.rows() };
            frame.predicate(predicate, scratch, flags)?;
            selection.keep(flags);
            Ok(())
        })
    }

    fn probe(&mut self, stage: &Stage<'_>, number: usize) -> Result<(), QueryError> {
        let Self { columns, found, selection, scratch } = self;
        let probed = stage.probes.get(number).ok_or_else(|| stage.malformed("a probe"))?;
        if probe::by_input(probed, columns, found.get_mut(number), selection) {
            return Ok(());
        }
        scratch.with_values(|scratch, keys| {
            scratch.with_flags(|scratch, flags| {
                let frame = Frame { stage, columns, found, rows: selection.rows() };
                frame.value(&probed.probe.key, scratch, keys)?;
                frame.predicate(&probed.probe.valid, scratch, flags)?;
                let target = found.get_mut(number).ok_or_else(|| stage.malformed("a probe"))?;
                probe::by_keys(probed, keys, flags, target, selection);
                Ok(())
            })
        })
    }

    /// The rows that are left and their memory for expressions.
    pub fn frame<'a>(&'a mut self, stage: &'a Stage<'a>) -> (Frame<'a>, &'a mut Scratch) {
        let rows = self.selection.rows();
        (Frame { stage, columns: &self.columns, found: &self.found, rows }, &mut self.scratch)
    }
}
