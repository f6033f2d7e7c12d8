//! [`ErrorCode`]: what a reply says went wrong, by Kafka 4.4's numbers and names.

/// Defines the enum and its tables from rows of `Variant = code, "NAME", retriable | fatal;`.
macro_rules! error_codes {
    ($($variant:ident = $code:literal, $name:literal, $kind:ident;)*) => {
        /// An error code of the protocol; its number is what the messages carry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant = $code,
            )*
        }

        impl ErrorCode {
            /// Every code, by number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Kafka's name, as its tools print it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Whether Kafka's clients may send the same request again.
            pub const fn is_retriable(self) -> bool {
                match self {
                    $(Self::$variant => is_retriable!($kind),)*
                }
            }
        }
    };
}

macro_rules! is_retriable {
    (retriable) => {
        true
    };
    (fatal) => {
        false
    };
}

impl ErrorCode {
    /// The number that messages carry.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The code with this number, `None` for one that Kafka 4.4 does not know.
    pub fn from_code(code: i16) -> Option<Self> {
        // The codes run without a gap from -1.
        Self::ALL.get(usize::try_from(i32::from(code) + 1).ok()?).copied()
    }

    /// True for [`ErrorCode::None`].
    pub fn is_none(self) -> bool {
        self == Self::None
    }
}

