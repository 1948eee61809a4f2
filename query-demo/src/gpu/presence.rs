//! Groups by index exist where a word tells so: a plan that has no such word gets one, which its result does not show.

use crate::plan::{GroupWords, Groups, Plan, Predicate, Sink, Word, WordValue};

/// A plan in which groups by index have a word that tells which exist.
#[derive(Debug, Clone)]
pub struct Complete {
    /// The plan.
    pub plan: Plan,
    /// Words of a group that were added, behind the others: one, or none.
    added: usize,
}

impl Complete {
    /// `plan` with what it lacks.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let mut plan = plan.clone();
        let mut added = 0;
        if let Some(Sink::Aggregate(aggregate)) = plan.pipelines.last_mut().map(|pipeline| &mut pipeline.sink)
            && matches!(aggregate.groups, Groups::Dense { .. })
            && aggregate.presence.is_none()
        {
            aggregate.presence = Some(aggregate.words.len());
            aggregate.words.push(Word { value: WordValue::Count, valid: Predicate::Always(true) });
            added = 1;
        }
        Self { plan, added }
    }

    /// `groups` without what was added.
    #[must_use]
    pub fn shown(&self, mut groups: GroupWords) -> GroupWords {
        if self.added == 0 {
            return groups;
        }
        let each = groups.words.len().checked_div(groups.indexes.len()).unwrap_or(0).max(1);
        let shown = each.saturating_sub(self.added);
        groups.words =
            groups.words.chunks_exact(each).flat_map(|words| words.iter().take(shown)).copied().collect();
        groups
    }
}
