//! Choosing columns by name.

use arrow::datatypes::Schema;

use super::FormatError;

/// How many names a message lists.
const LISTED_NAMES: usize = 8;

/// The indices of the selected columns in the order of `columns`; `None` if all are selected.
pub(super) fn selected_columns(
    input: &str,
    schema: &Schema,
    columns: Option<&[String]>,
) -> Result<Option<Vec<usize>>, FormatError> {
    let Some(names) = columns else { return Ok(None) };
    let ambiguous = |name: &String, problem| FormatError::AmbiguousColumn {
        input: input.to_owned(),
        name: name.clone(),
        problem,
    };
    let mut indices: Vec<usize> = Vec::with_capacity(names.len());
    for name in names {
        let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        let Some((index, _)) = found.next() else {
            return Err(FormatError::UnknownColumn {
                input: input.to_owned(),
                name: name.clone(),
                hint: hint(name, schema),
            });
        };
        if found.next().is_some() {
            return Err(ambiguous(name, "the name of several columns, so it selects none"));
        }
        if indices.contains(&index) {
            return Err(ambiguous(name, "selected twice"));
        }
        indices.push(index);
    }
    Ok(Some(indices))
}

fn hint(name: &str, schema: &Schema) -> String {
    let mut ranked: Vec<(usize, &String)> =
        schema.fields().iter().map(|field| (distance(name, field.name()), field.name())).collect();
    ranked.sort();
    let near = (name.chars().count() / 3).max(2);
    let close: Vec<String> = ranked
        .iter()
        .take_while(|(distance, _)| *distance <= near)
        .take(LISTED_NAMES)
        .map(|(_, name)| format!("{name:?}"))
        .collect();
    if !close.is_empty() {
        return format!("close names: {}", close.join(", "));
    }
    let names: Vec<String> =
        schema.fields().iter().take(LISTED_NAMES).map(|field| format!("{:?}", field.name())).collect();
    let dots = if schema.fields().len() > LISTED_NAMES { ", …" } else { "" };
    format!("the columns are {}{dots}", names.join(", "))
}

/// Levenshtein distance between two names, letter case aside.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn the_distance_counts_edits_and_ignores_case() {
        assert_eq!(distance("Year", "year"), 0);
        assert_eq!(distance("carier", "carrier"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
