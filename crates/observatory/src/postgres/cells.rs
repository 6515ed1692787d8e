//! Values on their way to the server and back.

use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::database::{Cell, Param, Row};
use crate::error::Stored;

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match *self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) if *kind == Type::INT4 => i32::try_from(number)?.to_sql(kind, out),
            Self::Int(number) if *kind == Type::FLOAT8 => (number as f64).to_sql(kind, out),
            Self::Int(number) => number.to_sql(kind, out),
            Self::Real(number) => number.to_sql(kind, out),
            // The server's texts cannot hold a zero.
            Self::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::FLOAT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

pub(super) fn row(row: &tokio_postgres::Row) -> Stored<Row> {
    let cell = |(index, column): (usize, &tokio_postgres::Column)| {
        let cell = match *column.type_() {
            Type::INT4 => row.try_get::<_, Option<i32>>(index)?.map(|number| Cell::Int(number.into())),
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map(Cell::Int),
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(index)?.map(Cell::Real),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.map(Cell::Blob),
            _ => row.try_get::<_, Option<String>>(index)?.map(Cell::Text),
        };
        Ok(cell.unwrap_or(Cell::Null))
    };
    let cells: Result<Vec<Cell>, tokio_postgres::Error> =
        row.columns().iter().enumerate().map(cell).collect();
    Ok(Row(cells?))
}
