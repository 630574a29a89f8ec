//! Calendar dates (UTC), computed from milliseconds since 1970.

const DAY_MS: u64 = 86_400_000;

/// A wall clock is set back by less than this when it is corrected.
pub const CLOCK_STEP_MS: u64 = 60 * 60 * 1000;

/// A minute of the Gregorian calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Date {
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
}

impl Date {
    pub fn of(ms: u64) -> Date {
        let (days, seconds) = (ms / DAY_MS, ms / 1000 % 86_400);
        // the year begins in March, so that the leap day is its last; 400 years have 146,097 days
        let since = days + 719_468;
        let (era, of_era) = (since / 146_097, since % 146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Date { year: year + era * 400 + next, month, day, hour: seconds / 3600, minute: seconds / 60 % 60 }
    }
}

/// A moment for people to read.
pub fn moment(ms: u64) -> String {
    let Date { year, month, day, hour, minute } = Date::of(ms);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}Z")
}

/// The same, to the second.
pub fn moment_with_seconds(ms: u64) -> String {
    let Date { year, month, day, hour, minute } = Date::of(ms);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}Z", ms / 1000 % 60)
}

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

/// As `March 2028`: for a forecast, which names no day.
pub fn month(ms: u64) -> String {
    let Date { year, month, .. } = Date::of(ms);
    format!("{} {year}", MONTHS[month as usize - 1])
}

/// Reads a moment as people write it (UTC): `2026-11-27`, `2026-11-27 02:04`, `2026-11-27T02:04:05Z`. From 1970 to 9999.
pub fn parse_moment(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, separator: char| -> Option<Vec<u64>> {
        let number = |part: &str| {
            let digits = part.bytes().all(|byte| byte.is_ascii_digit()) && part.len() <= 4;
            part.parse().ok().filter(|_| digits)
        };
        text.split(separator).map(number).collect()
    };
    let [year, month, day]: [u64; 3] = numbers(date, '-')?.try_into().ok()?;
    let (hour, minute, second) = match numbers(time, ':')?.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    if !(1970..=9999).contains(&year) || month > 12 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // days from the first of January 1970: a year that begins in March ends with its leap day
    let (from_march, of_era) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    let days = 365 * of_era + of_era / 4 - of_era / 100 + of_era / 400 + (153 * from_march + 2) / 5 + day;
    let ms = (days.checked_sub(719_469)? * 86_400 + hour * 3_600 + minute * 60 + second) * 1_000;
    // what is not a date becomes another one
    let wanted = Date { year, month, day, hour, minute };
    (Date::of(ms) == wanted).then_some(ms)
}

/// What comes again and again, counted since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Period {
    Hour,
    Day,
    /// From Monday on.
    Week,
    Month,
}

impl Period {
    /// Which one a moment is in.
    pub fn index(self, ms: u64) -> u64 {
        match self {
            Period::Hour => ms / 3_600_000,
            Period::Day => ms / DAY_MS,
            // the first day of 1970 was a Thursday
            Period::Week => (ms / DAY_MS + 3) / 7,
            Period::Month => {
                let date = Date::of(ms);
                date.year * 12 + date.month - 1
            }
        }
    }

    /// When the one after that of this moment begins.
    pub fn next(self, ms: u64) -> u64 {
        let (step, mut at) = match self {
            Period::Hour => (3_600_000, ms - ms % 3_600_000),
            _ => (DAY_MS, ms - ms % DAY_MS),
        };
        while self.index(at) == self.index(ms) {
            at += step;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14 22:13:20, a Tuesday.
    const MOMENT: u64 = 1_700_000_000_000;

    #[test]
    fn dates() {
        let cases = [
            (0, (1970, 1, 1, 0, 0)),
            (951_782_400_000, (2000, 2, 29, 0, 0)),
            (951_868_799_999, (2000, 2, 29, 23, 59)),
            (951_868_800_000, (2000, 3, 1, 0, 0)),
            (MOMENT, (2023, 11, 14, 22, 13)),
            (4_107_542_399_000, (2100, 2, 28, 23, 59)),
            (4_107_542_400_000, (2100, 3, 1, 0, 0)),
        ];
        for (ms, date) in cases {
            let Date { year, month, day, hour, minute } = Date::of(ms);
            assert_eq!((year, month, day, hour, minute), date);
        }
    }

    #[test]
    fn moments_are_read_as_they_are_written() {
        let cases = [
            ("1970-01-01", Some(0)),
            ("2000-02-29 23:59", Some(951_868_740_000)),
            ("2000-03-01", Some(951_868_800_000)),
            ("2023-11-14T22:13:20Z", Some(MOMENT)),
            ("2100-02-28 23:59:02", Some(4_107_542_342_000)),
            ("2023-02-29", None),
            ("2023-13-01", None),
            ("2023-00-01", None),
            ("2023-01-00", None),
            ("1969-12-31", None),
            ("2023-11-14 24:00", None),
            ("2023-11", None),
            ("", None),
            ("+2023-11-14", None),
            ("2023-11-14 1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_moment(text), expected, "{text}");
        }
        for day in 0..100_000 {
            let ms = day * DAY_MS + 1_000 * (day % 86_400);
            assert_eq!(parse_moment(&moment_with_seconds(ms)), Some(ms));
        }
    }

    #[test]
    fn periods_begin_when_people_think_they_do() {
        let begins = |period: Period| {
            let Date { year, month, day, hour, minute } = Date::of(period.next(MOMENT));
            (year, month, day, hour, minute)
        };
        assert_eq!(begins(Period::Hour), (2023, 11, 14, 23, 0));
        assert_eq!(begins(Period::Day), (2023, 11, 15, 0, 0));
        assert_eq!(begins(Period::Week), (2023, 11, 20, 0, 0));
        assert_eq!(begins(Period::Month), (2023, 12, 1, 0, 0));
        for period in [Period::Hour, Period::Day, Period::Week, Period::Month] {
            let next = period.next(MOMENT);
            assert_eq!(period.index(next), period.index(MOMENT) + 1, "{period:?}");
            assert_eq!(period.index(next - 1), period.index(MOMENT), "{period:?}");
        }
    }
}
