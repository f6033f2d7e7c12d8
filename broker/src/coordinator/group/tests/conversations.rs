//! Dynamic members: joining, rebalancing, leaving, falling silent.

use super::super::GroupConfig;
use super::script::{check, check_with};

#[test]
fn one_member_joins_and_is_assigned() {
    check(
        "join a
           > store gen 0 - []
           > a: MEMBER_ID_REQUIRED
         join a
           > rebalance: a new member joins; client reason: not provided
         wait 3000
           > a: joined gen 1 range leader a [a]
         sync a a=everything
           > store gen 1 range [a=everything]
           > a: assigned everything
         heartbeat a
           > a: ok
         describe
           > admin: Stable range [a=everything]",
    );
}

#[test]
fn members_of_old_clients_get_their_id_with_the_generation() {
    check(
        "join a v=3
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         wait 3000
           > a: joined gen 1 range leader a [a]",
    );
}

#[test]
fn the_first_rebalance_waits_on_while_members_come() {
    check(
        "join a v=3 rebalance=7000
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         wait 2000
         join b v=3 rebalance=7000
         wait 1000
         wait 2900
         wait 100
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []",
    );
}

/// Two members, from the first join to both being assigned.
const TWO: &str = "join a v=3
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b v=3
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync b
         sync a a=A b=B
           > store gen 1 range [a=A b=B]
           > a: assigned A
           > b: assigned B
";

fn check_after_two(rest: &str) {
    check(&format!("{TWO}{rest}"));
}

#[test]
fn a_third_member_makes_the_others_rejoin() {
    check_after_two(
        "         join c v=3
           > rebalance: a new member joins; client reason: not provided
         heartbeat a
           > a: REBALANCE_IN_PROGRESS
         sync b
           > b: REBALANCE_IN_PROGRESS
         join b
         join a
           > a: joined gen 2 range leader a [a b c]
           > b: joined gen 2 range leader a []
           > c: joined gen 2 range leader a []
         heartbeat c
           > c: ok
         sync a a=A2 b=B2 c=C2
           > store gen 2 range [a=A2 b=B2 c=C2]
           > a: assigned A2
         sync c
           > c: assigned C2
         sync b
           > b: assigned B2",
    );
}

#[test]
fn who_does_not_rejoin_in_time_is_out() {
    check_after_two(
        "         join c v=3 rebalance=60000
           > rebalance: a new member joins; client reason: not provided
         join a
         wait 9000
         heartbeat b
           > b: REBALANCE_IN_PROGRESS
         wait 9000
         heartbeat b
           > b: REBALANCE_IN_PROGRESS
         wait 9000
         heartbeat b
           > b: REBALANCE_IN_PROGRESS
         wait 9000
         heartbeat b
           > b: REBALANCE_IN_PROGRESS
         wait 9000
         heartbeat b
           > b: REBALANCE_IN_PROGRESS
         wait 9000
         heartbeat b
           > b: REBALANCE_IN_PROGRESS
         wait 6000
           > a: joined gen 2 range leader a [a c]
           > c: joined gen 2 range leader a []
         heartbeat b
           > b: UNKNOWN_MEMBER_ID",
    );
}

#[test]
fn the_leader_leaves_and_another_leads() {
    check_after_two(
        "         leave a
           > rebalance: members left: a (no reason given)
           > a: NONE
         heartbeat b
           > b: REBALANCE_IN_PROGRESS
         join b
           > b: joined gen 2 range leader b [b]
         sync b b=all
           > store gen 2 range [b=all]
           > b: assigned all
         leave b a
           > rebalance: members left: b (no reason given)
           > store gen 3 - []
           > b: NONE UNKNOWN_MEMBER_ID
         describe
           > admin: Empty  []
         list
           > admin: g consumer Empty classic
         list stable
           > stable: ",
    );
}

#[test]
fn a_silent_member_is_out_when_its_session_ends() {
    check_after_two(
        "         wait 9999
         heartbeat a
           > a: ok
         wait 2
           > rebalance: the session of member b ended
         heartbeat b
           > b: UNKNOWN_MEMBER_ID
         heartbeat a
           > a: REBALANCE_IN_PROGRESS
         join a
           > a: joined gen 2 range leader a [a]",
    );
}

#[test]
fn the_last_session_to_end_leaves_an_empty_group() {
    check_after_two(
        "         wait 20000
           > rebalance: the session of member a ended
           > store gen 2 - []
         join a
           > a: UNKNOWN_MEMBER_ID",
    );
}

