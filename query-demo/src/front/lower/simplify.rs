//! Predicates without what is certain.

use crate::plan::{Predicate, Value};

/// All of `parts`: flat, without what always holds; ranges of the same value become one.
#[must_use]
pub fn all(parts: Vec<Predicate>) -> Predicate {
    let mut kept: Vec<Predicate> = Vec::new();
    for part in flat(parts, |part| match part {
        Predicate::And(inner) => Ok(inner),
        other => Err(other),
    }) {
        match part {
            Predicate::Always(true) => {}
            Predicate::Always(false) => return Predicate::Always(false),
            part if kept.contains(&part) => {}
            part => match narrowed(&mut kept, &part) {
                Some(true) => {}
                Some(false) => return Predicate::Always(false),
                None => kept.push(part),
            },
        }
    }
    match kept.len() {
        0 => Predicate::Always(true),
        1 => kept.swap_remove(0),
        _ => Predicate::And(kept),
    }
}

/// Any of `parts`: flat, without what never holds; neighbouring ranges of the same value become one.
#[must_use]
pub fn any(parts: Vec<Predicate>) -> Predicate {
    let mut kept: Vec<Predicate> = Vec::new();
    for part in flat(parts, |part| match part {
        Predicate::Or(inner) => Ok(inner),
        other => Err(other),
    }) {
        match part {
            Predicate::Always(false) => {}
            Predicate::Always(true) => return Predicate::Always(true),
            part if kept.contains(&part) => {}
            part if widened(&mut kept, &part) => {}
            part => kept.push(part),
        }
    }
    match kept.len() {
        0 => Predicate::Always(false),
        1 => kept.swap_remove(0),
        _ => Predicate::Or(kept),
    }
}

/// The opposite.
#[must_use]
pub fn negated(predicate: Predicate) -> Predicate {
    match predicate {
        Predicate::Always(truth) => Predicate::Always(!truth),
        Predicate::Not(inner) => *inner,
        other => Predicate::Not(Box::new(other)),
    }
}

fn flat(
    parts: Vec<Predicate>,
    open: impl Fn(Predicate) -> Result<Vec<Predicate>, Predicate>,
) -> Vec<Predicate> {
    let mut flat = Vec::new();
    for part in parts {
        match open(part) {
            Ok(inner) => flat.extend(inner),
            Err(part) => flat.push(part),
        }
    }
    flat
}

/// Narrows a range that is there already for the same value. `Some(false)`: nothing is left of it. `None`: there is none.
fn narrowed(kept: &mut [Predicate], part: &Predicate) -> Option<bool> {
    let Predicate::Between { value, low, high } = part else { return None };
    kept.iter_mut().find_map(|known| match known {
        Predicate::Between { value: of, low: least, high: greatest } if of == value => {
            *least = (*least).max(*low);
            *greatest = (*greatest).min(*high);
            Some(least <= greatest)
        }
        _ => None,
    })
}

/// Widens a range that is there already for the same value, if no gap is between it and `part`.
fn widened(kept: &mut [Predicate], part: &Predicate) -> bool {
    let Predicate::Between { value, low, high } = part else { return false };
    kept.iter_mut().any(|known| match known {
        Predicate::Between { value: of, low: least, high: greatest }
            if of == value && *low <= greatest.saturating_add(1) && *least <= high.saturating_add(1) =>
        {
            *least = (*least).min(*low);
            *greatest = (*greatest).max(*high);
            true
        }
        _ => false,
    })
}

/// low <= value <= high, or what is certain of it where `range` is the value's.
#[must_use]
pub fn between(value: Value, range: crate::plan::Range, low: i128, high: i128) -> Predicate {
    let (min, max) = (i128::from(range.min), i128::from(range.max));
    if low <= min && max <= high {
        return Predicate::Always(true);
    }
    if low > max || high < min || low > high {
        return Predicate::Always(false);
    }
    // Within the range, so within 64 bits.
    let clamp = |bound: i128| i64::try_from(bound.clamp(min, max)).unwrap_or_default();
    Predicate::Between { value, low: clamp(low), high: clamp(high) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Range;

    #[test]
    fn ranges_of_one_value_become_one() {
        let range = Range { min: 0, max: 100 };
        let test = |low, high| between(Value::Input(0), range, low, high);
        assert_eq!(all(vec![test(10, 200), test(-5, 20)]), test(10, 20));
        assert_eq!(all(vec![test(10, 20), test(30, 40)]), Predicate::Always(false));
        assert_eq!(test(-1, 100), Predicate::Always(true));
        assert_eq!(test(101, 102), Predicate::Always(false));
        assert_eq!(any(vec![test(1, 2), test(0, 100)]), Predicate::Always(true));
        assert_eq!(any(vec![test(10, 20), test(21, 30)]), test(10, 30));
        assert!(matches!(any(vec![test(10, 20), test(22, 30)]), Predicate::Or(_)));
    }
}
