//! ApiVersions (18): what this node speaks, from the registry. KIP-35, KIP-511, KIP-584; cluster and node check of KIP-1242.

use super::call::{self, Api, Call, Reply};
use super::registry;
use bytes::Bytes;
use protocol::messages::api_versions_response::ApiVersion;
use protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use protocol::{ApiKey, ErrorCode};

pub(crate) struct ApiVersions;

impl Api for ApiVersions {
    type Request = ApiVersionsRequest;

    async fn handle(call: Call<ApiVersionsRequest>) -> ApiVersionsResponse {
        let identity = call.shard.identity();
        match check(&call.request, call.version(), &identity.cluster_id, identity.node_id) {
            ErrorCode::None => advertised(),
            error => ApiVersionsResponse { error_code: error.code(), ..ApiVersionsResponse::default() },
        }
    }
}

fn check(request: &ApiVersionsRequest, version: i16, cluster_id: &str, node_id: i32) -> ErrorCode {
    let names = [&request.client_software_name, &request.client_software_version];
    if version >= 3 && !names.into_iter().all(|name| is_software_name(name)) {
        return ErrorCode::InvalidRequest;
    }
    if version >= 5 {
        match &request.cluster_id {
            // The two come together or not at all.
            Some(_) if request.node_id == -1 => return ErrorCode::InvalidRequest,
            None if request.node_id != -1 => return ErrorCode::InvalidRequest,
            Some(id) if **id != *cluster_id || request.node_id != node_id => {
                return ErrorCode::RebootstrapRequired;
            }
            _ => {}
        }
    }
    ErrorCode::None
}

/// Letters, digits, `-` and `.`, with a letter or digit at both ends (KIP-511).
fn is_software_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(b))
}

fn advertised() -> ApiVersionsResponse {
    let row = |entry: &registry::Entry| ApiVersion {
        api_key: entry.key as i16,
        min_version: entry.advertised_min,
        max_version: entry.max,
    };
    ApiVersionsResponse {
        api_keys: registry::REGISTRY.iter().map(row).collect(),
        ..ApiVersionsResponse::default()
    }
}

/// The answer to a version that this node does not speak: in version 0, naming the versions of this one API.
pub(crate) fn unsupported(correlation_id: i32) -> Reply<Vec<Bytes>> {
    let own = registry::REGISTRY.iter().filter(|entry| entry.key == ApiKey::ApiVersions).map(|entry| {
        ApiVersion { api_key: entry.key as i16, min_version: entry.min, max_version: entry.max }
    });
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: own.collect(),
        ..ApiVersionsResponse::default()
    };
    call::encode(correlation_id, ApiKey::ApiVersions, 0, &response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(cluster_id: Option<&'static str>, node_id: i32) -> ApiVersionsRequest {
        ApiVersionsRequest {
            client_software_name: "apache-kafka-java".into(),
            client_software_version: "4.4.0".into(),
            cluster_id: cluster_id.map(Into::into),
            node_id,
        }
    }

    #[test]
    fn the_client_must_mean_this_node() {
        let check = |cluster, node| check(&request(cluster, node), 5, "c", 1);
        assert_eq!(check(None, -1), ErrorCode::None);
        assert_eq!(check(Some("c"), 1), ErrorCode::None);
        assert_eq!(check(Some("c"), 2), ErrorCode::RebootstrapRequired);
        assert_eq!(check(Some("d"), 1), ErrorCode::RebootstrapRequired);
        assert_eq!(check(None, 1), ErrorCode::InvalidRequest);
        assert_eq!(check(Some("c"), -1), ErrorCode::InvalidRequest);
    }

    #[test]
    fn software_names() {
        for good in ["a", "apache-kafka-java", "1.0"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "ä"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}