#[test]
fn a_new_member_is_not_kept_waiting_for_ever() {
    check_after_two(
        "         join a rebalance=1800000 session=1800000
           > rebalance: the leader joins again; client reason: not provided
         join b rebalance=1800000 session=1800000
           > a: joined gen 2 range leader a [a b]
           > b: joined gen 2 range leader a []
         sync b
         sync a a=A b=B
           > store gen 2 range [a=A b=B]
           > a: assigned A
           > b: assigned B
         join c v=3
           > rebalance: a new member joins; client reason: not provided
         join a rebalance=1800000 session=1800000
         wait 299999
         wait 1
           > c: UNKNOWN_MEMBER_ID
         join b
           > a: joined gen 3 range leader a [a b]
           > b: joined gen 3 range leader a []",
    );
}

#[test]
fn who_does_not_sync_is_out() {
    check(
        "join a v=3 session=1800000 rebalance=20000
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b v=3 session=1800000 rebalance=20000
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync b
         wait 19999
         wait 1
           > rebalance: members did not ask for their assignment in time
           > b: REBALANCE_IN_PROGRESS
         join b
           > b: joined gen 2 range leader b [b]
         heartbeat a
           > a: UNKNOWN_MEMBER_ID",
    );
}

#[test]
fn a_follower_that_never_syncs_is_out_too() {
    check(
        "join a v=3 session=1800000 rebalance=20000
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b v=3 session=1800000 rebalance=20000
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync a a=A b=B
           > store gen 1 range [a=A b=B]
           > a: assigned A
         wait 20000
           > rebalance: members did not ask for their assignment in time
         heartbeat a
           > a: REBALANCE_IN_PROGRESS",
    );
}

#[test]
fn generations_and_members_are_checked() {
    check_after_two(
        "         heartbeat a gen=0
           > a: ILLEGAL_GENERATION
         heartbeat a gen=2
           > a: ILLEGAL_GENERATION
         heartbeat a member=nobody
           > a: UNKNOWN_MEMBER_ID
         heartbeat a group=other
           > a: UNKNOWN_MEMBER_ID
         heartbeat a group=
           > a: INVALID_GROUP_ID
         sync a gen=7
           > a: ILLEGAL_GENERATION
         sync a member=nobody
           > a: UNKNOWN_MEMBER_ID
         join x member=nobody
           > x: UNKNOWN_MEMBER_ID
         join y member=nobody group=other
           > y: UNKNOWN_MEMBER_ID
         leave nobody
           > nobody: UNKNOWN_MEMBER_ID
         leave a group=other
           > a: UNKNOWN_MEMBER_ID",
    );
}

#[test]
fn protocols_must_have_one_in_common() {
    check_after_two(
        "         join c protos=sticky
           > c: INCONSISTENT_GROUP_PROTOCOL
         join c type=connect
           > c: INCONSISTENT_GROUP_PROTOCOL
         join c protos= group=other
           > c: INCONSISTENT_GROUP_PROTOCOL
         join a protos=sticky
           > a: INCONSISTENT_GROUP_PROTOCOL",
    );
}

#[test]
fn most_votes_choose_the_protocol() {
    check(
        "join a v=3 protos=range,sticky,rr
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b v=3 protos=rr,sticky
         join c v=3 protos=sticky,rr,odd
         wait 6000
           > a: joined gen 1 sticky leader a [a b c]
           > b: joined gen 1 sticky leader a []
           > c: joined gen 1 sticky leader a []",
    );
}

#[test]
fn a_follower_may_rejoin_without_a_rebalance_but_a_leader_rebalances() {
    check_after_two(
        "         join b
           > b: joined gen 1 range leader a []
         sync b
           > b: assigned B
         join b protos=range/changed
           > rebalance: a member's metadata changed; client reason: not provided
         join a
           > a: joined gen 2 range leader a [a b]
           > b: joined gen 2 range leader a []
         join a
           > a: joined gen 2 range leader a [a b]
         join b protos=range/changed
           > b: joined gen 2 range leader a []
         sync b
         sync a a=1 b=2
           > store gen 2 range [a=1 b=2]
           > a: assigned 1
           > b: assigned 2
         join a reason=topics
           > rebalance: the leader joins again; client reason: topics",
    );
}

