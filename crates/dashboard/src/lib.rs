//! The dashboard's files, inside the binary.
//!
//! `make dashboard` builds them from `dashboard/` into `dashboard/dist`, and they are taken in when this crate is
//! compiled. Without them the crate still compiles, and answers with one page that says what to do.
//!
//! ```
//! let page = loopbreaker_dashboard::asset("/").expect("there is always a page");
//! assert_eq!(page.content_type, "text/html; charset=utf-8");
//! let (body, encoding) = page.encoded("gzip;q=0");
//! assert_eq!((body, encoding), (page.body, None));
//! assert!(loopbreaker_dashboard::asset("/../Cargo.toml").is_none());
//! ```

mod accept;

/// What a browser may do with the page: run and load only what comes from here.
///
/// Words of agents are shown as text; if one of them ever became markup, this keeps it from doing anything.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// Headers that go with every file, beside `content-type`, `etag`, `cache-control` and `content-encoding`.
pub const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("vary", "accept-encoding"),
];

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// Its bytes, uncompressed.
    pub body: &'static [u8],
    /// Its `content-type`.
    pub content_type: &'static str,
    /// Its `etag`, in quotes.
    pub etag: &'static str,
    /// Its bytes in gzip, where that is worth it.
    pub gzip: Option<&'static [u8]>,
    /// Its bytes in Brotli, where that is worth it.
    pub br: Option<&'static [u8]>,
    /// Its name changes with its content, so a browser never has to ask for it again.
    pub immutable: bool,
}

impl Asset {
    /// The bytes to send to a client with this `accept-encoding`, and their `content-encoding`.
    pub fn encoded(&self, accept_encoding: &str) -> (&'static [u8], Option<&'static str>) {
        let fits = |body: Option<&'static [u8]>, name: &'static str| {
            body.filter(|_| accept::accepts(accept_encoding, name)).map(|body| (body, Some(name)))
        };
        fits(self.br, "br").or_else(|| fits(self.gzip, "gzip")).unwrap_or((self.body, None))
    }

    /// Its `cache-control`.
    pub const fn cache_control(&self) -> &'static str {
        if self.immutable { "public, max-age=31536000, immutable" } else { "no-cache" }
    }
}

/// The file at this path of a URL; `/` is the page. `None` for everything that is not the dashboard's.
pub fn asset(path: &str) -> Option<Asset> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    if let Some(file) = FILES.iter().find(|file| file.name == name) {
        return Some(file.asset());
    }
    (name == "index.html").then(|| NOT_BUILT.asset())
}

/// Whether the dashboard was built when this was compiled.
pub fn is_built() -> bool {
    FILES.iter().any(|file| file.name == "index.html")
}

/// A file as the build script lists it.
struct File {
    name: &'static str,
    etag: &'static str,
    body: &'static [u8],
    gzip: Option<&'static [u8]>,
    br: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

const NOT_BUILT: File = File {
    name: "index.html",
    etag: "\"not-built\"",
    body: include_bytes!("not-built.html"),
    gzip: None,
    br: None,
};

impl File {
    fn asset(&self) -> Asset {
        Asset {
            body: self.body,
            content_type: content_type(self.name),
            etag: self.etag,
            gzip: self.gzip,
            br: self.br,
            immutable: self.name.starts_with("assets/"),
        }
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::{Asset, FILES, asset, content_type, is_built};

    const FILE: Asset = Asset {
        body: b"plain",
        content_type: "text/css; charset=utf-8",
        etag: "\"1\"",
        gzip: Some(b"gzip"),
        br: Some(b"br"),
        immutable: true,
    };

    #[test]
    fn a_client_gets_the_smallest_form_that_it_accepts() {
        assert_eq!(FILE.encoded("gzip, deflate, br"), (&b"br"[..], Some("br")));
        assert_eq!(FILE.encoded("gzip"), (&b"gzip"[..], Some("gzip")));
        assert_eq!(FILE.encoded(""), (&b"plain"[..], None));
        assert_eq!(Asset { br: None, gzip: None, ..FILE }.encoded("br, gzip"), (&b"plain"[..], None));
    }

    #[test]
    fn only_files_whose_name_has_their_hash_are_kept_for_ever() {
        assert!(FILES.iter().all(|file| file.asset().immutable == file.name.starts_with("assets/")));
        assert_eq!(asset("/").map(|page| page.cache_control()), Some("no-cache"));
        assert!(FILE.cache_control().contains("immutable"));
    }

    #[test]
    fn the_page_is_there_and_nothing_outside_of_it() {
        let page = asset("/").unwrap();
        assert_eq!(asset("/index.html"), Some(page));
        assert!(is_built() || String::from_utf8_lossy(page.body).contains("make dashboard"));
        for elsewhere in ["", "index.html", "//", "/api/v1/sessions", "/../build.rs", "/assets/"] {
            assert_eq!(asset(elsewhere), None, "{elsewhere}");
        }
    }

    #[test]
    fn every_file_has_a_type_that_browsers_know() {
        for file in FILES {
            assert_ne!(content_type(file.name), "application/octet-stream", "{}", file.name);
        }
    }
}
