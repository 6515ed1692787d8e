//! The variables of OpenTelemetry.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::sampler::Sampler;

/// Where spans go, and how. Read from the standard `OTEL_*` variables; without them there are none.
///
/// ```
/// use loopbreaker_telemetry::SpanSettings;
///
/// let (off, _) = SpanSettings::read(|_| None);
/// assert!(off.is_none());
/// let (on, problems) = SpanSettings::read(|name| {
///     (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://collector:4318".to_owned())
/// });
/// assert_eq!(on.expect("a collector is named").endpoint(), "http://collector:4318/v1/traces");
/// assert!(problems.is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct SpanSettings {
    pub(super) endpoint: Uri,
    pub(super) protocol: Protocol,
    /// Sensitive: they may hold a credential.
    pub(super) headers: HeaderMap,
    /// For one attempt.
    pub(super) timeout: Duration,
    pub(super) gzip: bool,
    /// The only authority to trust, in PEM form, in place of the system's.
    pub(super) certificate: Option<PathBuf>,
    pub(super) resource: Vec<(String, String)>,
    pub(super) sampler: Sampler,
    pub(super) max_queue: usize,
    pub(super) max_batch: usize,
    /// The longest that a span waits for others.
    pub(super) delay: Duration,
    /// Whether only the newest names of the `GenAI` conventions are wanted.
    pub(super) newest_names: bool,
}

/// How spans are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    HttpProtobuf,
    HttpJson,
    Grpc,
}

/// What is wrong with a variable. It is told, and the usual value is used, or spans stay off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingProblem {
    /// The collector's address is none.
    #[error("{variable} is no address, so spans stay off: write it as http://host:port or https://host:port")]
    Endpoint {
        /// Which variable.
        variable: &'static str,
    },
    /// The value is not one of a few words.
    #[error("{variable} is '{value}', which is not known here: use {known}")]
    Unknown {
        /// Which variable.
        variable: &'static str,
        /// What it says.
        value: String,
        /// What it could say.
        known: &'static str,
    },
    /// The value is not a number in its range.
    #[error("{variable} is '{value}': use a number from {least} to {most}")]
    Number {
        /// Which variable.
        variable: &'static str,
        /// What it says.
        value: String,
        /// The smallest number that makes sense.
        least: u64,
        /// The largest number that makes sense.
        most: u64,
    },
    /// A list is not `name=value,name=value`. Its text is not repeated, since it may hold a credential.
    #[error("entry {entry} of {variable} is left out: write name=value, with special characters as %XX")]
    Pair {
        /// Which variable.
        variable: &'static str,
        /// Which entry, from 1 on.
        entry: usize,
    },
    /// The variable has no effect here.
    #[error("{variable} has no effect here: {instead}")]
    Unsupported {
        /// Which variable.
        variable: &'static str,
        /// What to do.
        instead: &'static str,
    },
}

impl SpanSettings {
    /// Reads the variables, and says what is wrong with them.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> (Option<Self>, Vec<SettingProblem>) {
        let mut reading = Reading { variable: &variable, problems: Vec::new() };
        let settings = reading.settings();
        (settings, reading.problems)
    }

    /// The whole address that spans are sent to.
    pub fn endpoint(&self) -> String {
        self.endpoint.to_string()
    }

    /// How they are sent: `http/protobuf`, `http/json` or `grpc`.
    pub fn protocol(&self) -> &'static str {
        match self.protocol {
            Protocol::HttpProtobuf => "http/protobuf",
            Protocol::HttpJson => "http/json",
            Protocol::Grpc => "grpc",
        }
    }
}

/// The variables being read.
struct Reading<'v> {
    variable: &'v dyn Fn(&str) -> Option<String>,
    problems: Vec<SettingProblem>,
}

