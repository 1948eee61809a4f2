//! The one place where a panic becomes an error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::FormatError;

/// Runs a step of opening or reading `input`.
///
/// The Arrow and Parquet readers assert some properties of a file instead of checking them (buffer bounds, level counts,
/// dictionary ids), so a malformed file can make them panic. Such a panic becomes [`FormatError::Panic`]; the reader must
/// not be used afterwards.
pub(super) fn guarded<T>(
    input: &str,
    step: impl FnOnce() -> Result<T, FormatError>,
) -> Result<T, FormatError> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|payload| {
        Err(FormatError::Panic { input: input.to_owned(), message: message_of(payload.as_ref()) })
    })
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
