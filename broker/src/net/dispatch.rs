//! A frame to its API: header, version check, handler.

use super::ConnectionInfo;
use crate::api;
use crate::api::registry::{self, Entry};
use crate::shard::Shard;
use bytes::Bytes;
use protocol::ApiKey;
use protocol::frame::decode_request_header;
use protocol::wire::Decoder;
use std::rc::Rc;

/// Starts the handler of one frame; none closes the connection, as Kafka does for what it does not know. What a peer can
/// cause at will is counted, and logged only for who looks.
pub(super) fn dispatch(
    shard: &Rc<Shard>,
    connection: &Rc<ConnectionInfo>,
    held: &api::Held,
    bytes: Bytes,
) -> Option<(&'static Entry, api::Answer)> {
    let peer = connection.peer;
    let mut body = Decoder::new(bytes);
    let header = match decode_request_header(&mut body) {
        Ok(header) => header,
        Err(error) => {
            tracing::debug!(%error, %peer, "closing a connection: malformed request header");
            return None;
        }
    };
    let Some(entry) = registry::find(header.api_key) else {
        tracing::debug!(api_key = header.api_key, %peer, "closing a connection: unknown API");
        return None;
    };
    if !(entry.min..=entry.max).contains(&header.api_version) {
        if entry.key == ApiKey::ApiVersions {
            let reply = api::api_versions::unsupported(header.correlation_id);
            return Some((entry, Box::pin(std::future::ready(reply))));
        }
        let (api, version) = (entry.key.name(), header.api_version);
        tracing::debug!(api, version, %peer, "closing a connection: unsupported version");
        return None;
    }
    let frame = api::Frame {
        shard: Rc::clone(shard),
        connection: Rc::clone(connection),
        held: held.clone(),
        header,
        body,
    };
    Some((entry, (entry.run)(frame)))
}
