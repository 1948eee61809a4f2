//! The days of 1992 to 1998: table `ddate`, and the dates that `lineorder` refers to.
use super::field;
use super::text::{labels, strings};
use arrow::array::{ArrayRef, BooleanArray, Int32Array};
use arrow::datatypes::DataType::{Boolean, Int32, Utf8};
use arrow::datatypes::Field;
use std::ops::Range;
use std::sync::Arc;

/// Days of the calendar, from 1992-01-01 to 1998-12-31.
pub(super) const DAYS: u32 = 2_557;

/// The date keys (yyyymmdd) by day number; day 0 is 1992-01-01.
pub(super) static DATE_KEYS: [i32; DAYS as usize] = date_keys();

static CALENDAR: [Day; DAYS as usize] = calendar();

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The program calls a day by the name of the next one: 1992-01-01 was a Wednesday.
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Month and day of the days that are holidays in every year.
const HOLIDAYS: [(i32, i32); 10] =
    [(12, 24), (1, 1), (2, 20), (4, 20), (5, 20), (7, 20), (8, 20), (9, 20), (10, 20), (11, 20)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Day {
    year: i32,
    /// 1 to 12.
    month: i32,
    /// 1 to 31.
    day: i32,
    /// 1 to 366.
    day_of_year: i32,
    /// 1 to 7; 1 is what the program calls Sunday.
    day_of_week: i32,
}

impl Day {
    const FIRST: Self = Self { year: 1992, month: 1, day: 1, day_of_year: 1, day_of_week: 5 };

    const fn next(self) -> Self {
        let Self { year, month, day, day_of_year, day_of_week } = self;
        let day_of_week = day_of_week % 7 + 1;
        if !self.is_last_of_month() {
            Self { day: day + 1, day_of_year: day_of_year + 1, day_of_week, ..self }
        } else if month < 12 {
            Self { month: month + 1, day: 1, day_of_year: day_of_year + 1, day_of_week, ..self }
        } else {
            Self { year: year + 1, month: 1, day: 1, day_of_year: 1, day_of_week }
        }
    }

    const fn is_last_of_month(self) -> bool {
        let days = match self.month {
            2 if self.year % 4 == 0 => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        self.day == days
    }

    const fn key(self) -> i32 {
        self.year * 10_000 + self.month * 100 + self.day
    }

    fn month_name(self) -> &'static str {
        MONTHS[self.month.unsigned_abs() as usize - 1]
    }

    fn weekday_name(self) -> &'static str {
        WEEKDAYS[self.day_of_week.unsigned_abs() as usize - 1]
    }

    fn season(self) -> &'static str {
        match self.month {
            1..=3 => "Winter",
            4 => "Spring",
            5..=8 => "Summer",
            9..=10 => "Fall",
            _ => "Christmas",
        }
    }
}

const fn calendar() -> [Day; DAYS as usize] {
    let mut days = [Day::FIRST; DAYS as usize];
    let mut day = 1;
    while day < days.len() {
        days[day] = days[day - 1].next();
        day += 1;
    }
    days
}

const fn date_keys() -> [i32; DAYS as usize] {
    let mut keys = [0; DAYS as usize];
    let mut day = 0;
    while day < keys.len() {
        keys[day] = CALENDAR[day].key();
        day += 1;
    }
    keys
}

pub(super) fn fields() -> Vec<Field> {
    vec![
        field("d_datekey", Int32),
        field("d_date", Utf8),
        field("d_dayofweek", Utf8),
        field("d_month", Utf8),
        field("d_year", Int32),
        field("d_yearmonthnum", Int32),
        field("d_yearmonth", Utf8),
        field("d_daynuminweek", Int32),
        field("d_daynuminmonth", Int32),
        field("d_daynuminyear", Int32),
        field("d_monthnuminyear", Int32),
        field("d_weeknuminyear", Int32),
        field("d_sellingseason", Utf8),
        field("d_lastdayinweekfl", Boolean),
        field("d_lastdayinmonthfl", Boolean),
        field("d_holidayfl", Boolean),
        field("d_weekdayfl", Boolean),
    ]
}

/// The columns of `rows`, counted from 0.
pub(super) fn columns(rows: Range<u32>) -> Vec<ArrayRef> {
    use std::fmt::Write;
    let days = &CALENDAR[rows.start as usize..rows.end as usize];
    let numbers = |number: fn(&Day) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(days.iter().map(number)))
    };
    let flags = |flag: fn(&Day) -> bool| -> ArrayRef {
        Arc::new(BooleanArray::from_iter(days.iter().map(|day| Some(flag(day)))))
    };
    vec![
        numbers(|day| day.key()),
        strings(days.iter(), 18, |day, text| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{} {}, {}", day.month_name(), day.day, day.year);
        }),
        labels(days.iter().map(|day| day.weekday_name())),
        labels(days.iter().map(|day| day.month_name())),
        numbers(|day| day.year),
        numbers(|day| day.year * 100 + day.month),
        strings(days.iter(), 7, |day, text| {
            let _ = write!(text, "{:.3}{}", day.month_name(), day.year);
        }),
        numbers(|day| day.day_of_week),
        numbers(|day| day.day),
        numbers(|day| day.day_of_year),
        numbers(|day| day.month),
        numbers(|day| day.day_of_year / 7 + 1),
        labels(days.iter().map(|day| day.season())),
        flags(|day| day.day_of_week == 7),
        flags(|day| day.is_last_of_month()),
        flags(|day| HOLIDAYS.contains(&(day.month, day.day))),
        flags(|day| (2..=6).contains(&day.day_of_week)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_ends_with_1998() {
        assert_eq!(CALENDAR.last().unwrap().key(), 19981231);
        assert_eq!(CALENDAR.last().unwrap().next().key(), 19990101);
        assert!(DATE_KEYS.is_sorted());
    }

    #[test]
    fn leap_years_have_a_29th_of_february() {
        let last_of_february: Vec<_> = CALENDAR
            .iter()
            .filter(|day| day.month == 2 && day.is_last_of_month())
            .map(|day| day.day)
            .collect();
        assert_eq!(last_of_february, [29, 28, 28, 28, 29, 28, 28]);
        let days_of_years: Vec<_> = CALENDAR
            .iter()
            .filter(|day| day.month == 12 && day.day == 31)
            .map(|day| day.day_of_year)
            .collect();
        assert_eq!(days_of_years, [366, 365, 365, 365, 366, 365, 365]);
    }
}
