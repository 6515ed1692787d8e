//! `listen`, `admin_listen`: addresses to listen on.

use std::net::{Ipv4Addr, SocketAddr};

use crate::cursor::{Cursor, Read};
use crate::kinds::text;
use crate::path::quote;
use crate::scalar::Meaning;

/// Where the gateway listens when nothing else is said.
pub(crate) const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4141);

/// An address and a port. Names are not looked up here, but for `localhost`, which is this machine.
pub(super) fn read(value: Cursor<'_>) -> Read<SocketAddr> {
    if value.meaning() == Some(Meaning::Whole) {
        let port = value.scalar().filter(|text| text.len() <= 5).unwrap_or("4141");
        return Err(value.mismatch("an address and a port", &format!("write `127.0.0.1:{port}`")));
    }
    let text = text(value)?;
    let written = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    written.as_ref().unwrap_or(&text).parse().map_err(|_| {
        let message = format!("{} is no address with a port", quote(&text));
        let hint = "write `127.0.0.1:4141` for this machine only, `0.0.0.0:4141` for every network; names are \
                    not looked up";
        value.refuse(message, hint)
    })
}