impl Reading<'_> {
    fn settings(&mut self) -> Option<SpanSettings> {
        if self.first(&["OTEL_SDK_DISABLED"]).is_some_and(|(_, value)| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let is_asked_for = self.exporter()?;
        let protocol = self.protocol();
        let endpoint = self.endpoint(protocol, is_asked_for)?;
        for variable in
            ["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE"]
        {
            if self.first(&[variable]).is_some() {
                let instead = "use a header with a token, or a collector on this machine";
                self.problems.push(SettingProblem::Unsupported { variable, instead });
            }
        }
        let max_queue = self.number("OTEL_BSP_MAX_QUEUE_SIZE", 2_048, 1..=65_536) as usize;
        let certificate =
            self.first(&["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"]);
        Some(SpanSettings {
            endpoint,
            protocol,
            headers: self.headers(),
            timeout: self.timeout(),
            gzip: self.gzip(),
            certificate: certificate.map(|(_, path)| path.into()),
            resource: self.resource(),
            sampler: self.sampler(),
            max_queue,
            max_batch: (self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 1..=8_192) as usize)
                .min(max_queue),
            delay: Duration::from_millis(self.number("OTEL_BSP_SCHEDULE_DELAY", 5_000, 1..=60_000)),
            newest_names: self.first(&["OTEL_SEMCONV_STABILITY_OPT_IN"]).is_some_and(|(_, value)| {
                value.split(',').any(|name| name.trim() == "gen_ai_latest_experimental")
            }),
        })
    }

    /// Whether spans are asked for by name; `None` when they are refused.
    fn exporter(&mut self) -> Option<bool> {
        let Some((variable, value)) = self.first(&["OTEL_TRACES_EXPORTER"]) else { return Some(false) };
        match &*value {
            "none" => None,
            "otlp" => Some(true),
            _ => {
                self.problems.push(SettingProblem::Unknown { variable, value, known: "otlp or none" });
                None
            }
        }
    }

    fn protocol(&mut self) -> Protocol {
        let found = self.first(&["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]);
        let Some((variable, value)) = found else { return Protocol::HttpProtobuf };
        match &*value {
            "http/protobuf" => Protocol::HttpProtobuf,
            "http/json" => Protocol::HttpJson,
            "grpc" => Protocol::Grpc,
            _ => {
                let known = "http/protobuf, http/json or grpc";
                self.problems.push(SettingProblem::Unknown { variable, value, known });
                Protocol::HttpProtobuf
            }
        }
    }

    /// The address of traces as it stands, or the address of everything with the path of traces behind it.
    fn endpoint(&mut self, protocol: Protocol, is_asked_for: bool) -> Option<Uri> {
        const OWN: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let usual =
            if protocol == Protocol::Grpc { "http://localhost:4317" } else { "http://localhost:4318" };
        let found = self.first(&[OWN, "OTEL_EXPORTER_OTLP_ENDPOINT"]);
        let (variable, value) =
            found.or_else(|| is_asked_for.then(|| ("OTEL_EXPORTER_OTLP_ENDPOINT", usual.to_owned())))?;
        let address = match protocol {
            Protocol::Grpc if !value.contains("://") => {
                let names = ["OTEL_EXPORTER_OTLP_TRACES_INSECURE", "OTEL_EXPORTER_OTLP_INSECURE"];
                let insecure =
                    self.first(&names).is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"));
                format!("{}://{value}", if insecure { "http" } else { "https" })
            }
            Protocol::HttpProtobuf | Protocol::HttpJson if variable != OWN => {
                format!("{}/v1/traces", value.trim_end_matches('/'))
            }
            _ => value,
        };
        let uri = address.parse::<Uri>().ok().filter(is_usable);
        if uri.is_none() {
            self.problems.push(SettingProblem::Endpoint { variable });
        }
        uri
    }

    fn headers(&mut self) -> HeaderMap {
        let names = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
        self.pairs(&names, |name, value| {
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_str(&name).ok()?, value))
        })
        .into_iter()
        .collect()
    }

    fn timeout(&mut self) -> Duration {
        let own = self.first(&["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"]).is_some();
        let variable = if own { "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT" } else { "OTEL_EXPORTER_OTLP_TIMEOUT" };
        Duration::from_millis(self.number(variable, 10_000, 1..=60_000))
    }

    fn gzip(&mut self) -> bool {
        let found = self.first(&["OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION"]);
        let Some((variable, value)) = found else { return false };
        if value != "gzip" && value != "none" {
            self.problems.push(SettingProblem::Unknown { variable, value, known: "gzip or none" });
            return false;
        }
        value == "gzip"
    }

    /// What is said of this process with every batch; a name of its own wins over one among the attributes.
    fn resource(&mut self) -> Vec<(String, String)> {
        let mut resource = self.pairs(&["OTEL_RESOURCE_ATTRIBUTES"], |name, value| Some((name, value)));
        let name = self.first(&["OTEL_SERVICE_NAME"]).map(|(_, name)| name);
        let has_name = resource.iter().any(|(attribute, _)| attribute == "service.name");
        if let Some(name) = name.or_else(|| (!has_name).then(|| "loopbreaker".to_owned())) {
            resource.retain(|(attribute, _)| attribute != "service.name");
            resource.push(("service.name".to_owned(), name));
        }
        for (attribute, value) in [
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("telemetry.sdk.name", "loopbreaker"),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ] {
            if !resource.iter().any(|(known, _)| known == attribute) {
                resource.push((attribute.to_owned(), value.to_owned()));
            }
        }
        resource
    }

    fn sampler(&mut self) -> Sampler {
        let Some((variable, value)) = self.first(&["OTEL_TRACES_SAMPLER"]) else { return Sampler::default() };
        let argument = self.first(&["OTEL_TRACES_SAMPLER_ARG"]);
        let ratio = argument.as_ref().map_or(Some(1.0), |(_, text)| text.parse().ok());
        let ratio = ratio.filter(|ratio| (0.0..=1.0).contains(ratio));
        if let (None, Some((variable, value))) = (ratio, argument) {
            self.problems.push(SettingProblem::Number { variable, value, least: 0, most: 1 });
        }
        Sampler::parse(&value, ratio.unwrap_or(1.0)).unwrap_or_else(|| {
            let known = "always_on, always_off, traceidratio, or one of these with parentbased_ before it";
            self.problems.push(SettingProblem::Unknown { variable, value, known });
            Sampler::default()
        })
    }

    /// The first of these variables that is set to something.
    fn first(&self, names: &[&'static str]) -> Option<(&'static str, String)> {
        names.iter().find_map(|name| {
            let value = (self.variable)(name)?;
            let value = value.trim();
            (!value.is_empty()).then(|| (*name, value.to_owned()))
        })
    }

    fn number(&mut self, variable: &'static str, usual: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
        let Some((_, value)) = self.first(&[variable]) else { return usual };
        let number = value.parse().ok().filter(|number| range.contains(number));
        number.unwrap_or_else(|| {
            let (least, most) = range.into_inner();
            self.problems.push(SettingProblem::Number { variable, value, least, most });
            usual
        })
    }

    /// A list such as `name=value,name=value`, whose entries `take` turns into what they mean.
    fn pairs<T>(&mut self, names: &[&'static str], take: impl Fn(String, String) -> Option<T>) -> Vec<T> {
        const MAX: usize = 128;
        let Some((variable, list)) = self.first(names) else { return Vec::new() };
        let mut taken = Vec::new();
        for (at, entry) in list.split(',').take(MAX).enumerate().filter(|(_, entry)| !entry.trim().is_empty())
        {
            let pair = entry.split_once('=').and_then(|(name, value)| {
                let (name, value) = (percent_decoded(name.trim())?, percent_decoded(value.trim())?);
                (!name.is_empty()).then(|| take(name, value))?
            });
            match pair {
                Some(pair) => taken.push(pair),
                None => self.problems.push(SettingProblem::Pair { variable, entry: at + 1 }),
            }
        }
        taken
    }
}

/// Whether an address can be connected to. One with a user in it is refused: it would be shown in the log.
fn is_usable(uri: &Uri) -> bool {
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.host().unwrap_or_default();
    is_http && !host.is_empty() && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
