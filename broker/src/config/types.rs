//! Listeners and the named choices of the configuration.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

/// How a listener talks. TLS and SASL come with a later release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Neither encryption nor authentication.
    Plaintext,
}

/// An address to listen on or to advertise: `PLAINTEXT://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listener {
    /// How it talks.
    pub protocol: Protocol,
    /// Host name or address without brackets; empty means every interface.
    pub host: String,
    /// TCP port; 0 means any free one.
    pub port: u16,
}

/// What `PLAINTEXT://…` failed to be: what is wrong and what would be right.
pub(super) type ListenerError = (String, String);

impl Listener {
    /// A plaintext listener.
    #[must_use]
    pub fn plaintext(host: &str, port: u16) -> Listener {
        Listener { protocol: Protocol::Plaintext, host: host.to_owned(), port }
    }

    /// Whether it means every interface of the machine, which no client can connect to by that name.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.host.is_empty() || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified())
    }

    /// The address to bind: resolves host names, so it blocks; an empty host is 0.0.0.0.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        if self.host.is_empty() {
            return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), self.port));
        }
        let mut found: Vec<SocketAddr> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        // Clients of `localhost` mostly try IPv4 first, and a machine may have IPv6 switched off.
        found.sort_by_key(|a| !a.is_ipv4());
        found.into_iter().next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no address found"))
    }

    /// Reads `PLAINTEXT://HOST:PORT`.
    pub(super) fn parse(text: &str) -> Result<Listener, ListenerError> {
        let form = "write PLAINTEXT://HOST:PORT, such as PLAINTEXT://0.0.0.0:9092".to_owned();
        let Some((name, address)) = text.split_once("://") else {
            return Err((format!("{text:?} is no listener"), form));
        };
        let protocol = match name.to_ascii_uppercase().as_str() {
            "PLAINTEXT" => Protocol::Plaintext,
            "SSL" | "SASL_PLAINTEXT" | "SASL_SSL" => {
                let cure = "use PLAINTEXT://, on a network that you trust".to_owned();
                return Err((format!("{name} listeners are not available in this release"), cure));
            }
            _ => return Err((format!("{name:?} is no listener protocol"), form)),
        };
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let Ok(port) = port.parse::<u16>() else {
            return Err((format!("{text:?} has no port from 0 to 65535"), form));
        };
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let is_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
        let name_char = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if !is_v6 && !host.chars().all(name_char) {
            return Err((format!("{host:?} is no host name"), form));
        }
        Ok(Listener { protocol, host: host.to_owned(), port })
    }

    /// `HOST:PORT`, with brackets around an IPv6 address.
    #[must_use]
    pub fn host_port(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Protocol::Plaintext = self.protocol;
        write!(f, "PLAINTEXT://{}", self.host_port())
    }
}

/// A named choice: the enum, Kafka's names, and the way between them.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            pub(super) const NAMES: &'static [&'static str] = &[$($text),+];

            /// Kafka's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The choice with Kafka's name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

choice! {
    /// How batches are compressed in the log.
    CompressionType {
        /// As the producer sent them.
        Producer = "producer",
        /// Not at all.
        Uncompressed = "uncompressed",
        /// gzip
        Gzip = "gzip",
        /// snappy
        Snappy = "snappy",
        /// LZ4
        Lz4 = "lz4",
        /// Zstandard
        Zstd = "zstd",
    }
}

choice! {
    /// Whose clock a record's timestamp shows.
    TimestampType {
        /// The producer's.
        CreateTime = "CreateTime",
        /// The broker's, when it appended.
        LogAppendTime = "LogAppendTime",
    }
}

/// What happens to old records; both may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Segments past the retention are deleted.
    pub delete: bool,
    /// The last record of each key is kept.
    pub compact: bool,
}

impl CleanupPolicy {
    /// `delete`, Kafka's default.
    pub const DELETE: CleanupPolicy = CleanupPolicy { delete: true, compact: false };
    /// `compact`
    pub const COMPACT: CleanupPolicy = CleanupPolicy { delete: false, compact: true };
}

/// The address of the HTTP server; none switches it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpListener(pub Option<SocketAddr>);

impl HttpListener {
    /// This port of the loopback interface.
    #[must_use]
    pub fn local(port: u16) -> HttpListener {
        HttpListener(Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)))
    }
}