impl From<ErrorCode> for i16 {
    fn from(code: ErrorCode) -> i16 {
        code.code()
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", fatal;
    None = 0, "NONE", fatal;
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", fatal;
    CorruptMessage = 2, "CORRUPT_MESSAGE", retriable;
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", retriable;
    InvalidFetchSize = 4, "INVALID_FETCH_SIZE", fatal;
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", retriable;
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", retriable;
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", retriable;
    BrokerNotAvailable = 8, "BROKER_NOT_AVAILABLE", fatal;
    ReplicaNotAvailable = 9, "REPLICA_NOT_AVAILABLE", retriable;
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", fatal;
    StaleControllerEpoch = 11, "STALE_CONTROLLER_EPOCH", fatal;
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", fatal;
    NetworkException = 13, "NETWORK_EXCEPTION", retriable;
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", retriable;
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", retriable;
    NotCoordinator = 16, "NOT_COORDINATOR", retriable;
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", fatal;
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE", fatal;
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", retriable;
    NotEnoughReplicasAfterAppend = 20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", retriable;
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", fatal;
    IllegalGeneration = 22, "ILLEGAL_GENERATION", fatal;
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", fatal;
    InvalidGroupId = 24, "INVALID_GROUP_ID", fatal;
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", fatal;
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", fatal;
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", fatal;
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", fatal;
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED", fatal;
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED", fatal;
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED", fatal;
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", fatal;
    UnsupportedSaslMechanism = 33, "UNSUPPORTED_SASL_MECHANISM", fatal;
    IllegalSaslState = 34, "ILLEGAL_SASL_STATE", fatal;
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", fatal;
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", fatal;
    InvalidPartitions = 37, "INVALID_PARTITIONS", fatal;
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", fatal;
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", fatal;
    InvalidConfig = 40, "INVALID_CONFIG", fatal;
    NotController = 41, "NOT_CONTROLLER", retriable;
    InvalidRequest = 42, "INVALID_REQUEST", fatal;
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", fatal;
    PolicyViolation = 44, "POLICY_VIOLATION", fatal;
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", fatal;
    DuplicateSequenceNumber = 46, "DUPLICATE_SEQUENCE_NUMBER", fatal;
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", fatal;
    InvalidTxnState = 48, "INVALID_TXN_STATE", fatal;
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING", fatal;
    InvalidTransactionTimeout = 50, "INVALID_TRANSACTION_TIMEOUT", fatal;
    ConcurrentTransactions = 51, "CONCURRENT_TRANSACTIONS", retriable;
    TransactionCoordinatorFenced = 52, "TRANSACTION_COORDINATOR_FENCED", fatal;
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", fatal;
    SecurityDisabled = 54, "SECURITY_DISABLED", fatal;
    OperationNotAttempted = 55, "OPERATION_NOT_ATTEMPTED", fatal;
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", retriable;
    LogDirNotFound = 57, "LOG_DIR_NOT_FOUND", fatal;
    SaslAuthenticationFailed = 58, "SASL_AUTHENTICATION_FAILED", fatal;
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", fatal;
    ReassignmentInProgress = 60, "REASSIGNMENT_IN_PROGRESS", fatal;
    DelegationTokenAuthDisabled = 61, "DELEGATION_TOKEN_AUTH_DISABLED", fatal;
    DelegationTokenNotFound = 62, "DELEGATION_TOKEN_NOT_FOUND", fatal;
    DelegationTokenOwnerMismatch = 63, "DELEGATION_TOKEN_OWNER_MISMATCH", fatal;
    DelegationTokenRequestNotAllowed = 64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", fatal;
    DelegationTokenAuthorizationFailed = 65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", fatal;
    DelegationTokenExpired = 66, "DELEGATION_TOKEN_EXPIRED", fatal;
    InvalidPrincipalType = 67, "INVALID_PRINCIPAL_TYPE", fatal;
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", fatal;
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", fatal;
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", retriable;
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", retriable;
    ListenerNotFound = 72, "LISTENER_NOT_FOUND", retriable;
    TopicDeletionDisabled = 73, "TOPIC_DELETION_DISABLED", fatal;
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", retriable;
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", retriable;
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", fatal;
    StaleBrokerEpoch = 77, "STALE_BROKER_EPOCH", fatal;
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", retriable;
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", fatal;
    PreferredLeaderNotAvailable = 80, "PREFERRED_LEADER_NOT_AVAILABLE", retriable;
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", fatal;
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", fatal;
    EligibleLeadersNotAvailable = 83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", retriable;
    ElectionNotNeeded = 84, "ELECTION_NOT_NEEDED", retriable;
    NoReassignmentInProgress = 85, "NO_REASSIGNMENT_IN_PROGRESS", fatal;
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", fatal;
    InvalidRecord = 87, "INVALID_RECORD", fatal;
    UnstableOffsetCommit = 88, "UNSTABLE_OFFSET_COMMIT", retriable;
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", retriable;
    ProducerFenced = 90, "PRODUCER_FENCED", fatal;
    ResourceNotFound = 91, "RESOURCE_NOT_FOUND", fatal;
    DuplicateResource = 92, "DUPLICATE_RESOURCE", fatal;
    UnacceptableCredential = 93, "UNACCEPTABLE_CREDENTIAL", fatal;
    InconsistentVoterSet = 94, "INCONSISTENT_VOTER_SET", fatal;
    InvalidUpdateVersion = 95, "INVALID_UPDATE_VERSION", fatal;
    FeatureUpdateFailed = 96, "FEATURE_UPDATE_FAILED", fatal;
    PrincipalDeserializationFailure = 97, "PRINCIPAL_DESERIALIZATION_FAILURE", fatal;
    SnapshotNotFound = 98, "SNAPSHOT_NOT_FOUND", fatal;
    PositionOutOfRange = 99, "POSITION_OUT_OF_RANGE", fatal;
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", retriable;
    DuplicateBrokerRegistration = 101, "DUPLICATE_BROKER_REGISTRATION", fatal;
    BrokerIdNotRegistered = 102, "BROKER_ID_NOT_REGISTERED", fatal;
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", retriable;
    InconsistentClusterId = 104, "INCONSISTENT_CLUSTER_ID", fatal;
    TransactionalIdNotFound = 105, "TRANSACTIONAL_ID_NOT_FOUND", fatal;
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", retriable;
    IneligibleReplica = 107, "INELIGIBLE_REPLICA", fatal;
    NewLeaderElected = 108, "NEW_LEADER_ELECTED", fatal;
    OffsetMovedToTieredStorage = 109, "OFFSET_MOVED_TO_TIERED_STORAGE", fatal;
    FencedMemberEpoch = 110, "FENCED_MEMBER_EPOCH", fatal;
    UnreleasedInstanceId = 111, "UNRELEASED_INSTANCE_ID", fatal;
    UnsupportedAssignor = 112, "UNSUPPORTED_ASSIGNOR", fatal;
    StaleMemberEpoch = 113, "STALE_MEMBER_EPOCH", fatal;
    MismatchedEndpointType = 114, "MISMATCHED_ENDPOINT_TYPE", fatal;
    UnsupportedEndpointType = 115, "UNSUPPORTED_ENDPOINT_TYPE", fatal;
    UnknownControllerId = 116, "UNKNOWN_CONTROLLER_ID", fatal;
    UnknownSubscriptionId = 117, "UNKNOWN_SUBSCRIPTION_ID", fatal;
    TelemetryTooLarge = 118, "TELEMETRY_TOO_LARGE", fatal;
    InvalidRegistration = 119, "INVALID_REGISTRATION", fatal;
    TransactionAbortable = 120, "TRANSACTION_ABORTABLE", fatal;
    InvalidRecordState = 121, "INVALID_RECORD_STATE", fatal;
    ShareSessionNotFound = 122, "SHARE_SESSION_NOT_FOUND", retriable;
    InvalidShareSessionEpoch = 123, "INVALID_SHARE_SESSION_EPOCH", retriable;
    FencedStateEpoch = 124, "FENCED_STATE_EPOCH", fatal;
    InvalidVoterKey = 125, "INVALID_VOTER_KEY", fatal;
    DuplicateVoter = 126, "DUPLICATE_VOTER", fatal;
    VoterNotFound = 127, "VOTER_NOT_FOUND", fatal;
    InvalidRegularExpression = 128, "INVALID_REGULAR_EXPRESSION", fatal;
    RebootstrapRequired = 129, "REBOOTSTRAP_REQUIRED", fatal;
    StreamsInvalidTopology = 130, "STREAMS_INVALID_TOPOLOGY", fatal;
    StreamsInvalidTopologyEpoch = 131, "STREAMS_INVALID_TOPOLOGY_EPOCH", fatal;
    StreamsTopologyFenced = 132, "STREAMS_TOPOLOGY_FENCED", fatal;
    ShareSessionLimitReached = 133, "SHARE_SESSION_LIMIT_REACHED", retriable;
    GroupDeletionFailed = 134, "GROUP_DELETION_FAILED", fatal;
    StreamsTopologyDescriptionUpdateFailed = 135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", fatal;
    ControllerIdNotRegistered = 136, "CONTROLLER_ID_NOT_REGISTERED", fatal;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_without_a_gap_and_lead_back() {
        for (index, code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(i32::from(code.code()), index as i32 - 1);
            assert_eq!(ErrorCode::from_code(code.code()), Some(*code));
        }
        assert_eq!(ErrorCode::from_code(-2), None);
        assert_eq!(ErrorCode::from_code(137), None);
        assert_eq!(ErrorCode::from_code(i16::MIN), None);
    }

    #[test]
    fn known_codes() {
        assert_eq!(ErrorCode::NotLeaderOrFollower.code(), 6);
        assert_eq!(ErrorCode::NotLeaderOrFollower.to_string(), "NOT_LEADER_OR_FOLLOWER");
        assert!(ErrorCode::NotLeaderOrFollower.is_retriable());
        assert!(!ErrorCode::RecordListTooLarge.is_retriable());
    }
}