#[test]
fn a_repeated_request_takes_the_place_of_the_first() {
    check_after_two(
        "         join c v=3
           > rebalance: a new member joins; client reason: not provided
         join b
         join b
           > b: REBALANCE_IN_PROGRESS
         join a
           > a: joined gen 2 range leader a [a b c]
           > b: joined gen 2 range leader a []
           > c: joined gen 2 range leader a []
         sync b
         sync b
           > b: REBALANCE_IN_PROGRESS",
    );
}

#[test]
fn a_member_that_leaves_while_others_wait_does_not_hold_them_up() {
    check(
        "join a v=3
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b v=3
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync b
         leave b
           > rebalance: members left: b (no reason given)
           > b: UNKNOWN_MEMBER_ID
           > b: NONE
         join a
           > a: joined gen 2 range leader a [a]",
    );
}

#[test]
fn members_that_the_leader_forgets_get_nothing() {
    check(
        "join a v=3
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         join b v=3
         wait 6000
           > a: joined gen 1 range leader a [a b]
           > b: joined gen 1 range leader a []
         sync a a=A nobody=N
           > store gen 1 range [a=A b=]
           > a: assigned A
         sync b
           > b: assigned ",
    );
}

#[test]
fn an_assignment_too_large_to_store_is_refused() {
    let config = GroupConfig { record_max_bytes: 200, ..GroupConfig::default() };
    let large = "x".repeat(200);
    check_with(
        config,
        &format!(
            "join a v=3
           > rebalance: a new member joins; client reason: not provided
           > store gen 0 - []
         wait 3000
           > a: joined gen 1 range leader a [a]
         sync a a={large}
           > rebalance: the assignment is too large to store
           > a: UNKNOWN_SERVER_ERROR
         join a
           > a: joined gen 2 range leader a [a]"
        ),
    );
}

#[test]
fn sessions_must_be_within_bounds() {
    check(
        "join a session=5999
           > a: INVALID_SESSION_TIMEOUT
         join a session=1800001
           > a: INVALID_SESSION_TIMEOUT
         join a group=
           > a: INVALID_GROUP_ID
         list
           > admin: ",
    );
}

#[test]
fn a_group_has_a_largest_size() {
    let config = GroupConfig { members_max: 2, ..GroupConfig::default() };
    check_with(
        config,
        &format!(
            "         {TWO}         join c v=3
           > c: GROUP_MAX_SIZE_REACHED
         join a
           > rebalance: the leader joins again; client reason: not provided
         join d v=3
         join b
           > b: GROUP_MAX_SIZE_REACHED
           > a: joined gen 2 range leader a [a d]
           > d: joined gen 2 range leader a []"
        ),
    );
}

#[test]
fn a_handed_out_member_id_is_forgotten_when_nobody_uses_it() {
    check(
        "join a
           > store gen 0 - []
           > a: MEMBER_ID_REQUIRED
         wait 10000
         join a
           > a: UNKNOWN_MEMBER_ID
         describe
           > admin: Empty  []",
    );
}

#[test]
fn a_rebalance_waits_for_a_handed_out_member_id() {
    check_after_two(
        "         join c
           > c: MEMBER_ID_REQUIRED
         join a
           > rebalance: the leader joins again; client reason: not provided
         join b
         join c
           > a: joined gen 2 range leader a [a b c]
           > b: joined gen 2 range leader a []
           > c: joined gen 2 range leader a []",
    );
}

#[test]
fn a_group_is_as_stored_after_a_restart() {
    check_after_two(
        "         join c v=3
           > rebalance: a new member joins; client reason: not provided
         restart
         describe
           > admin: Stable range [a=A b=B]
         heartbeat a
           > a: ok
         sync b
           > b: assigned B
         wait 5000
         heartbeat a
           > a: ok
         wait 5000
           > rebalance: the session of member b ended
         join a
           > a: joined gen 2 range leader a [a]",
    );
}

#[test]
fn only_an_empty_group_is_deleted() {
    check_after_two(
        "         delete
           > admin: NON_EMPTY_GROUP
         commit a t-0=5
           > store t-0=5
           > a: NONE
         leave a b
           > rebalance: members left: a (no reason given) b (no reason given)
           > store gen 2 - []
           > a: NONE NONE
         delete
           > forget t-0
           > forget g
           > admin: NONE
         delete
           > admin: GROUP_ID_NOT_FOUND
         describe
           > admin: Dead  []",
    );
}
