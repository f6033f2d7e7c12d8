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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Records;
    use crate::messages::fetch_response::{FetchResponse, FetchableTopicResponse, PartitionData};
    use crate::messages::{ApiVersionsResponse, MetadataRequest};

    /// A frame without its length, which is checked.
    fn unframed(chunks: Vec<Bytes>) -> Decoder {
        let mut d = Decoder::new(Records::from(chunks).into_bytes());
        let length = d.i32().expect("a length");
        assert_eq!(usize::try_from(length), Ok(d.remaining()));
        d
    }

    #[test]
    fn requests_are_read_as_they_were_written() {
        let client_id = Str::from_static("me");
        for version in MetadataRequest::MIN_VERSION..=MetadataRequest::MAX_VERSION {
            let request = MetadataRequest::default();
            let chunks = encode_request(7, Some(&client_id), version, &request).expect("a request");
            let mut d = unframed(chunks);
            let header = decode_request_header(&mut d).expect("a header");
            assert_eq!((header.api_key, header.api_version), (ApiKey::Metadata as i16, version));
            assert_eq!((header.correlation_id, header.client_id), (7, Some(client_id.clone())));
            assert_eq!(MetadataRequest::decode(&mut d, version), Ok(request));
            assert_eq!(d.finish(), Ok(()));
        }
    }

    #[test]
    fn records_go_into_a_response_uncopied() {
        let batch = Bytes::from(vec![7; 10_000]);
        let partition = PartitionData { records: Some(batch.clone().into()), ..PartitionData::default() };
        let topic =
            FetchableTopicResponse { partitions: vec![partition.clone(), partition], ..Default::default() };
        let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
        for version in FetchResponse::MIN_VERSION..=FetchResponse::MAX_VERSION {
            let chunks = encode_response(5, ApiKey::Fetch, version, &response).expect("a response");
            // In front of each batch, and the tagged fields behind the second.
            assert_eq!(chunks.len(), if ApiKey::Fetch.flexible(version) { 5 } else { 4 });
            assert!(chunks[1].as_ptr() == batch.as_ptr() && chunks[3].as_ptr() == batch.as_ptr());
            let mut d = unframed(chunks);
            assert_eq!(decode_response_header(&mut d, ApiKey::Fetch, version), Ok(5));
            assert_eq!(FetchResponse::decode(&mut d, version).as_ref(), Ok(&response));
        }
    }

    #[test]
    fn a_client_reads_api_versions_before_it_knows_any() {
        let response = ApiVersionsResponse { error_code: 35, ..ApiVersionsResponse::default() };
        let chunks = encode_response(1, ApiKey::ApiVersions, 0, &response).expect("a response");
        assert_eq!(unframed(chunks).take_remaining(), [0, 0, 0, 1, 0, 35, 0, 0, 0, 0].as_slice());
        // The header of a request of a version that does not exist yet can be read.
        let mut e = Encoder::new();
        let header = RequestHeader { api_key: 18, api_version: 99, correlation_id: 3, client_id: None };
        encode_request_header(&header, &mut e).expect("a header");
        assert_eq!(decode_request_header(&mut Decoder::new(e.into_bytes())), Ok(header));
    }

    #[test]
    fn cut_headers_are_errors() {
        for bytes in [&[][..], &[0, 18], &[0, 18, 0, 4, 0, 0, 0, 1], &[0, 18, 0, 4, 0, 0, 0, 1, 0, 5, b'a']] {
            assert!(decode_request_header(&mut Decoder::new(Bytes::copy_from_slice(bytes))).is_err());
        }
        let bytes = Bytes::from_static(&[0, 18, 0, 4, 0, 0, 0, 1, 0xff, 0xfe]);
        let refused = decode_request_header(&mut Decoder::new(bytes));
        assert_eq!(refused, Err(DecodeError::InvalidLength { position: 10, length: -2 }));
    }
}
