//! Frames: a length of four bytes, a header, a message.
//!
//! The header of a request carries API, version, correlation id and client id; that of a response the correlation id.
//! Flexible versions (KIP-482) end both with tagged fields, but for the responses to ApiVersions: a client reads those
//! before it knows what the broker speaks.

use bytes::Bytes;

use crate::messages::{Message, Request};
use crate::wire::{DecodeError, Decoder, EncodeError, Encoder};
use crate::{ApiKey, Str};

/// Bytes of the length in front of each frame, which counts what follows it.
pub const LENGTH_BYTES: usize = 4;

/// What is in front of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The number of the API, known or not.
    pub api_key: i16,
    /// The version of the request.
    pub api_version: i16,
    /// What the response repeats.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<Str>,
}

/// Reads the header of a request from a frame without its length.
///
/// For an API or version that is not known, what may follow the client id stays unread: only the ApiVersions request,
/// which is answered in version 0 whatever it asks for, goes on from there.
pub fn decode_request_header(d: &mut Decoder) -> Result<RequestHeader, DecodeError> {
    let header = RequestHeader {
        api_key: d.i16()?,
        api_version: d.i16()?,
        correlation_id: d.i32()?,
        // Never compact, so that a broker can read it in a version that it does not know.
        client_id: d.nullable_str(false)?,
    };
    if ApiKey::from_i16(header.api_key).is_some_and(|key| key.flexible(header.api_version)) {
        d.skip_tags()?;
    }
    Ok(header)
}

/// Writes the header of a request.
pub fn encode_request_header(header: &RequestHeader, e: &mut Encoder) -> Result<(), EncodeError> {
    e.i16(header.api_key);
    e.i16(header.api_version);
    e.i32(header.correlation_id);
    e.nullable_str(header.client_id.as_deref(), false)?;
    if ApiKey::from_i16(header.api_key).is_some_and(|key| key.flexible(header.api_version)) {
        e.uvarint(0);
    }
    Ok(())
}

/// A whole request frame, its length included.
pub fn encode_request<R: Request>(
    correlation_id: i32,
    client_id: Option<&Str>,
    version: i16,
    request: &R,
) -> Result<Vec<Bytes>, EncodeError> {
    let api_key = R::KEY as i16;
    let header =
        RequestHeader { api_key, api_version: version, correlation_id, client_id: client_id.cloned() };
    framed(|e| {
        encode_request_header(&header, e)?;
        request.encode(e, version)
    })
}

/// A whole response frame, its length included, as chunks in order.
///
/// `version` is the version of `response`, which for ApiVersions may be 0 whatever was asked for.
pub fn encode_response<M: Message>(
    correlation_id: i32,
    key: ApiKey,
    version: i16,
    response: &M,
) -> Result<Vec<Bytes>, EncodeError> {
    framed(|e| {
        e.i32(correlation_id);
        if response_header_is_flexible(key, version) {
            e.uvarint(0);
        }
        response.encode(e, version)
    })
}

/// Reads the header of a response from a frame without its length; gives the correlation id.
pub fn decode_response_header(d: &mut Decoder, key: ApiKey, version: i16) -> Result<i32, DecodeError> {
    let correlation_id = d.i32()?;
    if response_header_is_flexible(key, version) {
        d.skip_tags()?;
    }
    Ok(correlation_id)
}

fn response_header_is_flexible(key: ApiKey, version: i16) -> bool {
    key != ApiKey::ApiVersions && key.flexible(version)
}

fn framed(write: impl FnOnce(&mut Encoder) -> Result<(), EncodeError>) -> Result<Vec<Bytes>, EncodeError> {
    let mut e = Encoder::with_capacity(256);
    e.i32(0);
    write(&mut e)?;
    let length = e.len() - LENGTH_BYTES;
    let limit = i32::MAX as usize;
    if length > limit {
        return Err(EncodeError::TooLong { length, limit });
    }
    e.patch_i32(0, length as i32);
    Ok(e.finish())
}
