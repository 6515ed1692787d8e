//! What a database has to be able to do: the one place where a second kind of it fits in.
//!
//! Statements are written once, in the words that all of them understand, with places `?1`, `?2`… for values. Where the
//! databases differ in more than spelling (full text, space on disk), [`Flavour`] says which of them it is.

use crate::error::{StoreError, Stored};

/// A connection to a database. One of them writes, in transactions; any number read.
pub(crate) trait Database: Send {
    /// Starts a transaction in which nobody else writes, here or in another process. `relied_on` says whether somebody is
    /// told that it is written.
    fn begin(&mut self, relied_on: bool) -> Stored<()>;
    /// Ends it. What was written survives the end of this process from here on, and, where somebody relies on it, a loss
    /// of power.
    fn commit(&mut self) -> Stored<()>;
    /// Ends it as if it had never been.
    fn rollback(&mut self);
    /// Does something; says how many rows it met.
    fn execute(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<u64>;
    /// Makes one row of a table; says its id, or nothing where the statement does nothing.
    fn insert(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Option<i64>>;
    /// Asks for rows.
    fn query(&mut self, sql: &str, values: &[Param<'_>]) -> Stored<Vec<Row>>;
    /// Which database it is.
    fn flavour(&self) -> Flavour;
    /// Bytes that the kept data takes on the disk, where that can be told.
    fn used_bytes(&mut self) -> Stored<Option<u64>>;
    /// Gives some of the space of what was deleted back to the disk; says whether there is more.
    fn give_space_back(&mut self) -> Stored<bool>;
    /// Cuts files back to what they hold, outside of a transaction; says whether nobody was in the way.
    fn cut_files(&mut self) -> Stored<bool>;
}

/// Databases that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Sqlite,
    Postgres,
}

/// A value on its way in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Param<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// A value on its way out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

/// One row of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row(pub(crate) Vec<Cell>);

/// Values for the places of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::database::Param::from($value)),*] };
}
pub(crate) use values;

impl Row {
    pub(crate) fn int(&self, column: usize) -> Stored<i64> {
        match self.0.get(column) {
            Some(Cell::Int(number)) => Ok(*number),
            other => Err(unexpected(column, other)),
        }
    }

    pub(crate) fn count(&self, column: usize) -> Stored<u64> {
        self.int(column).map(i64::cast_unsigned)
    }

    pub(crate) fn flag(&self, column: usize) -> Stored<bool> {
        self.int(column).map(|number| number != 0)
    }

    pub(crate) fn real(&self, column: usize) -> Stored<f64> {
        match self.0.get(column) {
            Some(Cell::Real(number)) => Ok(*number),
            // A sum of nothing, and a whole number in a column that may hold any.
            Some(Cell::Null) => Ok(0.0),
            Some(Cell::Int(number)) => Ok(*number as f64),
            other => Err(unexpected(column, other)),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Stored<String> {
        self.str(column).map(str::to_owned)
    }

    pub(crate) fn str(&self, column: usize) -> Stored<&str> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => Ok(text),
            other => Err(unexpected(column, other)),
        }
    }

    pub(crate) fn bytes(&self, column: usize) -> Stored<&[u8]> {
        match self.0.get(column) {
            Some(Cell::Blob(bytes)) => Ok(bytes),
            other => Err(unexpected(column, other)),
        }
    }

    /// The value of a column that may be empty.
    pub(crate) fn maybe<'a, T>(
        &'a self,
        column: usize,
        read: impl FnOnce(&'a Self, usize) -> Stored<T>,
    ) -> Stored<Option<T>> {
        if self.0.get(column) == Some(&Cell::Null) { Ok(None) } else { read(self, column).map(Some) }
    }
}

fn unexpected(column: usize, found: Option<&Cell>) -> StoreError {
    let found = match found {
        None => "nothing",
        Some(Cell::Null) => "no value",
        Some(Cell::Int(_)) => "a whole number",
        Some(Cell::Real(_)) => "a number",
        Some(Cell::Text(_)) => "a text",
        Some(Cell::Blob(_)) => "bytes",
    };
    StoreError::Corrupt(format!("column {column} of a row holds {found}"))
}

impl From<i64> for Param<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Param<'_> {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u64> for Param<'_> {
    fn from(number: u64) -> Self {
        Self::Int(number.cast_signed())
    }
}

impl From<bool> for Param<'_> {
    fn from(flag: bool) -> Self {
        Self::Int(flag.into())
    }
}

impl From<f64> for Param<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(bytes)
    }
}

impl<'a> From<&'a [u8; 16]> for Param<'a> {
    fn from(bytes: &'a [u8; 16]) -> Self {
        Self::Blob(bytes)
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
